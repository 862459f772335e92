//! The confidence of a diagnosis: a level, with its reason.

use schemars::JsonSchema;
use serde::Serialize;

use crate::text::{plural, to_f64};

/// A level of confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Observed once, or barely beyond the rule's threshold.
    Possible,
    /// Observed in most places where it is observable.
    Likely,
    /// Observed repeatedly and far beyond the threshold, or proved by timestamps.
    Sure,
}

impl Level {
    /// One level less, if there is contrary evidence.
    pub(crate) const fn one_lower(self) -> Self {
        match self {
            Self::Sure => Self::Likely,
            Self::Likely | Self::Possible => Self::Possible,
        }
    }

    /// The word on screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Sure => "sure",
        }
    }
}

/// The confidence of a diagnosis, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Confidence {
    /// Level of confidence: `possible`, `likely` or `sure`.
    pub level: Level,
    /// Reason for the level of confidence.
    pub why: String,
}

/// In how many of the places where a mechanism can be seen it was, and how far beyond its
/// threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Agreement<'n> {
    /// Of what there are so many: `experiment`, `message`.
    pub(crate) noun: &'n str,
    pub(crate) observed: usize,
    pub(crate) total: usize,
    /// The effect over the rule's threshold; 1 is just enough.
    pub(crate) ratio: f64,
}

impl Agreement<'_> {
    /// One place proves little; a mechanism shows wherever it is at work.
    const SURE_FROM: usize = 3;
    /// Of ten places one may have been disturbed.
    const SURE_SHARE: f64 = 0.9;
    const LIKELY_SHARE: f64 = 0.75;
    /// Twice the threshold is no matter of the threshold any more.
    const SURE_RATIO: f64 = 2.0;

    pub(crate) fn confidence(self) -> Confidence {
        let share = to_f64(self.observed) / to_f64(self.total.max(1));
        let is_above_sure_ratio = self.ratio >= Self::SURE_RATIO;
        let level =
            if share >= Self::SURE_SHARE && self.total >= Self::SURE_FROM && is_above_sure_ratio {
                Level::Sure
            } else if share >= Self::LIKELY_SHARE && (self.total > 1 || is_above_sure_ratio) {
                Level::Likely
            } else {
                Level::Possible
            };
        let why = format!(
            "observed in {} of {}; the effect is {:.1} times the threshold of this rule",
            self.observed,
            plural(self.total, self.noun),
            self.ratio.min(999.0)
        );
        Confidence { level, why }
    }
}

impl Confidence {
    pub(crate) fn new(level: Level, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { level, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_sure_requires_several_observations_and_a_large_effect() {
        let level = |observed, total, ratio| {
            let noun = "experiment";
            let agreement = Agreement {
                noun,
                observed,
                total,
                ratio,
            };
            agreement.confidence().level
        };
        assert_eq!(level(6, 6, 4.0), Level::Sure);
        assert_eq!(level(6, 6, 1.2), Level::Likely);
        assert_eq!(level(1, 1, 9.0), Level::Likely);
        assert_eq!(level(1, 1, 1.1), Level::Possible);
        assert_eq!(level(3, 6, 9.0), Level::Possible);
    }
}
