//! Output during the watch: the flows of each period, and at the end the results of `neph read`.

use std::io;
use std::net::SocketAddr;

use neph_capture::{
    Account, Ending, Event, ExchangeCounts, ExchangeKey, ExchangeRoundTrip, Flow, HostPair,
    Listener, Name, Others, Recent, Sample, Side,
};
use neph_model::{Span, Wall};
use neph_sys::clock::{self, Pair, RawNanos};
use neph_sys::links::Change;
use serde::Serialize;

use super::Args;
use super::alarm::Alarm;
use super::screen::Screen;
use crate::alarm::refuse_longer;
use crate::exit::Failure;
use crate::read::Forwarder;
use crate::resolving::addresses;
use crate::{output, when};
use neph_capture::reading::conversations::{ConversationListener, Conversations, Counts};
use neph_capture::reading::file::File;
use neph_documents::Format;
use neph_documents::alarm::{AlarmDocument, RuleAlone, sentence};
use neph_documents::captures::{Metrics, PeriodLine, RecentPeriod, Repairs, Stretch, Totals};
use neph_documents::rows::json_line;
use neph_export::MetricsServer;
use neph_export::Webhook;
use neph_listen::CaptureMethod;
use neph_listen::{ANY, CaptureCounters};

pub(super) struct Watching {
    interface: String,
    reporting: Forwarder,
    screen: Option<Screen>,
    alarms: Vec<Alarm>,
    webhook: Option<Webhook>,
    metrics: Option<(Metrics, MetricsServer)>,
    /// The start of the first period.
    first: RawNanos,
    /// The start of the period.
    began: Pair,
    counters: CaptureCounters,
    others: Others,
    counts: Counts,
    /// The totals now, and at the start of the period.
    repairs: [Repairs; 2],
}

impl Watching {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let is_text = args.format == Format::Text;
        let parse = |text: &String| Alarm::parse(text, args.by.method());
        let alarms: Result<Vec<Alarm>, Failure> = args.alarm.iter().map(parse).collect();
        let alarms = alarms?;
        refuse_longer(alarms.iter().map(Alarm::rule), args.duration)?;
        let start = clock::pair();
        Ok(Self {
            interface: args.interface.clone(),
            reporting: Forwarder::new(args.shown(), output::data()),
            screen: is_text.then(|| Screen::new(args)),
            alarms,
            webhook: (args.webhook.clone())
                .map(|url| Webhook::begin(url, "neph watch", output::say, addresses)),
            metrics: args
                .prometheus
                .map(open)
                .transpose()?
                .map(|metrics_server| (Metrics::new(args.by.method()), metrics_server)),
            first: start.raw,
            began: start,
            counters: CaptureCounters::default(),
            others: Others::default(),
            counts: Counts::default(),
            repairs: Default::default(),
        })
    }

    /// Whether the reader of the output has closed it.
    pub(super) const fn is_refused(&self) -> bool {
        self.reporting.is_refused()
    }

    /// Sets the start of the first period.
    pub(super) const fn begin_at(&mut self, at: Pair) {
        self.first = at.raw;
        self.began = at;
    }

    /// Reports the period that ends now; `seen` counts from the start.
    pub(super) fn period(
        &mut self,
        conversations: &mut Conversations,
        capture_method: CaptureMethod,
        capture_counters: CaptureCounters,
        now: Pair,
    ) {
        let stretch = Stretch {
            from: Wall::from_unix_nanos(self.began.wall.0),
            until: Wall::from_unix_nanos(now.wall.0),
            length: Span::from_nanos(now.raw.0 - self.began.raw.0),
        };
        let (reporting, screen) = (&mut self.reporting, &mut self.screen);
        let report_flow = |flow: &Flow, recent: &Recent| match screen {
            Some(screen) => screen.flow(stretch.length, flow, recent),
            None => reporting.line(&PeriodLine::flow(stretch, flow, recent)),
        };
        let round_trip_sketches = conversations.table.look(report_flow);
        let report_exchange = |pair: &HostPair, recent: &ExchangeCounts| match screen {
            Some(screen) => screen.exchange(pair, recent),
            None => reporting.line(&PeriodLine::exchange(stretch, pair, recent)),
        };
        let exchanges = conversations.exchanges.look(report_exchange);
        let (others, counts) = (conversations.table.others(), conversations.counts());
        let period = RecentPeriod {
            stretch,
            capture_method,
            seen: capture_counters.since(&self.counters),
            others: since(others, self.others),
            counts: counts.since(self.counts),
            repairs: self.repairs[0].since(self.repairs[1]),
            trips: round_trip_sketches,
            exchanges,
        };
        match &mut self.screen {
            Some(screen) => {
                let written = screen.draw(&period, self.reporting.out());
                self.reporting.written(written);
            }
            None => self.reporting.line(&PeriodLine::period(&period)),
        }
        self.alarms(now);
        let flushed = io::Write::flush(self.reporting.out());
        self.reporting.written(flushed);
        (self.began, self.counters) = (now, capture_counters);
        (self.others, self.counts) = (others, counts);
        self.repairs[1] = self.repairs[0];
    }

    /// Answers a request of Prometheus, if there is one.
    pub(super) fn answer(
        &mut self,
        conversations: &Conversations,
        capture_counters: CaptureCounters,
    ) {
        let Some((metrics, metrics_server)) = &mut self.metrics else {
            return;
        };
        metrics_server.answer(|| {
            let totals = Totals {
                seen: capture_counters,
                others: conversations.table.others(),
                bytes: conversations.counts().bytes,
                flows: conversations.table.len(),
                repairs: self.repairs[0],
            };
            let alarms: Vec<_> = self.alarms.iter().map(Alarm::state).collect();
            metrics.page(&totals, &alarms)
        });
    }

    /// Reports a change of an interface.
    pub(super) fn changed(&mut self, change: &Change) {
        let at = Wall::from_unix_nanos(clock::wall().0);
        let at_unix_ns = at;
        self.aside(&match change {
            Change::Fallen(name) => PeriodLine::InterfaceDown {
                at_unix_ns,
                interface: name.clone(),
            },
            Change::Risen(name) => PeriodLine::InterfaceUp {
                at_unix_ns,
                interface: name.clone(),
            },
        });
        let is_any = self.interface == ANY;
        let message = match change {
            Change::Fallen(name) if is_any => {
                format!("{name} went down or was removed; the other interfaces are still watched")
            }
            Change::Fallen(name) => format!("{name} went down or was removed"),
            Change::Risen(name) => format!("{name} is up; it is watched"),
        };
        output::say(&format!("{}  {message}", when::utc(at)));
    }

    /// Output between periods: a JSON line; as text on standard error.
    fn aside(&mut self, line: &impl Serialize) {
        match &mut self.screen {
            Some(screen) => {
                let write_result = screen.leave(self.reporting.out());
                self.reporting.written(write_result);
            }
            None => self.reporting.line(line),
        }
    }

    /// Reports which alarms were raised or have ended.
    fn alarms(&mut self, now: Pair) {
        let since = Span::from_nanos(now.raw.0 - self.first.0);
        let changes = self.alarms.iter_mut().filter_map(|alarm| alarm.look(since));
        for change in changes.collect::<Vec<_>>() {
            let at = Wall::from_unix_nanos(now.wall.0);
            let document = AlarmDocument::of_round_trips(at, &change, RuleAlone {});
            self.aside(&document);
            output::say(&sentence(at, &change, "round trip"));
            if let Some(webhook) = &self.webhook {
                webhook.report(json_line(&document));
            }
        }
    }

    /// Ends after all periods are reported. Returns whether an alarm was raised, and any output error.
    pub(super) fn finish(
        mut self,
        mut conversations: Conversations,
        capture_counters: CaptureCounters,
    ) -> (bool, io::Result<()>) {
        conversations.end(&mut self);
        if let Some(screen) = &mut self.screen {
            let write_result = screen.leave(self.reporting.out());
            self.reporting.written(write_result);
        }
        let was_alarmed = self.alarms.iter().any(Alarm::was_raised);
        for few in self.alarms.iter().filter_map(Alarm::too_few) {
            output::say(&format!("neph watch: {few}"));
        }
        let file = File {
            name: self.interface,
            account: Account {
                rest: 0,
                packets: capture_counters.packets,
                bytes: conversations.counts().bytes,
                dropped: Some(capture_counters.lost),
                ending: Ending::Whole,
            },
            not_ip: capture_counters.not_ip,
            unread: None,
            times: None,
            without_time: 0,
        };
        let written = self.reporting.finish(&conversations, &[file]);
        // Last: a slow webhook must not delay the summary.
        if let Some(webhook) = self.webhook.take() {
            webhook.finish();
        }
        (was_alarmed, written)
    }
}

