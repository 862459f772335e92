//! Owns the backtest of advice some time after it was given, as plain values.

use neph_model::Span;
use neph_stats::share_interval;
use serde::Serialize;

use crate::share::Share;

/// The backtest of advice some time after it was given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Horizon {
    /// Time since the advice.
    pub after: Span,
    /// Share of the moments in which the advised port was in the lowest class, and not silent. Its `n` is the
    /// number of consecutive periods of this length. Overlapping moments make the share smoother, but the
    /// interval no narrower.
    pub on_low: Share,
    /// The share of all flows in the lowest class: the expectation for a random port.
    pub random_on_lowest_class: f64,
    /// Median of the advised ports' base latencies, and of all flows'. `None` with too few periods, or if
    /// half of the flows had gone silent.
    pub p50: Option<AdvisedVersusRandom>,
    /// The same for p99.
    pub p99: Option<AdvisedVersusRandom>,
}

impl Horizon {
    /// Whether advice was significantly better than a random port.
    pub fn holds(&self) -> bool {
        self.on_low.low > self.random_on_lowest_class
    }

    /// Whether [`Self::holds`] is possible with this number of periods, if the advice is always right.
    pub(crate) fn can_hold(&self) -> bool {
        has_enough_times(self.on_low.n, self.random_on_lowest_class)
    }
}

/// The latency with the advice and of a random flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AdvisedVersusRandom {
    /// With the advice.
    pub advised: Span,
    /// With a random flow.
    pub random: Span,
}

impl AdvisedVersusRandom {
    /// The gain of the advice; negative if it adds latency.
    pub fn gain(&self) -> Span {
        self.random - self.advised
    }
}

/// Whether this number of periods, all right, shows that advice is better than a random port.
#[expect(clippy::cast_precision_loss, reason = "a count")]
pub(crate) fn has_enough_times(times: u64, random: f64) -> bool {
    share_interval(1.0, times as f64).is_ok_and(|interval| interval.low > random)
}
