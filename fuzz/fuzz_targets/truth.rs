//! Records of links. However long or wrong, what is read is counted by its bytes, and a file that
//! was cut gives the records that were whole before the cut. The first byte says where. The flows of
//! a file have each of its packets, and two paths that follow one another differ.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use neph_lab::{Record, TruthError, TruthFile, evaluate_flows};

const HEADER: usize = 64;
const RECORD: usize = 56;

fuzz_target!(|bytes: &[u8]| {
    let Some((cut, bytes)) = bytes.split_first() else {
        return;
    };
    let Some((records, cut_off, is_complete)) = read(bytes) else {
        return;
    };
    let record_bytes = bytes.len() - HEADER;
    assert!(records.len() * RECORD + cut_off <= record_bytes);
    if is_complete {
        assert_eq!(records.len() * RECORD + cut_off, record_bytes);
        assert!(cut_off < RECORD);
    }
    assert_flow_invariants(&records);
    let kept_bytes = HEADER + record_bytes * usize::from(*cut) / 256;
    let (records_before_cut, cut_off, _) = read(&bytes[..kept_bytes]).expect("the header is there");
    assert!(records.starts_with(&records_before_cut));
    assert!(cut_off == 0 || cut_off == (kept_bytes - HEADER) % RECORD);
});

/// The records, how many bytes of a last one were left over, and whether none was damaged.
fn read(bytes: &[u8]) -> Option<(Vec<Record>, usize, bool)> {
    let mut file = TruthFile::from_reader(bytes, Path::new("x.truth")).ok()?;
    assert!(file.every() > 0 && file.link().chars().count() <= 48);
    let (mut records, mut is_complete) = (Vec::new(), true);
    for record in file.by_ref() {
        match record {
            Ok(record) => records.push(record),
            Err(TruthError::Damaged { offset, .. }) => {
                assert_eq!(offset as usize, HEADER + records.len() * RECORD);
                is_complete = false;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(file.next().is_none());
    Some((records, file.cut_off(), is_complete))
}

fn assert_flow_invariants(records: &[Record]) {
    let is_packet =
        |record: &&Record| matches!(record, Record::Packet { handling, .. } if !handling.is_copy);
    let packets = records.iter().filter(is_packet).count();
    let flows = evaluate_flows(records.iter().copied());
    assert_eq!(
        flows.values().map(|flow| flow.packets()).sum::<u64>(),
        packets as u64
    );
    for flow in flows.values() {
        assert!(
            flow.segments
                .windows(2)
                .all(|pair| pair[0].path != pair[1].path),
            "{flow:?}"
        );
        assert!(
            flow.segments
                .iter()
                .all(|segment| segment.first_arrival <= segment.last_arrival),
            "{flow:?}"
        );
        assert!(flow.reordered() + flow.lost() <= flow.packets(), "{flow:?}");
    }
}
