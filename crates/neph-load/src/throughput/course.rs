//! Intervals of one stream at one end, with CPU and waiting times of its thread.

use std::collections::BTreeMap;

use neph_model::Span;
use neph_sys::{clock, sched};

/// Length of an interval.
pub(super) const INTERVAL: Span = Span::from_secs(1);

/// Bounds of a completed interval, and its thread's times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompletedInterval {
    /// From 0 on.
    pub(super) index: u32,
    /// Since the start, nanoseconds.
    pub(super) from_ns: u64,
    /// Since the start, nanoseconds.
    pub(super) to_ns: u64,
    /// CPU time of the thread, nanoseconds.
    pub(super) cpu_ns: u64,
    /// Time spent waiting for the socket, nanoseconds.
    pub(super) waited_ns: u64,
    /// Time spent waiting for the requested rate, nanoseconds.
    pub(super) paced_ns: u64,
    /// Time spent waiting for the rate of the policy, nanoseconds.
    pub(super) policy_ns: u64,
    /// The most frequent core.
    pub(super) core: Option<u32>,
}

/// Belongs to the thread that created it.
#[derive(Debug)]
pub(super) struct Course {
    start_nanos: i64,
    index: u32,
    from: Span,
    cpu_before: i64,
    waited_time: Span,
    paced: Span,
    policy_wait: Span,
    cores: BTreeMap<u32, u32>,
}

impl Course {
    /// Starts now.
    pub(super) fn begin() -> Self {
        Self {
            start_nanos: clock::raw().0,
            index: 0,
            from: Span::ZERO,
            cpu_before: clock::thread_cpu(),
            waited_time: Span::ZERO,
            paced: Span::ZERO,
            policy_wait: Span::ZERO,
            cores: BTreeMap::new(),
        }
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Span {
        Span::from_nanos(clock::raw().0 - self.start_nanos)
    }

    /// A time since the start on the monotonic clock.
    pub(super) fn moment(&self, since: Span) -> clock::RawNanos {
        clock::RawNanos(self.start_nanos.saturating_add(since.nanos()))
    }

    /// End of the interval: a whole second since the start, however late the last interval ended.
    pub(super) fn due(&self) -> Span {
        INTERVAL.times(i64::from(self.index) + 1)
    }

    /// Adds the time since `since` as waiting for the socket.
    pub(super) fn waited_since(&mut self, since: Span) {
        let waited_time = self.elapsed() - since;
        self.waited_time += waited_time;
        self.look();
    }

    /// Adds the time since `since` as waiting for the requested rate.
    pub(super) fn paced_since(&mut self, since: Span) {
        let paced = self.elapsed() - since;
        self.paced += paced;
        self.look();
    }

    /// Adds the time since `since` as waiting for the rate of the policy.
    pub(super) fn held_by_policy_since(&mut self, since: Span) {
        self.policy_wait += self.elapsed() - since;
        self.look();
    }

    /// Samples the core of the thread.
    pub(super) fn look(&mut self) {
        if let Some(core) = sched::current_cpu() {
            *self.cores.entry(core).or_default() += 1;
        }
    }

    /// Ends the interval.
    pub(super) fn pass(&mut self, now: Span) -> CompletedInterval {
        self.look();
        let cores = std::mem::take(&mut self.cores);
        let core = cores.into_iter().max_by_key(|(_, count)| *count);
        let cpu = clock::thread_cpu();
        let passed = CompletedInterval {
            index: self.index,
            from_ns: positive(self.from),
            to_ns: positive(now),
            cpu_ns: positive(Span::from_nanos(cpu - self.cpu_before)),
            waited_ns: positive(std::mem::take(&mut self.waited_time)),
            paced_ns: positive(std::mem::take(&mut self.paced)),
            policy_ns: positive(std::mem::take(&mut self.policy_wait)),
            core: core.map(|(core, _)| core),
        };
        self.cpu_before = cpu;
        self.from = now;
        // A thread that was delayed for seconds has no empty intervals.
        let interval_count = now.nanos() / INTERVAL.nanos();
        let interval_count = u32::try_from(interval_count).unwrap_or(u32::MAX);
        self.index = interval_count.max(self.index.saturating_add(1));
        passed
    }
}

/// Nanoseconds of a time; 0 if it is negative.
pub(super) fn positive(span: Span) -> u64 {
    u64::try_from(span.nanos()).unwrap_or(0)
}
