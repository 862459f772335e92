//! How far the client host moved a reported quantile, and whether that is a root cause.

use super::MIN_DELAY_MS;
use crate::numbers::{millis, percent};

/// A shift of a quantile by less than [`MIN_DELAY_MS`], or by less than this share, is not attributed to the
/// client host.
const MIN_SHARE: f64 = 0.05;
/// Minimum ratio of delayed messages to messages beyond the quantile. Below it, the shift may be random: with
/// losses, the last percent of the replies is soon a handful ...
const MIN_DELAYED_RATIO: f64 = 2.0;
/// ... but this share of the messages is always enough.
const SUFFICIENT_DELAYED_SHARE: f64 = 0.5;

/// A reported quantile of a scenario's response times, and its value without the delays of the client host.
#[derive(Clone, Copy)]
pub(crate) struct QuantileShift {
    pub(crate) p: f64,
    pub(crate) measured: f64,
    pub(crate) without_delays: f64,
    /// Lower end of its 95 % confidence interval.
    pub low: f64,
    /// The share of the messages that the client host delayed.
    pub(crate) delayed: f64,
}

impl QuantileShift {
    pub(crate) fn shift(self) -> f64 {
        self.measured - self.without_delays
    }

    /// The smallest shift that counts, in milliseconds.
    fn min_shift(self) -> f64 {
        MIN_DELAY_MS.max(MIN_SHARE * self.without_delays)
    }

    /// The shift as a ratio to the smallest one that counts.
    pub(crate) fn size(self) -> f64 {
        self.shift() / self.min_shift()
    }

    fn is_certain(self) -> bool {
        self.without_delays < self.low
    }

    /// The share of the messages that must be delayed.
    fn min_delayed_share(self) -> f64 {
        (MIN_DELAYED_RATIO * (1.0 - self.p)).min(SUFFICIENT_DELAYED_SHARE)
    }

    /// The size; 0 if the quantile's own uncertainty is larger, or if the shift may be random.
    pub(crate) fn ratio(self) -> f64 {
        let is_robust = self.delayed >= self.min_delayed_share();
        if self.is_certain() && is_robust {
            self.size()
        } else {
            0.0
        }
    }

    pub(crate) fn to_text(self) -> String {
        let (p, without, with) = (
            self.p * 100.0,
            millis(self.without_delays),
            millis(self.measured),
        );
        format!("p{p:.0} from {without} to {with}")
    }

    /// The quantile as it would be, and as it is: `p90 would be 5.21 ms instead of 6.23 ms`.
    pub(crate) fn to_conditional(self) -> String {
        let (p, without, with) = (
            self.p * 100.0,
            millis(self.without_delays),
            millis(self.measured),
        );
        format!("p{p:.0} would be {without} instead of {with}")
    }

    /// Why it is reported as no root cause, in a sentence.
    pub(crate) fn no_cause_reason(self) -> String {
        if self.size() < 1.0 {
            return format!(
                "This is no root cause, because the difference is below {}.",
                millis(self.min_shift())
            );
        }
        if !self.is_certain() {
            return format!(
                "This difference is within the uncertainty of the percentile: its 95 % confidence interval begins at {}.",
                millis(self.low)
            );
        }
        format!(
            "This is no root cause: {} of the messages of this scenario are affected, and the rule needs {}.",
            percent(self.delayed),
            percent(self.min_delayed_share())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_condition_that_a_shift_does_not_meet() {
        let far = QuantileShift {
            p: 0.5,
            measured: 2.7,
            without_delays: 1.2,
            low: 2.32,
            delayed: 0.6,
        };
        assert!(far.ratio() >= 1.0);
        let few = QuantileShift {
            delayed: 0.34,
            ..far
        };
        let little = QuantileShift {
            without_delays: 1.79,
            ..far
        };
        let uncertain = QuantileShift { low: 1.1, ..far };
        for (moved, expected) in [
            (
                few,
                "34 % of the messages of this scenario are affected, and the rule needs 50 %",
            ),
            (little, "because the difference is below 1.00 ms"),
            (uncertain, "its 95 % confidence interval begins at 1.10 ms"),
        ] {
            let reason = moved.no_cause_reason();
            assert!(moved.ratio() < 1.0 && reason.contains(expected), "{reason}");
        }
    }
}
