//! Shows a period as text: one line per flow and per other pair. On a terminal it replaces the
//! period before.

use std::io::{self, IsTerminal, Write};

use neph_capture::{ExchangeCounts, Flow, Half, HostPair, Method, PeriodCounts, Side};
use neph_documents::captures::{
    PERIOD_COLUMNS, RecentPeriod, Sort, TopLines, exchanges, period_row, period_sentence,
};
use neph_documents::table::Table;
use neph_model::Span;
use neph_text::counted::counted;
use unicode_width::UnicodeWidthChar;

use super::Args;
use crate::output;

/// Lines of a period other than flows: headings, the number of hidden flows, the summary, and the
/// cursor line.
const FIXED_LINES: usize = 4;
/// The headings of the second table, and the empty line before it.
const SECOND_TABLE_LINES: usize = 2;

pub(super) struct Screen {
    sort: Sort,
    method: Method,
    is_terminal: bool,
    /// Displayed lines of the period.
    drawn_lines: usize,
    rows: TopLines,
    /// Pairs with exchanges outside of TCP.
    exchanges: TopLines,
    /// Lines of the terminal for both tables.
    max_lines: usize,
    /// Flows of this period without a row.
    hidden_count: u64,
}

impl Screen {
    pub(super) fn new(args: &Args) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let max_lines = output::height().filter(|_| is_terminal);
        let max_lines = max_lines.map_or(usize::MAX, |lines| lines.saturating_sub(FIXED_LINES));
        Self {
            sort: args.sort.sort(),
            method: args.by.method(),
            is_terminal,
            drawn_lines: 0,
            rows: TopLines::new(args.top.min(max_lines)),
            // Flows keep most of the terminal.
            exchanges: TopLines::new(args.top.min(max_lines / 4)),
            max_lines,
            hidden_count: 0,
        }
    }

    /// Adds a flow of the period.
    pub(super) fn flow(&mut self, length: Span, flow: &Flow, recent: &PeriodCounts) {
        let rank = self.sort.rank_of(
            (recent.sent(Side::Client), recent.sent(Side::Server)),
            recent.round_trips(Half::Server).path_quantiles(self.method),
            flow,
        );
        let method = self.method;
        let is_kept = self
            .rows
            .keep(rank, || period_row(length, flow, recent, method));
        self.hidden_count += u64::from(!is_kept);
    }

    /// Adds a pair of the period.
    pub(super) fn exchange(&mut self, pair: &HostPair, recent: &ExchangeCounts) {
        if exchanges::has_exchanges(recent) {
            let rank = exchanges::sort_key(pair, recent);
            let is_kept = (self.exchanges).keep(rank, || exchanges::row(pair, recent));
            self.hidden_count += u64::from(!is_kept);
        }
    }

    /// Draws the period, and starts the next.
    pub(super) fn draw(&mut self, period: &RecentPeriod, out: &mut impl Write) -> io::Result<()> {
        let mut flow_rows = self.rows.take();
        let exchange_rows = self.exchanges.take();
        if !exchange_rows.is_empty() {
            let max_rows = self
                .max_lines
                .saturating_sub(exchange_rows.len() + SECOND_TABLE_LINES);
            self.hidden_count += flow_rows.len().saturating_sub(max_rows) as u64;
            flow_rows.truncate(max_rows);
        }
        let mut tables = [Table::new(PERIOD_COLUMNS), Table::new(exchanges::COLUMNS)];
        for (table, rows) in tables.iter_mut().zip([flow_rows, exchange_rows]) {
            for row in rows {
                table.push(row);
            }
        }
        let tables = tables.iter().filter(|table| !table.is_empty());
        let mut text = tables.map(Table::text).collect::<Vec<_>>().join("\n");
        let hidden_count = std::mem::take(&mut self.hidden_count);
        if hidden_count > 0 {
            let hidden_count = counted(hidden_count, "flow");
            text.push_str(&format!("{hidden_count} more, not shown\n"));
        }
        text.push_str(&period_sentence(period));
        text.push('\n');
        if !self.is_terminal {
            return writeln!(out, "{text}");
        }
        out.flush()?;
        output::clear_lines(self.drawn_lines)?;
        let width = output::width();
        for line in text.lines() {
            writeln!(out, "{}", truncate_line(line, width))?;
        }
        self.drawn_lines = text.lines().count();
        Ok(())
    }

    /// Keeps the drawn period, so that other output follows below it.
    pub(super) fn keep_drawn(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.is_terminal {
            writeln!(out)?;
        }
        self.drawn_lines = 0;
        out.flush()
    }
}

/// Truncates a line to the width: a wrapped line could not be redrawn.
fn truncate_line(line: &str, width: usize) -> &str {
    let mut used_width = 0;
    let end = line.char_indices().find(|(_, letter)| {
        used_width += letter.width().unwrap_or(0);
        used_width > width
    });
    &line[..end.map_or(line.len(), |(index, _)| index)]
}
