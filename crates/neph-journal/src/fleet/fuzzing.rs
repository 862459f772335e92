//! Journals of arbitrary frames, for the fuzz target in the repository's `fuzz/`. Not part of the
//! crate's interface. Always compiled, so that a change of the format cannot break it unnoticed.

use std::fs;
use std::path::Path;

use neph_model::{ExperimentId, FleetMessage};

use super::record::{RECORD_BYTES, decode, encode};
use super::segment::{SegmentReader, header};
use super::segment_path;
use crate::frames::{FRAME_HEADER_BYTES, encode_file};

const EXPERIMENT: [u8; 16] = [7; 16];

fn read(folder: &Path, bytes: &[u8]) -> Vec<FleetMessage> {
    let experiment = ExperimentId::from_bytes(EXPERIMENT);
    fs::write(segment_path(folder, 1), bytes).expect("the target's own folder");
    let mut reader = SegmentReader::open(folder, experiment, 1)
        .expect("readable")
        .expect("just written");
    let (mut messages, mut batch) = (Vec::new(), Vec::new());
    while reader.next(&mut batch).expect("readable") {
        messages.extend_from_slice(&batch);
    }
    messages
}

/// Reads `bytes` as a segment's journal; returns the number of messages.
///
/// # Panics
/// When there are more messages than the bytes can contain.
pub fn check_complete(folder: &Path, bytes: &[u8]) -> usize {
    let count = read(folder, bytes).len();
    assert!(
        count <= bytes.len() / RECORD_BYTES,
        "messages out of nothing"
    );
    count
}

/// Writes a journal with frames of `payloads` with correct checksums, then the unchanged `tail`,
/// and reads it back.
///
/// # Panics
/// When the result is not a prefix of the frames, or a message changes when written and read.
pub fn framed(folder: &Path, payloads: &[&[u8]], tail: &[u8]) {
    let header = header(ExperimentId::from_bytes(EXPERIMENT), 1);
    let (mut bytes, _) = encode_file(&header, payloads);
    let written = payloads.concat();
    bytes.extend_from_slice(tail);
    let messages = read(folder, &bytes);
    let max_messages =
        (written.len() + tail.len().saturating_sub(FRAME_HEADER_BYTES)) / RECORD_BYTES;
    assert!(messages.len() <= max_messages, "messages out of nothing");
    let (chunks, _) = written.as_chunks::<RECORD_BYTES>();
    for (message, chunk) in messages.iter().zip(chunks) {
        assert_eq!(decode(chunk).as_ref(), Some(message), "no prefix");
        let mut encoded = Vec::new();
        encode(message, &mut encoded);
        let reread = encoded
            .as_chunks::<RECORD_BYTES>()
            .0
            .first()
            .and_then(decode);
        assert_eq!(
            reread.as_ref(),
            Some(message),
            "written, it reads as another"
        );
    }
}
