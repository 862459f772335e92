//! Tells what happens as it happens, and the summary, in the format that was asked for.

use std::io::Write;

use neph_documents::Format;
use neph_documents::flows::{FlowsDocument, FlowsEvent, FlowsResult, Status, csv, text, words};
use neph_documents::rows::{line, pretty};
use neph_flows::PathNews;
use neph_flows::follow::Verdict;
use neph_model::{Anchor, Fleet, FleetMessage, Own, Span, WallCourse};
use neph_probe::Sharing;

use super::Args;
use crate::exit::Failure;
use crate::sink;

/// Readings of both clocks that are this near to a line are not kept.
const SAME: Span = Span::from_micros(1);

/// How long until the next status: a week's run need not say everything ten thousand times.
pub(super) fn pause(running: Span) -> Span {
    let minutes = running.nanos() / Span::from_secs(60).nanos();
    Span::from_secs(match minutes {
        0..10 => 5,
        10..60 => 30,
        _ => 300,
    })
}

/// Writes results.
pub(super) struct Tell<'a> {
    args: &'a Args,
    out: Box<dyn Write>,
    clock: WallCourse<Own>,
}

impl<'a> Tell<'a> {
    pub(super) fn new(args: &'a Args) -> Result<Self, Failure> {
        Ok(Self {
            args,
            out: sink::open(args.output.as_deref(), args.force)?,
            clock: WallCourse::within(SAME),
        })
    }

    /// Both clocks, for times of the day.
    pub(super) fn anchor(&mut self, anchor: Anchor<Own>) {
        self.clock.read(anchor);
    }

    /// Times of the day as they were told.
    pub(super) const fn clock(&self) -> &WallCourse<Own> {
        &self.clock
    }

    /// The fleet's flows are open.
    pub(super) fn begin(
        &mut self,
        fleet: &Fleet,
        sources: &[u16],
        how: Sharing,
    ) -> Result<(), Failure> {
        match self.args.format {
            Format::Text => write!(self.out, "{}", words::title(fleet, sources, how))?,
            Format::Csv if !self.args.quiet => writeln!(self.out, "{}", csv::HEADING)?,
            Format::Csv | Format::Json | Format::Ndjson => {}
        }
        self.out.flush()?;
        Ok(())
    }

    /// A message is finished.
    pub(super) fn message(&mut self, fleet: &Fleet, message: &FleetMessage) -> Result<(), Failure> {
        if self.args.format == Format::Csv && !self.args.quiet {
            writeln!(self.out, "{}", csv::line(fleet, message, &self.clock))?;
        }
        Ok(())
    }

    /// Something about paths is new.
    pub(super) fn news(&mut self, fleet: &Fleet, news: &PathNews) -> Result<(), Failure> {
        if self.args.quiet {
            return Ok(());
        }
        match self.args.format {
            Format::Text => writeln!(self.out, "{}", words::news(fleet, news, &self.clock))?,
            Format::Ndjson => line(&FlowsEvent::news(fleet, news, &self.clock), &mut self.out)?,
            Format::Json | Format::Csv => return Ok(()),
        }
        self.out.flush()?;
        Ok(())
    }

    /// A flow whose path changed was traced: whether it met other routers than before, or why nobody
    /// can tell.
    pub(super) fn traced(&mut self, fleet: &Fleet, verdict: &Verdict) -> Result<(), Failure> {
        match self.args.format {
            Format::Text if !self.args.quiet => {
                writeln!(self.out, "{}", words::traced(verdict, &self.clock))?;
            }
            Format::Ndjson if !self.args.quiet => {
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
    pub(super) fn status(&mut self, status: &Status) -> Result<(), Failure> {
        if self.args.quiet {
            return Ok(());
        }
        match self.args.format {
            Format::Text => writeln!(self.out, "{}", words::status(status))?,
            Format::Ndjson => line(&FlowsEvent::from(status), &mut self.out)?,
            Format::Json | Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }

    /// Everything is over.
    pub(super) fn end(&mut self, result: &FlowsResult) -> Result<(), Failure> {
        let document = || {
            if self.args.quiet {
                FlowsDocument::brief(result)
            } else {
                FlowsDocument::whole(result)
            }
        };
        match self.args.format {
            Format::Text => write!(self.out, "{}", text(result))?,
            Format::Json => pretty(&document(), &mut self.out)?,
            Format::Ndjson => line(&document(), &mut self.out)?,
            Format::Csv if self.args.quiet => write!(self.out, "{}", csv::flows(&result.view))?,
            Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }
}
