//! Measurements that are repeated where this machine was disturbed meanwhile.
//!
//! The machine's own record decides, never the verdict: CPU time that the hypervisor gave to others
//! (steal), CPUs that were never idle, and how late a thread woke that slept a few milliseconds at a
//! time. What was measured undisturbed is evaluated, whatever it says; after some repetitions, each once
//! the machine is calm, the last one is.

#![expect(clippy::print_stdout, reason = "a test tells what it repeats")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use neph_sys::clock::{self, RawNanos, Spin};
use neph_sys::deadline::poll;

/// How often at most.
const MAX_ATTEMPTS: usize = 4;
/// More than this share of all CPU time stolen is a disturbance.
const MAX_STOLEN_SHARE: f64 = 0.01;
/// CPUs that are idle for less than this share are used by others too: none of these measurements needs
/// all of them.
const MIN_IDLE_SHARE: f64 = 0.15;
/// A thread that wakes later than this was kept from its CPU by others, nanoseconds.
const LATE_WAKE_NS: i64 = 5_000_000;
/// So many of a hundred such are a disturbance.
const MAX_LATE_PERCENT: u64 = 2;
const SLEEP_NS: i64 = 5_000_000;
/// How long the machine is waited for until it is calm.
const CALM_TIMEOUT: Duration = Duration::from_mins(3);

/// Measures, and again where the machine was disturbed.
pub(crate) fn measure_undisturbed<T>(mut measure: impl FnMut() -> T) -> T {
    for _ in 1..MAX_ATTEMPTS {
        let (measured, disturbance) = measure_with_disturbance(&mut measure);
        match disturbance {
            None => return measured,
            Some(message) => println!("measured once more: {message}"),
        }
        let mut before = CpuTime::now();
        poll(Duration::from_secs(1), CALM_TIMEOUT, || {
            let now = CpuTime::now();
            let last_second = now.since(before);
            before = now;
            last_second.total > 0 && last_second.share(last_second.idle) > 0.5
        });
    }
    measure()
}

/// What was measured, and what disturbed it.
fn measure_with_disturbance<T>(measure: impl FnOnce() -> T) -> (T, Option<String>) {
    let is_over = AtomicBool::new(false);
    let before = CpuTime::now();
    let (measured, (wake_count, late_count)) = thread::scope(|scope| {
        let wake_thread = scope.spawn(|| count_wakes(&is_over));
        // Also when the measurement fails: the other thread would go on for ever.
        let set_at_end = SetAtEnd(&is_over);
        let measured = measure();
        drop(set_at_end);
        (measured, wake_thread.join().expect("it only sleeps"))
    });
    let used = CpuTime::now().since(before);
    let (stolen, idle) = (used.share(used.stolen), used.share(used.idle));
    let is_late = late_count * 100 > wake_count * MAX_LATE_PERCENT;
    let reason = (stolen > MAX_STOLEN_SHARE || idle < MIN_IDLE_SHARE || is_late).then(|| {
        format!(
            "CPUs {stolen:.3} stolen, {idle:.3} idle, {late_count} of {wake_count} wakes were late"
        )
    });
    (measured, reason)
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How often a thread woke until it was over, and how often late.
fn count_wakes(is_over: &AtomicBool) -> (u64, u64) {
    let (mut wake_count, mut late_count) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        let due = RawNanos(clock::raw().0 + SLEEP_NS);
        let wake_time = clock::sleep_until(due, Spin::NONE);
        wake_count += 1;
        late_count += u64::from(wake_time.0 - due.0 > LATE_WAKE_NS);
    }
    (wake_count, late_count)
}

/// CPU time of this machine, in ticks (`/proc/stat`, fields 1 to 8).
#[derive(Clone, Copy)]
struct CpuTime {
    total: u64,
    idle: u64,
    stolen: u64,
}

impl CpuTime {
    fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").expect("proc is mounted");
        let line = text.lines().next().expect("all CPUs' line");
        let fields = line.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
        let ticks_of = |field: usize| ticks.get(field).copied().unwrap_or(0);
        Self {
            total: ticks.iter().sum(),
            idle: ticks_of(3),
            stolen: ticks_of(7),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share")]
    fn share(self, part: u64) -> f64 {
        part as f64 / self.total.max(1) as f64
    }
}
