//! Journals of arbitrary payloads, for the fuzz targets in the repository's `fuzz/`.
//!
//! Owns the invariants of any journal. Not part of the crate's interface. Always compiled, so that
//! a change of the format cannot break it unnoticed.

use std::fs;
use std::path::Path;

use neph_model::{ExperimentId, Message};

use super::reader::JournalReader;
use super::{HEADER_BYTES, Record, encode, header};
use crate::frames::{FRAME_HEADER_BYTES, encode_file};

/// Writes a journal to `path` with frames of `payloads` with correct checksums, then the unchanged
/// `tail`, and reads it back. Returns its messages.
///
/// # Panics
/// When the result is not a prefix of the frames, or a record changes when written and read.
pub fn framed(path: &Path, payloads: &[&[u8]], tail: &[u8]) -> Vec<Message> {
    let experiment = ExperimentId::from_bytes([7; 16]);
    let (mut bytes, offsets) = encode_file(&header(experiment), payloads);
    bytes.extend_from_slice(tail);
    let records = read(path, experiment, &bytes);
    let record_offsets: Vec<u64> = records.iter().map(|(begin, _)| *begin).collect();
    let common_count = record_offsets.len().min(offsets.len());
    assert_eq!(
        record_offsets[..common_count],
        offsets[..common_count],
        "no prefix"
    );
    assert!(
        record_offsets.len() == common_count || tail.len() > FRAME_HEADER_BYTES,
        "records out of nothing"
    );
    records
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Message(message) => Some(*message),
            Record::Event(_) | Record::Sample(_) => None,
        })
        .collect()
}

/// Reads `bytes` as a journal; takes the experiment's identity from them if they have one. Returns
/// the number of records.
///
/// # Panics
/// When there are more records than the bytes can contain.
pub fn check_complete(path: &Path, bytes: &[u8]) -> usize {
    let identity = bytes
        .get(12..28)
        .and_then(|identity| identity.try_into().ok());
    let experiment = ExperimentId::from_bytes(identity.unwrap_or([7; 16]));
    let count = read(path, experiment, bytes).len();
    assert!(count <= bytes.len().saturating_sub(HEADER_BYTES) / FRAME_HEADER_BYTES);
    count
}

fn read(path: &Path, experiment: ExperimentId, bytes: &[u8]) -> Vec<(u64, Record)> {
    fs::write(path, bytes).expect("the target's own folder");
    let mut reader = JournalReader::open(path, experiment)
        .expect("readable")
        .expect("just written");
    let records: Vec<(u64, Record)> =
        std::iter::from_fn(|| reader.next(|record| record).expect("readable")).collect();
    for (_, record) in &records {
        check(record);
    }
    records
}

/// Checks that a record that is written and read has the same encoding again.
fn check(record: &Record) {
    let mut encoded = Vec::new();
    write(record, &mut encoded);
    let reread = super::decode::record(&encoded).expect("what we write reads");
    let mut copy = Vec::new();
    write(&reread, &mut copy);
    assert_eq!(encoded, copy, "{record:?}");
}

fn write(record: &Record, out: &mut Vec<u8>) {
    match record {
        Record::Message(message) => encode::message(message, out),
        Record::Event(event) => encode::event(event, out),
        Record::Sample(sample) => encode::sample(sample, out),
    }
}
