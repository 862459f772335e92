//! What is written while it runs: a line each so often, and each step.

use std::io::{self, BufWriter, Write};

use neph_model::Span;
use serde_json::{Value, json};

use super::row::Row;
use super::summary::{Summary, Whose};
use neph_capture::clocks::words;

use super::{Args, Format, Method};
use crate::output;
use neph_capture::clocks::drift::Drift;

pub(super) struct Telling<'a> {
    args: &'a Args,
    out: BufWriter<output::Data>,
    /// Rows of the one document.
    rows: Vec<Value>,
    has_heading: bool,
}

impl<'a> Telling<'a> {
    pub(super) fn new(args: &'a Args) -> Self {
        Self {
            args,
            out: output::data(),
            rows: Vec::new(),
            has_heading: false,
        }
    }

    /// What will be compared.
    pub(super) fn begin(&mut self, what: &str) -> io::Result<()> {
        if self.args.format == Format::Text {
            writeln!(self.out, "{what}")?;
            self.out.flush()?;
        }
        Ok(())
    }

    pub(super) fn row(&mut self, row: &Row) -> io::Result<()> {
        match self.args.format {
            Format::Json => self.rows.push(row.line()),
            Format::Ndjson => writeln!(self.out, "{}", row.line())?,
            Format::Text => self.line(row)?,
        }
        self.out.flush()
    }

    fn line(&mut self, row: &Row) -> io::Result<()> {
        let (hulls, four) = (
            self.args.asks_for(Method::Hulls),
            self.args.asks_for(Method::FourStamps),
        );
        if !std::mem::replace(&mut self.has_heading, true) {
            write!(self.out, "\n{:>9}", "time")?;
            if hulls {
                write!(self.out, "  {:>26}  {:>22}", "offset", "drift")?;
            }
            if four {
                write!(self.out, "  {:>15}", "four stamps")?;
            }
            writeln!(self.out, "  {:>10}  {:>8}", "round trip", "n")?;
        }
        let (offset, bound) = row.offset();
        write!(self.out, "{:>7.1} s", row.since.secs_f64())?;
        if hulls {
            let drift = Drift::in_words(row.drift);
            let offset = words::offset(offset, bound);
            write!(self.out, "  {offset:>26}  {drift:>22}")?;
        }
        if four {
            let mean = row.mean.map(|mean| words::value(mean, bound));
            write!(self.out, "  {:>15}", mean.unwrap_or_else(|| "-".to_owned()))?;
        }
        let trip = row
            .round_trip
            .map(|trip| Span::from_nanos(trip).to_string());
        let trip = trip.unwrap_or_else(|| "-".to_owned());
        let old = if row.is_old { "  nothing new" } else { "" };
        writeln!(self.out, "  {trip:>10}  {:>8}{old}", row.n)
    }

    /// A step that was seen just now.
    pub(super) fn step(&mut self, step: &Whose, began: i64) -> io::Result<()> {
        match self.args.format {
            Format::Json => {}
            Format::Ndjson => writeln!(self.out, "{}", step.json(began))?,
            Format::Text => writeln!(self.out, "{}", step.sentence(began))?,
        }
        self.out.flush()
    }

    /// Nothing was measured: a document is one all the same.
    pub(super) fn nothing(&mut self) -> io::Result<()> {
        if self.args.format == Format::Json {
            writeln!(self.out, "{}", json!({ "offsets": [], "summary": null }))?;
        }
        self.out.flush()
    }

    pub(super) fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        match self.args.format {
            Format::Json => {
                let offsets = std::mem::take(&mut self.rows);
                let document = json!({ "offsets": offsets, "summary": summary.json() });
                writeln!(self.out, "{document:#}")?;
            }
            Format::Ndjson => writeln!(self.out, "{}", summary.json())?,
            Format::Text => {
                writeln!(self.out)?;
                summary.write(self.args.asks_for(Method::Hulls), &mut self.out)?;
            }
        }
        self.out.flush()
    }
}
