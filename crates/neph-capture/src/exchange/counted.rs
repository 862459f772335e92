//! Counts of questions and answers, and their round trips.

use neph_model::Span;
use neph_stats::Sketches;

use crate::flow::Quantiles;
use crate::sample::Half;

/// Questions, answers and round trips of one pair or of several.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    pub(super) packets: u64,
    pub(super) questions: u64,
    pub(super) answered: u64,
    /// Questions without a known outcome, because too many were waiting.
    pub(super) not_followed: u64,
    /// Answers without a question in this capture.
    pub(super) unasked: u64,
    /// Answers with an earlier timestamp than their questions.
    pub(super) backwards: u64,
    /// Round trips per half. Those of the client's half exist for QUIC only.
    round_trips: Sketches,
}

impl Counted {
    /// Counts a round trip with its weight.
    pub(super) fn add_round_trip(&mut self, half: Half, round_trip: Span, weight: u64) {
        let nanos = u64::try_from(round_trip.nanos()).unwrap_or(0);
        self.round_trips.add_times(half as u8, nanos, weight);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.questions += other.questions;
        self.answered += other.answered;
        self.not_followed += other.not_followed;
        self.unasked += other.unasked;
        self.backwards += other.backwards;
        self.round_trips.merge(&other.round_trips);
    }

    /// Removes round trips that are not trusted.
    pub(super) fn without_trips(self) -> Self {
        Self {
            round_trips: Sketches::default(),
            ..self
        }
    }

    /// Packets of both sides.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Questions, each counted once even if repeated; 0 for QUIC.
    pub const fn questions(&self) -> u64 {
        self.questions
    }

    /// Questions that were answered; 0 for QUIC.
    pub const fn answered(&self) -> u64 {
        self.answered
    }

    /// Questions without a known outcome, because more were waiting than there is room for; included in
    /// [`Self::asked`].
    pub const fn not_followed(&self) -> u64 {
        self.not_followed
    }

    /// Answers without a waiting question: it passed another point, passed before the capture, or was
    /// answered already.
    pub const fn unasked(&self) -> u64 {
        self.unasked
    }

    /// Answers with an earlier timestamp than their question: they have no round trip. 0 for QUIC.
    pub const fn backwards(&self) -> u64 {
        self.backwards
    }

    /// Round trips between the capture point and the end behind `half`, including its time to answer. Those
    /// of the client's half exist for QUIC only.
    pub fn round_trips(&self, half: Half) -> Option<Quantiles> {
        self.round_trips
            .of([half as u8])
            .as_ref()
            .map(Quantiles::of)
    }
}
