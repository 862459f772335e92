//! Counts of one thread: of the current second, and of the measured time.
//!
//! A second has the requests that ended in it. The measured time has the requests whose intended time lies
//! in it, whenever they ended: so a slow response is not left out.

use std::sync::mpsc::Sender;

use neph_model::Span;
use neph_sys::clock::{self, RawNanos};

use super::failure::RequestFailure;
use super::http::Response;
use super::tally::Tally;

/// A request that is waiting or in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The worker of a closed loop.
    pub(super) worker: Option<u32>,
    pub(super) intended: RawNanos,
    /// The first time that it was sent.
    pub(super) sent: Option<RawNanos>,
    pub(super) is_retry: bool,
    /// It waited for a connection.
    pub(super) has_waited: bool,
}

/// The counts of a thread in a second.
#[derive(Debug)]
pub(super) struct ThreadSecond {
    /// From 0 on.
    pub(super) index: u32,
    pub(super) tally: Tally,
    /// At the end of the second.
    pub(super) in_flight: u64,
    /// Requests that wait for a connection at the end of the second.
    pub(super) waiting: u64,
    /// CPU time of the thread as a share of the second.
    pub(super) cpu_share: f64,
}

/// Periods of a load, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Periods {
    pub(super) start: RawNanos,
    /// The end of the warm-up.
    pub(super) measured_from: RawNanos,
    pub(super) end: RawNanos,
    /// Length of a reported interval.
    pub(super) interval: Span,
    /// A request that is taken up later than this is late.
    pub(super) lateness_bound: Span,
}

#[derive(Debug)]
pub(super) struct Recorder {
    periods: Periods,
    seconds: Sender<ThreadSecond>,
    second: Tally,
    index: u32,
    interval_start: RawNanos,
    due: RawNanos,
    cpu_before: i64,
    measured: Tally,
}

impl Recorder {
    /// Belongs to the thread that calls it.
    pub(super) fn new(periods: Periods, seconds: Sender<ThreadSecond>) -> Self {
        Self {
            periods,
            seconds,
            second: Tally::default(),
            index: 0,
            interval_start: periods.start,
            due: RawNanos(periods.start.0 + periods.interval.nanos()),
            cpu_before: clock::thread_cpu(),
            measured: Tally::default(),
        }
    }

    /// When the current interval ends; after the last one, never.
    pub(super) fn interval_end(&self) -> RawNanos {
        if self.interval_start >= self.periods.end {
            return RawNanos(i64::MAX);
        }
        self.due.min(self.periods.end)
    }

    fn is_measured(&self, intended: RawNanos) -> bool {
        intended >= self.periods.measured_from && intended < self.periods.end
    }

    /// Applies a change to the second, and to the measured time if the intended time lies in it.
    fn count(&mut self, intended: RawNanos, change: impl Fn(&mut Tally)) {
        change(&mut self.second);
        if self.is_measured(intended) {
            change(&mut self.measured);
        }
    }

    /// The intended time of a request came, and this thread takes it up now.
    pub(super) fn take_up(&mut self, intended: RawNanos, now: RawNanos) {
        let lateness = now.0.saturating_sub(intended.0).max(0);
        let is_late = lateness > self.periods.lateness_bound.nanos();
        self.count(intended, |tally| {
            tally.due += 1;
            tally.late += u64::from(is_late);
            tally.lateness.add(lateness.unsigned_abs());
        });
    }

    /// A request has to wait for a connection.
    pub(super) fn wait(&mut self, request: &Request) {
        self.count(request.intended, |tally| tally.waited += 1);
    }

    /// A request is sent.
    pub(super) fn send(&mut self, request: &Request, bytes: usize) {
        let is_retry = request.is_retry;
        self.count(request.intended, |tally| {
            tally.sent += u64::from(!is_retry);
            tally.retries += u64::from(is_retry);
            tally.sent_bytes += bytes as u64;
        });
    }

    /// A connection is opened. Those of the warm-up count, because later requests use them.
    pub(super) fn open_connection(&mut self) {
        self.second.connections += 1;
        self.measured.connections += 1;
    }

    /// Bytes of a response arrived.
    pub(super) fn receive(&mut self, request: &Request, bytes: usize) {
        self.count(request.intended, |tally| {
            tally.received_bytes += bytes as u64;
        });
    }

    /// A request has its response.
    pub(super) fn respond(&mut self, request: &Request, response: Response, now: RawNanos) {
        let nanos = |from: RawNanos| now.0.saturating_sub(from.0).max(0).unsigned_abs();
        let response_time = nanos(request.intended);
        let service_time = nanos(request.sent.unwrap_or(request.intended));
        self.count(request.intended, |tally| {
            *tally.statuses.entry(response.status).or_default() += 1;
            if response.status < 400 {
                tally.response.add(response_time);
                tally.service.add(service_time);
            }
        });
    }

    /// A request has no response.
    pub(super) fn fail(&mut self, request: &Request, failure: RequestFailure) {
        self.count(request.intended, |tally| {
            *tally.failures.entry(failure).or_default() += 1;
        });
    }

    /// Reports the second if it is over.
    pub(super) fn tick(&mut self, now: RawNanos, in_flight: u64, waiting: u64) {
        while now >= self.interval_end() {
            self.report(self.interval_end(), in_flight, waiting);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of a second")]
    fn report(&mut self, to: RawNanos, in_flight: u64, waiting: u64) {
        let cpu = clock::thread_cpu();
        let cpu_nanos = cpu - self.cpu_before;
        self.second.cpu = Span::from_nanos(cpu_nanos);
        self.measured.cpu += self.second.cpu;
        let length = (to.0 - self.interval_start.0).max(1);
        let second = ThreadSecond {
            index: self.index,
            tally: std::mem::take(&mut self.second),
            in_flight,
            waiting,
            cpu_share: cpu_nanos as f64 / length as f64,
        };
        self.cpu_before = cpu;
        self.interval_start = to;
        self.index += 1;
        self.due = RawNanos(self.due.0 + self.periods.interval.nanos());
        // The receiver lives as long as the threads.
        let _ = self.seconds.send(second);
    }

    /// Ends the counts: reports the interval that a stop has cut short, and returns those of the measured time.
    pub(super) fn finish(mut self, now: RawNanos) -> Tally {
        let to = RawNanos(now.0.min(self.periods.end.0));
        if to > self.interval_start {
            self.report(to, 0, 0);
        }
        self.measured
    }
}
