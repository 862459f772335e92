//! A quantile that is told, and how far our own host moved it: whether that is a cause, and why not.

use super::LEAST_MS;
use crate::numbers::{millis, percent};

/// A quantile that our host moves by less than [`LEAST_MS`] is none of its doing, nor one that it
/// moves by less than this share.
const LEAST_SHARE: f64 = 0.05;
/// A quantile that fewer of the messages than this multiple of those beyond it were delayed, chance
/// may have moved: where others are lost, the last percent of the replies is soon a handful ...
const ROBUST: f64 = 2.0;
/// ... but never more of them than this share.
const HALF: f64 = 0.5;

/// A quantile of a scenario's response times that is told, and what it is without our host.
#[derive(Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) p: f64,
    pub(crate) with: f64,
    pub(crate) without: f64,
    /// Where its 95 % interval begins.
    pub low: f64,
    /// The share of the messages that our host delayed.
    pub(crate) delayed: f64,
}

impl Moved {
    pub(crate) fn by(self) -> f64 {
        self.with - self.without
    }

    /// The least effect, in milliseconds.
    fn least(self) -> f64 {
        LEAST_MS.max(LEAST_SHARE * self.without)
    }

    /// Beside the least effect.
    pub(crate) fn size(self) -> f64 {
        self.by() / self.least()
    }

    fn is_certain(self) -> bool {
        self.without < self.low
    }

    /// The share of the messages that has to be delayed.
    fn needed(self) -> f64 {
        (ROBUST * (1.0 - self.p)).min(HALF)
    }

    /// The size; 0 where the quantile's own uncertainty is larger, or chance may have moved it.
    pub(crate) fn ratio(self) -> f64 {
        let is_robust = self.delayed >= self.needed();
        if self.is_certain() && is_robust {
            self.size()
        } else {
            0.0
        }
    }

    pub(crate) fn in_words(self) -> String {
        let (p, without, with) = (self.p * 100.0, millis(self.without), millis(self.with));
        format!("p{p:.0} from {without} to {with}")
    }

    /// Why this is told as no cause, in a sentence.
    pub(crate) fn why_no_cause(self) -> String {
        if self.size() < 1.0 {
            return format!("It is called a cause from {} on.", millis(self.least()));
        }
        if !self.is_certain() {
            return format!(
                "It is not called a cause, because it is within the quantile's own uncertainty: its 95 % interval begins at {}.",
                millis(self.low)
            );
        }
        format!(
            "It is not called a cause, because so few may be hit by chance: {} of that scenario's messages, where {} are asked for.",
            percent(self.delayed),
            percent(self.needed())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cause_says_which_of_the_three_conditions_it_does_not_meet() {
        let far = Moved {
            p: 0.5,
            with: 2.7,
            without: 1.2,
            low: 2.32,
            delayed: 0.6,
        };
        assert!(far.ratio() >= 1.0);
        let few = Moved {
            delayed: 0.34,
            ..far
        };
        let little = Moved {
            without: 1.79,
            ..far
        };
        let uncertain = Moved { low: 1.1, ..far };
        for (moved, words) in [
            (few, "34 % of that scenario's messages, where 50 % are"),
            (little, "a cause from 1.00 ms on"),
            (uncertain, "its 95 % interval begins at 1.10 ms"),
        ] {
            let told = moved.why_no_cause();
            assert!(moved.ratio() < 1.0 && told.contains(words), "{told}");
        }
    }
}
