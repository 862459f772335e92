//! The journals of a fleet's messages: a file of fixed-size records for each segment.
//!
//! A segment is full after [`SEGMENT_MESSAGES`] or [`SEGMENT_TIME`]; the next message opens the next one.
//! Segments count from 1. A store makes columns of full segments while the experiment runs.

pub mod fuzzing;
mod record;
mod segment;
mod writer;

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use neph_model::{ByteSize, ExperimentId, FleetMessage, Span};

use crate::JournalError;
pub use segment::SegmentReader;
pub use writer::FleetWriter;

/// Messages after which a segment is full: 20 s of a fleet that sends 50,000 a second.
pub const SEGMENT_MESSAGES: u64 = 1 << 20;
/// Time after which one is full, however few messages there are, nanoseconds: until then they are
/// safe but only neph reads them.
pub const SEGMENT_TIME: i64 = 600 * 1_000_000_000;
/// What a message takes in a journal: its record, and its part of a frame.
pub const JOURNALLED_BYTES: u64 = record::RECORD_BYTES as u64 + 1;

/// What a fleet's journal takes at the most while it is measured, next to its closed segments;
/// `messages` are spread evenly over `time`.
pub fn most_journalled(messages: u64, time: Span) -> ByteSize {
    let (segment, time) = (SEGMENT_TIME.unsigned_abs(), time.nanos().unsigned_abs());
    let within = u128::from(messages) * u128::from(segment) / u128::from(time.max(segment));
    let open = u64::try_from(within).unwrap_or(u64::MAX);
    ByteSize(open.min(SEGMENT_MESSAGES) * JOURNALLED_BYTES)
}

/// The journal of a segment in the folder of its fleet.
pub fn segment_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:05}.journal"))
}

/// The numbers of the segments that have a file with this extension in `folder`, in order. No such
/// folder is an empty one.
///
/// # Errors
/// The disk refuses.
pub fn segment_numbers(folder: &Path, extension: &str) -> Result<Vec<u32>, JournalError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(JournalError::file("list", folder)(error)),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let entry = entry.map_err(JournalError::file("list", folder))?;
        numbers.extend(number_of(&entry.path(), extension));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn number_of(path: &Path, extension: &str) -> Option<u32> {
    let ours = path.extension() == Some(OsStr::new(extension));
    let stem = path.file_stem()?.to_str()?;
    ours.then(|| stem.parse().ok()).flatten()
}

/// Hands out the messages in the journals of a fleet, as they were recorded, in batches that fit in
/// memory.
///
/// # Errors
/// The disk refuses, or the error of `give`, which ends the visit.
pub fn visit_fleet<E: From<JournalError>>(
    folder: &Path,
    experiment: ExperimentId,
    give: &mut dyn FnMut(&[FleetMessage]) -> Result<(), E>,
) -> Result<(), E> {
    for number in segment_numbers(folder, "journal")? {
        let Some(mut reader) = SegmentReader::open(folder, experiment, number)? else {
            continue;
        };
        let mut batch = Vec::new();
        while reader.next(&mut batch)? {
            give(&batch)?;
        }
    }
    Ok(())
}
