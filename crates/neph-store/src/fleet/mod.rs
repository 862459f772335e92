//! The messages of a fleet: a journal of fixed-size records for the open segment, a Parquet file
//! for each closed one.
//!
//! A segment closes while the experiment runs, after
//! [`SEGMENT_MESSAGES`](neph_journal::SEGMENT_MESSAGES) or
//! [`SEGMENT_TIME`](neph_journal::SEGMENT_TIME). A separate thread with one row group in memory
//! closes it. So a week of messages needs the memory of a minute, and recording never waits.
//! Segments count from 1. A segment has its file, its journal, or for a moment both with the same
//! contents. A reader that looks for the file first and then for the journal finds one of them.

mod counts;
mod folders;
mod recorder;
mod segment;
mod table;
mod visit;

#[cfg(test)]
mod tests;

pub(crate) use counts::Counts;
pub(crate) use folders::FleetFolders;
pub(crate) use recorder::FleetRecorder;
pub(crate) use segment::{SegmentStep, close, close_all, copy_all};
pub(crate) use visit::{counts, visit};
