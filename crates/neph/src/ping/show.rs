//! Shows what happens as it happens, in the format that was asked for.

use std::io::{self, Write};

use neph_model::{Anchor, EventKind, Instant, Message, Own, Span, Traceroute};
use neph_report::diagnoses_in_brief;
use serde_json::{Value, json};

use super::causes::causes;
use super::flows::{Found, Planned};
use super::kept::{Document, Kept};
use super::second::Second;
use super::watch::Everything;
use super::{Args, Format, json, live, route, summary, summary_csv, summary_json};
use crate::exit::Failure;
use crate::{output, sink};

/// Faster flows are told a second at a time.
const LINES: Span = Span::from_millis(50);
/// Slower flows' replies are told as they come: the reflector's last mark would come too late.
const PATIENCE: Span = Span::from_secs(2);

/// Writes results.
pub(super) struct Show<'a> {
    args: &'a Args,
    out: Box<dyn Write>,
    anchor: Option<Anchor<Own>>,
    icmp: Option<Echo>,
    /// For the JSON document, which is written at the end.
    kept: Kept,
    second: Second,
}

/// The latest echo's round trip.
#[derive(Clone, Copy, Debug)]
struct Echo {
    at: Instant<Own>,
    every: Span,
    round_trip: Span,
}

impl Echo {
    /// Of a message that is replied to; whether its send stamp is here by then is the kernel's
    /// affair.
    fn of(planned: &Planned, message: &Message) -> Option<Self> {
        Some(Self {
            at: message.marks.intended,
            every: planned.spec.schedule.interval,
            round_trip: message.marks.network_and_peer_round_trip()?,
        })
    }

    /// Whether it stands for the network of `message`: they went within one interval, and as much
    /// apart as two flows' starts are.
    fn is_of(&self, message: &Message) -> bool {
        let apart = message.marks.intended - self.at;
        let most = self.every + Span::from_nanos(self.every.nanos() / 2);
        (-most..=most).contains(&apart)
    }
}

impl<'a> Show<'a> {
    pub(super) fn new(args: &'a Args) -> Result<Self, Failure> {
        let out = sink::open(args.output.as_deref(), args.force)?;
        let second = Second::default();
        Ok(Self {
            args,
            out,
            anchor: None,
            icmp: None,
            kept: Kept::default(),
            second,
        })
    }

    /// The way to the target.
    pub(super) fn route(&mut self, route: &Traceroute) -> Result<(), Failure> {
        if self.args.format == Format::Ndjson && !self.args.quiet {
            writeln!(
                self.out,
                "{}",
                json!({ "type": "traceroute", "route": route, "length": route.length() })
            )?;
            self.out.flush()?;
        } else {
            // Where results go elsewhere or must stay one document, people still see the route.
            output::say_lines(&route::text(route));
        }
        Ok(())
    }

    /// What runs, before it does.
    pub(super) fn begin(&mut self, found: &Found) -> Result<(), Failure> {
        for remark in &found.remarks {
            output::say(&format!("neph: {remark}"));
        }
        match self.args.format {
            Format::Text => {
                for planned in &found.flows {
                    writeln!(self.out, "{}", summary::title(planned))?;
                }
                if let (Some(main), true) = (found.flows.first(), self.has_lines()) {
                    writeln!(self.out, "{}", live::heading(main))?;
                }
            }
            Format::Csv if !self.args.quiet => writeln!(self.out, "{}", json::csv_heading())?,
            Format::Csv | Format::Json | Format::Ndjson => {}
        }
        self.out.flush()?;
        Ok(())
    }

    fn has_lines(&self) -> bool {
        !self.args.quiet && self.args.interval >= LINES
    }

