//! A flow as a line of the table: path and programs told apart, and what cannot be told said.

use std::collections::BTreeMap;

use neph_capture::{Answer, Event, Flow, Half, LaidOut, Method, Name, Quantiles, Sent, Side};
use neph_model::{Span, Wall};
use neph_wire::dissect::Tunnel;

use crate::sheet::{Cell, Column};

pub(super) const COLUMNS: [Column; 21] = [
    Column::left("CLIENT", "client"),
    Column::left("SERVER", "server"),
    Column::right("PACKETS", "packets"),
    Column::right("BYTES", "bytes"),
    Column::right("PATH MIN", "server_path_min_ns"),
    Column::right("MEAN", "server_path_mean_ns"),
    Column::right("P50", "server_path_p50_ns"),
    Column::right("P95", "server_path_p95_ns"),
    Column::right("P99", "server_path_p99_ns"),
    Column::right("MAX", "server_path_max_ns"),
    Column::right("DEVIATION", "server_path_deviation_ns"),
    Column::right("N", "server_path_n"),
    Column::right("RESPONSE", "server_response_p50_ns"),
    Column::right("N", "server_response_n"),
    Column::right("DELAYED", "server_delayed_p50_ns"),
    Column::right("N", "server_delayed_n"),
    Column::right("CLIENT'S PATH", "client_path_p50_ns"),
    Column::right("N", "client_path_n"),
    Column::right("RETRANSMITTED", "retransmissions"),
    Column::right("SPURIOUS", "spurious_retransmissions"),
    Column::left("ODD", "marks"),
];

/// By what flows are ordered, and what is told of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// More comes first; a flow without comes last.
    by: Option<i64>,
    /// Of those that are alike the earlier one comes first.
    began: std::cmp::Reverse<i64>,
    name: String,
}

impl Rank {
    pub(super) fn by(by: Option<i64>, began: Wall, name: String) -> Self {
        Self {
            by,
            began: std::cmp::Reverse(began.unix_nanos()),
            name,
        }
    }
}

/// The first few lines of a table.
#[derive(Debug)]
pub(crate) struct First {
    most: usize,
    /// The last line first.
    lines: BTreeMap<Rank, Vec<Cell>>,
}

impl First {
    /// Of so many lines at most.
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            most,
            lines: BTreeMap::new(),
        }
    }

    /// Keeps a line if it is among the first; `false`: one is left out, this or another.
    pub(crate) fn keep(&mut self, rank: Rank, row: impl FnOnce() -> Vec<Cell>) -> bool {
        let is_full = self.lines.len() >= self.most;
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

    /// The lines in their order; none is left.
    pub(crate) fn take(&mut self) -> Vec<Vec<Cell>> {
        let lines = std::mem::take(&mut self.lines);
        lines.into_values().rev().collect()
    }
}

/// What flows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// The slowest path to the server first
    P50,
    /// The most bytes first
    Bytes,
    /// The most packets first
    Packets,
    /// The most retransmissions first
    Again,
}

impl Sort {
    pub(crate) fn rank(self, flow: &Flow, method: Method) -> Rank {
        let sent = (flow.sent(Side::Client), flow.sent(Side::Server));
        self.rank_of(sent, flow.trips(Half::Server).path(method), flow)
    }

    /// The same by what a flow showed for a while.
    pub(crate) fn rank_of(
        self,
        (client, server): (&Sent, &Sent),
        path: Option<Quantiles>,
        flow: &Flow,
    ) -> Rank {
        let both = |count: fn(&Sent) -> u64| i64::try_from(count(client) + count(server)).ok();
        let by = match self {
            Self::P50 => path.map(|path| path.p50.nanos()),
            Self::Bytes => both(|sent| sent.bytes),
            Self::Packets => both(|sent| sent.packets),
            Self::Again => both(|sent| sent.sent_again().into()),
        };
        let name = flow.name();
        let name = format!("{} {}{}", name.client(), name.server(), via(name));
        Rank::by(by, flow.began(), name)
    }
}

pub(super) fn row(flow: &Flow, method: Method) -> Vec<Cell> {
    let name = flow.name();
    let both = |count: fn(&Flow, Side) -> u64| {
        Cell::count(count(flow, Side::Client) + count(flow, Side::Server))
    };
    let server = flow.trips(Half::Server).laid_out();
    let mut cells = vec![
        Cell::text(name.client().to_string()),
        Cell::text(format!("{}{}", name.server(), both_via(flow))),
        both(|flow, side| flow.sent(side).packets),
        both(|flow, side| flow.sent(side).bytes),
    ];
    cells.extend(path(&server, method));
    let client = flow.trips(Half::Client).path(method);
    for trips in [
        server.of(Method::Response, Answer::WithData),
        server.of(method, Answer::Delayed),
        client,
    ] {
        cells.extend([span(trips.map(|trips| trips.p50)), n(trips)]);
    }
    let sent = (flow.sent(Side::Client), flow.sent(Side::Server));
    cells.extend(repairs(sent));
    cells
}

