//! The output during the measurement: a line per interval, and each step.

use std::fmt;
use std::io::{self, Write};

use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::value_format;
use neph_model::Span;

use super::{ClockDocument, ClockLine, LabelledStep, Row, StepDocument, Summary};
use crate::format::Format;
use crate::rows;

/// The methods that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    /// The offset by all messages of both directions (convex hulls).
    pub hulls: bool,
    /// The mean of four timestamps.
    pub four_stamps: bool,
}

/// Writes offsets, steps and the summary in a format.
pub struct ClockWriter {
    format: Format,
    methods: Methods,
    out: Box<dyn Write>,
    /// Rows of the one document.
    rows: Vec<ClockLine>,
    has_heading: bool,
}

impl fmt::Debug for ClockWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClockWriter({:?})", self.format)
    }
}

impl ClockWriter {
    /// Writes to `out`.
    pub const fn new(format: Format, methods: Methods, out: Box<dyn Write>) -> Self {
        Self {
            format,
            methods,
            out,
            rows: Vec::new(),
            has_heading: false,
        }
    }

    /// Writes what will be compared.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&mut self, subject: &str) -> io::Result<()> {
        if self.format == Format::Text {
            writeln!(self.out, "{subject}")?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Writes the clocks at one moment.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn row(&mut self, row: &Row) -> io::Result<()> {
        match self.format {
            Format::Json => self.rows.push(row.into()),
            Format::Ndjson => rows::write_json_line(&ClockLine::from(row), &mut self.out)?,
            Format::Text | Format::Csv => self.line(row)?,
        }
        self.out.flush()
    }

    fn line(&mut self, row: &Row) -> io::Result<()> {
        let (has_hulls, has_four_timestamps) = (self.methods.hulls, self.methods.four_stamps);
        if !std::mem::replace(&mut self.has_heading, true) {
            write!(self.out, "\n{:>9}", "time")?;
            if has_hulls {
                write!(self.out, "  {:>26}  {:>22}", "offset", "drift")?;
            }
            if has_four_timestamps {
                write!(self.out, "  {:>15}", "four timestamps")?;
            }
            writeln!(self.out, "  {:>10}  {:>8}", "round trip", "n")?;
        }
        let (offset, bound) = row.offset();
        write!(self.out, "{:>7.1} s", row.since_start.secs_f64())?;
        if has_hulls {
            let drift = Drift::to_text(row.drift);
            let offset = value_format::offset(offset, bound);
            write!(self.out, "  {offset:>26}  {drift:>22}")?;
        }
        if has_four_timestamps {
            let mean = row.mean.map(|mean| value_format::value_text(mean, bound));
            write!(self.out, "  {:>15}", mean.unwrap_or_else(|| "-".to_owned()))?;
        }
        let round_trip = row
            .round_trip
            .map(|round_trip| Span::from_nanos(round_trip).to_string());
        let round_trip = round_trip.unwrap_or_else(|| "-".to_owned());
        let age_note = if row.is_repeated { "  nothing new" } else { "" };
        writeln!(self.out, "  {round_trip:>10}  {:>8}{age_note}", row.n)
    }

    /// Writes a step that was just detected.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn step(&mut self, step: &LabelledStep, began: i64) -> io::Result<()> {
        match self.format {
            Format::Json => {}
            Format::Ndjson => {
                let step = ClockLine::Step(StepDocument::of(step, began));
                rows::write_json_line(&step, &mut self.out)?;
            }
            Format::Text | Format::Csv => writeln!(self.out, "{}", step.sentence(began))?,
        }
        self.out.flush()
    }

    /// Writes a valid document if nothing was measured.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish_empty(&mut self) -> io::Result<()> {
        if self.format == Format::Json {
            let document = ClockDocument {
                offsets: Vec::new(),
                summary: None,
            };
            rows::write_json_line(&document, &mut self.out)?;
        }
        self.out.flush()
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&mut self, summary: &Summary) -> io::Result<()> {
        match self.format {
            Format::Json => {
                let document = ClockDocument {
                    offsets: std::mem::take(&mut self.rows),
                    summary: Some(summary.into()),
                };
                rows::write_json(&document, &mut self.out)?;
            }
            Format::Ndjson => rows::write_json_line(&ClockLine::from(summary), &mut self.out)?,
            Format::Text | Format::Csv => {
                writeln!(self.out)?;
                summary.write(self.methods.hulls, &mut self.out)?;
            }
        }
        self.out.flush()
    }
}
