//! Exchanges: requests and answers outside TCP (ping, DNS, QUIC), as table rows and documents.

use neph_capture::{
    ExchangeCounts, ExchangeKey, ExchangeProtocol, ExchangeRoundTrip, Half, HostPair,
};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::flow::QuantilesDocument;
use super::row::{Rank, duration_cell, encapsulation_suffix};
use super::sample::side_name;
use crate::cell::Cell;
use crate::table::Heading;

pub const COLUMNS: [Heading; 12] = [
    Heading::left("PROTOCOL"),
    Heading::left("CLIENT"),
    Heading::left("SERVER"),
    Heading::right("REQUESTS"),
    Heading::right("ANSWERED"),
    Heading::right("MIN"),
    Heading::right("MEAN"),
    Heading::right("P50"),
    Heading::right("P95"),
    Heading::right("MAX"),
    Heading::right("DEVIATION"),
    Heading::right("CLIENT'S PATH"),
];

const fn protocol_name(protocol: ExchangeProtocol) -> &'static str {
    match protocol {
        ExchangeProtocol::Ping => "ping",
        ExchangeProtocol::Dns => "dns",
        ExchangeProtocol::Quic => "quic spin",
    }
}

/// The slowest pair is first.
pub fn sort_key(pair: &HostPair, counts: &ExchangeCounts) -> Rank {
    let slowest = counts
        .round_trips(Half::Server)
        .map(|round_trips| round_trips.p50.nanos());
    let key = pair.key();
    Rank::new(slowest, pair.first_packet_at(), addresses(key).join(" "))
}

#[derive(Clone, Copy)]
enum EndpointSide {
    Client,
    Server,
}

/// An address, with the port if all exchanges of the pair have the same: each DNS query has its
/// own.
fn address(key: &ExchangeKey, side: EndpointSide) -> String {
    match (key.protocol, side) {
        (ExchangeProtocol::Ping, EndpointSide::Server) => key.server.ip().to_string(),
        (ExchangeProtocol::Ping | ExchangeProtocol::Dns, EndpointSide::Client) => {
            key.client.ip().to_string()
        }
        (ExchangeProtocol::Dns | ExchangeProtocol::Quic, EndpointSide::Server) => {
            key.server.to_string()
        }
        (ExchangeProtocol::Quic, EndpointSide::Client) => key.client.to_string(),
    }
}

/// The client and the server.
pub(super) fn addresses(key: &ExchangeKey) -> [String; 2] {
    [EndpointSide::Client, EndpointSide::Server].map(|side| address(key, side))
}

pub fn row(pair: &HostPair, counts: &ExchangeCounts) -> Vec<String> {
    let key = pair.key();
    let count_cell = |count: u64| match key.protocol {
        ExchangeProtocol::Quic => "-".to_owned(),
        ExchangeProtocol::Ping | ExchangeProtocol::Dns => count.cell(),
    };
    let round_trips = counts.round_trips(Half::Server);
    let server = address(key, EndpointSide::Server) + &encapsulation_suffix(key.vlan, key.tunnel);
    vec![
        protocol_name(key.protocol).to_owned(),
        address(key, EndpointSide::Client),
        server,
        count_cell(counts.requests()),
        match key.protocol {
            ExchangeProtocol::Quic => "-".to_owned(),
            ExchangeProtocol::Ping | ExchangeProtocol::Dns => answered_cell(counts),
        },
        duration_cell(round_trips.map(|round_trips| round_trips.min)),
        duration_cell(round_trips.map(|round_trips| round_trips.mean)),
        duration_cell(round_trips.map(|round_trips| round_trips.p50)),
        duration_cell(round_trips.and_then(|round_trips| round_trips.p95)),
        duration_cell(round_trips.map(|round_trips| round_trips.max)),
        duration_cell(round_trips.and_then(|round_trips| round_trips.deviation)),
        duration_cell(
            counts
                .round_trips(Half::Client)
                .map(|round_trips| round_trips.p50),
        ),
    ]
}

/// Number of answered requests, with the number of tracked requests if not all were tracked, and
/// the number of answers without a request.
fn answered_cell(counts: &ExchangeCounts) -> String {
    let mut answered = counts.answered().to_string();
    if counts.requests_not_tracked() > 0 {
        let tracked = counts
            .requests()
            .saturating_sub(counts.requests_not_tracked());
        answered.push_str(&format!(" of {tracked} tracked"));
    }
    if counts.responses_without_request() > 0 {
        answered.push_str(&format!(
            ", {} without request",
            counts.responses_without_request()
        ));
    }
    answered
}

