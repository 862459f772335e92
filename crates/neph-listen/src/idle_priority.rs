//! Stepping back for those who are watched: the thread that looks at packets runs in times that are idle,
//! as long as it keeps up.
//!
//! Owns when it does. A guard of the ordinary priority sleeps beside it, and fetches it back as soon as
//! packets wait in more of the ring than is well, or for too long: the kernel gives a thread of idle
//! times next to nothing where nobody rests. Where the kernel would not let it come back it never goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use neph_model::Span;
use neph_sys::clock;
use neph_sys::sched::Thread;

/// How often the guard looks.
const LOOK: Duration = Duration::from_millis(20);
/// Packets may wait for so long: longer than whoever listens sleeps while none come.
const LAG: Span = Span::from_millis(300);
/// The part of the ring in which they may wait.
const FILLED: f64 = 0.5;

/// What the two threads tell each other.
#[derive(Debug)]
struct Shared {
    /// When no packet waited, the last time (nanoseconds of the raw clock).
    caught_up: AtomicI64,
    is_over: AtomicBool,
}

/// While it lives the thread that began it steps back. Then it has its priority again.
#[derive(Debug)]
pub struct IdlePriority {
    shared: Arc<Shared>,
    guard: Option<JoinHandle<()>>,
}

impl IdlePriority {
    /// The calling thread reads a ring of which `filled` says how much waits, 0 to 1.
    pub fn begin(filled: impl Fn() -> f64 + Send + 'static) -> Self {
        Self::with(LAG, filled)
    }

    /// The calling thread has work that nobody loses if it waits for so long.
    pub fn with_patience(lag: Span) -> Self {
        Self::with(lag, || 0.0)
    }

    fn with(lag: Span, filled: impl Fn() -> f64 + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            caught_up: AtomicI64::new(clock::raw().0),
            is_over: AtomicBool::new(false),
        });
        let reader = Thread::this();
        let seen = Arc::clone(&shared);
        let guard = thread::Builder::new().name("neph-guard".to_owned());
        // Who was given another policy from outside keeps it; without a guard it is not safe to go.
        let guard = (reader.is_normal()).then(|| {
            guard
                .spawn(move || stand_guard(reader, lag, filled, &seen))
                .ok()
        });
        Self {
            shared,
            guard: guard.flatten(),
        }
    }

    /// Nothing waits now.
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

fn stand_guard(reader: Thread, most: Span, filled: impl Fn() -> f64, shared: &Shared) {
    // Whether one may come back is tried where nothing depends on it.
    let own = Thread::this();
    if own.use_idle().and_then(|()| own.use_normal()).is_err() {
        return;
    }
    let mut is_back = false;
    while !shared.is_over.load(Ordering::Relaxed) {
        let lag = clock::raw().0 - shared.caught_up.load(Ordering::Relaxed);
        let keeps_up = lag < most.nanos() && filled() < FILLED;
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
        // It was permitted a moment ago.
        let _ = reader.use_normal();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use neph_sys::deadline::poll;

    use super::*;

    /// Whether the calling thread may come back from idle times; says that it may not.
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

    /// Waits until the calling thread has stepped back, or is there again; it keeps up meanwhile where
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
    fn who_keeps_up_steps_back_and_is_fetched_for_a_full_ring_or_a_long_wait() {
        if !may_return("who_keeps_up_steps_back") {
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
