//! Turns the reports of running flows into records.

mod anchors;
mod fleet;
mod rebase;

use std::collections::BTreeMap;
use std::mem;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError};

use neph_model::{
    Anchor, Answer, Ending, Event, EventKind, FleetMessage, Flow, FlowIndex, IcmpKind, Instant,
    Local, Message, Records, Sample, Slot, Span, Tally, Warning,
};
use neph_probe::{Backends, FleetTally, ProbeError, Report};

use crate::flows::Missing;
use crate::host_sampler::HostSampler;
use crate::tcp_samples::TcpSamples;
use anchors::Anchors;
use fleet::RunProgress;

/// How often the host's CPU is looked at.
const SAMPLE_INTERVAL: Span = Span::from_secs(1);

/// Takes in reports, and hands over what is to be kept of them.
#[derive(Debug)]
pub(crate) struct RecordCollector {
    origin: Anchor<Local>,
    /// Whether the main flow's peer reads the client's clock.
    same_clock: bool,
    messages: Vec<Message>,
    fleet_messages: Vec<FleetMessage>,
    events: Vec<Event>,
    anchors: Anchors,
    clock_steps: u32,
    main: Tally,
    fleet: Option<FleetTally>,
    /// Of the messages of the main flow, or of the fleet in its place, so far.
    run_progress: RunProgress,
    /// The source port of the latest flow of each slot that is to be traced.
    ports: BTreeMap<Slot, u16>,
    /// Of so many slots the port is of interest.
    traced_slots: u32,
    /// Where each flow's first socket was.
    sources: BTreeMap<FlowIndex, SocketAddr>,
    /// Congestion control of the main flow, if it is TCP.
    congestion: Option<String>,
    /// The last thing that went wrong with the main flow.
    last_fault: Option<String>,
    /// Of the main flow's TCP connection, not recorded yet.
    samples: Vec<Sample>,
    tcp: TcpSamples,
    last_sample: Option<Instant<Local>>,
    host_sampler: HostSampler,
    /// ICMP echo that did not go.
    missing: Vec<Missing>,
    /// The servers that answer the main flow.
    backends: Backends,
}

impl RecordCollector {
    pub(crate) fn new(origin: Anchor<Local>) -> Self {
        Self {
            origin,
            same_clock: false,
            messages: Vec::new(),
            fleet_messages: Vec::new(),
            events: Vec::new(),
            anchors: Anchors::starting_with((0, origin.wall.unix_nanos())),
            clock_steps: 0,
            main: Tally::default(),
            fleet: None,
            run_progress: RunProgress::default(),
            ports: BTreeMap::new(),
            traced_slots: 0,
            sources: BTreeMap::new(),
            congestion: None,
            last_fault: None,
            samples: Vec::new(),
            tcp: TcpSamples::default(),
            last_sample: None,
            host_sampler: HostSampler::default(),
            missing: Vec::new(),
            backends: Backends::default(),
        }
    }

    /// The same, with the counters of where the sender is.
    pub(crate) fn with_host_sampler(mut self, host_sampler: HostSampler) -> Self {
        self.host_sampler = host_sampler;
        self
    }

    /// The same for a main flow whose peer reads the client's clock.
    pub(crate) const fn with_same_clock(mut self, same_clock: bool) -> Self {
        self.same_clock = same_clock;
        self
    }

    /// The same, keeping in mind the ports of the first slots: so many flows are to be traced.
    pub(crate) const fn with_traced_slots(mut self, flows: u32) -> Self {
        self.traced_slots = flows;
        self
    }

