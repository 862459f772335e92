//! Tells what happens as it happens, and the summary, in the format that was asked for.

use std::io::Write;

use neph_flows::{FlowTally, PathChange, PathNews};
use neph_model::{Anchor, Fleet, FleetMessage, Own, Span, WallCourse};
use neph_probe::Sharing;

use super::document::Document;
use super::watch::Watched;
use super::{Args, Format, csv, json, summary, words};
use crate::exit::Failure;
use crate::sink;
use neph_flows::follow::{Verdict, Why};

/// Readings of both clocks that are this near to a line are not kept.
const SAME: Span = Span::from_micros(1);

/// What a status says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    /// Since the start.
    pub(super) running: Span,
    pub(super) tally: FlowTally,
    pub(super) changes: usize,
}

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
            Format::Ndjson => {
                let (kind, change) = parts(news);
                let mut value = json::change(fleet, change, &self.clock);
                value["type"] = kind.into();
                writeln!(self.out, "{value}")?;
            }
            Format::Json | Format::Csv => return Ok(()),
        }
        self.out.flush()?;
        Ok(())
    }

    /// A flow whose path changed was traced: whether it met other routers than before, or why nobody
    /// can tell.
    pub(super) fn traced(&mut self, fleet: &Fleet, verdict: &Verdict) -> Result<(), Failure> {
        let mut change = verdict.change;
        change.evidence.trace = verdict.said.ok().map(|said| said.others);
        match self.args.format {
            Format::Text if !self.args.quiet => {
                writeln!(self.out, "{}", words::traced(verdict, &self.clock))?;
            }
            Format::Ndjson if !self.args.quiet => {
                let mut value = json::change(fleet, &change, &self.clock);
                value["type"] = "traced".into();
                value["withdrawn"] = verdict.is_withdrawn.into();
                let before = verdict.said.ok().map(|said| said.before);
                let before = before.and_then(|at| self.clock.unix_nanos(at));
                value["before_unix_ns"] = before.into();
                value["not_compared"] = verdict.said.err().map(Why::key).into();
                writeln!(self.out, "{value}")?;
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
            Format::Ndjson => writeln!(self.out, "{}", json::status(status))?,
            Format::Json | Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }

    /// Everything is over.
    pub(super) fn end(&mut self, watched: &Watched) -> Result<(), Failure> {
        match self.args.format {
            Format::Text => write!(self.out, "{}", summary::text(watched))?,
            Format::Json | Format::Ndjson => {
                let document = if self.args.quiet {
                    Document::brief(watched)
                } else {
                    Document::whole(watched)
                };
                if self.args.format == Format::Json {
                    serde_json::to_writer_pretty(&mut self.out, &document)
                } else {
                    serde_json::to_writer(&mut self.out, &document)
                }
                .map_err(std::io::Error::from)?;
                writeln!(self.out)?;
            }
            Format::Csv if self.args.quiet => write!(self.out, "{}", csv::flows(&watched.view))?,
            Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }
}

/// What news is called in JSON, and the change that it is about.
const fn parts(news: &PathNews) -> (&'static str, &PathChange) {
    match news {
        PathNews::Changed(change) => ("change", change),
        PathNews::Withdrawn(change) => ("withdrawn", change),
    }
}
