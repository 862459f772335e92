//! Lifetimes, some of which had not ended at their last observation.
//!
//! The product-limit estimate of Kaplan and Meier (1958), with Greenwood's variance. The interval uses the
//! scale of log(-log S) (Kalbfleisch and Prentice), so it stays inside 0..=1.

use crate::casts::usize_to_f64;
use crate::distribution::normal_quantile;
use crate::error::StatsError;
use crate::interval::{ALPHA, ConfidenceInterval};
use crate::sorted::refuse_fewer;

/// A lifetime, and whether its end was observed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lifetime {
    /// It ended after this long.
    Ended(f64),
    /// It had not ended after this long, at its last observation.
    Lasting(f64),
}

impl Lifetime {
    fn length(self) -> f64 {
        match self {
            Self::Ended(length) | Self::Lasting(length) => length,
        }
    }
}

/// The estimate from one end on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurvivalStep {
    /// The time of the end, in the unit of the lifetimes.
    pub at: f64,
    /// How many had lasted until then and were under observation.
    pub at_risk: usize,
    /// How many ended there.
    pub ended: usize,
    /// The share that lasts longer, 0..=1.
    pub survival: f64,
    /// Greenwood's standard error of the share; 0 once none is left.
    pub error: f64,
}

/// A survival curve: a step for each time at which one ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Survival {
    steps: Vec<SurvivalStep>,
    n: usize,
    observed: f64,
}

impl Survival {
    /// The steps by time.
    pub fn steps(&self) -> &[SurvivalStep] {
        &self.steps
    }

    /// Number of lifetimes.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The longest observation: the curve is undefined beyond.
    pub fn observed(&self) -> f64 {
        self.observed
    }

    /// The share that lasts longer than `time`; `None` beyond the longest observation, unless all have ended.
    pub fn at(&self, time: f64) -> Option<f64> {
        let step = self.step(time);
        if time > self.observed && step.is_none_or(|s| s.survival > 0.0) {
            return None;
        }
        Some(step.map_or(1.0, |s| s.survival))
    }

    /// The 95 % confidence interval of the share; `None` where there is no share, or nothing ended before, or
    /// nothing is left.
    pub fn interval(&self, time: f64) -> Option<ConfidenceInterval> {
        self.at(time)?;
        let step = self.step(time)?;
        let log = step.survival.ln();
        if step.survival <= 0.0 || log >= 0.0 {
            return None;
        }
        let reach = normal_quantile(1.0 - 0.5 * ALPHA) * step.error / (step.survival * log).abs();
        Some(ConfidenceInterval {
            low: step.survival.powf(reach.exp()),
            high: step.survival.powf((-reach).exp()),
        })
    }

    /// The time after which a share of at most `share` lasts; `None` if this was never observed.
    pub fn time_until(&self, share: f64) -> Option<f64> {
        self.steps
            .iter()
            .find(|s| s.survival <= share + ROUNDING_ERROR)
            .map(|s| s.at)
    }

    fn step(&self, time: f64) -> Option<&SurvivalStep> {
        let after = self.steps.partition_point(|s| s.at <= time);
        self.steps[..after].last()
    }
}

/// A share is a product of fractions: an exact 1/2 may come out this much too large.
const ROUNDING_ERROR: f64 = 1e-12;

