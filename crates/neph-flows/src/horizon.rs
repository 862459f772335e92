//! Owns how advice fared a while after it was given: plain values.

use neph_model::Span;
use neph_stats::share_interval;
use serde::Serialize;

use crate::share::Share;

/// How advice fared a while after it was given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Horizon {
    /// How long after.
    pub after: Span,
    /// In how many of the moments the advised port was in the lowest class then. One that had gone
    /// silent was not. Its `n` are the times of this length that the measurement has room for:
    /// moments nearer to each other look at the same time twice, which makes the share smoother but
    /// the interval no narrower.
    pub on_low: Share,
    /// The share of all flows that were in the lowest class then: what chance gives.
    pub random_on_low: f64,
    /// Median of the advised ports' base latencies, and of all flows'; `None` where there were too
    /// few times for one, or where half of the flows had gone silent.
    pub p50: Option<Against>,
    /// The same of the 99th percentile.
    pub p99: Option<Against>,
}

impl Horizon {
    /// Whether advice was better than chance, beyond doubt.
    pub fn holds(&self) -> bool {
        self.on_low.low > self.random_on_low
    }

    /// Whether there were times enough for [`Self::holds`] to come out, had it always been right.
    pub(crate) fn can_hold(&self) -> bool {
        is_enough(self.on_low.n, self.random_on_low)
    }
}

/// What was advised beside what a random flow has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Against {
    /// With the advice.
    pub advised: Span,
    /// With a random flow.
    pub random: Span,
}

impl Against {
    /// What the advice saves; below zero where it costs.
    pub fn gain(&self) -> Span {
        self.random - self.advised
    }
}

/// Whether so many times, all of them right, show that advice is better than chance.
#[expect(clippy::cast_precision_loss, reason = "a count")]
pub(crate) fn is_enough(times: u64, random: f64) -> bool {
    share_interval(1.0, times as f64).is_ok_and(|interval| interval.low > random)
}
