//! Runs a fleet: one thread that sends when a message is due and reads in between.
//!
//! With dense sends it sleeps from one to the next and reads arrivals every few messages. The kernel gives
//! timestamps of departures and arrivals, so waking for each reply would not improve the result.

use neph_model::{Answer, Instant, Local, LocalFault, Permit, Slot, Span, Stop};
use neph_sys::clock;
use neph_sys::stamp::KeepAwake;

use super::gaps::Gaps;
use super::reports::FleetReports;
use super::send_order::SendOrder;
use super::session::{Event, Session};
use super::spec::{FleetReport, FleetSpec};
use super::transport::{Request, Transport};
use crate::ProbeError;
use crate::finish::Finish;
use crate::spec::Overdue;
use crate::stamp_clock::{StampClock, now};

/// From opening the sockets to the first message: receive timestamps are enabled by then.
const SETTLE_TIME: Span = Span::from_millis(20);
/// Arrivals are read at least this often, however dense the schedule. A socket buffer holds much more than
/// arrives in this time.
const READ_INTERVAL: Span = Span::from_millis(4);
/// In a dense schedule this many are read at a time, so that reading delays no more sends than is tolerable.
const READ_AT_A_TIME: i64 = 32;
/// Least time between reads, so that checking does not cost more than reading.
const MIN_READ_INTERVAL: Span = Span::from_micros(250);
/// Finished messages are reported this often.
const REPORT_INTERVAL: Span = Span::from_millis(10);
/// They are also reported when this many are waiting.
const BATCH: usize = 1_024;
/// Decisions that depend only on time are made this often.
const DECISION_INTERVAL: Span = Span::from_millis(2);
/// Interval between reports of both clocks.
const ANCHORS: Span = Span::from_secs(1);
/// A shorter wait would take longer than requested.
const NO_SLEEP: Span = Span::from_micros(3);
/// If sends are closer than this, a few go together: to sleep and wake costs as much as to send.
const GRAIN: Span = Span::from_micros(40);

/// Runs the fleet until its schedule is over or `stop` is set.
pub(super) fn drive(
    spec: &FleetSpec,
    transport: Box<dyn Transport>,
    reports: FleetReports,
    stop: &Stop,
) -> Result<(), ProbeError> {
    let _awake = KeepAwake::new();
    let send_order = SendOrder::new(&spec.fleet, spec.count);
    let moment = now();
    let mut driver = Driver {
        session: Session::new(send_order, spec.fleet.slots, spec.timeout),
        transport,
        reports,
        clock: StampClock::new(),
        events: Vec::with_capacity(BATCH),
        gaps: Gaps::new(send_order.gap(), send_order.together(), spec.least_gap()),
        reading: reading(send_order.gap()),
        permit: spec.permit.clone(),
        bytes: (spec.request_size + spec.response_size) as u64,
        read: moment,
        reported: moment,
        woken: moment,
        anchored: None,
        is_refused: false,
    };
    driver.open(spec.fleet.slots, stop)?;
    driver.session.begin(now() + SETTLE_TIME);
    driver.run(stop);
    driver.finish();
    Ok(())
}

/// How long arrivals may wait to be read.
fn reading(gap: Span) -> Span {
    gap.times(READ_AT_A_TIME)
        .clamp(MIN_READ_INTERVAL, READ_INTERVAL)
}

#[derive(Debug)]
struct Driver {
    session: Session,
    transport: Box<dyn Transport>,
    reports: FleetReports,
    clock: StampClock,
    events: Vec<Event>,
    gaps: Gaps,
    permit: Permit,
    /// Bytes of the permit that a message uses.
    bytes: u64,
    /// How long arrivals may wait to be read.
    reading: Span,
    /// When arrivals were last read, and when finished messages were last reported.
    read: Instant<Local>,
    reported: Instant<Local>,
    /// When it last woke to send.
    woken: Instant<Local>,
    anchored: Option<Instant<Local>>,
    /// Whether a reason for a failed send was reported.
    is_refused: bool,
}

impl Driver {
    fn open(&mut self, slots: u32, stop: &Stop) -> Result<(), ProbeError> {
        let mut sources = Vec::with_capacity(slots as usize);
        let gap = self.transport.opening_gap();
        for slot in (0..slots).map(Slot) {
            if gap > Span::ZERO {
                if stop.is_set() {
                    break;
                }
                clock::nap(gap.to_duration());
                self.take_in(now());
            }
            let port = self.transport.open(slot, now())?;
            self.session.opened_first(slot, port);
            sources.push(port);
        }
        let sharing = self.transport.sharing();
        self.reports
            .report(FleetReport::Opened { sources, sharing });
        Ok(())
    }

    fn run(&mut self, stop: &Stop) {
        let mut finish = Finish::new(stop, Span::ZERO);
        let mut moment = now();
        while !finish.is_cut_off(moment, || self.session.end_schedule()) {
            if self.is_due(moment) {
                self.send(moment);
                self.prepare();
            }
            moment = now();
            if moment - self.read >= self.reading {
                self.take_in(moment);
            }
            if self.session.is_done() {
                return;
            }
            self.sleep(now());
            moment = now();
        }
    }

