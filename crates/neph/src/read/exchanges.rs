//! Questions and answers outside of TCP, as lines of a table of their own and for programs.

use neph_capture::{Answered, Between, Counted, Half, Pair, Question};
use neph_model::Span;
use serde::Serialize;
use serde_json::{Value, json};

use super::json::{half, quantiles};
use super::row::{Rank, span, travels_in};
use crate::sheet::{Cell, Column};

pub(crate) const COLUMNS: [Column; 13] = [
    Column::left("ASKED", "question"),
    Column::left("BY", "client"),
    Column::left("OF", "server"),
    Column::right("TIMES", "asked"),
    Column::right("ANSWERED", "answered"),
    Column::right("UNASKED", "answers_without_question"),
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
pub(crate) fn rank(pair: &Pair, counted: &Counted) -> Rank {
    let slowest = counted.trips(Half::Server).map(|trips| trips.p50.nanos());
    let between = pair.between();
    let ends = [End::Client, End::Server].map(|one| end(between, one));
    Rank::by(slowest, pair.began(), ends.join(" "))
}

#[derive(Clone, Copy)]
enum End {
    Client,
    Server,
}

/// An address, with a port where all of the pair have the same: each query of DNS has its own.
fn end(between: &Between, end: End) -> String {
    match (between.question, end) {
        (Question::Ping, End::Server) => between.server.ip().to_string(),
        (Question::Ping | Question::Dns, End::Client) => between.client.ip().to_string(),
        (Question::Dns | Question::Quic, End::Server) => between.server.to_string(),
        (Question::Quic, End::Client) => between.client.to_string(),
    }
}

pub(crate) fn row(pair: &Pair, counted: &Counted) -> Vec<Cell> {
    let between = pair.between();
    let many = |count: u64| match between.question {
        Question::Quic => Cell::absent(),
        Question::Ping | Question::Dns => Cell::count(count),
    };
    let trips = counted.trips(Half::Server);
    let answered = match counted.not_followed() {
        0 => many(counted.answered()),
        left_out => {
            let followed = counted.asked().saturating_sub(left_out);
            let answered = counted.answered();
            Cell::new(format!("{answered} of {followed} followed"), answered)
        }
    };
    let server = end(between, End::Server) + &travels_in(between.vlan, between.tunnel);
    vec![
        Cell::text(name(between.question)),
        Cell::text(end(between, End::Client)),
        Cell::text(server),
        many(counted.asked()),
        answered,
        many(counted.unasked()),
        span(trips.map(|trips| trips.least)),
        span(trips.map(|trips| trips.mean)),
        span(trips.map(|trips| trips.p50)),
        span(trips.and_then(|trips| trips.p95)),
        span(trips.map(|trips| trips.most)),
        span(trips.and_then(|trips| trips.deviation)),
        span(counted.trips(Half::Client).map(|trips| trips.p50)),
    ]
}

/// All that a pair showed, for programs.
pub(super) fn json(pair: &Pair) -> Value {
    let mut object = shown(pair, &pair.counted());
    object["kind"] = "exchange".into();
    object["began_unix_ns"] = pair.began().unix_nanos().into();
    object["last_unix_ns"] = pair.last().unix_nanos().into();
    object
}

/// What a pair showed, ever or for a while, for programs.
pub(crate) fn shown(pair: &Pair, counted: &Counted) -> Value {
    let between = pair.between();
    let mut object = told(counted);
    object["question"] = key(between.question).into();
    object["client"] = end(between, End::Client).into();
    object["server"] = end(between, End::Server).into();
    object["via"] = travels_in(between.vlan, between.tunnel).trim_start().into();
    object
}

/// The name of a question for programs.
pub(crate) fn key(question: Question) -> String {
    name(question).replace(' ', "_")
}

/// Questions, answers and round trips of one pair or of several, for programs.
pub(crate) fn told(counted: &Counted) -> Value {
    let trips = counted.trips(Half::Server);
    json!({
        "packets": counted.packets(),
        "asked": counted.asked(),
        "answered": counted.answered(),
        "questions_not_followed": counted.not_followed(),
        "answers_without_question": counted.unasked(),
        "round_trips": {
            "server": quantiles(trips),
            "client": quantiles(counted.trips(Half::Client)),
        },
        "server_mean_ns": trips.map(|trips| trips.mean.nanos()),
        "server_deviation_ns": trips.and_then(|trips| trips.deviation).map(Span::nanos),
    })
}

/// Whether a pair has anything that a line of a table shows.
pub(crate) fn is_worth_a_line(counted: &Counted) -> bool {
    counted.asked() > 0 || counted.unasked() > 0 || counted.trips(Half::Server).is_some()
}

/// A single round trip, for programs.
pub(super) fn sample(of: &Between, trip: Answered) -> impl Serialize {
    SampleFound {
        kind: "sample",
        at_unix_ns: trip.at.unix_nanos(),
        question: key(of.question),
        client: end(of, End::Client),
        server: end(of, End::Server),
        half: half(trip.half),
        round_trip_ns: trip.round_trip.nanos(),
    }
}

#[derive(Serialize)]
struct SampleFound {
    kind: &'static str,
    at_unix_ns: i64,
    question: String,
    client: String,
    server: String,
    half: &'static str,
    round_trip_ns: i64,
}
