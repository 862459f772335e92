//! What becomes of flows that are over: a line each as they end, or the first few of them in order.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, StdoutLock, Write};

use neph_capture::{Event, Flow, Listener, Name, Sample, Side, Table};
use neph_model::Wall;
use serde_json::Value;

use super::row::{COLUMNS, Rank, row};
use super::summary::{File, Summary};
use super::{Args, Format, json};
use crate::output;
use crate::sheet::{self, Cell, Sheet};

pub(super) struct Telling<'a> {
    args: &'a Args,
    out: BufWriter<StdoutLock<'static>>,
    /// The first refusal of the output.
    refused: Option<io::Error>,
    /// The lines of the table, the last first.
    lines: BTreeMap<Rank, Vec<Cell>>,
    summary: Summary,
}

impl<'a> Telling<'a> {
    pub(super) fn new(args: &'a Args) -> Self {
        Self {
            args,
            out: output::data(),
            refused: None,
            lines: BTreeMap::new(),
            summary: Summary::default(),
        }
    }

    /// Whether nobody takes the output any more.
    pub(super) const fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// All flows were told.
    pub(super) fn finish(mut self, table: &Table, files: &[File]) -> io::Result<()> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        match self.args.format {
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

    fn line(&mut self, value: &Value) {
        let written = writeln!(self.out, "{value}");
        self.written(written);
    }

    fn written(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.refused.get_or_insert(error);
        }
    }

    fn keep(&mut self, flow: &Flow) {
        let method = self.args.method();
        let rank = self.args.sort.rank(flow, method);
        let is_full = self.lines.len() >= self.args.top;
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

impl Listener for Telling<'_> {
    fn sample(&mut self, of: &Name, sample: &Sample) {
        if self.args.samples {
            self.line(&json::sample(of, sample));
        }
    }

    fn event(&mut self, of: &Name, at: Wall, side: Side, event: Event) {
        if self.args.samples {
            self.line(&json::event(of, at, side, event));
        }
    }

    fn ended(&mut self, flow: &Flow) {
        match self.args.format {
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
