//! The messages of a fleet: a journal of fixed-size records for the open segment, a Parquet file
//! for each closed one.
//!
//! A segment closes while the experiment runs (after [`SEGMENT_MESSAGES`] or [`SEGMENT_TIME`]), on
//! a thread of its own that holds one row group at a time; so a week of messages needs the memory
//! of a minute, and recording never waits for it. Segments count from 1. Of a segment there is its
//! file, or its journal, or for a moment both, which say the same: whoever looks for the file and
//! then for the journal finds one of them.

mod counts;
pub mod fuzzing;
mod journal;
mod place;
mod record;
mod recorder;
mod segment;
mod table;
mod visit;

#[cfg(test)]
mod tests;

use neph_model::{ByteSize, Span};

pub(crate) use counts::Counts;
pub(crate) use place::FleetPlace;
pub(crate) use recorder::FleetRecorder;
pub(crate) use segment::{SegmentStep, close, close_all};
pub(crate) use visit::{counts, visit};

/// Messages after which a segment closes: 20 s of a fleet that sends 50,000 a second.
const SEGMENT_MESSAGES: u64 = 1 << 20;
/// Time after which one closes, however few messages there are, nanoseconds: until then they are
/// safe but only neph reads them.
const SEGMENT_TIME: i64 = 600 * 1_000_000_000;
/// What a message takes in a journal: its record, and its part of a frame.
const JOURNALLED_BYTES: u64 = record::RECORD_BYTES as u64 + 1;

/// What a fleet's journal takes at the most while it is measured, beside its closed segments;
/// `messages` are spread evenly over `time`.
pub fn most_journalled(messages: u64, time: Span) -> ByteSize {
    let (segment, time) = (SEGMENT_TIME.unsigned_abs(), time.nanos().unsigned_abs());
    let within = u128::from(messages) * u128::from(segment) / u128::from(time.max(segment));
    let open = u64::try_from(within).unwrap_or(u64::MAX);
    ByteSize(open.min(SEGMENT_MESSAGES) * JOURNALLED_BYTES)
}
