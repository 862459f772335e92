//! Counts of a stream's thread, handed over once a second.

use std::sync::{Mutex, PoisonError};

use neph_model::Span;
use neph_sys::clock::{self, RawNanos};
use neph_wire::throughput::RrInterval;

use super::super::board::Board;
use super::super::course::{Course, positive};
use crate::durations::Durations;

/// A shorter rest of a test is handed over together with the second before.
const MIN_INTERVAL: Span = Span::from_millis(100);
/// Transactions per sample of the thread's core.
const TRANSACTIONS_PER_CHECK: u64 = 1_024;

/// RTTs of a stream in one second.
#[derive(Debug)]
pub(super) struct RttPart {
    pub(super) index: u32,
    pub(super) rtts: Durations,
}

/// Collects the RTTs of a client's streams.
#[derive(Debug, Default)]
pub(super) struct Sink(Mutex<Vec<RttPart>>);

impl Sink {
    /// Removes and returns all of them.
    pub(super) fn take(&self) -> Vec<RttPart> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, part: RttPart) {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.push(part);
    }
}

/// Belongs to the thread that created it.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    course: Course,
    interval_counts: RrInterval,
    rtts: Durations,
    start: RawNanos,
    /// End of the second.
    due: RawNanos,
    /// A second that ends later is handed over at the end.
    last_interval_start: RawNanos,
    board: &'a Board,
    sink: Option<&'a Sink>,
}

impl<'a> Recorder<'a> {
    /// For a client's stream; starts now.
    pub(super) fn of_client(stream: u16, duration: Span, board: &'a Board, sink: &'a Sink) -> Self {
        let mut recorder = Self {
            rtts: Durations::with_room(),
            sink: Some(sink),
            ..Self::of_server(stream, board)
        };
        recorder.last_interval_start = recorder.moment(duration - MIN_INTERVAL);
        recorder.due = recorder.next_due();
        recorder
    }

    /// For a server's stream; starts now.
    pub(super) fn of_server(stream: u16, board: &'a Board) -> Self {
        let course = Course::begin();
        let interval_counts = RrInterval {
            stream,
            ..RrInterval::default()
        };
        Self {
            start: course.moment(Span::ZERO),
            due: course.moment(course.due()),
            last_interval_start: RawNanos(i64::MAX),
            rtts: Durations::default(),
            course,
            interval_counts,
            board,
            sink: None,
        }
    }

    /// A time since the start on the monotonic clock.
    pub(super) fn moment(&self, since: Span) -> RawNanos {
        self.course.moment(since)
    }

    /// Counts of the current second.
    pub(super) const fn counted(&mut self) -> &mut RrInterval {
        &mut self.interval_counts
    }

    /// Ends a transaction that began at `from` and has its reply; returns when the next one begins.
    #[inline]
    pub(super) fn reply(&mut self, from: RawNanos, now: RawNanos) -> RawNanos {
        self.rtts.add(u64::try_from(now.0 - from.0).unwrap_or(0));
        self.count();
        self.tick(now)
    }

    /// Counts a transaction.
    #[inline]
    pub(super) fn count(&mut self) {
        self.interval_counts.transactions += 1;
        if self
            .interval_counts
            .transactions
            .is_multiple_of(TRANSACTIONS_PER_CHECK)
        {
            self.course.look();
        }
    }

    /// Ends a lost transaction that began at `from`; returns when the next one begins.
    pub(super) fn lose(&mut self, from: RawNanos, now: RawNanos) -> RawNanos {
        self.interval_counts.lost += 1;
        let elapsed = positive(Span::from_nanos(now.0 - from.0));
        self.interval_counts.lost_wait_ns =
            self.interval_counts.lost_wait_ns.saturating_add(elapsed);
        self.rtts.interrupt();
        self.tick(now)
    }

    /// Ends the second if it is over; returns the time afterwards.
    #[inline]
    pub(super) fn tick(&mut self, now: RawNanos) -> RawNanos {
        if now < self.due {
            return now;
        }
        self.pass(now);
        clock::raw()
    }

    /// Hands over the rest.
    pub(super) fn finish(mut self) {
        self.pass(clock::raw());
    }

    fn next_due(&self) -> RawNanos {
        let due = self.course.moment(self.course.due());
        if due > self.last_interval_start {
            return RawNanos(i64::MAX);
        }
        due
    }

    fn pass(&mut self, now: RawNanos) {
        let passed = self.course.pass(Span::from_nanos(now.0 - self.start.0));
        self.due = self.next_due();
        let next = RrInterval {
            stream: self.interval_counts.stream,
            ..RrInterval::default()
        };
        let mut interval = std::mem::replace(&mut self.interval_counts, next);
        interval.index = passed.index;
        (interval.from_ns, interval.to_ns) = (passed.from_ns, passed.to_ns);
        (interval.cpu_ns, interval.core) = (passed.cpu_ns, passed.core);
        // RTTs first, so that a reader of the interval also has its RTTs.
        if let Some(sink) = self.sink {
            sink.put(RttPart {
                index: passed.index,
                rtts: self.rtts.clone(),
            });
            self.rtts.clear();
        }
        self.board.lock().exchanged.push(interval);
    }
}
