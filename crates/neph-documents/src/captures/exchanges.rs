//! Exchanges: requests and answers outside TCP (ping, DNS, QUIC), as table rows and documents.

use neph_capture::{Answered, Between, Counted, Half, Pair, Question};
use neph_model::{Span, Wall};
use schemars::JsonSchema;
use serde::Serialize;

use super::flow::QuantilesDocument;
use super::row::{Rank, span, travels_in};
use super::sample::half;
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

const fn name(question: Question) -> &'static str {
    match question {
        Question::Ping => "ping",
        Question::Dns => "dns",
        Question::Quic => "quic spin",
    }
}

/// The slowest pair is first.
pub fn rank(pair: &Pair, counted: &Counted) -> Rank {
    let slowest = counted
        .round_trips(Half::Server)
        .map(|round_trips| round_trips.p50.nanos());
    let between = pair.between();
    Rank::by(slowest, pair.began(), ends(between).join(" "))
}

#[derive(Clone, Copy)]
enum End {
    Client,
    Server,
}

/// An address, with the port if all exchanges of the pair have the same: each DNS query has its
/// own.
fn end(between: &Between, end: End) -> String {
    match (between.question, end) {
        (Question::Ping, End::Server) => between.server.ip().to_string(),
        (Question::Ping | Question::Dns, End::Client) => between.client.ip().to_string(),
        (Question::Dns | Question::Quic, End::Server) => between.server.to_string(),
        (Question::Quic, End::Client) => between.client.to_string(),
    }
}

/// The client and the server.
pub(super) fn ends(between: &Between) -> [String; 2] {
    [End::Client, End::Server].map(|one| end(between, one))
}

pub fn row(pair: &Pair, counted: &Counted) -> Vec<String> {
    let between = pair.between();
    let count_cell = |count: u64| match between.question {
        Question::Quic => "-".to_owned(),
        Question::Ping | Question::Dns => count.cell(),
    };
    let round_trips = counted.round_trips(Half::Server);
    let server = end(between, End::Server) + &travels_in(between.vlan, between.tunnel);
    vec![
        name(between.question).to_owned(),
        end(between, End::Client),
        server,
        count_cell(counted.questions()),
        match between.question {
            Question::Quic => "-".to_owned(),
            Question::Ping | Question::Dns => answered(counted),
        },
        span(round_trips.map(|round_trips| round_trips.least)),
        span(round_trips.map(|round_trips| round_trips.mean)),
        span(round_trips.map(|round_trips| round_trips.p50)),
        span(round_trips.and_then(|round_trips| round_trips.p95)),
        span(round_trips.map(|round_trips| round_trips.most)),
        span(round_trips.and_then(|round_trips| round_trips.deviation)),
        span(
            counted
                .round_trips(Half::Client)
                .map(|round_trips| round_trips.p50),
        ),
    ]
}

/// Number of answered requests, with the number of tracked requests if not all were tracked, and
/// the number of answers without a request.
fn answered(counted: &Counted) -> String {
    let mut answered = counted.answered().to_string();
    if counted.not_followed() > 0 {
        let followed = counted.questions().saturating_sub(counted.not_followed());
        answered.push_str(&format!(" of {followed} tracked"));
    }
    if counted.unasked() > 0 {
        answered.push_str(&format!(", {} without request", counted.unasked()));
    }
    answered
}

/// The name of a protocol in documents.
pub fn key(question: Question) -> String {
    name(question).replace(' ', "_")
}

/// Exchanges of a pair of hosts, outside TCP: in total, or in one period.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExchangeDocument {
    /// Numbers and round trips.
    #[serde(flatten)]
    pub counted: CountedDocument,
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
    pub fn of(pair: &Pair, counted: &Counted) -> Self {
        let between = pair.between();
        Self {
            counted: counted.into(),
            protocol: key(between.question),
            client: end(between, End::Client),
            server: end(between, End::Server),
            via: travels_in(between.vlan, between.tunnel)
                .trim_start()
                .to_owned(),
        }
    }
}

impl From<&Counted> for CountedDocument {
    fn from(counted: &Counted) -> Self {
        let round_trips = counted.round_trips(Half::Server);
        Self {
            packets: counted.packets(),
            requests: counted.questions(),
            answered: counted.answered(),
            requests_not_tracked: counted.not_followed(),
            responses_without_request: counted.unasked(),
            round_trips: ExchangeHalves {
                server: round_trips.map(QuantilesDocument::from),
                client: counted
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
    pub fn of(of: &Between, answer: Answered) -> Self {
        Self {
            at_unix_ns: answer.at,
            protocol: key(of.question),
            client: end(of, End::Client),
            server: end(of, End::Server),
            side: half(answer.half),
            round_trip_ns: answer.round_trip,
        }
    }
}

/// Whether a pair has anything to show in a table line.
pub fn is_worth_a_line(counted: &Counted) -> bool {
    counted.questions() > 0 || counted.unasked() > 0 || counted.round_trips(Half::Server).is_some()
}
