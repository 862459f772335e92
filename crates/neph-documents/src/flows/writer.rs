//! Writes what happens as it happens, and the summary, in a format.

use std::fmt;
use std::io::{self, Write};

use neph_flows::PathEvent;
use neph_flows::follow::Verdict;
use neph_model::{Anchor, Fleet, FleetMessage, Own, Span, WallCourse};
use neph_probe::Sharing;

use super::{FlowsDocument, FlowsEvent, FlowsResult, Status, csv, text, words};
use crate::format::Format;
use crate::rows::{line, pretty};

/// Readings of both clocks that are this near to a line are not kept.
const SAME: Span = Span::from_micros(1);

/// How long until the next status: a week's run need not say everything ten thousand times.
pub fn pause(running: Span) -> Span {
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
    /// Only the summary is written.
    is_quiet: bool,
    out: Box<dyn Write>,
    clock: WallCourse<Own>,
}

impl fmt::Debug for FlowsWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowsWriter({:?})", self.format)
    }
}

impl FlowsWriter {
    /// Writes to `out`, with everything that happens.
    pub fn new(format: Format, out: Box<dyn Write>) -> Self {
        Self {
            format,
            is_quiet: false,
            out,
            clock: WallCourse::within(SAME),
        }
    }

    /// Writes the summary alone, if `is_quiet`.
    #[must_use]
    pub fn quiet(self, is_quiet: bool) -> Self {
        Self { is_quiet, ..self }
    }

    /// Both clocks, for times of the day.
    pub fn anchor(&mut self, anchor: Anchor<Own>) {
        self.clock.read(anchor);
    }

    /// Times of the day as they were reported.
    pub const fn clock(&self) -> &WallCourse<Own> {
        &self.clock
    }

    /// The fleet's flows are open.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&mut self, fleet: &Fleet, sources: &[u16], how: Sharing) -> io::Result<()> {
        match self.format {
            Format::Text => write!(self.out, "{}", words::title(fleet, sources, how))?,
            Format::Csv if !self.is_quiet => writeln!(self.out, "{}", csv::HEADING)?,
            Format::Csv | Format::Json | Format::Ndjson => {}
        }
        self.out.flush()?;
        Ok(())
    }

    /// A message is finished.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn message(&mut self, fleet: &Fleet, message: &FleetMessage) -> io::Result<()> {
        if self.format == Format::Csv && !self.is_quiet {
            writeln!(self.out, "{}", csv::line(fleet, message, &self.clock))?;
        }
        Ok(())
    }

    /// Something about paths is new.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn events(&mut self, fleet: &Fleet, events: &PathEvent) -> io::Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        match self.format {
            Format::Text => writeln!(self.out, "{}", words::events(fleet, events, &self.clock))?,
            Format::Ndjson => line(
                &FlowsEvent::events(fleet, events, &self.clock),
                &mut self.out,
            )?,
            Format::Json | Format::Csv => return Ok(()),
        }
        self.out.flush()?;
        Ok(())
    }

    /// A flow whose path changed was traced: whether it met other routers than before, or why this is
    /// not known.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn traced(&mut self, fleet: &Fleet, verdict: &Verdict) -> io::Result<()> {
        match self.format {
            Format::Text if !self.is_quiet => {
                writeln!(self.out, "{}", words::traced(verdict, &self.clock))?;
            }
            Format::Ndjson if !self.is_quiet => {
                line(
                    &FlowsEvent::traced(fleet, verdict, &self.clock),
                    &mut self.out,
                )?;
            }
            _ => {}
        }
        Ok(())
    }

    /// How it goes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn status(&mut self, status: &Status) -> io::Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        match self.format {
            Format::Text => writeln!(self.out, "{}", words::status(status))?,
            Format::Ndjson => line(&FlowsEvent::from(status), &mut self.out)?,
            Format::Json | Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }

    /// Everything is over.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&mut self, result: &FlowsResult) -> io::Result<()> {
        let document = || {
            if self.is_quiet {
                FlowsDocument::brief(result)
            } else {
                FlowsDocument::whole(result)
            }
        };
        match self.format {
            Format::Text => write!(self.out, "{}", text(result))?,
            Format::Json => pretty(&document(), &mut self.out)?,
            Format::Ndjson => line(&document(), &mut self.out)?,
            Format::Csv if self.is_quiet => write!(self.out, "{}", csv::flows(&result.view))?,
            Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }
}
