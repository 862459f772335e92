//! One side that stands still for a while, again and again.

use super::path::exponential;
use neph_stats::Random;

/// What stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Still {
    /// The peer's program.
    Program,
    /// All of the peer, kernel included.
    Host,
    /// Our own program; what was due meanwhile goes late.
    ClientLate,
    /// The same; what was due meanwhile is not sent.
    ClientSkips,
}

/// Stalls of one length at a period, with the first after half a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalling {
    pub(super) who: Still,
    pub(super) every_ms: f64,
    pub(super) for_ms: f64,
}

impl Stalling {
    /// The end of the stall that a moment lies in.
    pub(super) fn end(&self, at: f64) -> Option<f64> {
        let since = (at - self.every_ms / 2.0).rem_euclid(self.every_ms);
        let is_in = at > self.every_ms / 2.0 && since < self.for_ms;
        is_in.then_some(at - since + self.for_ms)
    }

    /// When somebody who stands still comes to what is there since `at`; each takes a moment.
    pub(super) fn wake(&self, at: f64, interval: f64, random: &mut Random) -> f64 {
        let Some(end) = self.end(at) else { return at };
        let before = (self.for_ms - (end - at)) / interval;
        end + 0.04 * before + exponential(random, 0.01)
    }
}
