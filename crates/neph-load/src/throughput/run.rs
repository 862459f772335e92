//! What the threads of one end share.

use neph_model::{Span, Stop};
use neph_wire::throughput::{Ask, Token};

use super::board::Board;

/// How soon a set stop flag is seen.
pub(super) const TICK: Span = Span::from_millis(50);

/// What the threads of one end share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    pub(super) ask: &'a Ask,
    pub(super) token: Token,
    pub(super) board: &'a Board,
    pub(super) stop: &'a Stop,
    /// A receiver waits this long before each read, as a busy one would.
    pub(super) read_pause: Span,
}

impl Run<'_> {
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
