//! Segments that wait while their flows are fetched from memory.
//!
//! Owns where they lie. Their places are made once and written over, field by field: a segment that is
//! made elsewhere and moved costs a tenth of the time that a packet takes.

use neph_model::Wall;

use super::Passed;
use super::key::{End, Key};
use crate::tcp::Segment;

/// So many wait together.
const TOGETHER: usize = 24;
/// No place in the table.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A segment, and where its flow is or was.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) hash: u64,
    pub(super) key: Key,
    pub(super) place: u32,
    pub(super) passed: Passed,
}

/// What is larger takes more of the processor's own memory.
const _: () = assert!(size_of::<Arrived>() <= 128);

/// Some of them, in their order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// None before the first arrives, or as many as wait together.
    places: Vec<Arrived>,
    used: usize,
}

impl Batch {
    /// The place of the next one, with something in it. There is one, unless the batch is full.
    #[inline]
    pub(super) fn next(&mut self) -> &mut Arrived {
        if self.places.is_empty() {
            self.places = vec![nothing(); TOGETHER];
        }
        let place = self.used;
        self.used += 1;
        &mut self.places[place]
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.used
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.used >= TOGETHER
    }

    pub(super) fn all(&self) -> &[Arrived] {
        &self.places[..self.used]
    }

    pub(super) fn all_mut(&mut self) -> &mut [Arrived] {
        &mut self.places[..self.used]
    }

    /// All of them; none is there any more.
    pub(super) fn drain(&mut self) -> &[Arrived] {
        let used = std::mem::take(&mut self.used);
        &self.places[..used]
    }
}

#[cold]
fn nothing() -> Arrived {
    Arrived {
        hash: 0,
        key: Key::default(),
        place: NOWHERE,
        passed: Passed {
            at: Wall::from_unix_nanos(0),
            sender: End::Lower,
            bytes: 0,
            segment: Segment::default(),
        },
    }
}
