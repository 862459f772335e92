//! A flow as a line of the table: path and programs told apart, and what cannot be told said.

use std::collections::BTreeMap;

use neph_capture::{Answer, Event, Flow, Half, LaidOut, Method, Name, Quantiles, Sent, Side};
use neph_model::{Span, Wall};
use neph_wire::dissect::Tunnel;

use crate::sheet::{Cell, Column};

pub(super) const COLUMNS: [Column; 15] = [
    Column::left("CLIENT", "client"),
    Column::left("SERVER", "server"),
    Column::right("PACKETS", "packets"),
    Column::right("BYTES", "bytes"),
    Column::right("PATH MIN", "server_path_min_ns"),
    Column::right("P50", "server_path_p50_ns"),
    Column::right("P95", "server_path_p95_ns"),
    Column::right("P99", "server_path_p99_ns"),
    Column::right("N", "server_path_n"),
    Column::right("RESPONSE", "server_response_p50_ns"),
    Column::right("N", "server_response_n"),
    Column::right("CLIENT'S PATH", "client_path_p50_ns"),
    Column::right("N", "client_path_n"),
    Column::right("AGAIN", "sent_again"),
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
    /// The most segments that were sent again first
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
    let response = server.of(Method::Response, Answer::WithData);
    let mut cells = vec![
        Cell::text(name.client().to_string()),
        Cell::text(format!("{}{}", name.server(), via(name))),
        both(|flow, side| flow.sent(side).packets),
        both(|flow, side| flow.sent(side).bytes),
    ];
    let path = server.path(method);
    cells.push(match &path {
        Some(path) => span(Some(path.least)),
        None => Cell::new(missing(&server, method), serde_json::Value::Null),
    });
    for quantile in [
        path.map(|path| path.p50),
        path.and_then(|path| path.p95),
        path.and_then(|path| path.p99),
    ] {
        cells.push(span(quantile));
    }
    cells.push(n(path));
    cells.push(span(response.map(|trips| trips.p50)));
    cells.push(n(response));
    let client = flow.trips(Half::Client).path(method);
    cells.push(span(client.map(|path| path.p50)));
    cells.push(n(client));
    cells.push(both(|flow, side| flow.sent(side).sent_again().into()));
    cells.push(Cell::text(marks(
        flow.sent(Side::Client),
        flow.sent(Side::Server),
    )));
    cells
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

pub(crate) fn n(trips: Option<Quantiles>) -> Cell {
    Cell::count(trips.map_or(0, |trips| trips.n))
}

/// What a flow travels in.
pub(crate) fn via(name: &Name) -> String {
    travels_in(name.vlan(), name.tunnel())
}

/// ` vlan 7`, ` vxlan 42`.
pub(super) fn travels_in(vlan: Option<u16>, tunnel: Option<Tunnel>) -> String {
    let vlan = vlan.map(|vlan| format!(" vlan {vlan}"));
    let tunnel = tunnel.map(|tunnel| match tunnel {
        Tunnel::Vxlan(network) => format!(" vxlan {network}"),
        Tunnel::Geneve(network) => format!(" geneve {network}"),
        Tunnel::Gre(Some(key)) => format!(" gre {key}"),
        Tunnel::Gre(None) => " gre".to_owned(),
        Tunnel::Ip => " ip in ip".to_owned(),
    });
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
    told.collect::<Vec<_>>().join(", ")
}
