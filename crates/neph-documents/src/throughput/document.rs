//! A throughput test as one document, and its lines of NDJSON.

use neph_load::throughput::{Job, Measured};
use neph_model::{BitRate, Span};
use neph_wire::throughput::{Ask, Protocol};
use schemars::JsonSchema;
use serde::Serialize;

use crate::reflected::PrivilegesDocument;
use crate::version::Version;

use super::direction::{DirectionDocument, word};
use super::second::SecondRow;
use super::stream::EndDocument;

/// A throughput test.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThroughputDocument {
    /// The version of this document.
    pub schema: Version,
    /// The server's address and port.
    pub server: String,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// `up`, `down` or `both`.
    pub direction: &'static str,
    /// Streams for each direction.
    pub streams: u16,
    /// How long it was to last, in nanoseconds.
    pub duration_ns: Span,
    /// The rate that was asked for each direction in bit/s; null for as much as goes.
    pub target_bit_s: Option<BitRate>,
    /// Payload of each UDP datagram in bytes; null of TCP.
    pub datagram_bytes: Option<u32>,
    /// The congestion control that was asked for; null for the system's, and of UDP.
    pub congestion: Option<String>,
    /// The differentiated services code point that was asked for; null for the system's.
    pub dscp: Option<u8>,
    /// When data began to flow, by the client's clock.
    pub started_unix_ns: i64,
    /// Whether it was stopped before its time was over.
    pub is_stopped: bool,
    /// Why it broke off; null where it did not.
    pub fault: Option<String>,
    /// Each direction as a whole.
    pub directions: Vec<DirectionDocument>,
    /// What the client counted.
    pub client: EndDocument,
    /// What the server counted.
    pub server_end: EndDocument,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThroughputLine {
    /// A second of one direction, once both ends have counted it.
    Second(SecondRow),
    /// The last line.
    Summary(Box<ThroughputDocument>),
}

/// A line of NDJSON of a server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServedLine {
    /// It listens.
    Listening {
        /// The address and port, of TCP and UDP.
        address: String,
        /// The privileges that it has.
        privileges: PrivilegesDocument,
    },
    /// A test begins.
    Began {
        /// The client's address and port.
        peer: String,
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// `up`, `down` or `both`.
        direction: &'static str,
        /// Streams for each direction.
        streams: u16,
        /// How long it is to last, in nanoseconds.
        duration_ns: Span,
        /// The rate that is asked for in bit/s; null for as much as goes.
        target_bit_s: Option<BitRate>,
    },
    /// A request/response test begins.
    BeganRr {
        /// The client's address and port.
        peer: String,
        /// `udp_rr`, `tcp_rr` or `tcp_crr`.
        test: &'static str,
        /// Streams.
        streams: u16,
        /// How long it is to last, in nanoseconds.
        duration_ns: Span,
        /// Payload of a request in bytes.
        request_bytes: u32,
        /// Payload of a reply in bytes.
        reply_bytes: u32,
    },
    /// A test is over.
    Ended {
        /// The client's address and port.
        peer: String,
        /// Why it broke off; null where it did not.
        fault: Option<String>,
    },
    /// A test was refused.
    Refused {
        /// The client's address and port.
        peer: String,
        /// Why.
        reason: String,
    },
}

/// The word for a protocol.
pub(super) const fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    }
}

/// How long a test is to last.
pub(super) fn duration(ask: &Ask) -> Span {
    Span::from_nanos(i64::try_from(ask.duration_ns).unwrap_or(i64::MAX))
}

impl ServedLine {
    /// A test begins.
    pub fn began(peer: String, job: &Job) -> Self {
        match job {
            Job::Throughput(ask) => Self::Began {
                peer,
                protocol: protocol(ask.protocol),
                direction: word(ask.direction),
                streams: ask.streams,
                duration_ns: duration(ask),
                target_bit_s: ask.rate_bit_s.map(BitRate),
            },
            Job::Rr(ask) => Self::BeganRr {
                peer,
                test: ask.kind.name(),
                streams: ask.streams,
                duration_ns: job.duration(),
                request_bytes: ask.request_bytes,
                reply_bytes: ask.reply_bytes,
            },
        }
    }
}

impl From<&Measured> for ThroughputDocument {
    fn from(measured: &Measured) -> Self {
        let ask = &measured.ask;
        let is_udp = ask.protocol == Protocol::Udp;
        let results = measured.results();
        Self {
            schema: Version,
            server: measured.address.to_string(),
            protocol: protocol(ask.protocol),
            direction: word(ask.direction),
            streams: ask.streams,
            duration_ns: duration(ask),
            target_bit_s: ask.rate_bit_s.map(BitRate),
            datagram_bytes: is_udp.then_some(ask.datagram_bytes),
            congestion: ask.congestion.clone(),
            dscp: ask.dscp,
            started_unix_ns: measured.started.unix_nanos(),
            is_stopped: measured.is_stopped,
            fault: measured.fault.clone(),
            directions: results.iter().map(DirectionDocument::from).collect(),
            client: EndDocument::from(&measured.client),
            server_end: EndDocument::from(&measured.server),
        }
    }
}
