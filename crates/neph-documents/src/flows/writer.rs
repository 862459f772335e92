//! Writes events when they occur, and the summary, in a format.

use std::fmt;
use std::io::{self, Write};

use neph_flows::PathEvent;
use neph_flows::follow::Verdict;
use neph_model::{Anchor, Fleet, FleetMessage, Local, Span, WallCourse};
use neph_probe::Sharing;

use super::{FlowsDocument, FlowsEvent, FlowsResult, Status, csv, lines, text};
use crate::format::Format;
use crate::rows::{write_json, write_json_line};

/// Clock readings within this distance of a line are not stored.
const CLOCK_TOLERANCE: Span = Span::from_micros(1);

/// Time until the next status line: it grows, so that a run of a week has few lines.
pub fn status_interval(running: Span) -> Span {
    let minutes = running.nanos() / Span::from_secs(60).nanos();
    Span::from_secs(match minutes {
        0..10 => 5,
        10..60 => 30,
        _ => 300,
    })
}

/// Writes results.
pub struct FlowsWriter {
    format: Format,
    /// Whether only the summary is written.
    is_quiet: bool,
    out: Box<dyn Write>,
    clock: WallCourse<Local>,
}

impl fmt::Debug for FlowsWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowsWriter({:?})", self.format)
    }
}

impl FlowsWriter {
    /// Writes all events to `out`.
    pub fn new(format: Format, out: Box<dyn Write>) -> Self {
        Self {
            format,
            is_quiet: false,
            out,
            clock: WallCourse::within(CLOCK_TOLERANCE),
        }
    }

    /// Writes only the summary, if `is_quiet`.
    #[must_use]
    pub fn quiet(self, is_quiet: bool) -> Self {
        Self { is_quiet, ..self }
    }

    /// Adds a reading of both clocks, for times of day.
    pub fn anchor(&mut self, anchor: Anchor<Local>) {
        self.clock.read(anchor);
    }

    /// The clock of the reported times of day.
    pub const fn clock(&self) -> &WallCourse<Local> {
        &self.clock
    }

    /// Writes the title, when the fleet's flows are open.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(
        &mut self,
        fleet: &Fleet,
        source_ports: &[u16],
        sharing: Sharing,
    ) -> io::Result<()> {
        match self.format {
            Format::Text => write!(self.out, "{}", lines::title(fleet, source_ports, sharing))?,
            Format::Csv if !self.is_quiet => writeln!(self.out, "{}", csv::HEADING)?,
            Format::Csv | Format::Json | Format::Ndjson => {}
        }
        self.out.flush()?;
        Ok(())
    }

    /// Writes a message that ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn message(&mut self, fleet: &Fleet, message: &FleetMessage) -> io::Result<()> {
        if self.format == Format::Csv && !self.is_quiet {
            writeln!(self.out, "{}", csv::line(fleet, message, &self.clock))?;
        }
        Ok(())
    }

    /// Writes a path change, or its withdrawal.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn path_event(&mut self, fleet: &Fleet, event: &PathEvent) -> io::Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        match self.format {
            Format::Text => writeln!(
                self.out,
                "{}",
                lines::path_event_line(fleet, event, &self.clock)
            )?,
            Format::Ndjson => write_json_line(
                &FlowsEvent::of_path_event(fleet, event, &self.clock),
                &mut self.out,
            )?,
            Format::Json | Format::Csv => return Ok(()),
        }
        self.out.flush()?;
        Ok(())
    }

    /// Writes the result of a trace: whether it met other routers than before, or why this is not
    /// known.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn trace(&mut self, fleet: &Fleet, verdict: &Verdict) -> io::Result<()> {
        match self.format {
            Format::Text if !self.is_quiet => {
                writeln!(self.out, "{}", lines::trace_line(verdict, &self.clock))?;
            }
            Format::Ndjson if !self.is_quiet => {
                write_json_line(
                    &FlowsEvent::of_verdict(fleet, verdict, &self.clock),
                    &mut self.out,
                )?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes a status.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn status(&mut self, status: &Status) -> io::Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        match self.format {
            Format::Text => writeln!(self.out, "{}", lines::status(status))?,
            Format::Ndjson => write_json_line(&FlowsEvent::from(status), &mut self.out)?,
            Format::Json | Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&mut self, result: &FlowsResult) -> io::Result<()> {
        let document = || {
            if self.is_quiet {
                FlowsDocument::summary_only(result)
            } else {
                FlowsDocument::of_result(result)
            }
        };
        match self.format {
            Format::Text => write!(self.out, "{}", text(result))?,
            Format::Json => write_json(&document(), &mut self.out)?,
            Format::Ndjson => write_json_line(&document(), &mut self.out)?,
            Format::Csv if self.is_quiet => write!(self.out, "{}", csv::flows(&result.view))?,
            Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }
}
