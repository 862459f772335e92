//! Runs the packet-reading thread with idle priority (`SCHED_IDLE`) while it keeps up, so that it
//! does not disturb the measured programs.
//!
//! Owns when the priority changes. A guard thread with normal priority restores normal priority as
//! soon as packets fill too much of the ring or wait too long. On a host without idle time, the
//! kernel gives an idle thread next to nothing. If the kernel would not permit the return to normal
//! priority, the thread keeps normal priority.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_model::Span;
use neph_sys::clock;
use neph_sys::sched::Thread;

/// Interval between the guard's checks.
const LOOK: Duration = Duration::from_millis(20);
/// How long packets may wait: longer than the reader sleeps while no packets arrive.
const LAG: Span = Span::from_millis(300);
/// The share of the ring that packets may fill.
const FILLED: f64 = 0.5;

/// State shared by the two threads.
#[derive(Debug)]
struct SharedState {
    /// When no packet was waiting, last time (nanoseconds of the raw clock).
    caught_up: AtomicI64,
    is_over: AtomicBool,
}

/// Gives the calling thread idle priority for as long as this value lives.
#[derive(Debug)]
pub struct IdlePriority {
    shared: Arc<SharedState>,
    guard: Option<JoinHandle<()>>,
}

impl IdlePriority {
    /// For a thread that reads a ring; `filled` returns the filled share of the ring, 0 to 1.
    pub fn begin(filled: impl Fn() -> f64 + Send + 'static) -> Self {
        Self::with_lag(LAG, filled)
    }

    /// For a thread whose work may wait for `lag` without loss.
    pub fn with_patience(lag: Span) -> Self {
        Self::with_lag(lag, || 0.0)
    }

    fn with_lag(lag: Span, filled: impl Fn() -> f64 + Send + 'static) -> Self {
        let shared = Arc::new(SharedState {
            caught_up: AtomicI64::new(clock::raw().0),
            is_over: AtomicBool::new(false),
        });
        let reader = Thread::this();
        let observed = Arc::clone(&shared);
        let guard = thread::Builder::new().name("neph-guard".to_owned());
        // A thread with another policy keeps it. Without a guard, idle priority is not safe.
        let guard = (reader.is_normal()).then(|| {
            guard
                .spawn(move || watch_reader(reader, lag, filled, &observed))
                .ok()
        });
        Self {
            shared,
            guard: guard.flatten(),
        }
    }

    /// Reports that nothing waits now.
    pub fn caught_up(&self) {
        let now = clock::raw().0;
        self.shared.caught_up.store(now, Ordering::Relaxed);
    }
}

impl Drop for IdlePriority {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(guard) = self.guard.take() {
            guard.thread().unpark();
            let _ = guard.join();
        }
    }
}

fn watch_reader(reader: Thread, max: Span, filled: impl Fn() -> f64, shared: &SharedState) {
    // Tests on the guard thread whether the return to normal priority is permitted.
    let own_thread = Thread::this();
    if own_thread
        .use_idle()
        .and_then(|()| own_thread.use_normal())
        .is_err()
    {
        return;
    }
    let mut is_back = false;
    while !shared.is_over.load(Ordering::Relaxed) {
        let lag = clock::raw().0 - shared.caught_up.load(Ordering::Relaxed);
        let keeps_up = lag < max.nanos() && filled() < FILLED;
        if keeps_up != is_back {
            let changed = if keeps_up {
                reader.use_idle()
            } else {
                reader.use_normal()
            };
            is_back = if changed.is_ok() { keeps_up } else { is_back };
        }
        thread::park_timeout(LOOK);
    }
    if is_back {
        // The same call succeeded on the guard thread.
        let _ = reader.use_normal();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use neph_sys::deadline::poll;

    use super::*;

    /// Whether a thread may return from idle priority; reports it if not.
    fn may_return(test: &str) -> bool {
        let tried = thread::spawn(|| {
            Thread::this()
                .use_idle()
                .and_then(|()| Thread::this().use_normal())
        });
        let may = tried.join().expect("it ends").is_ok();
        assert!(may || std::env::var_os("CI").is_none(), "CI is root");
        if !may {
            println!("SKIP {test}: leaving SCHED_IDLE needs CAP_SYS_NICE");
        }
        may
    }

    /// Waits until the calling thread has the expected priority; reports that it keeps up if
    /// `keeps_up`.
    fn becomes(is_normal: bool, idle_priority: &IdlePriority, keeps_up: bool) -> bool {
        poll(Duration::from_millis(1), Duration::from_mins(1), || {
            if keeps_up {
                idle_priority.caught_up();
            }
            Thread::this().is_normal() == is_normal
        })
    }

    #[test]
    fn a_reader_has_idle_priority_until_packets_wait() {
        if !may_return("a_reader_that_keeps_up_has_idle_priority") {
            return;
        }
        let percent = Arc::new(AtomicU32::new(0));
        let read = Arc::clone(&percent);
        let idle_priority =
            IdlePriority::begin(move || f64::from(read.load(Ordering::Relaxed)) / 100.0);
        assert!(becomes(false, &idle_priority, true), "it keeps up");
        percent.store(50, Ordering::Relaxed);
        assert!(becomes(true, &idle_priority, true), "the ring fills");
        percent.store(49, Ordering::Relaxed);
        assert!(becomes(false, &idle_priority, true), "the ring has room");
        assert!(
            becomes(true, &idle_priority, false),
            "packets wait for long"
        );
        assert!(becomes(false, &idle_priority, true), "it has caught up");
        drop(idle_priority);
        assert!(Thread::this().is_normal(), "it ends");
    }
}
