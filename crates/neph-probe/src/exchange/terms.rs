//! Plain data that a session passes to the records of its messages.

use neph_model::{Answer, Instant, Local, Outcome};
use neph_wire::marks::PeerMarks as WireMarks;

/// The timestamps that may still arrive after the reply, so that a message waits for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expect {
    /// The kernel reports when a request left.
    pub(crate) sent: bool,
    /// The reflector reports its send timestamp with its next reply.
    pub(crate) peer_send: bool,
    /// The kernel reports acknowledgements.
    pub(crate) ack: bool,
}

/// What a flow's messages are. Decides whether a message that only began to connect has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Requests, which need a connection first.
    Messages,
    /// Connection attempts: the connect itself is the request.
    Connections,
}

/// The point on the send path of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendPoint {
    Queued,
    NicTx,
    Acked,
}

/// The reply to one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// When the kernel received its last byte, if known for this very message.
    pub(crate) nic_rx: Option<Instant<Local>>,
    /// When the program had read it.
    pub(crate) app_recv: Instant<Local>,
    /// Timestamps of a neph reflector.
    pub(crate) marks: Option<WireMarks>,
    /// The protocol's status, where it has one.
    pub(crate) answer: Option<Answer>,
    /// [`Outcome::Reply`], or [`Outcome::Error`] where the answer is not an expected one.
    pub(crate) outcome: Outcome,
}
