//! A summary of values that arrive one by one: exact for few values, in bounded memory beyond.
//!
//! Owns that choice, and reports it. n, mean, standard deviation, least and greatest value are always exact.
//! Quantiles are exact up to [`RunningSummary::EXACT`] values and within one part in 512 beyond. Nothing is
//! sampled, so values and losses have one population.

use crate::casts::usize_to_f64;
use crate::error::StatsError;
use crate::histogram::Histogram;
use crate::quantile::{Quantile, Ranked, quantile_of};
use crate::sorted::{Sorted, refuse_not_finite};

/// The summary of a stream of values, in their own unit.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningSummary {
    values: Values,
    n: usize,
    mean: f64,
    /// Sum of squared deviations from the mean (Welford 1962).
    squares: f64,
    min: f64,
    max: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    All(Vec<f64>),
    Counted(Histogram),
}

impl Default for RunningSummary {
    fn default() -> Self {
        Self::new()
    }
}

/// A histogram with its exact ends.
struct BoundedHistogram<'a> {
    histogram: &'a Histogram,
    n: usize,
    min: f64,
    max: f64,
}

impl Ranked for BoundedHistogram<'_> {
    fn len(&self) -> usize {
        self.n
    }

    fn at(&self, index: usize) -> Option<f64> {
        if index == 0 || index + 1 == self.n {
            return Some(if index == 0 { self.min } else { self.max });
        }
        let value = self.histogram.of_rank(index as u128 + 1)?;
        Some(of_whole(value).clamp(self.min, self.max))
    }
}

impl RunningSummary {
    /// Up to this many values are kept unchanged: 1.6 MB.
    pub const EXACT: usize = 200_000;

    /// Without values.
    pub const fn new() -> Self {
        Self {
            values: Values::All(Vec::new()),
            n: 0,
            mean: 0.0,
            squares: 0.0,
            min: 0.0,
            max: 0.0,
        }
    }

    /// Adds a value. Negative ones count as 0 in quantiles once values are no longer kept.
    ///
    /// # Errors
    /// [`StatsError::NotFinite`] for a NaN or an infinity.
    pub fn add(&mut self, value: f64) -> Result<(), StatsError> {
        refuse_not_finite("sample", &[value])?;
        if self.n == 0 {
            (self.min, self.max) = (value, value);
        }
        self.n += 1;
        let from = value - self.mean;
        self.mean += from / usize_to_f64(self.n);
        self.squares += from * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        match &mut self.values {
            Values::All(values) if values.len() < Self::EXACT => values.push(value),
            Values::All(values) => {
                let mut histogram = counted(values);
                histogram.add(to_whole(value));
                self.values = Values::Counted(histogram);
            }
            Values::Counted(histogram) => histogram.add(to_whole(value)),
        }
        Ok(())
    }

    /// Adds all values of `other`. The result does not depend on the order of merging, except for rounding in
    /// mean and standard deviation.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            self.clone_from(other);
            return;
        }
        let (own_count, other_count) = (usize_to_f64(self.n), usize_to_f64(other.n));
        let apart = other.mean - self.mean;
        self.squares +=
            other.squares + apart * apart * own_count * other_count / (own_count + other_count);
        self.mean += apart * other_count / (own_count + other_count);
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        match (&mut self.values, &other.values) {
            (Values::All(values), Values::All(more))
                if values.len() + more.len() <= Self::EXACT =>
            {
                values.extend_from_slice(more);
            }
            (values, more) => {
                let mut counted = values.counted();
                counted.merge(&more.counted());
                *values = Values::Counted(counted);
            }
        }
    }

    /// Number of values.
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Whether quantiles are exact; else they are within one part in 512.
    pub const fn is_exact(&self) -> bool {
        matches!(self.values, Values::All(_))
    }

    /// Arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// Standard deviation with divisor n - 1; `None` below two values.
    pub fn sd(&self) -> Option<f64> {
        (self.n > 1).then(|| (self.squares / usize_to_f64(self.n - 1)).sqrt())
    }

    /// The least value, exactly.
    pub fn min(&self) -> Option<f64> {
        (self.n > 0).then_some(self.min)
    }

    /// The greatest value, exactly.
    pub fn max(&self) -> Option<f64> {
        (self.n > 0).then_some(self.max)
    }

    /// The sum of all values.
    pub fn sum(&self) -> f64 {
        self.mean * usize_to_f64(self.n)
    }

    /// The quantiles `levels` of the values and of `above` further messages without a value, which rank above
    /// all values.
    ///
    /// # Errors
    /// For each as [`crate::quantile()`].
    ///
    /// # Panics
    /// Never: every value was finite when it was added.
    pub fn quantiles<const N: usize>(
        &self,
        above: usize,
        levels: [f64; N],
    ) -> [Result<Quantile, StatsError>; N] {
        match &self.values {
            Values::All(values) => {
                let mut values = values.clone();
                let sorted = Sorted::sort(&mut values).expect("each was checked to be finite");
                levels.map(|p| quantile_of(&sorted, above, p))
            }
            Values::Counted(histogram) => {
                let counted = BoundedHistogram {
                    histogram,
                    n: self.n,
                    min: self.min,
                    max: self.max,
                };
                levels.map(|p| quantile_of(&counted, above, p))
            }
        }
    }
}

