//! Codecs: how each stream kind opens a connection, writes a request and reads a reply.
//!
//! Sans-IO and without clocks. A codec sees one connection's protocol bytes; the session above it
//! keeps the book.

mod http;
mod tcp;
mod ws;

use std::hash::{BuildHasher, RandomState};

use neph_model::ProbeKind;
use neph_wire::http::FlowToken;
use neph_wire::marks::PeerMarks;

use crate::spec::{ConnectionUse, FlowSpec};

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
    /// A reply; without a number it answers the oldest request on this connection.
    Reply {
        seq: Option<u64>,
        marks: Option<PeerMarks>,
    },
    /// Nothing that concerns messages.
    Nothing,
    /// The peer ends the connection, and says why.
    Closed(String),
    /// The peer refuses to serve, and says why.
    Refused(String),
}

/// One connection's protocol.
pub(crate) trait Codec: std::fmt::Debug + Send {
    /// Appends what must be said first on a fresh connection; returns whether requests may follow
    /// at once, without waiting for [`Arrival::Opened`].
    fn open(&mut self, out: &mut Vec<u8>) -> Opening;
    /// Appends request `seq`.
    fn request(&mut self, seq: u64, out: &mut Vec<u8>);
    /// Reads from the start of `input`; appends to `out` what the protocol answers by itself.
    fn step(&mut self, input: &mut [u8], out: &mut Vec<u8>) -> Result<Step, String>;
    /// The peer closed its side: a reply that only this could end.
    fn end(&mut self) -> Option<Arrival> {
        None
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
    FlowToken(RandomState::new().hash_one(0))
}

/// The codec for a flow's connection `number`; `None` where a connection attempt is all there is
/// to measure.
pub(crate) fn for_flow(spec: &FlowSpec, flow: FlowToken, number: u32) -> Option<Box<dyn Codec>> {
    match spec.target.kind() {
        ProbeKind::Ws => Some(Box::new(ws::Ws::new(spec, flow, number))),
        ProbeKind::Http => Some(Box::new(http::Http::new(spec, flow))),
        ProbeKind::Tcp if spec.reflector => Some(Box::new(tcp::Framed::new(spec))),
        ProbeKind::Tcp | ProbeKind::Udp | ProbeKind::Icmp | ProbeKind::Syn => None,
    }
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

/// The way a flow uses connections: HTTP/1.1 answers one request after the other, so a late reply
/// must not hold up the next request.
pub(crate) fn connection_use(spec: &FlowSpec) -> Use {
    match (spec.connection_use, spec.target.kind()) {
        (ConnectionUse::PerMessage, _) | (ConnectionUse::Lasting, ProbeKind::Syn) => Use::Fresh,
        (ConnectionUse::Lasting, ProbeKind::Http) => Use::Idle,
        (ConnectionUse::Lasting, ProbeKind::Tcp) if !spec.reflector => Use::Fresh,
        (ConnectionUse::Lasting, _) => Use::One,
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
