//! Codecs: how each stream kind opens a connection, writes a request and reads a reply.
//!
//! Sans-IO and without clocks. A codec sees one connection's protocol bytes; the session above it
//! keeps the book.

pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod mqtt;
pub(crate) mod tcp;
pub(crate) mod ws;

use neph_model::{Answer, Outcome, ProbeKind};
use neph_wire::http::FlowToken;
use neph_wire::marks::PeerMarks;

use crate::channel::StreamEnd;
use crate::spec::{ConnectionUse, FlowSpec};
use crate::unguessable::unguessable;

/// What one step of reading brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The bytes at hand end before anything is whole.
    More,
    /// Something whole, which took this many bytes.
    Took(usize, Arrival),
}

/// What arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Requests may be written now.
    Opened,
    /// A reply.
    Reply(Replied),
    /// Nothing that concerns messages.
    Nothing,
    /// The peer ends the connection.
    Closed(Parting),
    /// The peer refuses to serve.
    Refused(Parting),
}

/// A reply to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replied {
    /// The request's number; without one it answers the oldest request on this connection.
    pub(crate) seq: Option<u64>,
    pub(crate) marks: Option<PeerMarks>,
    /// In the protocol's words, where it has any.
    pub(crate) answer: Option<Answer>,
    /// [`Outcome::Reply`], or [`Outcome::Error`] where the answer is not an expected one.
    pub(crate) outcome: Outcome,
}

impl Replied {
    /// The reply of a reflector of ours, or of a protocol whose replies say nothing.
    pub(crate) const fn plain(seq: Option<u64>, marks: Option<PeerMarks>) -> Self {
        Self {
            seq,
            marks,
            answer: None,
            outcome: Outcome::Reply,
        }
    }
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parting {
    /// In a sentence.
    pub(crate) why: String,
    /// What the messages that waited for a reply got instead; `None` where it is not known.
    pub(crate) answer: Option<Answer>,
}

impl Parting {
    pub(crate) fn new(why: impl Into<String>, answer: Option<Answer>) -> Self {
        Self {
            why: why.into(),
            answer,
        }
    }
}

/// What was under way when the peer's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    /// No reply that had begun.
    Nothing,
    /// A reply that only this could end: it is whole.
    Whole(Replied),
    /// A reply that had begun, and is not whole.
    Part,
}

/// One connection's protocol.
pub(crate) trait Codec: std::fmt::Debug + Send {
    /// Appends what must be said first on a fresh connection; returns whether requests may follow
    /// at once, without waiting for [`Arrival::Opened`].
    fn open(&mut self, out: &mut Vec<u8>) -> Opening;
    /// Appends request `seq`, possibly ahead of its time and never to be sent.
    fn request(&mut self, seq: u64, out: &mut Vec<u8>);
    /// Reads from the start of `input`.
    fn step(&mut self, input: &mut [u8]) -> Result<Step, String>;
    /// Appends what the protocol owes the peer, once (a pong). It is called when what it appended before
    /// has been written: a peer that asks and does not read makes nothing grow.
    fn pay(&mut self, _out: &mut Vec<u8>) {}
    /// The peer's bytes are over: what that makes of the reply under way. Called once at most.
    fn end(&mut self, _end: StreamEnd) -> Under {
        Under::Nothing
    }
    /// Appends what the protocol says before a connection is left.
    fn farewell(&mut self, _out: &mut Vec<u8>) {}
    /// Whether the connection can carry another request after the reply just read.
    fn can_go_on(&self) -> bool {
        true
    }
}

/// Whether a fresh connection must be answered before requests may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Requests may follow at once.
    Ready,
    /// The peer must agree first.
    Wait,
}

/// A number by which a reflector knows one flow's connections. Two flows must not share one, and
/// nobody should guess it.
pub(crate) fn new_token() -> FlowToken {
    FlowToken(unguessable())
}

/// How a flow uses its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// All messages go over one, whether or not earlier ones were answered.
    One,
    /// Each message takes one that waits for nothing, or a new one.
    Idle,
    /// Each message has its own.
    Fresh,
}

/// The way a flow uses connections. A server that answers one request after the other gets one at a time,
/// so that a late reply does not hold up the next request.
pub(crate) fn connection_use(spec: &FlowSpec) -> Use {
    match spec.connection_use {
        ConnectionUse::PerMessage => Use::Fresh,
        ConnectionUse::Lasting if spec.is_attempt() => Use::Fresh,
        ConnectionUse::Lasting if !spec.target.kind().facts().is_pipelined => Use::Idle,
        ConnectionUse::Lasting => Use::One,
    }
}

/// Whether a reply's send stamp comes to be known: with the next reply on its connection, or on
/// any of the flow's where requests have room to name their flow. Our own framing has none.
pub(crate) fn learns_peer_send(spec: &FlowSpec) -> bool {
    let names_its_flow = spec.target.kind() != ProbeKind::Tcp;
    spec.reflector && (names_its_flow || connection_use(spec) != Use::Fresh)
}

/// The path for a reflector of ours, with our reply size in the query, and the flow's name where
/// it takes several connections.
fn path_asking(spec: &FlowSpec, flow: FlowToken) -> String {
    let path = spec.target.path();
    let join = if path.contains('?') { '&' } else { '?' };
    let reply = spec.response_size;
    match connection_use(spec) {
        Use::One => format!("{path}{join}reply={reply}"),
        Use::Idle | Use::Fresh => format!("{path}{join}reply={reply}&flow={flow}"),
    }
}
