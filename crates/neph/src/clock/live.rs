//! STAMP messages with a reflector, with kernel timestamps.

use std::net::IpAddr;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use neph_model::{EventKind, Span, Stop, Tally, Target};
use neph_probe::{Flow, FlowSpec, Placement, Report, Schedule, anchor};
use neph_report::clocks_on_a_connection;
use neph_sys::clock;

use super::{Args, Method, figure};
use crate::exit::{Failure, Outcome};
use crate::reflect::PORT;
use crate::{interrupt, output, resolving};
use neph_capture::clocks::course::Course;
use neph_capture::clocks::drift::Drift;
use neph_capture::clocks::peer_exchanges::PeerExchanges;
use neph_capture::clocks::steady_time_conversion::SteadyTimeConversion;
use neph_documents::clock::{ClockWriter, Clocks, LabelledStep, Means, Row, Summary};

/// Interval at which reports of the flow are read.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The default time between two output lines.
const REPORT_INTERVAL: Span = Span::from_secs(1);
/// Without `--duration`, neph ends after this time with refusals only.
const SILENCE_TIMEOUT: Span = Span::from_secs(10);

/// Measures until the end or ctrl-C.
pub(super) fn run(args: &Args, peer: &str) -> Result<Outcome, Failure> {
    if args.interval < Span::from_micros(100) {
        let interval = args.interval;
        return Err(Failure::Usage(format!(
            "--interval {interval}: clocks are compared every 100us at most"
        )));
    }
    figure::check(args.figure.as_deref(), args.force)?;
    let stop = interrupt::stop_on_ctrl_c()?;
    let spec = build_spec(args, peer)?;
    let name = spec.target.to_string();
    let mut live = LiveClock {
        args,
        exchanges: PeerExchanges::new(args.nature()),
        writer: args.writer(),
        start: neph_probe::now().nanos(),
        line_count: 0,
        reported_exchanges: 0,
        reported_steps: 0,
        refusal: None,
        listen_option: match spec.address.ip() {
            IpAddr::V4(_) => String::new(),
            IpAddr::V6(_) => format!(" --listen '[::]:{}'", spec.address.port()),
        },
        tally: Tally::default(),
    };
    live.writer.begin(&format!(
        "clocks of {name} minus ours, every {}",
        args.interval
    ))?;
    live.run(spec, &stop)?;
    let has_result = live.finish(&name)?;
    Ok(match (stop.is_set(), has_result) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Done,
        (false, false) => Outcome::Nothing,
    })
}

/// The flow of the options.
fn build_spec(args: &Args, peer: &str) -> Result<FlowSpec, Failure> {
    let target = if let Some((scheme, rest)) = peer.split_once("://") {
        if scheme != "udp" {
            return Err(Failure::Usage(format!(
                "target '{peer}': clocks are compared over UDP; write udp://{rest}, or {rest} for the \
                 port of neph reflect"
            )));
        }
        Target::parse(peer).map_err(Failure::usage)?
    } else {
        // The default port of neph reflect; that of STAMP is 862.
        Target::with_port("udp", peer, PORT).map_err(Failure::usage)?
    };
    let site = args.site.as_ref().map(Placement::with_name);
    let address = resolving::find(&target, args.ip.version(), site)?.address;
    let mut spec = FlowSpec {
        schedule: Schedule {
            interval: args.interval,
            count: args.count,
            duration: args.duration,
        },
        key: args.stamp_key.clone(),
        site: args.site.as_ref().map(Placement::with_name),
        ..FlowSpec::plain(target, address)
    };
    spec.request_size = spec.stamp_bytes();
    spec.response_size = spec.request_size;
    Ok(spec)
}

struct LiveClock<'a> {
    args: &'a Args,
    exchanges: PeerExchanges,
    writer: ClockWriter,
    /// By the local raw clock, as all times here.
    start: i64,
    /// The number of lines so far, and of messages at the last one.
    line_count: i64,
    reported_exchanges: u64,
    reported_steps: usize,
    /// Why no reply arrives, if known.
    refusal: Option<String>,
    /// The option of neph reflect at the peer for this IP version.
    listen_option: String,
    tally: Tally,
}

