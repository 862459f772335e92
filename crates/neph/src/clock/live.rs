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
use neph_capture::clocks::added::Added;
use neph_capture::clocks::book::Book;
use neph_capture::clocks::course::Course;
use neph_capture::clocks::drift::Drift;
use neph_documents::clock::{ClockWriter, Clocks, Means, Row, LabelledStep, Summary};

/// Interval at which reports of the flow are read.
const TICK: Duration = Duration::from_millis(10);
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
    let spec = spec(args, peer)?;
    let name = spec.target.to_string();
    let mut live = LiveClock {
        args,
        book: Book::new(args.nature()),
        reporting: args.writer(),
        began: neph_probe::now().nanos(),
        reported: 0,
        reported_exchanges: 0,
        steps_reported: 0,
        refused: None,
        listen: match spec.address.ip() {
            IpAddr::V4(_) => String::new(),
            IpAddr::V6(_) => format!(" --listen '[::]:{}'", spec.address.port()),
        },
        tally: Tally::default(),
    };
    live.reporting.begin(&format!(
        "clocks of {name} minus ours, every {}",
        args.interval
    ))?;
    live.run(spec, &stop)?;
    let measured = live.finish(&name)?;
    Ok(match (stop.is_set(), measured) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Done,
        (false, false) => Outcome::Nothing,
    })
}

/// The flow of the options.
fn spec(args: &Args, peer: &str) -> Result<FlowSpec, Failure> {
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
    book: Book,
    reporting: ClockWriter,
    /// By the local raw clock, as all times here.
    began: i64,
    /// The number of lines so far, and of messages at the last one.
    reported: i64,
    reported_exchanges: u64,
    steps_reported: usize,
    /// Why no reply arrives, if known.
    refused: Option<String>,
    /// The option of neph reflect at the peer for this IP version.
    listen: String,
    tally: Tally,
}

impl LiveClock<'_> {
    fn run(&mut self, spec: FlowSpec, stop: &Stop) -> Result<(), Failure> {
        let is_endless = spec.schedule.messages().is_none();
        let own_stop = Stop::new();
        let flow = Flow::start(spec, own_stop.clone())?;
        while self.take(&flow)? {
            let silent = self.book.exchanges == 0 && self.refused.is_some();
            let waited = Span::from_nanos(neph_probe::now().nanos() - self.began);
            if stop.is_set() || (is_endless && silent && waited >= SILENCE_TIMEOUT) {
                own_stop.set();
            }
            self.report()?;
            clock::nap(TICK);
        }
        Ok(flow.join()?)
    }

    /// Reads the reports of the flow. Returns whether more may follow.
    fn take(&mut self, flow: &Flow) -> Result<bool, Failure> {
        loop {
            match flow.reports().try_recv() {
                // The two local clocks are read as soon as the report of an exchange arrives.
                Ok(Report::Reply(message)) => {
                    self.book.anchor(anchor());
                    self.book.answered(&message);
                }
                Ok(Report::Message(message)) => {
                    self.book.anchor(anchor());
                    self.book.message(&message);
                }
                Ok(Report::Event { kind, text, .. }) => {
                    if matches!(kind, EventKind::Refused | EventKind::ConnectFailed) {
                        self.refused = Some(text);
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
        while let Some(step) = self.book.steps.get(self.steps_reported) {
            self.steps_reported += 1;
            self.reporting.step(&LabelledStep::wall(step), self.began)?;
        }
        let every = self.args.every.unwrap_or(REPORT_INTERVAL).nanos();
        let now = neph_probe::now().nanos();
        let due = (now - self.began) / every;
        if due > self.reported {
            self.reported = due;
            let known = self.book.so_far();
            let is_old = known.exchanges == self.reported_exchanges;
            self.reported_exchanges = known.exchanges;
            let at = if is_old { Some(now) } else { known.latest };
            if let Some(row) = at.and_then(|at| self.row(&known, at)) {
                self.reporting.row(&Row { is_old, ..row })?;
            }
        }
        Ok(())
    }

    /// The clocks at a given time.
    fn row(&self, book: &Book, at: i64) -> Option<Row> {
        let reading = book.reading(at)?;
        Some(Row {
            since: Span::from_nanos(at - self.began),
            fit: reading.raw,
            drift: Drift::at(&reading.raw, book.raw.nature()),
            wall: reading.wall,
            mean: book.wall_mean.mean(),
            round_trip: book.shortest,
            n: book.exchanges,
            is_old: false,
        })
    }

    /// Reports all results. Returns whether there were any.
    fn finish(mut self, name: &str) -> Result<bool, Failure> {
        self.report()?;
        let every = self.args.every.unwrap_or(REPORT_INTERVAL).nanos();
        let book = &self.book;
        let row = book.latest.and_then(|at| self.row(book, at));
        let course = Course::of(
            book.raw.limits(),
            book.raw.nature(),
            &Added::default(),
            every,
        );
        let (Ok(course), Some(row)) = (course, row) else {
            let reason = self.refused.as_deref().unwrap_or("no reply came");
            self.reporting.nothing()?;
            let key = match (&self.refused, &self.args.stamp_key) {
                (None, Some(_)) => ", or if it runs, with the --stamp-key of here",
                (None, None) => ", or if it runs with a --stamp-key, give that here",
                (Some(_), _) => "",
            };
            output::say(&format!(
                "neph clock: no answer from {name}: {reason}; start neph reflect{} there{key}",
                self.listen
            ));
            return Ok(false);
        };
        let clocks = if book.is_foreign {
            Clocks::PeersWall
        } else {
            Clocks::Raw
        };
        let raw = course.steps.iter();
        let raw = raw.map(|step| LabelledStep::between(clocks, step));
        let steps = book.steps.iter().map(LabelledStep::wall).chain(raw).collect();
        let drawn = clocks_on_a_connection(&self.book, &course, name);
        let four = self.args.asks_for(Method::FourTimestamps);
        let summary = Summary {
            subject: name.to_owned(),
            clocks,
            began: self.began,
            row,
            steps,
            means: four
                .then(|| Means::of(&book.raw_mean, Some(&book.wall_mean)))
                .flatten(),
            lost: Some(self.tally.lost),
            nature: book.raw.nature(),
            course,
        };
        self.reporting.finish(&summary)?;
        figure::write(self.args.figure.as_deref(), self.args.force, drawn.as_ref())?;
        Ok(true)
    }
}
