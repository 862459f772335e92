//! The reader of capture files alone, step by step: a record lies in the bytes that are passed over,
//! each step goes on or asks for more than there is, and a file that is cut gives what came before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::capture::{CaptureReader, MAX_FRAME_BYTES, Step};

/// Where a file's reading ended, and what it gave: lengths, times, places.
fn read(file: &[u8]) -> (Vec<(Option<i64>, u32, usize)>, usize) {
    let (mut reader, mut at, mut found) = (CaptureReader::new(), 0, Vec::new());
    // A step that passes nothing over has learnt what format it is: that happens once.
    let mut stood = false;
    loop {
        let rest = &file[at..];
        match reader.step(rest) {
            Ok(Step::Packet(record, used)) => {
                assert!(record.bytes.len() <= used && used <= rest.len());
                assert!(record.bytes.len() as u64 <= u64::from(record.length.min(MAX_FRAME_BYTES)));
                found.push((record.at, record.length, at));
                at += used;
            }
            Ok(Step::Skip(used)) => {
                assert!(used <= rest.len() && (used > 0 || !stood));
                stood |= used == 0;
                at += used;
            }
            Ok(Step::Need(needed)) => {
                assert!(needed > rest.len());
                return (found, at);
            }
            Err(_) => return (found, at),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [cut, file @ ..] = bytes else { return };
    let (whole, end) = read(file);
    let kept = file.len() - usize::from(*cut).min(file.len());
    let (part, part_end) = read(&file[..kept]);
    assert!(part_end <= end && part.len() <= whole.len());
    assert_eq!(part[..], whole[..part.len()]);
});