/// The path to the server: its round trips, or why there is none.
pub(crate) fn path(server: &LaidOut, method: Method) -> [Cell; 8] {
    let path = server.path(method);
    let least = match &path {
        Some(path) => span(Some(path.least)),
        None => Cell::new(missing(server, method), serde_json::Value::Null),
    };
    [
        least,
        span(path.map(|path| path.mean)),
        span(path.map(|path| path.p50)),
        span(path.and_then(|path| path.p95)),
        span(path.and_then(|path| path.p99)),
        span(path.map(|path| path.most)),
        span(path.and_then(|path| path.deviation)),
        n(path),
    ]
}

/// Retransmissions of both sides, needed ones and spurious ones, and what else is odd.
pub(crate) fn repairs((client, server): (&Sent, &Sent)) -> [Cell; 3] {
    let both =
        |count: fn(&Sent) -> u32| Cell::count(u64::from(count(client)) + u64::from(count(server)));
    [
        both(Sent::retransmitted),
        both(Sent::spurious),
        Cell::text(marks(client, server)),
    ]
}

/// Why there is no round trip of the path.
pub(crate) fn missing(trips: &LaidOut, method: Method) -> &'static str {
    let answered = [Answer::WithData, Answer::Delayed]
        .into_iter()
        .any(|answer| trips.of(method, answer).is_some());
    if answered { "not measurable" } else { "-" }
}

pub(crate) fn span(span: Option<Span>) -> Cell {
    span.map_or_else(Cell::absent, |span| {
        Cell::new(span.to_string(), span.nanos())
    })
}

/// How many round trips; of how many, where not all segments were followed.
pub(crate) fn n(trips: Option<Quantiles>) -> Cell {
    match trips {
        Some(trips) if trips.estimated > trips.n => {
            Cell::new(format!("{} of {}", trips.n, trips.estimated), trips.n)
        }
        trips => Cell::count(trips.map_or(0, |trips| trips.n)),
    }
}

/// What a flow travels in.
pub(crate) fn via(name: &Name) -> String {
    travels_in(name.vlan(), name.tunnel())
}

/// ` vlan 7`, ` vlan 7, back vlan 8`.
pub(crate) fn both_via(flow: &Flow) -> String {
    let back = via_server(flow).map(|back| match back.as_str() {
        "" => ", back bare".to_owned(),
        back => format!(", back {back}"),
    });
    via_client(flow) + &back.unwrap_or_default()
}

/// What its client's packets travel in.
pub(crate) fn via_client(flow: &Flow) -> String {
    match flow.travels_apart(Side::Client) {
        Some((vlan, tunnel)) => travels_in(vlan, tunnel),
        None => via(flow.name()),
    }
}

/// What its server's packets travel in, where its directions differ in that.
pub(crate) fn via_server(flow: &Flow) -> Option<String> {
    let (vlan, tunnel) = flow.travels_apart(Side::Server)?;
    Some(travels_in(vlan, tunnel).trim_start().to_owned())
}

/// ` vlan 7`, ` vxlan 42`.
pub(super) fn travels_in(vlan: Option<u16>, tunnel: Option<Tunnel>) -> String {
    let vlan = vlan.map(|vlan| format!(" vlan {vlan}"));
    let tunnel = tunnel.map(|tunnel| format!(" {tunnel}"));
    vlan.unwrap_or_default() + &tunnel.unwrap_or_default()
}

/// `3 out of order, 1 gap`: what else happened, of both sides.
pub(crate) fn marks(client: &Sent, server: &Sent) -> String {
    const TOLD: [(Event, &str); 8] = [
        (Event::OutOfOrder, "out of order"),
        (Event::Gap, "missing"),
        (Event::RepeatedAcknowledgement, "dup ack"),
        (Event::AcknowledgedUnseen, "ack of unseen"),
        (Event::ZeroWindow, "zero window"),
        (Event::WindowProbe, "window probe"),
        (Event::KeepAlive, "keep-alive"),
        (Event::Reset, "reset"),
    ];
    let told = TOLD.into_iter().filter_map(|(event, word)| {
        let count = client.count(event) + server.count(event);
        (count > 0).then(|| format!("{count} {word}"))
    });
    let left_out = client.thinned() + server.thinned();
    let left_out = (left_out > 0).then(|| format!("{left_out} not followed"));
    told.chain(left_out).collect::<Vec<_>>().join(", ")
}
