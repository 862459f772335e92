//! A period for people: a line a flow and one a pair that asks and answers outside of TCP, drawn over the last period on a terminal, below it elsewhere.

use std::io::{self, IsTerminal, Write};

use neph_capture::{Answer, Counted, Flow, Half, Method, Pair, Recent, Side};
use neph_model::Span;
use unicode_width::UnicodeWidthChar;

use super::Args;
use super::watching::Lately;
use crate::output;
use crate::read::exchanges;
use crate::read::row::{First, Sort, both_via, n, path, repairs, span};
use crate::sheet::{Cell, Column, Sheet};
use crate::when;
use neph_text::counted::counted;

const COLUMNS: [Column; 21] = [
    Column::left("CLIENT", "client"),
    Column::left("SERVER", "server"),
    Column::right("PACKETS/S", "packets_per_s"),
    Column::right("BYTES/S", "bytes_per_s"),
    Column::right("PATH MIN", "server_path_min_ns"),
    Column::right("MEAN", "server_path_mean_ns"),
    Column::right("P50", "server_path_p50_ns"),
    Column::right("P95", "server_path_p95_ns"),
    Column::right("P99", "server_path_p99_ns"),
    Column::right("MAX", "server_path_max_ns"),
    Column::right("DEVIATION", "server_path_deviation_ns"),
    Column::right("N", "server_path_n"),
    Column::right("WITH DATA", "server_with_data_p50_ns"),
    Column::right("N", "server_with_data_n"),
    Column::right("DELAYED", "server_delayed_p50_ns"),
    Column::right("N", "server_delayed_n"),
    Column::right("CLIENT'S PATH", "client_path_p50_ns"),
    Column::right("N", "client_path_n"),
    Column::right("RETRANSMITTED", "retransmissions"),
    Column::right("SPURIOUS", "spurious_retransmissions"),
    Column::left("ODD", "marks"),
];

/// Lines of a period beside its flows: headings, how many flows are not shown, the sentence, and where
/// the cursor stands.
const BESIDE: usize = 4;
/// The headings of the second table, and the empty line before it.
const SECOND: usize = 2;

pub(super) struct Screen {
    sort: Sort,
    method: Method,
    is_terminal: bool,
    /// Lines of the period that stand on the terminal.
    drawn: usize,
    rows: First,
    /// Pairs that asked or answered outside of TCP.
    exchanges: First,
    /// Lines that are there for both.
    room: usize,
    /// Flows of this period that are not among the rows.
    hidden: u64,
}

impl Screen {
    pub(super) fn new(args: &Args) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let room = output::height().filter(|_| is_terminal);
        let room = room.map_or(usize::MAX, |lines| lines.saturating_sub(BESIDE));
        Self {
            sort: args.sort,
            method: args.by.method(),
            is_terminal,
            drawn: 0,
            rows: First::new(args.top.min(room)),
            // So that flows keep most of a terminal.
            exchanges: First::new(args.top.min(room / 4)),
            room,
            hidden: 0,
        }
    }

    /// A flow of the period that is to be drawn.
    pub(super) fn flow(&mut self, length: Span, flow: &Flow, recent: &Recent) {
        let rank = self.sort.rank_of(
            (recent.sent(Side::Client), recent.sent(Side::Server)),
            recent.trips(Half::Server).path(self.method),
            flow,
        );
        let method = self.method;
        let kept = self.rows.keep(rank, || row(length, flow, recent, method));
        self.hidden += u64::from(!kept);
    }

    /// A pair of the period that is to be drawn.
    pub(super) fn exchange(&mut self, pair: &Pair, recent: &Counted) {
        if exchanges::is_worth_a_line(recent) {
            let rank = exchanges::rank(pair, recent);
            let kept = (self.exchanges).keep(rank, || exchanges::row(pair, recent));
            self.hidden += u64::from(!kept);
        }
    }

    /// Draws the period, and begins the next.
    pub(super) fn draw(&mut self, lately: &Lately, out: &mut impl Write) -> io::Result<()> {
        let mut sheet = Sheet::new(&COLUMNS);
        sheet.rows = self.rows.take();
        let mut asked = Sheet::new(&exchanges::COLUMNS);
        asked.rows = self.exchanges.take();
        if !asked.rows.is_empty() {
            let room = self.room.saturating_sub(asked.rows.len() + SECOND);
            self.hidden += sheet.rows.len().saturating_sub(room) as u64;
            sheet.rows.truncate(room);
        }
        let mut text = String::new();
        for sheet in [&sheet, &asked]
            .into_iter()
            .filter(|sheet| !sheet.rows.is_empty())
        {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&sheet.text());
        }
        let hidden = std::mem::take(&mut self.hidden);
        if hidden > 0 {
            let hidden = counted(hidden, "flow");
            text.push_str(&format!("{hidden} more, not shown\n"));
        }
        text.push_str(&sentence(lately));
        text.push('\n');
        if !self.is_terminal {
            return writeln!(out, "{text}");
        }
        out.flush()?;
        output::clear_lines(self.drawn)?;
        let width = output::width();
        for line in text.lines() {
            writeln!(out, "{}", cut(line, width))?;
        }
        self.drawn = text.lines().count();
        Ok(())
    }

    /// Leaves what is drawn, so that something else can be said below it.
    pub(super) fn leave(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.is_terminal {
            writeln!(out)?;
        }
        self.drawn = 0;
        out.flush()
    }
}

