//! The journals of a fleet's messages: a file of fixed-size records for each segment.
//!
//! A segment is full after [`SEGMENT_MESSAGES`] or [`SEGMENT_TIME`]; the next message starts the
//! next one. Segments are numbered from 1. A store converts full segments to columns while the
//! experiment runs.

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

/// Messages of a full segment: 20 s of a fleet that sends 50,000 per second.
pub const SEGMENT_MESSAGES: u64 = 1 << 20;
/// Duration of a full segment with fewer messages, nanoseconds. Until it is full, its messages are
/// safe, but only neph can read them.
pub const SEGMENT_TIME: i64 = 600 * 1_000_000_000;
/// Bytes of a message in a journal: its record, and its share of a frame.
pub const JOURNALLED_BYTES: u64 = record::RECORD_BYTES as u64 + 1;

/// The largest size of a fleet's open segment for `messages` that are spread evenly over `time`.
pub fn most_journalled(messages: u64, time: Span) -> ByteSize {
    let (segment, time) = (SEGMENT_TIME.unsigned_abs(), time.nanos().unsigned_abs());
    let segment_messages =
        u128::from(messages) * u128::from(segment) / u128::from(time.max(segment));
    let open = u64::try_from(segment_messages).unwrap_or(u64::MAX);
    ByteSize(open.min(SEGMENT_MESSAGES) * JOURNALLED_BYTES)
}

/// The path of a segment's journal in the folder of its fleet.
pub fn segment_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:05}.journal"))
}

/// The numbers of the segments that have a file with this extension in `folder`, in order. None if
/// there is no such folder.
///
/// # Errors
/// A file operation failed.
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
    let has_extension = path.extension() == Some(OsStr::new(extension));
    let stem = path.file_stem()?.to_str()?;
    has_extension.then(|| stem.parse().ok()).flatten()
}

/// Passes the messages of a fleet's journals to `visit`, in the order of recording, in batches that
/// fit in memory.
///
/// # Errors
/// A file operation failed, or `visit` returned an error, which ends the iteration.
pub fn visit_fleet<E: From<JournalError>>(
    folder: &Path,
    experiment: ExperimentId,
    visit: &mut dyn FnMut(&[FleetMessage]) -> Result<(), E>,
) -> Result<(), E> {
    for number in segment_numbers(folder, "journal")? {
        let Some(mut reader) = SegmentReader::open(folder, experiment, number)? else {
            continue;
        };
        let mut batch = Vec::new();
        while reader.next(&mut batch)? {
            visit(&batch)?;
        }
    }
    Ok(())
}
