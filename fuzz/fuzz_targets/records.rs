//! The reader of capture files alone, step by step: a record lies in the bytes that are passed over,
//! each step goes on or asks for more than there is, and a file that is cut gives what came before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use neph_wire::capture::{CaptureReader, MAX_FRAME_BYTES, Step};

/// Where a file's reading ended, and what it gave: lengths, times, places.
fn read(file: &[u8]) -> (Vec<(Option<i64>, u32, usize)>, usize) {
    let (mut reader, mut offset, mut records) = (CaptureReader::new(), 0, Vec::new());
    // A step that passes nothing over has learnt what format it is: that happens once.
    let mut is_format_known = false;
    loop {
        let unread = &file[offset..];
        match reader.step(unread) {
            Ok(Step::Packet(record, consumed)) => {
                assert!(record.bytes.len() <= consumed && consumed <= unread.len());
                assert!(record.bytes.len() as u64 <= u64::from(record.length.min(MAX_FRAME_BYTES)));
                records.push((record.at, record.length, offset));
                offset += consumed;
            }
            Ok(Step::Skip(consumed)) => {
                assert!(consumed <= unread.len() && (consumed > 0 || !is_format_known));
                is_format_known |= consumed == 0;
                offset += consumed;
            }
            Ok(Step::Need(needed)) => {
                assert!(needed > unread.len());
                return (records, offset);
            }
            Err(_) => return (records, offset),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [cut, file @ ..] = bytes else { return };
    let (all_records, end) = read(file);
    let kept = file.len() - usize::from(*cut).min(file.len());
    let (records_before_cut, end_before_cut) = read(&file[..kept]);
    assert!(end_before_cut <= end && records_before_cut.len() <= all_records.len());
    assert_eq!(
        records_before_cut[..],
        all_records[..records_before_cut.len()]
    );
});
