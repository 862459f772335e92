//! The description of a sample: n, mean, standard deviation, five numbers. It covers the replies only; show
//! it together with the loss.

use crate::casts::usize_to_f64;
use crate::distribution::student_quantile;
use crate::error::StatsError;
use crate::interval::{ALPHA, ConfidenceInterval};
use crate::quantile::plain_quantile;
use crate::sorted::{Sorted, refuse_fewer};

/// Tukey's five numbers; the quartiles are type 7, as in [`crate::quantile()`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FiveNumbers {
    /// Smallest value.
    pub min: f64,
    /// First quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub q3: f64,
    /// Largest value.
    pub max: f64,
}

/// The description of a sample, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Description {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with divisor n - 1; absent for one value.
    pub sd: Option<f64>,
    /// 95 % confidence interval of the mean by Student's t; absent for one value. It assumes independent
    /// values.
    pub mean_interval: Option<ConfidenceInterval>,
    /// Minimum, quartiles, maximum.
    pub five: FiveNumbers,
}

/// Describes a sample.
///
/// # Errors
/// [`StatsError::TooFew`] for an empty sample.
pub fn describe(sample: Sorted<'_>) -> Result<Description, StatsError> {
    refuse_fewer("description", 1, sample.len())?;
    let n = sample.len();
    let mean = mean(sample.values());
    let sd = (n > 1).then(|| (squares(sample.values(), mean) / usize_to_f64(n - 1)).sqrt());
    let mean_interval = sd.map(|sd| {
        let reach =
            student_quantile(1.0 - 0.5 * ALPHA, usize_to_f64(n - 1)) * sd / usize_to_f64(n).sqrt();
        ConfidenceInterval {
            low: mean - reach,
            high: mean + reach,
        }
    });
    Ok(Description {
        n,
        mean,
        sd,
        mean_interval,
        five: five_numbers(sample),
    })
}

/// `sample` must not be empty.
pub(crate) fn five_numbers(sample: Sorted<'_>) -> FiveNumbers {
    let [min, q1, median, q3, max] = [0.0, 0.25, 0.5, 0.75, 1.0].map(|p| plain_quantile(sample, p));
    FiveNumbers {
        min,
        q1,
        median,
        q3,
        max,
    }
}

/// The mean of a slice that is not empty. A second pass removes the rounding error of the first, and
/// deviations keep the sum of very large values from overflowing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    let n = usize_to_f64(values.len());
    let first = values.iter().map(|v| v / n).sum::<f64>();
    first + values.iter().map(|v| (v - first) / n).sum::<f64>()
}

/// Sum of squared deviations from the mean, corrected for the mean's own rounding.
fn squares(values: &[f64], mean: f64) -> f64 {
    let sum: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let residual: f64 = values.iter().map(|v| v - mean).sum();
    (sum - residual * residual / usize_to_f64(values.len())).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_spread() {
        let d = describe(Sorted::check(&[4.5]).unwrap()).unwrap();
        assert_eq!((d.n, d.sd, d.mean_interval), (1, None, None));
        assert_eq!((d.five.min, d.five.median, d.five.max), (4.5, 4.5, 4.5));
        let empty = describe(Sorted::check(&[]).unwrap());
        assert_eq!(
            empty,
            Err(StatsError::TooFew {
                subject: "description",
                need: 1,
                have: 0
            })
        );
    }

    /// Timestamps since 1970 have a spread of 1e-18 of their square; the textbook formula gives 0.
    #[test]
    fn the_standard_deviation_is_exact_for_large_offsets() {
        let mut values: Vec<f64> = (0..1000).map(|i| 1.7e15 + f64::from(i % 5)).collect();
        let d = describe(Sorted::sort(&mut values).unwrap()).unwrap();
        assert!((d.mean - 1.7e15 - 2.0).abs() < 0.26, "{}", d.mean);
        assert!((d.sd.unwrap() - (2.0_f64 * 1000.0 / 999.0).sqrt()).abs() < 1e-9);
    }
}
