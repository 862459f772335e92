//! The messages of a fleet: a journal of fixed-size records for the open segment, a Parquet file
//! for each closed one.
//!
//! A segment closes while the experiment runs (after
//! [`SEGMENT_MESSAGES`](neph_journal::SEGMENT_MESSAGES) or
//! [`SEGMENT_TIME`](neph_journal::SEGMENT_TIME)), on a thread of its own that holds one row group at a time; so a week of messages needs the memory
//! of a minute, and recording never waits for it. Segments count from 1. Of a segment there is its
//! file, or its journal, or for a moment both, which say the same: whoever looks for the file and
//! then for the journal finds one of them.

mod counts;
mod place;
mod recorder;
mod segment;
mod table;
mod visit;

#[cfg(test)]
mod tests;

pub(crate) use counts::Counts;
pub(crate) use place::FleetPlace;
pub(crate) use recorder::FleetRecorder;
pub(crate) use segment::{SegmentStep, close, close_all, copy_all};
pub(crate) use visit::{counts, visit};
