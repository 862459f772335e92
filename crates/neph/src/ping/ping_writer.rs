//! Shows events as they happen, in the requested format.

use std::io::{self, Write};

use neph_documents::Format;
use neph_documents::lazy_list::LazyList;
use neph_documents::origin::Origin;
use neph_documents::ping::{
    self, EventDocument, MessageContext, MessageDocument, PingDocument, PingLine, PingResult,
    PingSummary, PlannedFlow, PlannedFlows, Second, find_causes, flow_title, summary_csv,
    summary_text,
};
use neph_documents::rows::{write_json, write_json_line};
use neph_model::{Anchor, EventKind, Instant, Local, Message, Span, Traceroute};
use neph_report::diagnoses_in_brief;

use super::{Args, route};
use crate::exit::Failure;
use crate::{awake, output, sink, version};

/// Flows with a shorter interval are shown once per second.
const MIN_LINE_INTERVAL: Span = Span::from_millis(50);
/// With a longer interval, replies are shown as they arrive: the reflector's last timestamp is too late.
const SLOW_INTERVAL: Span = Span::from_secs(2);

/// Writes results.
pub(super) struct PingWriter<'a> {
    args: &'a Args,
    out: Box<dyn Write>,
    anchor: Option<Anchor<Local>>,
    icmp: Option<Echo>,
    /// Data for the JSON document at the end: messages are stored as measured, about 500 bytes
    /// each, and become JSON only while the document is written.
    entries: Vec<DocumentEntry>,
    second: Second,
}

/// Content of the JSON document besides its summary.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "almost all are messages")]
enum DocumentEntry {
    /// With both clocks at that time.
    Message(Message, Option<Anchor<Local>>),
    Event(EventDocument),
}

impl DocumentEntry {
    fn to_line(&self, planned_flows: &PlannedFlows) -> PingLine {
        match self {
            Self::Event(event) => PingLine::Event(event.clone()),
            Self::Message(message, anchor) => {
                let mut flows = planned_flows.flows.iter();
                let flow = flows.find(|planned| planned.spec.index == message.flow);
                let context = MessageContext {
                    planned: flow.expect("messages come from the flows that were found"),
                    anchor: *anchor,
                };
                PingLine::Message(Box::new(MessageDocument::of(context, message)))
            }
        }
    }
}

/// The RTT of the latest ICMP echo.
#[derive(Clone, Copy, Debug)]
struct Echo {
    sent: Instant<Local>,
    interval: Span,
    round_trip: Span,
}

impl Echo {
    /// From an ICMP echo with a reply. Whether its send timestamp is known by then depends on the
    /// kernel.
    fn of(planned: &PlannedFlow, message: &Message) -> Option<Self> {
        Some(Self {
            sent: message.marks.intended,
            interval: planned.spec.schedule.interval,
            round_trip: message.marks.network_and_peer_round_trip()?,
        })
    }

    /// Whether the ICMP echo represents the network RTT of `message`: both were sent within one
    /// interval, allowing for the offset between the flows' starts.
    fn is_current_for(&self, message: &Message) -> bool {
        let difference = message.marks.intended - self.sent;
        let max_difference = self.interval + Span::from_nanos(self.interval.nanos() / 2);
        (-max_difference..=max_difference).contains(&difference)
    }
}

impl<'a> PingWriter<'a> {
    pub(super) fn new(args: &'a Args) -> Result<Self, Failure> {
        let out = sink::open(args.output.as_deref(), args.force)?;
        let second = Second::default();
        Ok(Self {
            args,
            out,
            anchor: None,
            icmp: None,
            entries: Vec::new(),
            second,
        })
    }

    /// Shows the route to the target.
    pub(super) fn route(&mut self, route: &Traceroute) -> Result<(), Failure> {
        if self.args.format == Format::Ndjson && !self.args.quiet {
            let length = route.length();
            let route = route.clone();
            write_json_line(&PingLine::Traceroute { route, length }, &mut self.out)?;
            self.out.flush()?;
        } else {
            // If results go to a file or are one document, the route is shown on standard error.
            output::report_lines(&route::traceroute_text(route));
        }
        Ok(())
    }

    /// Shows the flows before they start.
    pub(super) fn begin(&mut self, planned_flows: &PlannedFlows) -> Result<(), Failure> {
        for remark in &planned_flows.remarks {
            output::say(&format!("neph: {remark}"));
        }
        match self.args.format {
            Format::Text => {
                for planned in &planned_flows.flows {
                    writeln!(self.out, "{}", flow_title(planned))?;
                }
                if let (Some(main), true) = (planned_flows.flows.first(), self.has_lines()) {
                    writeln!(self.out, "{}", ping::live_heading(main))?;
                }
            }
            Format::Csv if !self.args.quiet => writeln!(self.out, "{}", ping::csv_heading())?,
            Format::Csv | Format::Json | Format::Ndjson => {}
        }
        self.out.flush()?;
        Ok(())
    }

    fn has_lines(&self) -> bool {
        !self.args.quiet && self.args.interval >= MIN_LINE_INTERVAL
    }