impl LiveClock<'_> {
    fn run(&mut self, spec: FlowSpec, stop: &Stop) -> Result<(), Failure> {
        let is_endless = spec.schedule.messages().is_none();
        let flow_stop = Stop::new();
        let flow = Flow::start(spec, flow_stop.clone())?;
        while self.read_reports(&flow)? {
            let is_refused = self.exchanges.exchange_count == 0 && self.refusal.is_some();
            let elapsed = Span::from_nanos(neph_probe::now().nanos() - self.start);
            if stop.is_set() || (is_endless && is_refused && elapsed >= SILENCE_TIMEOUT) {
                flow_stop.set();
            }
            self.report()?;
            clock::nap(POLL_INTERVAL);
        }
        Ok(flow.join()?)
    }

    /// Reads the reports of the flow. Returns whether more may follow.
    fn read_reports(&mut self, flow: &Flow) -> Result<bool, Failure> {
        loop {
            match flow.reports().try_recv() {
                // The two local clocks are read as soon as the report of an exchange arrives.
                Ok(Report::Reply(message)) => {
                    self.exchanges.add_anchor(anchor());
                    self.exchanges.add_answered(&message);
                }
                Ok(Report::Message(message)) => {
                    self.exchanges.add_anchor(anchor());
                    self.exchanges.add_message(&message);
                }
                Ok(Report::Event { kind, text, .. }) => {
                    if matches!(kind, EventKind::Refused | EventKind::ConnectFailed) {
                        self.refusal = Some(text);
                    }
                }
                Ok(Report::Opened { .. } | Report::Tcp { .. } | Report::Anchor(_)) => {}
                Ok(Report::Ended(tally)) => self.tally = tally,
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }

    /// Reports new steps, and the line that is due.
    fn report(&mut self) -> Result<(), Failure> {
        while let Some(step) = self.exchanges.steps.get(self.reported_steps) {
            self.reported_steps += 1;
            self.writer.step(&LabelledStep::wall(step), self.start)?;
        }
        let interval = self.args.every.unwrap_or(REPORT_INTERVAL).nanos();
        let now = neph_probe::now().nanos();
        let due_lines = (now - self.start) / interval;
        if due_lines > self.line_count {
            self.line_count = due_lines;
            let exchanges = self.exchanges.snapshot();
            let is_repeated = exchanges.exchange_count == self.reported_exchanges;
            self.reported_exchanges = exchanges.exchange_count;
            let time = if is_repeated {
                Some(now)
            } else {
                exchanges.latest_sent_at
            };
            if let Some(row) = time.and_then(|time| self.build_row(&exchanges, time)) {
                self.writer.row(&Row { is_repeated, ..row })?;
            }
        }
        Ok(())
    }

    /// The clocks at a given time.
    fn build_row(&self, exchanges: &PeerExchanges, time: i64) -> Option<Row> {
        let reading = exchanges.reading(time)?;
        Some(Row {
            since_start: Span::from_nanos(time - self.start),
            fit: reading.raw,
            drift: Drift::from_fit(&reading.raw, exchanges.raw_clock.nature()),
            wall: reading.wall,
            mean: exchanges.wall_mean.mean(),
            round_trip: exchanges.shortest_round_trip_nanos,
            n: exchanges.exchange_count,
            is_repeated: false,
        })
    }

    /// Reports all results. Returns whether there were any.
    fn finish(mut self, name: &str) -> Result<bool, Failure> {
        self.report()?;
        let interval = self.args.every.unwrap_or(REPORT_INTERVAL).nanos();
        let exchanges = &self.exchanges;
        let latest = exchanges.latest_sent_at;
        let row = latest.and_then(|time| self.build_row(exchanges, time));
        let course = Course::fit(
            exchanges.raw_clock.limits(),
            exchanges.raw_clock.nature(),
            &SteadyTimeConversion::default(),
            interval,
        );
        let (Ok(course), Some(row)) = (course, row) else {
            let reason = self.refusal.as_deref().unwrap_or("no reply came");
            self.writer.finish_empty()?;
            let key_hint = match (&self.refusal, &self.args.stamp_key) {
                (None, Some(_)) => ", or if it runs, with the --stamp-key of here",
                (None, None) => ", or if it runs with a --stamp-key, give that here",
                (Some(_), _) => "",
            };
            output::say(&format!(
                "neph clock: no answer from {name}: {reason}; start neph reflect{} there{key_hint}",
                self.listen_option
            ));
            return Ok(false);
        };
        let clocks = if exchanges.is_third_party {
            Clocks::PeersWall
        } else {
            Clocks::Raw
        };
        let raw_steps = course.steps.iter();
        let raw_steps = raw_steps.map(|step| LabelledStep::between(clocks, step));
        let steps = exchanges
            .steps
            .iter()
            .map(LabelledStep::wall)
            .chain(raw_steps)
            .collect();
        let offset_figure = clocks_on_a_connection(&self.exchanges, &course, name);
        let has_four_timestamps = self.args.uses_method(Method::FourTimestamps);
        let summary = Summary {
            subject: name.to_owned(),
            clocks,
            began: self.start,
            row,
            steps,
            means: has_four_timestamps
                .then(|| Means::of(&exchanges.raw_mean, Some(&exchanges.wall_mean)))
                .flatten(),
            lost: Some(self.tally.lost),
            nature: exchanges.raw_clock.nature(),
            course,
        };
        self.writer.finish(&summary)?;
        figure::write(
            self.args.figure.as_deref(),
            self.args.force,
            offset_figure.as_ref(),
        )?;
        Ok(true)
    }
}