impl ConversationListener for Watching {
    fn exchanged(&mut self, pair: &HostPair) {
        self.reporting.exchanged(pair);
    }

    fn answered(&mut self, of: &ExchangeKey, round_trip: ExchangeRoundTrip) {
        self.reporting.answered(of, round_trip);
        if let Some((metrics, _)) = &mut self.metrics {
            metrics.answered(of, round_trip);
        }
    }
}

impl Listener for Watching {
    fn sample(&mut self, of: &Name, sample: &Sample) {
        for alarm in &mut self.alarms {
            alarm.sample(sample);
        }
        if let Some((metrics, _)) = &mut self.metrics {
            metrics.sample(of, sample);
        }
        self.reporting.sample(of, sample);
    }

    fn event(&mut self, of: &Name, at: Wall, side: Side, event: Event) {
        self.repairs[0].count_event(event);
        self.reporting.event(of, at, side, event);
    }

    fn thinned(&mut self, _: &Name, segments: u64) {
        self.repairs[0].not_followed += segments;
    }

    fn found_spurious(&mut self, of: &Name, at: Wall, side: Side, was: Event) {
        self.repairs[0].spurious += 1;
        self.reporting.found_spurious(of, at, side, was);
    }

    fn backwards(&mut self) {
        self.reporting.backwards();
    }

    fn of_no_time(&mut self) {
        self.reporting.of_no_time();
    }

    fn ended(&mut self, flow: &Flow) {
        self.reporting.ended(flow);
    }
}

/// Starts the server for Prometheus, and prints its address.
fn open(address: SocketAddr) -> Result<MetricsServer, Failure> {
    let opened = MetricsServer::open(address).map_err(|error| {
        Failure::refused(format!(
            "listen on {address} for Prometheus: {error}; --prometheus names another place"
        ))
    });
    let (metrics_server, address) = opened?;
    output::say(&format!("neph watch: http://{address}/metrics"));
    Ok(metrics_server)
}

const fn since(now: Others, before: Others) -> Others {
    Others {
        udp: now.udp - before.udp,
        icmp: now.icmp - before.icmp,
        fragments: now.fragments - before.fragments,
        unread: now.unread - before.unread,
        cut: now.cut - before.cut,
    }
}
