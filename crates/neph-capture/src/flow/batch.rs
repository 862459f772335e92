//! Segments that wait while their flows are fetched from memory.
//!
//! Owns their places, which are allocated once and overwritten field by field. Moving a segment into its
//! place instead would take a tenth of the time per packet.

use neph_model::Wall;

use super::FlowSegment;
use super::key::{Key, KeyEnd};
use crate::tcp::Segment;

/// Segments that wait together.
const BATCH_SIZE: usize = 24;
/// No place in the table.
pub(super) const NO_INDEX: u32 = u32::MAX;

/// A segment, and the place of its flow.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) hash: u64,
    pub(super) key: Key,
    pub(super) index: u32,
    pub(super) flow_segment: FlowSegment,
}

/// A larger one takes more of the processor's cache.
const _: () = assert!(size_of::<Arrival>() <= 128);

/// A batch of segments, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Empty before the first segment, then a full batch.
    arrivals: Vec<Arrival>,
    used: usize,
}

impl Batch {
    /// The place of the next segment, with old content. There is one, unless the batch is full.
    #[inline]
    pub(super) fn next_place(&mut self) -> &mut Arrival {
        if self.arrivals.is_empty() {
            self.arrivals = vec![empty_arrival(); BATCH_SIZE];
        }
        let index = self.used;
        self.used += 1;
        &mut self.arrivals[index]
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.used
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.used >= BATCH_SIZE
    }

    pub(super) fn filled(&self) -> &[Arrival] {
        &self.arrivals[..self.used]
    }

    pub(super) fn filled_mut(&mut self) -> &mut [Arrival] {
        &mut self.arrivals[..self.used]
    }

    /// Removes and returns all segments.
    pub(super) fn drain(&mut self) -> &[Arrival] {
        let used = std::mem::take(&mut self.used);
        &self.arrivals[..used]
    }
}

#[cold]
fn empty_arrival() -> Arrival {
    Arrival {
        hash: 0,
        key: Key::default(),
        index: NO_INDEX,
        flow_segment: FlowSegment {
            at: Wall::from_unix_nanos(0),
            sender: KeyEnd::Lower,
            bytes: 0,
            segment: Segment::default(),
        },
    }
}