/// The name of a protocol in documents.
pub fn protocol_key(protocol: ExchangeProtocol) -> String {
    protocol_name(protocol).replace(' ', "_")
}

/// Exchanges of a pair of hosts, outside TCP: in total, or in one period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExchangeDocument {
    /// Numbers and round trips.
    #[serde(flatten)]
    pub counts: CountedDocument,
    /// Protocol: `ping`, `dns` or `quic_spin`.
    pub protocol: String,
    /// Address of the client, with its port for QUIC.
    pub client: String,
    /// Address of the server, with its port for DNS and QUIC.
    pub server: String,
    /// VLAN or tunnel; empty without one.
    pub via: String,
}

/// Numbers and round trips of the exchanges of one pair or of several.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CountedDocument {
    /// Number of packets.
    pub packets: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests with an answer.
    pub answered: u64,
    /// Requests that were not matched with an answer, because too many were outstanding.
    pub requests_not_tracked: u64,
    /// Answers without a request in the capture.
    pub responses_without_request: u64,
    /// Round trips between the capture point and each side.
    pub round_trips: ExchangeHalves,
    /// Mean round trip to the server; null without a round trip.
    pub server_mean_ns: Option<Span>,
    /// Standard deviation of the round trips to the server; null without a round trip.
    pub server_deviation_ns: Option<Span>,
}

/// Round trips between the capture point and each side.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ExchangeHalves {
    /// From the capture point to the server and back; null without a round trip.
    pub server: Option<QuantilesDocument>,
    /// From the capture point to the client and back; null without a round trip.
    pub client: Option<QuantilesDocument>,
}

/// A single round trip outside TCP.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExchangeSample {
    /// When the round trip ended.
    pub at_unix_ns: Wall,
    /// Protocol: `ping`, `dns` or `quic_spin`.
    pub protocol: String,
    /// Address of the client, with its port for QUIC.
    pub client: String,
    /// Address of the server, with its port for DNS and QUIC.
    pub server: String,
    /// Side of the capture point: `server` (to the server and back) or `client`.
    pub side: &'static str,
    /// The round trip.
    pub round_trip_ns: Span,
}

impl ExchangeDocument {
    /// The exchanges of a pair, in total or in one period.
    pub fn of(pair: &HostPair, counts: &ExchangeCounts) -> Self {
        let key = pair.key();
        Self {
            counts: counts.into(),
            protocol: protocol_key(key.protocol),
            client: address(key, EndpointSide::Client),
            server: address(key, EndpointSide::Server),
            via: encapsulation_suffix(key.vlan, key.tunnel)
                .trim_start()
                .to_owned(),
        }
    }
}

impl From<&ExchangeCounts> for CountedDocument {
    fn from(counts: &ExchangeCounts) -> Self {
        let round_trips = counts.round_trips(Half::Server);
        Self {
            packets: counts.packets(),
            requests: counts.requests(),
            answered: counts.answered(),
            requests_not_tracked: counts.requests_not_tracked(),
            responses_without_request: counts.responses_without_request(),
            round_trips: ExchangeHalves {
                server: round_trips.map(QuantilesDocument::from),
                client: counts
                    .round_trips(Half::Client)
                    .map(QuantilesDocument::from),
            },
            server_mean_ns: round_trips.map(|round_trips| round_trips.mean),
            server_deviation_ns: round_trips.and_then(|round_trips| round_trips.deviation),
        }
    }
}

impl ExchangeSample {
    /// A round trip of this pair.
    pub fn of(key: &ExchangeKey, answer: ExchangeRoundTrip) -> Self {
        Self {
            at_unix_ns: answer.at,
            protocol: protocol_key(key.protocol),
            client: address(key, EndpointSide::Client),
            server: address(key, EndpointSide::Server),
            side: side_name(answer.half),
            round_trip_ns: answer.round_trip,
        }
    }
}

/// Whether a pair has anything to show in a table line.
pub fn has_exchanges(counts: &ExchangeCounts) -> bool {
    counts.requests() > 0
        || counts.responses_without_request() > 0
        || counts.round_trips(Half::Server).is_some()
}