/// The survival curve of `lifetimes`, each 0 or longer. One that was last observed at the moment of another's
/// end counts as at risk there.
///
/// # Errors
/// [`StatsError::TooFew`] without lifetimes; [`StatsError::NotFinite`]; [`StatsError::OutOfRange`] for a
/// negative one.
pub fn survival(lifetimes: &[Lifetime]) -> Result<Survival, StatsError> {
    const WHAT: &str = "lifetime";
    refuse_fewer(WHAT, 1, lifetimes.len())?;
    for (index, life) in lifetimes.iter().enumerate() {
        let value = life.length();
        if !value.is_finite() {
            return Err(StatsError::NotFinite {
                subject: WHAT,
                index,
            });
        }
        if value < 0.0 {
            return Err(StatsError::OutOfRange {
                subject: WHAT,
                value,
                wanted: "0 or above",
            });
        }
    }
    let mut sorted = lifetimes.to_vec();
    sorted.sort_by(|a, b| a.length().total_cmp(&b.length()));
    let n = sorted.len();
    let (mut steps, mut share, mut variance, mut ended_count) = (Vec::new(), 1.0, 0.0, 0);
    for same in sorted.chunk_by(|a, b| a.length() >= b.length()) {
        let ended = same
            .iter()
            .filter(|l| matches!(l, Lifetime::Ended(_)))
            .count();
        let at_risk = n - ended_count;
        ended_count += same.len();
        if ended == 0 {
            continue;
        }
        let remaining = at_risk - ended;
        share *= usize_to_f64(remaining) / usize_to_f64(at_risk);
        if remaining > 0 {
            variance += usize_to_f64(ended) / (usize_to_f64(at_risk) * usize_to_f64(remaining));
        }
        steps.push(SurvivalStep {
            at: same[0].length(),
            at_risk,
            ended,
            survival: share,
            error: share * f64::sqrt(variance),
        });
    }
    let observed = sorted[n - 1].length();
    Ok(Survival { steps, n, observed })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Lifetime::{Ended, Lasting};
    use super::*;

    /// After the 12th of 24 ends a half lasts, in spite of the rounding of 23/24, 22/23 ...
    #[test]
    fn the_median_is_reached_when_half_have_ended() {
        let lifetimes: Vec<Lifetime> = (1..=24).map(|time| Ended(f64::from(time))).collect();
        assert_eq!(survival(&lifetimes).unwrap().time_until(0.5), Some(12.0));
    }

    /// Remission under 6-MP, weeks (Freireich et al. 1963), the textbook case of Kaplan-Meier curves:
    /// `survfit(Surv(weeks, ended) ~ 1)` of R prints these shares and errors.
    #[test]
    fn the_curve_matches_the_textbook_example() {
        let ended = [6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0];
        let lasting = [
            6.0, 9.0, 10.0, 11.0, 17.0, 19.0, 20.0, 25.0, 32.0, 32.0, 34.0, 35.0,
        ];
        let lifetimes: Vec<Lifetime> = ended
            .map(Ended)
            .into_iter()
            .chain(lasting.map(Lasting))
            .collect();
        let curve = survival(&lifetimes).unwrap();
        let wanted = [
            (6.0, 21, 0.857_142_9, 0.076_360_4),
            (7.0, 17, 0.806_722_7, 0.086_935_3),
            (10.0, 15, 0.752_941_2, 0.096_349_7),
            (13.0, 12, 0.690_196_1, 0.106_814_8),
            (16.0, 11, 0.627_451_0, 0.114_053_9),
            (22.0, 7, 0.537_815_1, 0.128_234_4),
            (23.0, 6, 0.448_179_3, 0.134_591_2),
        ];
        assert_eq!(curve.steps().len(), wanted.len());
        for (step, (at, at_risk, share, error)) in curve.steps().iter().zip(wanted) {
            assert_eq!((step.at, step.at_risk), (at, at_risk));
            assert!((step.survival - share).abs() < 1e-6, "{step:?}");
            assert!((step.error - error).abs() < 1e-6, "{step:?}");
        }
        // conf.type = "log-log" at 10 weeks, by hand: 0.753^exp(+-1.96 * 0.0963 / (0.753 * 0.2838)).
        let interval = curve.interval(10.0).unwrap();
        assert!((interval.low - 0.503).abs() < 1e-3, "{interval:?}");
        assert!((interval.high - 0.889).abs() < 1e-3, "{interval:?}");
        assert_eq!(curve.time_until(0.5), Some(23.0));
        assert_eq!((curve.at(5.9), curve.at(36.0)), (Some(1.0), None));
    }

    #[test]
    fn without_censoring_the_curve_is_the_remaining_share() {
        let curve = survival(&[1.0, 2.0, 2.0, 5.0].map(Ended)).unwrap();
        let at = [0.5, 1.0, 2.0, 5.0, 9.0].map(|t| curve.at(t).unwrap());
        assert_eq!(at, [1.0, 0.75, 0.25, 0.0, 0.0]);
        assert_eq!(curve.interval(5.0), None);
    }

    #[test]
    fn inputs_without_a_survival_curve_are_refused() {
        assert!(survival(&[]).is_err());
        assert!(survival(&[Ended(-1.0)]).is_err());
        assert!(survival(&[Lasting(f64::NAN)]).is_err());
    }

    proptest! {
        #[test]
        fn the_curve_never_rises_and_stays_within_its_interval(
            lives in prop::collection::vec((0..50_u8, any::<bool>()), 1..60),
        ) {
            let lives: Vec<Lifetime> = lives
                .into_iter()
                .map(|(t, ended)| if ended { Ended(t.into()) } else { Lasting(t.into()) })
                .collect();
            let curve = survival(&lives).unwrap();
            let shares: Vec<f64> = curve.steps().iter().map(|s| s.survival).collect();
            prop_assert!(shares.windows(2).all(|w| w[1] < w[0]));
            for step in curve.steps() {
                if let Some(interval) = curve.interval(step.at) {
                    prop_assert!(interval.contains(step.survival));
                    prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
                }
            }
        }
    }
}
