//! What a session tells the book of its messages, and what it expects. Plain data.

use neph_model::{Answer, Instant, Outcome, Own};
use neph_wire::marks::PeerMarks as WireMarks;

/// Which marks may still come after the reply, so that a message waits for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expect {
    /// The kernel tells when a request left.
    pub(crate) sent: bool,
    /// The reflector tells its send stamp with its next reply.
    pub(crate) peer_send: bool,
    /// The kernel tells acknowledgements.
    pub(crate) ack: bool,
}

/// What a flow's messages are: decides whether one that was only dialled has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Requests, which need a connection first.
    Messages,
    /// Nothing but connections: the dialling itself is the request.
    Connections,
}

/// At which point of its way out a message was stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendPoint {
    Queued,
    NicTx,
    Acked,
}

/// What came back for one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// When our kernel received its last byte, if it is known for this very message.
    pub(crate) nic_rx: Option<Instant<Own>>,
    /// When the program had read it.
    pub(crate) app_recv: Instant<Own>,
    /// The reflector's marks, if the peer is one.
    pub(crate) marks: Option<WireMarks>,
    /// In the protocol's words, where it has any.
    pub(crate) answer: Option<Answer>,
    /// [`Outcome::Reply`], or [`Outcome::Error`] where the answer is not an expected one.
    pub(crate) outcome: Outcome,
}
