//! Counts of requests and answers, and their round trips.

use neph_model::Span;
use neph_stats::Sketches;

use crate::flow::Quantiles;
use crate::sample::Half;

/// Requests, answers and round trips of one pair or of several.
#[derive(Debug, Clone, Default)]
pub struct ExchangeCounts {
    pub(super) packets: u64,
    pub(super) requests: u64,
    pub(super) answered: u64,
    /// Requests without a known outcome, because too many were waiting.
    pub(super) requests_not_tracked: u64,
    /// Answers without a request in this capture.
    pub(super) responses_without_request: u64,
    /// Answers with an earlier timestamp than their requests.
    pub(super) negative_round_trips: u64,
    /// Round trips per half. Those of the client's half exist for QUIC only.
    round_trips: Sketches,
}

impl ExchangeCounts {
    /// Counts a round trip with its weight.
    pub(super) fn add_round_trip(&mut self, half: Half, round_trip: Span, weight: u64) {
        let nanos = u64::try_from(round_trip.nanos()).unwrap_or(0);
        self.round_trips.add_times(half as u8, nanos, weight);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.requests += other.requests;
        self.answered += other.answered;
        self.requests_not_tracked += other.requests_not_tracked;
        self.responses_without_request += other.responses_without_request;
        self.negative_round_trips += other.negative_round_trips;
        self.round_trips.merge(&other.round_trips);
    }

    /// Removes round trips that are not trusted.
    pub(super) fn without_round_trips(self) -> Self {
        Self {
            round_trips: Sketches::default(),
            ..self
        }
    }

    /// Packets of both sides.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Requests, each counted once even if repeated; 0 for QUIC.
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Requests that were answered; 0 for QUIC.
    pub const fn answered(&self) -> u64 {
        self.answered
    }

    /// Requests without a known outcome, because more were waiting than there is room for; included in
    /// [`Self::requests`].
    pub const fn requests_not_tracked(&self) -> u64 {
        self.requests_not_tracked
    }

    /// Answers without a waiting request: it passed another point, passed before the capture, or was
    /// answered already.
    pub const fn responses_without_request(&self) -> u64 {
        self.responses_without_request
    }

    /// Answers with an earlier timestamp than their request: they have no round trip. 0 for QUIC.
    pub const fn negative_round_trips(&self) -> u64 {
        self.negative_round_trips
    }

    /// Round trips between the capture point and the end behind `half`, including its time to answer. Those
    /// of the client's half exist for QUIC only.
    pub fn round_trips(&self, half: Half) -> Option<Quantiles> {
        self.round_trips
            .of([half as u8])
            .as_ref()
            .map(Quantiles::from_selection)
    }
}
