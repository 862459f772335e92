//! What becomes of flows that are over: a line each as they end, or the first few of them in order.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, StdoutLock, Write};

use neph_capture::{Event, Flow, Listener, Method, Name, Sample, Side, Table};
use neph_model::Wall;
use serde_json::Value;

use super::row::{COLUMNS, Rank, Sort, row};
use super::summary::{File, Summary};
use super::{Format, json};
use crate::output;
use crate::sheet::{self, Cell, Sheet};

/// What is told of flows, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) format: Format,
    pub(crate) sort: Sort,
    /// Lines of the table, at most.
    pub(crate) top: usize,
    /// Which round trips the table shows.
    pub(crate) method: Method,
    /// Whether each round trip and each event is told too.
    pub(crate) samples: bool,
}

pub(crate) struct Telling {
    shown: Shown,
    out: BufWriter<StdoutLock<'static>>,
    /// The first refusal of the output.
    refused: Option<io::Error>,
    /// The lines of the table, the last first.
    lines: BTreeMap<Rank, Vec<Cell>>,
    summary: Summary,
}

impl Telling {
    pub(crate) fn new(shown: Shown) -> Self {
        Self {
            shown,
            out: output::data(),
            refused: None,
            lines: BTreeMap::new(),
            summary: Summary::default(),
        }
    }

    /// Whether nobody takes the output any more.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// Where the data goes.
    pub(crate) fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// All flows were told.
    pub(crate) fn finish(mut self, table: &Table, files: &[File]) -> io::Result<()> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        match self.shown.format {
            Format::Text => {
                let mut sheet = Sheet::new(&COLUMNS);
                sheet.rows = self.lines.into_values().rev().collect();
                if !sheet.rows.is_empty() {
                    sheet.write(sheet::Format::Text, &mut self.out)?;
                    writeln!(self.out)?;
                }
                self.summary.write(table, files, &mut self.out)?;
            }
            Format::Ndjson => writeln!(self.out, "{}", self.summary.json(table, files))?,
            Format::Json => {
                let begin = if self.summary.flows == 0 {
                    "{\"flows\": ["
                } else {
                    ""
                };
                let summary = self.summary.json(table, files);
                writeln!(self.out, "{begin}],\n\"summary\": {summary}}}")?;
            }
        }
        self.out.flush()
    }

    /// A line of JSON.
    pub(crate) fn line(&mut self, value: &Value) {
        let written = writeln!(self.out, "{value}");
        self.written(written);
    }

    /// Remembers a refusal of the output.
    pub(crate) fn written(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.refused.get_or_insert(error);
        }
    }

    fn keep(&mut self, flow: &Flow) {
        let method = self.shown.method;
        let rank = self.shown.sort.rank(flow, method);
        let is_full = self.lines.len() >= self.shown.top;
        let lowest = self.lines.first_key_value();
        if is_full && lowest.is_none_or(|(lowest, _)| *lowest >= rank) {
            return;
        }
        if is_full {
            self.lines.pop_first();
        }
        self.lines.insert(rank, row(flow, method));
    }
}

impl Listener for Telling {
    fn sample(&mut self, of: &Name, sample: &Sample) {
        if self.shown.samples {
            self.line(&json::sample(of, sample));
        }
    }

    fn event(&mut self, of: &Name, at: Wall, side: Side, event: Event) {
        if self.shown.samples {
            self.line(&json::event(of, at, side, event));
        }
    }

    fn ended(&mut self, flow: &Flow) {
        match self.shown.format {
            Format::Text => self.keep(flow),
            Format::Ndjson => self.line(&json::flow(flow)),
            Format::Json => {
                let before = if self.summary.flows == 0 {
                    "{\"flows\": [\n"
                } else {
                    ",\n"
                };
                let written = write!(self.out, "{before}{}", json::flow(flow));
                self.written(written);
            }
        }
        self.summary.add(flow);
    }
}
