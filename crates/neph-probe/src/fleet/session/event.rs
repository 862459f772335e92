//! What a carrier tells a session.

use neph_model::{AtPeer, Instant, Own, SynAnswer, Wall};

/// What became of a request, as its carrier learnt it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// The kernel says when it left.
    Departed(Departed),
    /// A reply to it came.
    Replied(Replied),
    /// It could not be sent, as was learnt later.
    Failed(Known),
}

/// Which request it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Our port.
    pub(crate) port: u16,
    /// The low half of its number within the flow.
    pub(crate) seq: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departed {
    pub(crate) request: Known,
    pub(crate) at: Instant<Own>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Replied {
    pub(crate) request: Known,
    /// The kernel's reading, if there is one.
    pub(crate) stamp: Option<Instant<Own>>,
    /// The program's.
    pub(crate) read: Instant<Own>,
    pub(crate) ttl: Option<u8>,
    pub(crate) at_peer: Option<AtPeer>,
    /// Of a SYN.
    pub(crate) answer: Option<SynAnswer>,
    /// The time of its request that it repeats, where the protocol has that.
    pub(crate) repeated: Option<Wall>,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers wrap as STAMP's do"
)]
pub(crate) const fn low(seq: u64) -> u32 {
    seq as u32
}
