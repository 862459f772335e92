//! What is written while it runs: a line each so often, and each step.

use std::io::{self, BufWriter, Write};

use neph_capture::clocks::words;
use neph_documents::Format;
use neph_documents::clock::{ClockDocument, ClockLine, Row, StepDocument, StepOf, Summary};
use neph_documents::rows;
use neph_model::Span;

use super::{Args, Method};
use crate::output;
use neph_capture::clocks::drift::Drift;

pub(super) struct Telling<'a> {
    args: &'a Args,
    out: BufWriter<output::Data>,
    /// Rows of the one document.
    rows: Vec<ClockLine>,
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
            Format::Json => self.rows.push(row.into()),
            Format::Ndjson => rows::line(&ClockLine::from(row), &mut self.out)?,
            Format::Text | Format::Csv => self.line(row)?,
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
    pub(super) fn step(&mut self, step: &StepOf, began: i64) -> io::Result<()> {
        match self.args.format {
            Format::Json => {}
            Format::Ndjson => {
                let step = ClockLine::Step(StepDocument::of(step, began));
                rows::line(&step, &mut self.out)?;
            }
            Format::Text | Format::Csv => writeln!(self.out, "{}", step.sentence(began))?,
        }
        self.out.flush()
    }

    /// Nothing was measured: a document is one all the same.
    pub(super) fn nothing(&mut self) -> io::Result<()> {
        if self.args.format == Format::Json {
            let document = ClockDocument {
                offsets: Vec::new(),
                summary: None,
            };
            rows::line(&document, &mut self.out)?;
        }
        self.out.flush()
    }

    pub(super) fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        match self.args.format {
            Format::Json => {
                let document = ClockDocument {
                    offsets: std::mem::take(&mut self.rows),
                    summary: Some(summary.into()),
                };
                rows::pretty(&document, &mut self.out)?;
            }
            Format::Ndjson => rows::line(&ClockLine::from(summary), &mut self.out)?,
            Format::Text | Format::Csv => {
                writeln!(self.out)?;
                summary.write(self.args.asks_for(Method::Hulls), &mut self.out)?;
            }
        }
        self.out.flush()
    }
}