    /// Takes in a report of a flow; whether more may follow.
    pub(crate) fn take(&mut self, reports: &Receiver<Report>, flow: FlowIndex) -> bool {
        loop {
            match reports.try_recv() {
                Ok(report) => self.record_one(report, flow),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn record_one(&mut self, report: Report, flow: FlowIndex) {
        match report {
            Report::Message(mut message) => {
                if flow.0 == 0 {
                    self.run_progress.take(&message);
                    self.backends.add(&message);
                }
                let same_clock = flow.0 == 0 && self.same_clock;
                rebase::rebase(&mut message, self.origin.at, same_clock);
                self.messages.push(message);
            }
            Report::Event { at, kind, text } => {
                self.clock_steps += u32::from(kind == EventKind::ClockStepped);
                if flow.0 == 0 && kind != EventKind::Connected {
                    self.last_fault = Some(text.clone());
                }
                let at = (at - self.origin.at).nanos();
                self.events.push(Event {
                    flow,
                    at,
                    kind,
                    text,
                });
            }
            Report::Opened { source, congestion } => {
                self.sources.insert(flow, source);
                if flow.0 == 0 {
                    self.congestion = congestion;
                }
            }
            Report::Tcp { at, info } if flow.0 == 0 => {
                let at = (at - self.origin.at).nanos();
                self.samples
                    .extend(self.tcp.changed_samples(at, info.bytes()));
            }
            Report::Anchor(anchor) if flow.0 == 0 => {
                let at = (anchor.at - self.origin.at).nanos();
                self.anchors.add((at, anchor.wall.unix_nanos()));
            }
            Report::Ended(tally) if flow.0 == 0 => self.main = tally,
            Report::Reply(_) | Report::Anchor(_) | Report::Ended(_) | Report::Tcp { .. } => {}
        }
    }

    /// Where samples of a transfer go.
    pub(crate) const fn samples(&mut self) -> &mut Vec<Sample> {
        &mut self.samples
    }

    /// Takes note that an echo alongside the main flow is not sent; `flow` is the main one's if the
    /// echo has no flow.
    pub(crate) fn add_missing_echo(&mut self, missing: Missing, flow: FlowIndex) {
        let Missing { name, reason } = &missing;
        self.events.push(Event {
            flow,
            at: (neph_probe::now() - self.origin.at).nanos(),
            kind: EventKind::SecondaryFlowFailed,
            text: format!("no ICMP echo to {name}: {reason}"),
        });
        self.missing.push(missing);
    }

    /// Takes note of a redirect that was followed.
    pub(crate) fn add_redirect(&mut self, text: String) {
        self.events.push(Event {
            flow: FlowIndex(0),
            at: 0,
            kind: EventKind::Redirected,
            text,
        });
    }

    /// Takes note of what was not traced of the fleet's flows, and why.
    pub(crate) fn add_trace_failure(&mut self, subject: &str, error: &ProbeError) {
        self.events.push(Event {
            flow: FlowIndex(0),
            at: (neph_probe::now() - self.origin.at).nanos(),
            kind: EventKind::SecondaryFlowFailed,
            text: format!("{subject}: {error}"),
        });
    }

    /// Warnings about what only this host saw: its clock was set, echoes that were not sent, what its
    /// kernel dropped.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.clock_steps > 0 {
            let times = self.clock_steps;
            warnings.push(Warning::ClockStepped { times });
        }
        // One, however many did not go.
        if let Some(first) = self.missing.first() {
            warnings.push(Warning::EchoMissing {
                names: self
                    .missing
                    .iter()
                    .map(|missing| missing.name.clone())
                    .collect(),
                reason: first.reason.clone(),
            });
        }
        if let (Some(machines), Some(clock_difference)) =
            (self.backends.count_if_several(), self.backends.apart())
        {
            warnings.push(Warning::SeveralBackends {
                machines: u32::try_from(machines).unwrap_or(u32::MAX),
                clock_difference,
            });
        }
        let packets = self.fleet.map_or(0, |tally| tally.dropped_here);
        if packets > 0 {
            warnings.push(Warning::DroppedHere { packets });
        }
        warnings
    }

    /// What was taken in since the last time.
    pub(crate) fn records(&mut self) -> Records {
        self.sample();
        Records {
            messages: mem::take(&mut self.messages),
            fleet: mem::take(&mut self.fleet_messages),
            events: mem::take(&mut self.events),
            samples: mem::take(&mut self.samples),
        }
    }

    fn sample(&mut self) {
        let now = neph_probe::now();
        if self
            .last_sample
            .is_some_and(|before| now - before < SAMPLE_INTERVAL)
        {
            return;
        }
        let elapsed = self.last_sample.map_or(Span::ZERO, |before| now - before);
        let at = (now - self.origin.at).nanos();
        let of_host = self.host_sampler.sample(elapsed).into_iter();
        self.samples
            .extend(of_host.map(|(series, value)| Sample { series, at, value }));
        self.last_sample = Some(now);
    }

    /// How the main flow's end is to be evaluated: without a single answer nothing was measured. Errors are
    /// answers of the endpoint, and what it is to be evaluated by; an ICMP error comes from the network, or from
    /// a host at which nothing listens.
    pub(crate) fn verdict(&self) -> Ending {
        if self.run_progress.answered || self.main.replies > 0 {
            return Ending::Complete;
        }
        let reason = self.run_progress.unreached.map(unreached);
        let reason = reason.or_else(|| self.last_fault.clone());
        let reason = reason.unwrap_or_else(|| "no answer".to_owned());
        Ending::Failed(format!(
            "no reply to {} messages: {reason}",
            self.main.messages
        ))
    }

    /// Puts into `flows` where their sockets were. ICMP has no port, and a flow with a connection
    /// for each message has as many as messages.
    pub(crate) fn place_sources(&self, flows: &mut [Flow]) {
        for flow in flows.iter_mut().filter(|flow| flow.index.0 == 0) {
            flow.same_clock &= self.backends.may_share_local_clock();
        }
        for flow in flows {
            if let Some(source) = self.sources.get(&flow.index) {
                flow.source = Some(*source);
            }
            if let (true, Some(source)) = (flow.probe.is_echo(), &mut flow.source) {
                source.set_port(0);
            }
        }
    }

    /// Congestion control of the main flow, if it is TCP.
    pub(crate) fn congestion(&self) -> Option<String> {
        self.congestion.clone()
    }

    /// (monotonic since start, wall) pairs.
    pub(crate) fn into_anchors(self) -> Vec<(i64, i64)> {
        self.anchors.into_readings()
    }
}

/// Why no answer came, where an ICMP error shows it.
fn unreached(answer: Answer) -> String {
    match answer {
        Answer::Icmp(IcmpKind::PortUnreachable) => {
            format!("nothing listens at its port ({})", answer.description())
        }
        other => other.description().into_owned(),
    }
}