    /// When the next message may go.
    fn due(&self) -> Option<Instant<Local>> {
        let due = self.session.next_due()?;
        Some(self.gaps.earliest(due))
    }

    fn is_due(&self, now: Instant<Local>) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Counts messages that are overdue for too long as not sent: this host was stopped or too slow.
    fn skip_overdue(&mut self, at: Instant<Local>) {
        let overdue = |due: Instant<Local>| at - due > Overdue::TOLERANCE;
        let mut skipped = false;
        while self.session.next_due().is_some_and(overdue) {
            self.session.sending(at, self.clock.anchor().to_wall(at));
            self.session.not_sent();
            skipped = true;
        }
        if skipped {
            let late = Answer::Local(LocalFault::SendTooLate);
            self.refused(&format!(
                "{}; {}",
                late.description(),
                LocalFault::SendTooLate.remedy()
            ));
        }
    }

    fn send(&mut self, at: Instant<Local>) {
        self.skip_overdue(at);
        let Some(departure) = self.session.departure() else {
            return;
        };
        self.gaps.go(departure.due, at);
        let Some(port) = departure.port.or_else(|| self.prepare()) else {
            self.session.sending(at, self.clock.anchor().to_wall(at));
            self.session.not_sent();
            return;
        };
        let request = Request {
            slot: departure.slot,
            port,
            seq: departure.seq,
            wall: self.clock.anchor().to_wall(at),
        };
        self.session.sending(at, request.wall);
        if !self.permit.message(self.bytes, at.nanos()) {
            self.session.not_sent();
            return self.refused(&Answer::Local(LocalFault::RateCap).description());
        }
        if let Err(error) = self.transport.send(&request) {
            self.session.not_sent();
            self.refused(&error);
        }
    }

    /// Opens the next message's flow ahead of time, if it needs one. Without a free port the message fails,
    /// and the slot's next one tries again.
    fn prepare(&mut self) -> Option<u16> {
        let departure = self.session.departure()?;
        if departure.port.is_some() {
            return departure.port;
        }
        match self.transport.open(departure.slot, now()) {
            Ok(port) => {
                self.session.opened(port);
                Some(port)
            }
            Err(error) => {
                self.refused(&error);
                None
            }
        }
    }

    /// Reports why a message could not be sent, for the first one only.
    fn refused(&mut self, reason: &dyn std::fmt::Display) {
        if !self.is_refused {
            self.is_refused = true;
            self.reports
                .report(FleetReport::NotSent(reason.to_string()));
        }
    }

    fn take_in(&mut self, at: Instant<Local>) {
        self.read = at;
        if let Some(step) = self.clock.refresh() {
            self.reports.report(FleetReport::ClockStepped(step));
        }
        self.events.clear();
        self.transport.read(&self.clock, &mut self.events);
        for event in &self.events {
            self.session.take(event);
        }
        self.session.at_time(at);
        self.report(at);
    }

    fn report(&mut self, at: Instant<Local>) {
        let finished = self.session.finished();
        if finished >= BATCH || (finished > 0 && at - self.reported >= REPORT_INTERVAL) {
            self.reported = at;
            let messages = self.session.take_finished();
            self.reports.report(FleetReport::Messages(messages));
        }
        if self.anchored.is_none_or(|last| at - last >= ANCHORS) {
            self.anchored = Some(at);
            self.reports
                .report(FleetReport::Anchor(self.clock.anchor()));
        }
    }

    /// Waits until the next message is due, or until there is other work.
    fn sleep(&mut self, moment: Instant<Local>) {
        let due = self.due().unwrap_or(moment + Stop::POLL_INTERVAL);
        let behind = self.session.next_due().is_some_and(|due| due <= moment);
        if due - moment < if behind { GRAIN } else { NO_SLEEP } {
            return;
        }
        if due - moment <= READ_INTERVAL {
            let until = due.max(self.woken + GRAIN);
            clock::nap((until - moment).to_duration());
            self.woken = now();
            return;
        }
        let reporting = (self.session.finished() > 0).then(|| self.reported + REPORT_INTERVAL);
        let others = reporting.into_iter().chain(self.session.next_deadline());
        // Decisions are grouped: thousands of timeouts do not justify waking for each.
        let others = others.map(|at| at.max(moment + DECISION_INTERVAL));
        let until = others.fold(due.min(moment + Stop::POLL_INTERVAL), Instant::min);
        let found = self.transport.wait((until - moment).to_duration());
        let at = now();
        if found || until < due {
            self.take_in(at);
        }
    }

    fn finish(mut self) {
        self.take_in(now());
        self.session.finish();
        self.session.count_dropped(self.transport.dropped());
        let messages = self.session.take_finished();
        if !messages.is_empty() {
            self.reports.report(FleetReport::Messages(messages));
        }
        let tally = *self.session.tally();
        self.reports.end(tally);
    }
}