impl Values {
    fn counted(&self) -> Histogram {
        match self {
            Self::All(values) => counted(values),
            Self::Counted(histogram) => histogram.clone(),
        }
    }
}

fn counted(values: &[f64]) -> Histogram {
    let mut histogram = Histogram::default();
    for value in values {
        histogram.add(to_whole(*value));
    }
    histogram
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "negative values count as 0, and no latency in nanoseconds reaches 2^64"
)]
fn to_whole(value: f64) -> u64 {
    value.round().max(0.0) as u64
}

#[expect(clippy::cast_precision_loss, reason = "within one part in 512 already")]
fn of_whole(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{describe, quantile};

    fn of(values: &[f64]) -> RunningSummary {
        let mut summary = RunningSummary::default();
        for value in values {
            summary.add(*value).expect("finite");
        }
        summary
    }

    /// As in the issue: 3,000,000 messages, 0.5 % of them dropped.
    #[test]
    fn losses_and_values_count_in_one_population_at_any_size() {
        let mut summary = RunningSummary::default();
        for number in 0..2_985_000_u32 {
            // 10 us to 20 us, all equally often.
            summary
                .add(10_000.0 + f64::from(number % 10_000))
                .expect("finite");
        }
        summary.add(7.0).expect("finite");
        summary.add(9_000_000.0).expect("finite");
        assert!(!summary.is_exact());
        assert_eq!(
            (summary.min(), summary.max()),
            (Some(7.0), Some(9_000_000.0))
        );
        let [p50, p99, p999] = summary.quantiles(15_000, [0.5, 0.99, 0.999]);
        let at =
            |quantile: Result<Quantile, StatsError>| quantile.expect("enough").value().number();
        let near = |value: Option<f64>, truth: f64| {
            let value = value.expect("no lost message decides it");
            assert!(
                (value / truth - 1.0).abs() < 1.0 / 512.0,
                "{value} for {truth}"
            );
        };
        near(at(p50), 10_000.0 + 10_000.0 * 0.5 / 0.995);
        near(at(p99), 10_000.0 + 10_000.0 * 0.99 / 0.995);
        assert_eq!(at(p999), None, "0.5 % are lost");
    }

    #[test]
    fn a_nan_is_refused_and_not_counted() {
        let mut summary = of(&[1.0]);
        assert!(summary.add(f64::NAN).is_err());
        assert_eq!((summary.n(), summary.mean()), (1, Some(1.0)));
        assert_eq!(RunningSummary::default().mean(), None);
    }

    proptest! {
        #[test]
        fn a_summary_of_few_values_equals_their_exact_description(
            values in prop::collection::vec(0.0..1e9_f64, 1..200),
            above in 0_usize..50,
        ) {
            let summary = of(&values);
            let mut sorted = values.clone();
            let sorted = Sorted::sort(&mut sorted).expect("finite");
            let described = describe(sorted).expect("one at least");
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
            prop_assert!(near(summary.mean().expect("some"), described.mean));
            prop_assert_eq!(summary.sd().is_some(), described.sd.is_some());
            if let (Some(summary_sd), Some(described_sd)) = (summary.sd(), described.sd) {
                prop_assert!((summary_sd - described_sd).abs() <= 1e-6 * described_sd.max(1.0));
            }
            prop_assert_eq!(summary.min(), Some(described.five.min));
            let [p50] = summary.quantiles(above, [0.5]);
            prop_assert_eq!(p50.ok(), quantile(sorted, above, 0.5).ok());
        }

        #[test]
        fn merged_summaries_equal_the_summary_of_one_stream(
            values in prop::collection::vec(1.0..1e6_f64, 2..300),
            cut in 0_usize..300,
        ) {
            let (first, second) = values.split_at(cut.min(values.len()));
            let mut merged = of(first);
            merged.merge(&of(second));
            let complete = of(&values);
            prop_assert_eq!((merged.n(), merged.min(), merged.max()), (complete.n(), complete.min(), complete.max()));
            prop_assert_eq!(merged.quantiles(3, [0.5])[0].ok(), complete.quantiles(3, [0.5])[0].ok());
            prop_assert!((merged.mean().expect("some") - complete.mean().expect("some")).abs() < 1e-6);
            prop_assert!((merged.sd().expect("two") - complete.sd().expect("two")).abs() < 1e-3);
        }
    }
}
