//! A flow as a line of the table: network path and server application separated, with reasons for
//! unknown values.

use std::collections::BTreeMap;

use neph_capture::{
    Answer, Event, Flow, FlowName, Half, Method, Quantiles, RoundTripsByMethod, SentCounts, Side,
};
use neph_model::{Span, Wall};
use neph_wire::dissect::Tunnel;

use crate::cell::Cell;
use crate::table::Heading;

/// The columns of flows.
pub const COLUMNS: [Heading; 21] = columns("PACKETS", "BYTES", "RESPONSE");

/// The columns of flows, with headings for the numbers of packets and bytes, and for round trips
/// with data.
pub const fn columns(
    packets: &'static str,
    bytes: &'static str,
    with_data: &'static str,
) -> [Heading; 21] {
    [
        Heading::left("CLIENT"),
        Heading::left("SERVER"),
        Heading::right(packets),
        Heading::right(bytes),
        Heading::right("PATH MIN"),
        Heading::right("MEAN"),
        Heading::right("P50"),
        Heading::right("P95"),
        Heading::right("P99"),
        Heading::right("MAX"),
        Heading::right("DEVIATION"),
        Heading::right("N"),
        Heading::right(with_data),
        Heading::right("N"),
        Heading::right("DELAYED"),
        Heading::right("N"),
        Heading::right("CLIENT'S PATH"),
        Heading::right("N"),
        Heading::right("RETRANSMITTED"),
        Heading::right("SPURIOUS"),
        Heading::left("EVENTS"),
    ]
}

/// The sort key of a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Larger values are first; a flow without a value is last.
    value: Option<i64>,
    /// Of equal values, the earlier flow is first.
    began: std::cmp::Reverse<i64>,
    name: String,
}

impl Rank {
    pub fn new(value: Option<i64>, began: Wall, name: String) -> Self {
        Self {
            value,
            began: std::cmp::Reverse(began.unix_nanos()),
            name,
        }
    }
}

/// The first lines of a table.
#[derive(Debug)]
pub struct TopLines {
    max_rows: usize,
    /// The last line first.
    lines: BTreeMap<Rank, Vec<String>>,
}

impl TopLines {
    /// At most this number of lines.
    pub const fn new(max_rows: usize) -> Self {
        Self {
            max_rows,
            lines: BTreeMap::new(),
        }
    }

    /// Adds a line if it is among the first; `false` if this or another line was dropped.
    pub fn keep(&mut self, rank: Rank, row: impl FnOnce() -> Vec<String>) -> bool {
        let is_full = self.lines.len() >= self.max_rows;
        let lowest = self.lines.first_key_value();
        if is_full && lowest.is_none_or(|(lowest, _)| *lowest >= rank) {
            return false;
        }
        if is_full {
            self.lines.pop_first();
        }
        self.lines.insert(rank, row());
        !is_full
    }

    /// Returns the lines in order and removes them.
    pub fn take(&mut self) -> Vec<Vec<String>> {
        let lines = std::mem::take(&mut self.lines);
        lines.into_values().rev().collect()
    }
}

/// The sort order of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// The slowest path to the server first
    P50,
    /// The most bytes first
    Bytes,
    /// The most packets first
    Packets,
    /// The most retransmissions first
    Repeated,
}

impl Sort {
    pub fn rank(self, flow: &Flow, method: Method) -> Rank {
        let sent = (flow.sent(Side::Client), flow.sent(Side::Server));
        self.rank_of(
            sent,
            flow.round_trips(Half::Server).path_quantiles(method),
            flow,
        )
    }

    /// The sort key by the values of a period.
    pub fn rank_of(
        self,
        (client, server): (&SentCounts, &SentCounts),
        path: Option<Quantiles>,
        flow: &Flow,
    ) -> Rank {
        let sum_of_both =
            |count: fn(&SentCounts) -> u64| i64::try_from(count(client) + count(server)).ok();
        let value = match self {
            Self::P50 => path.map(|path| path.p50.nanos()),
            Self::Bytes => sum_of_both(|sent| sent.bytes),
            Self::Packets => sum_of_both(|sent| sent.packets),
            Self::Repeated => sum_of_both(|sent| sent.retransmitted_segments().into()),
        };
        let name = flow.name();
        let name = format!(
            "{} {}{}",
            name.client(),
            name.server(),
            flow_encapsulation(name)
        );
        Rank::new(value, flow.first_packet_at(), name)
    }
}

pub fn row(flow: &Flow, method: Method) -> Vec<String> {
    let name = flow.name();
    let sum_of_both = |count: fn(&Flow, Side) -> u64| {
        (count(flow, Side::Client) + count(flow, Side::Server)).cell()
    };
    let server = flow.round_trips(Half::Server).by_method();
    let mut cells = vec![
        name.client().to_string(),
        format!("{}{}", name.server(), encapsulations_text(flow)),
        sum_of_both(|flow, side| flow.sent(side).packets),
        sum_of_both(|flow, side| flow.sent(side).bytes),
    ];
    let with_data = server.answer_quantiles(Method::Response, Answer::WithData);
    let client = flow.round_trips(Half::Client).path_quantiles(method);
    cells.extend(round_trip_cells(&server, with_data, client, method));
    let sent = (flow.sent(Side::Client), flow.sent(Side::Server));
    cells.extend(retransmission_cells(sent));
    cells
}

