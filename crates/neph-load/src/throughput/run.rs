//! What the threads of one end share.

use neph_model::{Permit, Span, Stop};
use neph_sys::clock;
use neph_wire::throughput::{Ask, Token};

use super::board::Board;

/// How soon a set stop flag is seen.
pub(super) const TICK: Span = Span::from_millis(50);
/// After how long a permit that had no room is asked a second time.
pub(super) const BUDGET_REST: Span = Span::from_millis(1);

/// What the threads of one end share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub(super) ask: &'a Ask,
    pub(super) token: Token,
    pub(super) board: &'a Board,
    pub(super) stop: &'a Stop,
    /// What may be sent and received.
    pub(super) permit: &'a Permit,
    /// A receiver waits this long before each read, as a busy one would.
    pub(super) read_pause: Span,
}

impl Run<'_> {
    /// How many bytes may go now.
    pub(super) fn room(&self) -> usize {
        self.permit.room(clock::raw().0)
    }

    /// So many bytes went, or came.
    pub(super) fn spend(&self, bytes: usize) {
        self.permit.spend(bytes, clock::raw().0);
    }

    /// For how long data is sent.
    pub(super) fn duration(&self) -> Span {
        Span::from_nanos(i64::try_from(self.ask.duration_ns).unwrap_or(i64::MAX))
    }

    /// The rate of one stream, if one was asked: all of a direction have the same.
    pub(super) fn rate(&self) -> Option<neph_model::BitRate> {
        let streams = u64::from(self.ask.streams.max(1));
        let rate = self.ask.rate_bit_s?;
        Some(neph_model::BitRate((rate / streams).max(1)))
    }
}