    /// A message is finished.
    pub(super) fn message(&mut self, planned: &Planned, message: &Message) -> io::Result<()> {
        self.echo(planned, message);
        if self.args.quiet {
            return Ok(());
        }
        match self.args.format {
            // Of a slow flow's message that was replied to, the reply has told already.
            Format::Text if self.args.interval >= PATIENCE && message.ledger().is_some() => Ok(()),
            Format::Text => self.text(planned, message),
            Format::Json => {
                self.kept.message(message, self.anchor);
                Ok(())
            }
            Format::Ndjson => {
                writeln!(self.out, "{}", json::message(planned, message, self.anchor))?;
                self.out.flush()
            }
            Format::Csv => {
                writeln!(self.out, "{}", json::csv(planned, message))?;
                // Somebody may be watching; faster flows fill the buffer soon enough.
                if self.args.interval >= LINES {
                    self.out.flush()?;
                }
                Ok(())
            }
        }
    }

    /// A reply has just come.
    pub(super) fn reply(&mut self, planned: &Planned, message: &Message) -> io::Result<()> {
        self.echo(planned, message);
        let at_the_reply = self.args.interval >= PATIENCE && !self.args.quiet;
        if self.args.format == Format::Text && at_the_reply {
            self.text(planned, message)?;
        }
        Ok(())
    }

    fn echo(&mut self, planned: &Planned, message: &Message) {
        if planned.spec.target.kind().is_echo() {
            self.icmp = Echo::of(planned, message).or(self.icmp);
        }
    }

    fn text(&mut self, planned: &Planned, message: &Message) -> io::Result<()> {
        if !live::has_lines(planned) {
            return Ok(());
        }
        if self.has_lines() {
            let echo = self.icmp.filter(|echo| echo.is_of(message));
            let round_trip = echo.map(|echo| echo.round_trip);
            writeln!(self.out, "{}", live::line(planned, message, round_trip))?;
            return self.out.flush();
        }
        if let Some(line) = self.second.take(message) {
            writeln!(self.out, "{line}")?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Something happened.
    pub(super) fn event(
        &mut self,
        planned: &Planned,
        at: Instant<Own>,
        kind: EventKind,
        text: &str,
    ) -> io::Result<()> {
        let value = || {
            json!({
                "type": "event",
                "flow": planned.spec.name,
                "at_unix_ns": self.anchor.map(|anchor| anchor.to_wall(at).unix_nanos()),
                "event": kind.name(),
                "text": text,
            })
        };
        match self.args.format {
            Format::Ndjson if !self.args.quiet => writeln!(self.out, "{}", value())?,
            Format::Json if !self.args.quiet => self.kept.event(value()),
            _ if kind == EventKind::Connected => {}
            _ => {
                let word = kind.name().replace('_', " ");
                output::say(&format!("neph: {}: {word}: {text}", planned.spec.target));
            }
        }
        Ok(())
    }

    /// Both clocks, for wall-clock times in output.
    pub(super) const fn anchor(&mut self, anchor: Anchor<Own>) {
        self.anchor = Some(anchor);
    }

    /// Everything is over.
    pub(super) fn end(&mut self, found: &Found, watched: &Everything) -> Result<(), Failure> {
        match self.args.format {
            Format::Text => {
                write!(self.out, "{}", summary::text(found, watched))?;
                if watched.flows.iter().any(|flow| flow.tally.replies > 0) {
                    let told = diagnoses_in_brief(&causes(found, watched), output::width());
                    write!(self.out, "\n{told}")?;
                }
            }
            Format::Ndjson => {
                let summary = Value::Object(summary_json::json(found, watched));
                writeln!(self.out, "{summary}")?;
            }
            Format::Json => {
                let summary = summary_json::json(found, watched);
                if self.args.quiet {
                    serde_json::to_writer_pretty(&mut self.out, &Value::Object(summary))
                } else {
                    let kept = &self.kept;
                    let document = Document {
                        summary,
                        found,
                        kept,
                    };
                    serde_json::to_writer_pretty(&mut self.out, &document)
                }
                .map_err(io::Error::from)?;
                writeln!(self.out)?;
            }
            Format::Csv if self.args.quiet => {
                write!(self.out, "{}", summary_csv::csv(found, watched))?;
            }
            Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }
}
