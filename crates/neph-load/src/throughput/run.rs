//! State that the threads of one end share.

use neph_model::{Permit, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::{TestRequest, Token};

use super::board::Board;
use super::course::Course;

/// Maximum delay until a set stop flag is noticed.
pub(super) const TICK: Span = Span::from_millis(50);

/// State that the threads of one end share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub(super) test_request: &'a TestRequest,
    pub(super) token: Token,
    pub(super) board: &'a Board,
    pub(super) stop: &'a Stop,
    /// Limit of sent and received data.
    pub(super) permit: &'a Permit,
    /// Pause of a receiver before each read, to emulate a busy one.
    pub(super) read_pause: Span,
}

impl Run<'_> {
    /// Bytes that the permit allows now, if they are `min` or more. Otherwise this rests for a moment,
    /// which counts as held by the policy since `now`.
    pub(super) fn room_or_rest(&self, min: usize, course: &mut Course, now: Span) -> Option<usize> {
        let room = self.permit.room(clock::raw().0);
        if room >= min {
            return Some(room);
        }
        clock::nap(Permit::REST.to_duration());
        course.held_by_policy_since(now);
        None
    }

    /// Deducts bytes that were sent, or read from a stream, from the permit.
    pub(super) fn spend(&self, bytes: usize) {
        self.permit.spend(bytes, clock::raw().0);
    }

    /// Deducts the bytes of a datagram that a peer sent, which nothing here can slow down.
    pub(super) fn spend_received(&self, bytes: usize) {
        self.permit.spend_received(bytes, clock::raw().0);
    }

    /// Duration of the sending.
    pub(super) fn duration(&self) -> Span {
        Span::from_nanos(i64::try_from(self.test_request.duration_ns).unwrap_or(i64::MAX))
    }

    /// The rate of one stream, if there is one; the same for all streams of a direction.
    pub(super) fn rate(&self) -> Option<neph_model::BitRate> {
        let streams = u64::from(self.test_request.streams.max(1));
        let rate = self.test_request.rate_bit_s?;
        Some(neph_model::BitRate((rate / streams).max(1)))
    }
}
