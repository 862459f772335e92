//! Codecs: how each stream kind opens a connection, writes a request and reads a reply.
//!
//! Sans-IO and without clocks. A codec sees one connection's protocol bytes. The session above it records
//! messages.

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

/// Result of one step of reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The available bytes are incomplete.
    More,
    /// A complete element of this many bytes.
    Consumed(usize, Arrival),
}

/// A received element.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Requests may be written now.
    Opened,
    /// A reply.
    Reply(Replied),
    /// An element without relation to messages.
    Nothing,
    /// The peer ends the connection.
    Closed(ConnectionEnd),
    /// The peer refuses to serve.
    Refused(ConnectionEnd),
}

/// A reply to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replied {
    /// The request's number. Without one it answers the oldest request on this connection.
    pub(crate) seq: Option<u64>,
    pub(crate) marks: Option<PeerMarks>,
    /// The protocol's status, where it has one.
    pub(crate) answer: Option<Answer>,
    /// [`Outcome::Reply`], or [`Outcome::Error`] where the answer is not an expected one.
    pub(crate) outcome: Outcome,
}

impl Replied {
    /// A reply of a neph reflector, or of a protocol whose replies have no status.
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
pub(crate) struct ConnectionEnd {
    /// As a sentence.
    pub(crate) reason: String,
    /// The answer for messages that waited for a reply. `None` where it is not known.
    pub(crate) answer: Option<Answer>,
}

impl ConnectionEnd {
    pub(crate) fn new(reason: impl Into<String>, answer: Option<Answer>) -> Self {
        Self {
            reason: reason.into(),
            answer,
        }
    }
}

/// The reply in progress when the peer's bytes ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartialReply {
    /// No reply had begun.
    Nothing,
    /// A reply that ends with the stream: it is complete.
    Whole(Replied),
    /// An incomplete reply.
    Part,
}

/// One connection's protocol.
pub(crate) trait Codec: std::fmt::Debug + Send {
    /// Appends the first bytes on a new connection. Returns whether requests may follow at once, without
    /// [`Arrival::Opened`].
    fn open(&mut self, out: &mut Vec<u8>) -> Opening;
    /// Appends request `seq`. It may be built ahead of its time and never be sent.
    fn request(&mut self, seq: u64, out: &mut Vec<u8>);
    /// Reads from the start of `input`.
    fn step(&mut self, input: &mut [u8]) -> Result<Step, String>;
    /// Appends pending protocol answers (a pong). It is called after its earlier output was written, so a
    /// peer that does not read cannot make memory grow.
    fn pay(&mut self, _out: &mut Vec<u8>) {}
    /// Ends the peer's bytes and returns the state of the reply in progress. Called once at most.
    fn end(&mut self, _end: StreamEnd) -> PartialReply {
        PartialReply::Nothing
    }
    /// Appends the protocol's last bytes before a connection is left.
    fn encode_close_message(&mut self, _out: &mut Vec<u8>) {}
    /// Whether the connection can carry another request after the last reply.
    fn can_go_on(&self) -> bool {
        true
    }
}

/// Whether a new connection must be answered before requests may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Requests may follow at once.
    Ready,
    /// The peer must agree first.
    Wait,
}

/// A random number by which a reflector recognizes one flow's connections. It is unique and cannot be
/// guessed.
pub(crate) fn new_token() -> FlowToken {
    FlowToken(unguessable())
}

/// How a flow uses its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// All messages use one connection, whether or not earlier ones were answered.
    One,
    /// Each message uses an idle connection, or a new one.
    Idle,
    /// Each message uses a new connection.
    Fresh,
}

/// How a flow uses connections. A server that answers requests in order gets one request at a time, so that a
/// late reply does not delay the next request.
pub(crate) fn connection_use(spec: &FlowSpec) -> Use {
    match spec.connection_use {
        ConnectionUse::PerMessage => Use::Fresh,
        ConnectionUse::Lasting if spec.is_attempt() => Use::Fresh,
        ConnectionUse::Lasting if !spec.target.kind().properties().is_pipelined => Use::Idle,
        ConnectionUse::Lasting => Use::One,
    }
}

/// Whether a reply's send timestamp becomes known: with the next reply on its connection, or on any
/// connection of the flow if requests can carry the flow's token. The neph framing cannot.
pub(crate) fn learns_peer_send(spec: &FlowSpec) -> bool {
    let names_its_flow = spec.target.kind() != ProbeKind::Tcp;
    spec.reflector && (names_its_flow || connection_use(spec) != Use::Fresh)
}

/// The path for a neph reflector, with the reply size in the query, and the flow's token where it uses
/// several connections.
fn path_asking(spec: &FlowSpec, flow: FlowToken) -> String {
    let path = spec.target.path();
    let join = if path.contains('?') { '&' } else { '?' };
    let reply = spec.response_size;
    match connection_use(spec) {
        Use::One => format!("{path}{join}reply={reply}"),
        Use::Idle | Use::Fresh => format!("{path}{join}reply={reply}&flow={flow}"),
    }
}
