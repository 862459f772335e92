//! Journals of running experiments: records survive a kill as soon as the recording call returns.
//!
//! Owns the files that a [`Recorder`](neph_model::Recorder) appends to, one for an experiment and
//! one for each segment of its fleet, and reads them up to the last complete record. Does not need
//! a catalog or columnar files: an agent uses only this crate, and the embedded store builds on it.

mod bytes;
mod error;
mod experiment;
mod fleet;
mod frames;
mod log;
mod recorder;
#[cfg(test)]
mod records_for_tests;

pub use error::{JournalError, is_disk_full};
#[doc(hidden)]
pub use experiment::fuzzing;
pub use experiment::{Contents, JournalWriter};
#[doc(hidden)]
pub use fleet::fuzzing as fleet_fuzzing;
pub use fleet::{
    FleetWriter, JOURNALLED_BYTES, SEGMENT_MESSAGES, SEGMENT_TIME, SegmentReader, most_journalled,
    segment_numbers, segment_path, visit_fleet,
};
pub use log::{LogWriter, read_log};
pub use recorder::{JournalRecorder, fleet_folder, journal_path};
