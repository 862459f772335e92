//! Timing of sends: when the measuring thread wakes for a send, and the last microseconds before it.
//!
//! Owns the thread's own settings (timer slack, real-time priority). Does not own the due time (schedule).

use std::time::Duration;

use neph_model::{Instant, Local, Span};
use neph_sys::place::Placement;
use neph_sys::{clock, sched};

use crate::ProbeError;
use crate::spec::Priority;

/// Waking takes this long at the median (12 us measured), so waits end this much early.
const WAKE_UP_LATENCY: Span = Span::from_micros(15);
/// The last part of a wait reads only the clock.
const CLOCK_ONLY_TIME: Span = Span::from_micros(6);
/// A priority above the lab's own threads would starve the link. Below ordinary system threads it is useless.
const FIFO: u8 = 10;

/// Makes the calling thread wake on time. Returns whether it got real-time priority.
pub(crate) fn settle_thread(priority: Priority) -> bool {
    // Refused only in a sandbox; then the lateness figures show the effect.
    let _ = sched::set_timer_slack(Duration::from_nanos(1));
    match priority {
        Priority::Normal => false,
        Priority::Auto => sched::use_fifo(FIFO).is_ok(),
    }
}

/// Moves the calling thread, which is to measure, to its place and sets its timing there. With a CPU quota it
/// stays an ordinary thread: a real-time thread would take more than its share.
///
/// # Errors
/// When the place cannot be entered.
pub(crate) fn settle_at(
    site: Option<&Placement>,
    mut priority: Priority,
) -> Result<(), ProbeError> {
    if let Some(site) = site {
        site.enter()?;
        if site.is_rationed() {
            priority = Priority::Normal;
        }
    }
    settle_thread(priority);
    Ok(())
}

/// How one flow waits for its sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    spin: Span,
}

/// How to wait for a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendWait {
    /// There is time to wait for events until this moment.
    Far(Instant<Local>),
    /// Check sockets, but do not sleep.
    Close,
    /// Read only the clock.
    Blind,
}

impl Pace {
    /// Spins for `spin` before each send, but at most for a quarter of the interval. At 10,000 messages per
    /// second 60 us of spin took 88 % of a core and were no more exact than 25 us (0.4/3.8 us late against
    /// 0.4/1.8, measured). The kernel also stops a real-time thread that never sleeps for 50 ms in each
    /// second.
    pub(crate) fn new(spin: Span, interval: Span) -> Self {
        let quarter = Span::from_nanos(interval.nanos() / 4);
        Self {
            spin: spin.min(quarter),
        }
    }

    /// How near `due` is.
    pub(crate) fn nearness(self, due: Instant<Local>, now: Instant<Local>) -> SendWait {
        let left = due - now;
        if left > self.spin + WAKE_UP_LATENCY {
            SendWait::Far(due - self.spin - WAKE_UP_LATENCY)
        } else if left > CLOCK_ONLY_TIME && self.spin > Span::ZERO {
            SendWait::Close
        } else {
            SendWait::Blind
        }
    }

    /// Waits for `due`. Returns the clock reading that reached it.
    pub(crate) fn reach(self, due: Instant<Local>) -> Instant<Local> {
        let spin = clock::Spin(self.spin.to_duration());
        Instant::from_nanos(clock::sleep_until(clock::RawNanos(due.nanos()), spin).0)
    }
}