    /// Shows a completed message.
    pub(super) fn message(&mut self, planned: &PlannedFlow, message: &Message) -> io::Result<()> {
        self.record_echo(planned, message);
        if self.args.quiet {
            return Ok(());
        }
        match self.args.format {
            // For a slow flow, the line of the reply was already printed.
            Format::Text if self.args.interval >= SLOW_INTERVAL && message.ledger().is_some() => {
                Ok(())
            }
            Format::Text => self.write_line(planned, message),
            Format::Json => {
                self.entries
                    .push(DocumentEntry::Message(*message, self.anchor));
                Ok(())
            }
            Format::Ndjson => {
                let context = MessageContext {
                    planned,
                    anchor: self.anchor,
                };
                let document = MessageDocument::of(context, message);
                write_json_line(&PingLine::Message(Box::new(document)), &mut self.out)?;
                self.out.flush()
            }
            Format::Csv => {
                writeln!(self.out, "{}", ping::message_csv(planned, message))?;
                // Flush for a live reader; faster flows fill the buffer soon.
                if self.args.interval >= MIN_LINE_INTERVAL {
                    self.out.flush()?;
                }
                Ok(())
            }
        }
    }

    /// Shows a new reply.
    pub(super) fn reply(&mut self, planned: &PlannedFlow, message: &Message) -> io::Result<()> {
        self.record_echo(planned, message);
        let is_shown_at_reply = self.args.interval >= SLOW_INTERVAL && !self.args.quiet;
        if self.args.format == Format::Text && is_shown_at_reply {
            self.write_line(planned, message)?;
        }
        Ok(())
    }

    fn record_echo(&mut self, planned: &PlannedFlow, message: &Message) {
        if planned.spec.target.kind().is_echo() {
            self.icmp = Echo::of(planned, message).or(self.icmp);
        }
    }

    fn write_line(&mut self, planned: &PlannedFlow, message: &Message) -> io::Result<()> {
        if !ping::has_lines(planned) {
            return Ok(());
        }
        if self.has_lines() {
            let echo = self.icmp.filter(|echo| echo.is_current_for(message));
            let round_trip = echo.map(|echo| echo.round_trip);
            writeln!(
                self.out,
                "{}",
                ping::message_line(planned, message, round_trip)
            )?;
            return self.out.flush();
        }
        if let Some(line) = self.second.add(message) {
            writeln!(self.out, "{line}")?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Shows an event.
    pub(super) fn event(
        &mut self,
        planned: &PlannedFlow,
        time: Instant<Local>,
        kind: EventKind,
        text: &str,
    ) -> io::Result<()> {
        let document = || EventDocument {
            flow: planned.spec.name.clone(),
            at_unix_ns: self.anchor.map(|anchor| anchor.to_wall(time)),
            event: kind,
            text: text.to_owned(),
        };
        match self.args.format {
            Format::Ndjson if !self.args.quiet => {
                write_json_line(&PingLine::Event(document()), &mut self.out)?;
            }
            Format::Json if !self.args.quiet => {
                let event = DocumentEntry::Event(document());
                self.entries.push(event);
            }
            _ if kind == EventKind::Connected => {}
            _ => {
                let word = kind.name().replace('_', " ");
                output::say(&format!("neph: {}: {word}: {text}", planned.spec.target));
            }
        }
        Ok(())
    }

    /// Reads both clocks, for wall-clock times in the output.
    pub(super) const fn anchor(&mut self, anchor: Anchor<Local>) {
        self.anchor = Some(anchor);
    }

    /// Writes the summary.
    pub(super) fn end(
        &mut self,
        planned_flows: &PlannedFlows,
        result: &PingResult,
    ) -> Result<(), Failure> {
        let origin = Origin {
            version: version::VERSION,
            commit: version::COMMIT,
            cpu_idle_disabled: awake::is_cpu_idle_disabled(),
        };
        let summary = || PingSummary::of(origin, planned_flows, result);
        match self.args.format {
            Format::Text => {
                write!(self.out, "{}", summary_text(planned_flows, result))?;
                if result.flows.iter().any(|flow| flow.tally.replies > 0) {
                    let brief =
                        diagnoses_in_brief(&find_causes(planned_flows, result), output::width());
                    write!(self.out, "\n{brief}")?;
                }
            }
            Format::Ndjson => {
                write_json_line(&PingLine::Summary(Box::new(summary())), &mut self.out)?;
            }
            Format::Json => {
                let document_entries = &self.entries;
                let lines = || {
                    document_entries
                        .iter()
                        .map(|document_entry| document_entry.to_line(planned_flows))
                };
                let document = PingDocument {
                    summary: summary(),
                    messages: (!self.args.quiet).then(|| LazyList::new(lines)),
                };
                write_json(&document, &mut self.out)?;
            }
            Format::Csv if self.args.quiet => {
                write!(self.out, "{}", summary_csv(&summary()))?;
            }
            Format::Csv => {}
        }
        self.out.flush()?;
        Ok(())
    }
}
