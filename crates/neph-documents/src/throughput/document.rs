//! A throughput test as a JSON document, and its NDJSON lines.

use neph_load::throughput::{Job, Measured};
use neph_model::{BitRate, Span};
use neph_wire::throughput::{Protocol, TestRequest};
use schemars::JsonSchema;
use serde::Serialize;

use crate::reflector::PrivilegesDocument;
use crate::version::Version;

use super::direction::{DirectionDocument, direction_word};
use super::second::SecondRow;
use super::stream::EndDocument;

/// A throughput test.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThroughputDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Address and port of the server.
    pub server: String,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// `up` (the client sends), `down` (the server sends) or `both`.
    pub direction: &'static str,
    /// Number of streams for each direction.
    pub streams: u16,
    /// Planned duration.
    pub duration_ns: Span,
    /// Target rate for each direction; null for no limit.
    pub target_bit_s: Option<BitRate>,
    /// Payload of a UDP datagram; null for TCP.
    pub datagram_bytes: Option<u32>,
    /// Requested congestion control; null for the system's default, and for UDP.
    pub congestion: Option<String>,
    /// Requested DSCP; null for the system's default.
    pub dscp: Option<u8>,
    /// When data began to flow, on the client's clock.
    pub started_unix_ns: i64,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// Why it broke; null otherwise.
    pub fault: Option<String>,
    /// Results of each direction.
    pub directions: Vec<DirectionDocument>,
    /// Counters of the client.
    pub client: EndDocument,
    /// Counters of the server.
    pub server_end: EndDocument,
}

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ThroughputLine {
    /// A second of one direction, after both ends have counted it.
    Second(SecondRow),
    /// Summary: the last line.
    Summary(Box<ThroughputDocument>),
}

/// An NDJSON line of a server.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServedLine {
    /// The server listens.
    Listening {
        /// Address and port of TCP and UDP.
        address: String,
        /// Privileges of the process.
        privileges: PrivilegesDocument,
    },
    /// A test began.
    Began {
        /// Address and port of the client.
        peer: String,
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// `up` (the client sends), `down` (the server sends) or `both`.
        direction: &'static str,
        /// Number of streams for each direction.
        streams: u16,
        /// Planned duration.
        duration_ns: Span,
        /// Target rate for each direction; null for no limit.
        target_bit_s: Option<BitRate>,
    },
    /// A request/response test began.
    BeganRr {
        /// Address and port of the client.
        peer: String,
        /// `udp_rr`, `tcp_rr` or `tcp_crr`.
        test: &'static str,
        /// Number of streams.
        streams: u16,
        /// Planned duration.
        duration_ns: Span,
        /// Payload of a request in bytes.
        request_bytes: u32,
        /// Payload of a reply in bytes.
        reply_bytes: u32,
    },
    /// A test ended.
    Ended {
        /// Address and port of the client.
        peer: String,
        /// Why it broke; null otherwise.
        fault: Option<String>,
    },
    /// A test was refused.
    Refused {
        /// Address and port of the client.
        peer: String,
        /// Why it was refused.
        reason: String,
    },
}

/// The word for a protocol.
pub(super) const fn protocol_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    }
}

/// The planned duration of a test.
pub(super) fn planned_duration(request: &TestRequest) -> Span {
    Span::from_nanos(i64::try_from(request.duration_ns).unwrap_or(i64::MAX))
}

impl ServedLine {
    /// The line of a test that began.
    pub fn began(peer: String, job: &Job) -> Self {
        match job {
            Job::Throughput(request) => Self::Began {
                peer,
                protocol: protocol_word(request.protocol),
                direction: direction_word(request.direction),
                streams: request.streams,
                duration_ns: planned_duration(request),
                target_bit_s: request.rate_bit_s.map(BitRate),
            },
            Job::Rr(request) => Self::BeganRr {
                peer,
                test: request.kind.name(),
                streams: request.streams,
                duration_ns: job.duration(),
                request_bytes: request.request_bytes,
                reply_bytes: request.reply_bytes,
            },
        }
    }
}

impl From<&Measured> for ThroughputDocument {
    fn from(measured: &Measured) -> Self {
        let request = &measured.test_request;
        let is_udp = request.protocol == Protocol::Udp;
        let results = measured.results();
        Self {
            schema: Version,
            server: measured.address.to_string(),
            protocol: protocol_word(request.protocol),
            direction: direction_word(request.direction),
            streams: request.streams,
            duration_ns: planned_duration(request),
            target_bit_s: request.rate_bit_s.map(BitRate),
            datagram_bytes: is_udp.then_some(request.datagram_bytes),
            congestion: request.congestion.clone(),
            dscp: request.dscp,
            started_unix_ns: measured.started.unix_nanos(),
            is_stopped: measured.is_stopped,
            fault: measured.fault.clone(),
            directions: results.iter().map(DirectionDocument::from).collect(),
            client: EndDocument::from(&measured.client),
            server_end: EndDocument::from(&measured.server),
        }
    }
}
