//! Output during the watch: the flows of each period, and at the end the results of `neph read`.

use std::io;
use std::net::SocketAddr;

use neph_capture::{
    Ending, Event, ExchangeCounts, ExchangeKey, ExchangeRoundTrip, Flow, FlowName, HostPair,
    Listener, OtherPackets, PeriodCounts, ReadSummary, Sample, Side,
};
use neph_model::{Span, Wall};
use neph_sys::clock::{self, Pair, RawNanos};
use neph_sys::links::Change;
use serde::Serialize;

use super::Args;
use super::alarm::Alarm;
use super::screen::Screen;
use crate::alarm::check_duration;
use crate::exit::Failure;
use crate::output;
use crate::read::OutputWriter;
use crate::resolving::addresses;
use neph_capture::reading::conversations::{ConversationListener, Conversations, PacketCounts};
use neph_capture::reading::file::File;
use neph_documents::Format;
use neph_documents::alarm::{AlarmDocument, RuleAlone, format_alarm_line};
use neph_documents::captures::{
    Metrics, PeriodLine, PeriodTime, RecentPeriod, RetransmissionCounters, Totals,
};
use neph_documents::rows::json_line;
use neph_documents::wall_time;
use neph_export::MetricsServer;
use neph_export::Webhook;
use neph_listen::CaptureMethod;
use neph_listen::{ANY, CaptureCounters};

pub(super) struct WatchOutput {
    interface: String,
    writer: OutputWriter,
    screen: Option<Screen>,
    alarms: Vec<Alarm>,
    webhook: Option<Webhook>,
    metrics: Option<(Metrics, MetricsServer)>,
    /// The start of the first period.
    watch_start: RawNanos,
    /// The start of the period.
    period_start: Pair,
    counters: CaptureCounters,
    others: OtherPackets,
    counts: PacketCounts,
    /// The totals now, and at the start of the period.
    retransmission_counters: [RetransmissionCounters; 2],
}

impl WatchOutput {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let is_text = args.format == Format::Text;
        let parse = |text: &String| Alarm::parse(text, args.by.method());
        let alarms: Result<Vec<Alarm>, Failure> = args.alarm.iter().map(parse).collect();
        let alarms = alarms?;
        check_duration(alarms.iter().map(Alarm::rule), args.duration)?;
        let start = clock::pair();
        Ok(Self {
            interface: args.interface.clone(),
            writer: OutputWriter::new(args.display_settings(), output::data()),
            screen: is_text.then(|| Screen::new(args)),
            alarms,
            webhook: (args.webhook.clone())
                .map(|url| Webhook::begin(url, "neph watch", output::say, addresses)),
            metrics: args
                .prometheus
                .map(start_metrics_server)
                .transpose()?
                .map(|metrics_server| (Metrics::new(args.by.method()), metrics_server)),
            watch_start: start.raw,
            period_start: start,
            counters: CaptureCounters::default(),
            others: OtherPackets::default(),
            counts: PacketCounts::default(),
            retransmission_counters: Default::default(),
        })
    }

    /// Whether the reader of the output has closed it.
    pub(super) const fn is_refused(&self) -> bool {
        self.writer.is_refused()
    }

    /// Sets the start of the first period.
    pub(super) const fn begin_at(&mut self, start: Pair) {
        self.watch_start = start.raw;
        self.period_start = start;
    }

    /// Reports the period that ends now; `capture_counters` count from the start.
    pub(super) fn end_period(
        &mut self,
        conversations: &mut Conversations,
        capture_method: CaptureMethod,
        capture_counters: CaptureCounters,
        now: Pair,
    ) {
        let time = PeriodTime {
            from: Wall::from_unix_nanos(self.period_start.wall.0),
            until: Wall::from_unix_nanos(now.wall.0),
            length: Span::from_nanos(now.raw.0 - self.period_start.raw.0),
        };
        let (writer, screen) = (&mut self.writer, &mut self.screen);
        let report_flow = |flow: &Flow, recent: &PeriodCounts| match screen {
            Some(screen) => screen.flow(time.length, flow, recent),
            None => writer.line(&PeriodLine::flow(time, flow, recent)),
        };
        let round_trip_sketches = conversations.table.end_period(report_flow);
        let report_exchange = |pair: &HostPair, recent: &ExchangeCounts| match screen {
            Some(screen) => screen.exchange(pair, recent),
            None => writer.line(&PeriodLine::exchange(time, pair, recent)),
        };
        let exchanges = conversations.exchanges.end_period(report_exchange);
        let (others, counts) = (conversations.table.other_packets(), conversations.counts());
        let period = RecentPeriod {
            time,
            capture_method,
            capture_counters: capture_counters.since(&self.counters),
            others: subtract_counts(others, self.others),
            counts: counts.since(self.counts),
            retransmission_counters: self.retransmission_counters[0]
                .since(self.retransmission_counters[1]),
            round_trips: round_trip_sketches,
            exchanges,
        };
        match &mut self.screen {
            Some(screen) => {
                let write_result = screen.draw(&period, self.writer.out());
                self.writer.keep_error(write_result);
            }
            None => self.writer.line(&PeriodLine::period(&period)),
        }
        self.evaluate_alarms(now);
        let flush_result = io::Write::flush(self.writer.out());
        self.writer.keep_error(flush_result);
        (self.period_start, self.counters) = (now, capture_counters);
        (self.others, self.counts) = (others, counts);
        self.retransmission_counters[1] = self.retransmission_counters[0];
    }

    /// Answers a request of Prometheus, if there is one.
    pub(super) fn answer_request(
        &mut self,
        conversations: &Conversations,
        capture_counters: CaptureCounters,
    ) {
        let Some((metrics, metrics_server)) = &mut self.metrics else {
            return;
        };
        metrics_server.answer(|| {
            let totals = Totals {
                capture_counters,
                others: conversations.table.other_packets(),
                bytes: conversations.counts().bytes,
                flows: conversations.table.len(),
                retransmission_counters: self.retransmission_counters[0],
            };
            let alarms: Vec<_> = self.alarms.iter().map(Alarm::state).collect();
            metrics.page(&totals, &alarms)
        });
    }

    /// Reports a change of an interface.
    pub(super) fn report_link_change(&mut self, change: &Change) {
        let time = Wall::from_unix_nanos(clock::wall().0);
        let at_unix_ns = time;
        self.write_between_periods(&match change {
            Change::Down(name) => PeriodLine::InterfaceDown {
                at_unix_ns,
                interface: name.clone(),
            },
            Change::Up(name) => PeriodLine::InterfaceUp {
                at_unix_ns,
                interface: name.clone(),
            },
        });
        let is_any_interface = self.interface == ANY;
        let message = match change {
            Change::Down(name) if is_any_interface => {
                format!("{name} went down or was removed; the other interfaces are still watched")
            }
            Change::Down(name) => format!("{name} went down or was removed"),
            Change::Up(name) => format!("{name} is up; it is watched"),
        };
        output::say(&format!("{}  {message}", wall_time::utc(time)));
    }

    /// Output between periods: a JSON line; as text on standard error.
    fn write_between_periods(&mut self, line: &impl Serialize) {
        match &mut self.screen {
            Some(screen) => {
                let write_result = screen.keep_drawn(self.writer.out());
                self.writer.keep_error(write_result);
            }
            None => self.writer.line(line),
        }
    }

    /// Reports which alarms were raised or have ended.
    fn evaluate_alarms(&mut self, now: Pair) {
        let elapsed = Span::from_nanos(now.raw.0 - self.watch_start.0);
        let changes = self
            .alarms
            .iter_mut()
            .filter_map(|alarm| alarm.evaluate(elapsed));
        for change in changes.collect::<Vec<_>>() {
            let time = Wall::from_unix_nanos(now.wall.0);
            let document = AlarmDocument::of_round_trips(time, &change, RuleAlone {});
            self.write_between_periods(&document);
            output::say(&format_alarm_line(time, &change, "round trip"));
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
            let write_result = screen.keep_drawn(self.writer.out());
            self.writer.keep_error(write_result);
        }
        let was_alarmed = self.alarms.iter().any(Alarm::was_raised);
        for message in self
            .alarms
            .iter()
            .filter_map(Alarm::insufficient_data_message)
        {
            output::say(&format!("neph watch: {message}"));
        }
        let file = File {
            name: self.interface,
            summary: ReadSummary {
                unparsed_bytes: 0,
                packets: capture_counters.packets,
                bytes: conversations.counts().bytes,
                dropped: Some(capture_counters.lost),
                ending: Ending::Whole,
            },
            not_ip: capture_counters.not_ip,
            unknown_link: None,
            times: None,
            without_time: 0,
        };
        let write_result = self.writer.finish(&conversations, &[file]);
        // Last: a slow webhook must not delay the summary.
        if let Some(webhook) = self.webhook.take() {
            webhook.finish();
        }
        (was_alarmed, write_result)
    }
}