/// As much of a line as fits: one that wraps could not be drawn over.
fn cut(line: &str, width: usize) -> &str {
    let mut taken = 0;
    let end = line.char_indices().find(|(_, letter)| {
        taken += letter.width().unwrap_or(0);
        taken > width
    });
    &line[..end.map_or(line.len(), |(at, _)| at)]
}

fn row(length: Span, flow: &Flow, recent: &Recent, method: Method) -> Vec<Cell> {
    let (client, server) = (recent.sent(Side::Client), recent.sent(Side::Server));
    let trips = recent.trips(Half::Server).laid_out();
    let name = flow.name();
    let mut cells = vec![
        Cell::text(name.client().to_string()),
        Cell::text(format!("{}{}", name.server(), both_via(flow))),
        Cell::count(per_second(client.packets + server.packets, length)),
        Cell::count(per_second(client.bytes + server.bytes, length)),
    ];
    cells.extend(path(&trips, method));
    for trips in [
        trips.of(method, Answer::WithData),
        trips.of(method, Answer::Delayed),
        recent.trips(Half::Client).path(method),
    ] {
        cells.extend([span(trips.map(|trips| trips.p50)), n(trips)]);
    }
    cells.extend(repairs((client, server)));
    cells
}

/// `23:59:59 UTC  1200 packets a second, ...`: what came, what was of no flow and what was lost.
fn sentence(lately: &Lately) -> String {
    let length = lately.stretch.length;
    let (seen, others) = (&lately.seen, &lately.others);
    let rate = |count| per_second(count, length);
    let left_out: Vec<String> = [
        (others.udp, "UDP"),
        (others.icmp, "ICMP"),
        (others.fragments, "fragments"),
        (others.unread, "other"),
        (others.cut, "cut off (--snaplen keeps more)"),
        (seen.not_ip, "not IP"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{} {what}", rate(count)))
    .collect();
    let left_out = if left_out.is_empty() {
        String::new()
    } else {
        format!(" (of no flow here: {})", left_out.join(", "))
    };
    let copies = match lately.counts.copies {
        0 => String::new(),
        copies => format!(", {} of them once more", rate(copies)),
    };
    let again = match lately.repairs {
        repairs if repairs.retransmissions == 0 => String::new(),
        repairs => format!(
            ", {} retransmissions ({} of them spurious)",
            rate(repairs.retransmissions),
            rate(repairs.spurious)
        ),
    };
    let not_followed = match lately.repairs.not_followed {
        0 => String::new(),
        segments => format!(", {} segments not followed", rate(segments)),
    };
    let lost = if seen.lost == 0 {
        "none lost".to_owned()
    } else {
        let times = counted(seen.frozen, "time");
        let lost = counted(seen.lost, "packet");
        format!("{lost} LOST, the ring was full {times}; --ring makes it larger")
    };
    format!(
        "{}  a second: {} packets{copies}{left_out}, {} bytes of IP{again}{not_followed}; {lost}",
        when::utc(lately.stretch.until),
        rate(seen.packets),
        rate(lately.counts.bytes),
    )
}

/// Rounded to the nearest whole number.
fn per_second(count: u64, length: Span) -> u64 {
    let nanos = u128::try_from(length.nanos()).unwrap_or(0).max(1);
    let rate = (u128::from(count) * 1_000_000_000 + nanos / 2) / nanos;
    u64::try_from(rate).unwrap_or(u64::MAX)
}