/// Round trips of the path to the server, those with data, those that a timer delayed, and those of
/// the path to the client.
pub fn round_trip_cells(
    server: &RoundTripsByMethod,
    with_data: Option<Quantiles>,
    client: Option<Quantiles>,
    method: Method,
) -> Vec<String> {
    let mut cells = Vec::from(path_cells(server, method));
    for round_trips in [
        with_data,
        server.answer_quantiles(method, Answer::Delayed),
        client,
    ] {
        cells.extend([
            duration_cell(round_trips.map(|round_trips| round_trips.p50)),
            count_text(round_trips),
        ]);
    }
    cells
}

/// Round trips of the path to the server, or why there is none.
pub fn path_cells(server: &RoundTripsByMethod, method: Method) -> [String; 8] {
    let path = server.path_quantiles(method);
    let min_or_reason = match &path {
        Some(path) => duration_cell(Some(path.min)),
        None => missing_reason(server, method).to_owned(),
    };
    [
        min_or_reason,
        duration_cell(path.map(|path| path.mean)),
        duration_cell(path.map(|path| path.p50)),
        duration_cell(path.and_then(|path| path.p95)),
        duration_cell(path.and_then(|path| path.p99)),
        duration_cell(path.map(|path| path.max)),
        duration_cell(path.and_then(|path| path.deviation)),
        count_text(path),
    ]
}

/// Retransmissions of both sides, spurious ones, and other anomalies.
pub fn retransmission_cells((client, server): (&SentCounts, &SentCounts)) -> [String; 3] {
    let sum_of_both = |count: fn(&SentCounts) -> u32| {
        (u64::from(count(client)) + u64::from(count(server))).cell()
    };
    [
        sum_of_both(SentCounts::retransmitted),
        sum_of_both(SentCounts::spurious),
        anomalies_text(client, server),
    ]
}

/// Why the path has no round trip.
pub fn missing_reason(round_trips: &RoundTripsByMethod, method: Method) -> &'static str {
    let is_answered = [Answer::WithData, Answer::Delayed]
        .into_iter()
        .any(|answer| round_trips.answer_quantiles(method, answer).is_some());
    if is_answered { "not measurable" } else { "-" }
}

/// The text of a time.
pub fn duration_cell(span: Option<Span>) -> String {
    span.cell()
}

/// Number of round trips, with the number that they represent if not all segments were tracked.
pub fn count_text(round_trips: Option<Quantiles>) -> String {
    match round_trips {
        Some(round_trips) if round_trips.estimated > round_trips.n => {
            format!("{} of {}", round_trips.n, round_trips.estimated)
        }
        round_trips => round_trips
            .map_or(0, |round_trips| round_trips.n)
            .to_string(),
    }
}

/// VLAN and tunnel of a flow.
pub fn flow_encapsulation(name: &FlowName) -> String {
    encapsulation_suffix(name.vlan(), name.tunnel())
}

/// ` vlan 7`, ` vlan 7, reverse vlan 8`.
pub fn encapsulations_text(flow: &Flow) -> String {
    let server_text = server_encapsulation(flow).map(|server_text| match server_text.as_str() {
        "" => ", reverse untagged".to_owned(),
        server_text => format!(", reverse {server_text}"),
    });
    client_encapsulation(flow) + &server_text.unwrap_or_default()
}

/// VLAN and tunnel of the client's packets.
pub fn client_encapsulation(flow: &Flow) -> String {
    match flow.separate_encapsulation(Side::Client) {
        Some((vlan, tunnel)) => encapsulation_suffix(vlan, tunnel),
        None => flow_encapsulation(flow.name()),
    }
}

/// VLAN and tunnel of the server's packets; `None` if the same as the client's.
pub fn server_encapsulation(flow: &Flow) -> Option<String> {
    let (vlan, tunnel) = flow.separate_encapsulation(Side::Server)?;
    Some(encapsulation_suffix(vlan, tunnel).trim_start().to_owned())
}

/// ` vlan 7`, ` vxlan 42`.
pub fn encapsulation_suffix(vlan: Option<u16>, tunnel: Option<Tunnel>) -> String {
    let vlan = vlan.map(|vlan| format!(" vlan {vlan}"));
    let tunnel = tunnel.map(|tunnel| format!(" {tunnel}"));
    vlan.unwrap_or_default() + &tunnel.unwrap_or_default()
}

/// `3 out of order, 1 gap`: other events of both sides.
pub fn anomalies_text(client: &SentCounts, server: &SentCounts) -> String {
    const REPORTED_EVENTS: [(Event, &str); 8] = [
        (Event::OutOfOrder, "out of order"),
        (Event::Gap, "missing"),
        (Event::RepeatedAcknowledgement, "dup ack"),
        (Event::AcknowledgedUnseen, "ack of unseen"),
        (Event::ZeroWindow, "zero window"),
        (Event::WindowProbe, "window probe"),
        (Event::KeepAlive, "keep-alive"),
        (Event::Reset, "reset"),
    ];
    let events = REPORTED_EVENTS.into_iter().filter_map(|(event, word)| {
        let count = client.count(event) + server.count(event);
        (count > 0).then(|| format!("{count} {word}"))
    });
    let untracked = client.segments_not_tracked() + server.segments_not_tracked();
    let untracked = (untracked > 0).then(|| format!("{untracked} not followed"));
    events.chain(untracked).collect::<Vec<_>>().join(", ")
}
