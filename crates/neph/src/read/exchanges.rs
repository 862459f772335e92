//! Questions and answers outside of TCP, as lines of a table of their own and for programs.

use neph_capture::{Between, Deviation, Pair, Question};
use serde_json::{Value, json};

use super::json::quantiles;
use super::row::{Rank, span, travels_in};
use crate::sheet::{Cell, Column};

pub(super) const COLUMNS: [Column; 12] = [
    Column::left("ASKED", "question"),
    Column::left("BY", "client"),
    Column::left("OF", "server"),
    Column::right("TIMES", "asked"),
    Column::right("ANSWERED", "answered"),
    Column::right("MIN", "min_ns"),
    Column::right("MEAN", "mean_ns"),
    Column::right("P50", "p50_ns"),
    Column::right("P95", "p95_ns"),
    Column::right("MAX", "max_ns"),
    Column::right("DEVIATION", "deviation_ns"),
    Column::right("CLIENT'S PATH", "client_p50_ns"),
];

const fn name(question: Question) -> &'static str {
    match question {
        Question::Ping => "ping",
        Question::Dns => "dns",
        Question::Quic => "quic spin",
    }
}

/// The slowest first.
pub(super) fn rank(pair: &Pair) -> Rank {
    let slowest = pair.trips().map(|trips| trips.p50.nanos());
    let between = pair.between();
    let ends = [End::Client, End::Server].map(|one| end(between, one));
    Rank::by(slowest, pair.began(), ends.join(" "))
}

#[derive(Clone, Copy)]
enum End {
    Client,
    Server,
}

/// An address, with a port where the question has one.
fn end(between: &Between, end: End) -> String {
    let address = match end {
        End::Client => between.client,
        End::Server => between.server,
    };
    if address.port() == 0 {
        return address.ip().to_string();
    }
    address.to_string()
}

pub(super) fn row(pair: &Pair) -> Vec<Cell> {
    let between = pair.between();
    let counted = |count: u64| match between.question {
        Question::Quic => Cell::absent(),
        Question::Ping | Question::Dns => Cell::count(count),
    };
    let trips = pair.trips();
    let far = pair.deviation();
    let server = end(between, End::Server) + &travels_in(between.vlan, between.tunnel);
    vec![
        Cell::text(name(between.question)),
        Cell::text(end(between, End::Client)),
        Cell::text(server),
        counted(pair.asked()),
        counted(pair.answered()),
        span(trips.map(|trips| trips.least)),
        span(far.map(|far| far.mean)),
        span(trips.map(|trips| trips.p50)),
        span(trips.and_then(|trips| trips.p95)),
        span(trips.map(|trips| trips.most)),
        span(far.map(|far| far.deviation)),
        span(pair.clients_trips().map(|trips| trips.p50)),
    ]
}

/// The same for programs.
pub(super) fn json(pair: &Pair) -> Value {
    let between = pair.between();
    let far = pair.deviation();
    let nanos = |of: fn(&Deviation) -> neph_model::Span| far.as_ref().map(|far| of(far).nanos());
    json!({
        "kind": "exchange",
        "question": name(between.question).replace(' ', "_"),
        "client": end(between, End::Client),
        "server": end(between, End::Server),
        "via": travels_in(between.vlan, between.tunnel).trim_start(),
        "began_unix_ns": pair.began().unix_nanos(),
        "last_unix_ns": pair.last().unix_nanos(),
        "packets": pair.packets(),
        "asked": pair.asked(),
        "answered": pair.answered(),
        "round_trips": {
            "server": quantiles(pair.trips()),
            "client": quantiles(pair.clients_trips()),
        },
        "server_mean_ns": nanos(|far| far.mean),
        "server_deviation_ns": nanos(|far| far.deviation),
    })
}
