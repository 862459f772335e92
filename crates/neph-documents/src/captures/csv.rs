//! Flows and exchanges as CSV: a header, then one line for each when it ends. Times are
//! nanoseconds; an absent value is empty.

use neph_capture::{
    Answer, Event, ExchangeProtocol, Flow, Half, HostPair, Method, Quantiles, Side,
};
use neph_text::csv_field;

use super::exchanges;
use super::row::flow_encapsulation;

/// The distributions of round trips in a line.
const ROUND_TRIP_KINDS: [&str; 4] = [
    "server_path",
    "server_response",
    "server_delayed",
    "client_path",
];
/// The columns of each distribution.
const STATISTICS: [&str; 9] = [
    "n",
    "estimated_n",
    "min_ns",
    "mean_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
    "deviation_ns",
];
const BASE_COLUMNS: [&str; 12] = [
    "kind",
    "client",
    "server",
    "via",
    "packets",
    "bytes",
    "retransmissions",
    "spurious_retransmissions",
    "out_of_order",
    "segments_not_tracked",
    "requests",
    "answered",
];
const EXCHANGE_COLUMNS: [&str; 2] = ["requests_not_tracked", "responses_without_request"];

/// The names of the columns.
pub fn header() -> String {
    let column_names = |kind: &&str| STATISTICS.map(|statistic| format!("{kind}_{statistic}"));
    let round_trips = ROUND_TRIP_KINDS.iter().flat_map(column_names);
    let names = BASE_COLUMNS
        .iter()
        .chain(&EXCHANGE_COLUMNS)
        .map(|name| (*name).to_owned());
    names.chain(round_trips).collect::<Vec<_>>().join(",")
}

/// A TCP flow as a line.
pub fn flow(flow: &Flow, method: Method) -> String {
    let name = flow.name();
    let (client, server) = (flow.sent(Side::Client), flow.sent(Side::Server));
    let sum_of_both = |count_of: fn(&neph_capture::SentCounts) -> u64| {
        (count_of(client) + count_of(server)).to_string()
    };
    let mut cells = vec![
        "tcp".to_owned(),
        name.client().to_string(),
        name.server().to_string(),
        csv_field(flow_encapsulation(name).trim_start()).into_owned(),
        sum_of_both(|sent| sent.packets),
        sum_of_both(|sent| sent.bytes),
        sum_of_both(|sent| sent.retransmitted().into()),
        sum_of_both(|sent| sent.spurious().into()),
        sum_of_both(|sent| sent.count(Event::OutOfOrder).into()),
        sum_of_both(neph_capture::SentCounts::segments_not_tracked),
    ];
    cells.resize(BASE_COLUMNS.len() + EXCHANGE_COLUMNS.len(), String::new());
    let round_trips = flow.round_trips(Half::Server).by_method();
    for distribution in [
        round_trips.path_quantiles(method),
        round_trips.answer_quantiles(Method::Response, Answer::WithData),
        round_trips.answer_quantiles(method, Answer::Delayed),
        flow.round_trips(Half::Client).path_quantiles(method),
    ] {
        cells.extend(quantiles(distribution));
    }
    cells.join(",")
}

/// The exchanges of a pair of hosts, outside TCP, as a line.
pub fn pair(pair: &HostPair) -> String {
    let (key, pair_counts) = (pair.key(), pair.counts());
    let [client, server] = exchanges::addresses(key);
    let mut cells = vec![
        csv_field(&exchanges::protocol_key(key.protocol)).into_owned(),
        csv_field(&client).into_owned(),
        csv_field(&server).into_owned(),
        csv_field(super::row::encapsulation_suffix(key.vlan, key.tunnel).trim_start()).into_owned(),
        pair_counts.packets().to_string(),
    ];
    cells.resize(BASE_COLUMNS.len() - 2, String::new());
    let counts = [
        pair_counts.requests(),
        pair_counts.answered(),
        pair_counts.requests_not_tracked(),
        pair_counts.responses_without_request(),
    ];
    cells.extend(counts.map(|count| match key.protocol {
        ExchangeProtocol::Quic => String::new(),
        ExchangeProtocol::Ping | ExchangeProtocol::Dns => count.to_string(),
    }));
    for distribution in [
        pair_counts.round_trips(Half::Server),
        None,
        None,
        pair_counts.round_trips(Half::Client),
    ] {
        cells.extend(quantiles(distribution));
    }
    cells.join(",")
}

fn quantiles(distribution: Option<Quantiles>) -> [String; STATISTICS.len()] {
    let Some(distribution) = distribution else {
        return Default::default();
    };
    let optional_nanos = |span: Option<neph_model::Span>| {
        span.map_or_else(String::new, |span| span.nanos().to_string())
    };
    [
        distribution.n.to_string(),
        distribution.estimated.to_string(),
        distribution.min.nanos().to_string(),
        distribution.mean.nanos().to_string(),
        distribution.p50.nanos().to_string(),
        optional_nanos(distribution.p95),
        optional_nanos(distribution.p99),
        distribution.max.nanos().to_string(),
        optional_nanos(distribution.deviation),
    ]
}
