//! Events that a transport reports to a session.

use neph_model::{Instant, Local, PeerReport, SynAnswer, Wall};

/// What happened to a request, as known to its transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// The kernel reported when it left.
    Departed(Departed),
    /// A reply to it arrived.
    Replied(Replied),
    /// It could not be sent, as was found later.
    Failed(RequestId),
}

/// The request of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    /// Source port.
    pub(crate) port: u16,
    /// The low half of its number within the flow.
    pub(crate) seq: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departed {
    pub(crate) request: RequestId,
    pub(crate) at: Instant<Local>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Replied {
    pub(crate) request: RequestId,
    /// The kernel's timestamp, if there is one.
    pub(crate) stamp: Option<Instant<Local>>,
    /// The program's reading.
    pub(crate) read: Instant<Local>,
    pub(crate) ttl: Option<u8>,
    pub(crate) peer_report: Option<PeerReport>,
    /// For a SYN.
    pub(crate) answer: Option<SynAnswer>,
    /// The repeated time of its request, where the protocol has one.
    pub(crate) repeated: Option<Wall>,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers wrap as STAMP's do"
)]
pub(crate) const fn low(seq: u64) -> u32 {
    seq as u32
}
