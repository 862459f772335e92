//! What is counted of questions and answers: how many, and how long the round trips took.

use neph_model::Span;
use neph_stats::Sketches;

use crate::flow::Quantiles;
use crate::sample::Half;

/// Questions, answers and round trips of one pair or of several.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    pub(super) packets: u64,
    pub(super) asked: u64,
    pub(super) answered: u64,
    /// Questions of which it is not known whether they were answered: too many waited.
    pub(super) not_followed: u64,
    /// Answers to nothing that was asked here.
    pub(super) unasked: u64,
    /// Answers stamped before their questions.
    pub(super) backwards: u64,
    /// Of each half: of the client's there are some for QUIC alone.
    trips: Sketches,
    /// How many round trips those stand for that were measured, less these; by half.
    unseen: [u64; 2],
}

impl Counted {
    /// A round trip that stands for so many.
    pub(super) fn trip(&mut self, half: Half, trip: Span, weight: u64) {
        let nanos = u64::try_from(trip.nanos()).unwrap_or(0);
        self.trips.add_times(half as u8, nanos, weight);
        self.unseen[half as usize] += weight - 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.asked += other.asked;
        self.answered += other.answered;
        self.not_followed += other.not_followed;
        self.unasked += other.unasked;
        self.backwards += other.backwards;
        self.trips.merge(&other.trips);
        for (all, unseen) in self.unseen.iter_mut().zip(other.unseen) {
            *all += unseen;
        }
    }

    /// Forgets round trips that are not believed.
    pub(super) fn without_trips(self) -> Self {
        Self {
            trips: Sketches::default(),
            unseen: [0; 2],
            ..self
        }
    }

    /// Packets of both sides.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Questions, each counted once however often it was asked; 0 of QUIC.
    pub const fn asked(&self) -> u64 {
        self.asked
    }

    /// Questions that were answered; 0 of QUIC.
    pub const fn answered(&self) -> u64 {
        self.answered
    }

    /// Questions of which it is not known whether they were answered, since more waited for an answer than
    /// there is room for; part of those asked.
    pub const fn not_followed(&self) -> u64 {
        self.not_followed
    }

    /// Answers to nothing that was asked here: the question passed elsewhere or before the capture, or was
    /// answered before.
    pub const fn unasked(&self) -> u64 {
        self.unasked
    }

    /// Answers that are stamped before what was asked: they have no round trip. 0 of QUIC.
    pub const fn backwards(&self) -> u64 {
        self.backwards
    }

    /// Round trips between the point of capture and the end behind `half`, its time to answer
    /// included; of the client's half there are some for QUIC alone.
    pub fn trips(&self, half: Half) -> Option<Quantiles> {
        let trips = self.trips.of([half as u8]);
        let unseen = self.unseen[half as usize];
        trips.as_ref().map(|trips| Quantiles::of(trips, unseen))
    }
}