impl ConversationListener for WatchOutput {
    fn pair_ended(&mut self, pair: &HostPair) {
        self.writer.pair_ended(pair);
    }

    fn request_answered(&mut self, key: &ExchangeKey, round_trip: ExchangeRoundTrip) {
        self.writer.request_answered(key, round_trip);
        if let Some((metrics, _)) = &mut self.metrics {
            metrics.add_exchange(key, round_trip);
        }
    }
}

impl Listener for WatchOutput {
    fn sample(&mut self, name: &FlowName, sample: &Sample) {
        for alarm in &mut self.alarms {
            alarm.add_sample(sample);
        }
        if let Some((metrics, _)) = &mut self.metrics {
            metrics.sample(name, sample);
        }
        self.writer.sample(name, sample);
    }

    fn event(&mut self, name: &FlowName, time: Wall, side: Side, event: Event) {
        self.retransmission_counters[0].count_event(event);
        self.writer.event(name, time, side, event);
    }

    fn segments_not_tracked(&mut self, _: &FlowName, segments: u64) {
        self.retransmission_counters[0].segments_not_tracked += segments;
    }

    fn found_spurious(&mut self, name: &FlowName, time: Wall, side: Side, original: Event) {
        self.retransmission_counters[0].spurious += 1;
        self.writer.found_spurious(name, time, side, original);
    }

    fn negative_round_trip(&mut self) {
        self.writer.negative_round_trip();
    }

    fn zero_round_trip(&mut self) {
        self.writer.zero_round_trip();
    }

    fn ended(&mut self, flow: &Flow) {
        self.writer.ended(flow);
    }
}

/// Starts the server for Prometheus, and prints its address.
fn start_metrics_server(address: SocketAddr) -> Result<MetricsServer, Failure> {
    let result = MetricsServer::open(address).map_err(|error| {
        Failure::refused(format!(
            "listen on {address} for Prometheus: {error}; --prometheus names another place"
        ))
    });
    let (metrics_server, address) = result?;
    output::say(&format!("neph watch: http://{address}/metrics"));
    Ok(metrics_server)
}

const fn subtract_counts(current: OtherPackets, previous: OtherPackets) -> OtherPackets {
    OtherPackets {
        udp: current.udp - previous.udp,
        icmp: current.icmp - previous.icmp,
        fragments: current.fragments - previous.fragments,
        other_protocols: current.other_protocols - previous.other_protocols,
        truncated: current.truncated - previous.truncated,
    }
}
