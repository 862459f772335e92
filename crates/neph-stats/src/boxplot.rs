//! The numbers a box plot is drawn from. Owns quartiles, whiskers and outliers; draws nothing.

use std::ops::RangeInclusive;

use crate::describe::five_numbers;
use crate::error::StatsError;
use crate::quantile::plain_quantile;
use crate::sorted::{Sorted, refuse_fewer};

/// How far the whiskers reach. Both kinds end at the outermost value inside their limits, so that a
/// whisker never ends where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Whiskers {
    /// Limits lie this many interquartile ranges beyond the box; Tukey's is 1.5.
    Ranges(f64),
    /// Limits are two percentiles.
    Percentiles {
        /// Share below the lower whisker, 0..=0.25.
        low: f64,
        /// Share below the upper whisker, 0.75..=1.
        high: f64,
    },
}

impl Whiskers {
    /// 1.5 interquartile ranges.
    pub const TUKEY: Self = Self::Ranges(1.5);
}

/// The values beyond one whisker.
#[derive(Debug, Clone, PartialEq)]
pub struct Outliers {
    /// How many there are.
    pub count: usize,
    /// The outermost ones, the farthest first, at most as many as were requested.
    pub farthest: Vec<f64>,
}

/// Quartiles, whisker ends and outliers of a sample, in its own unit.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxPlot {
    /// How many values.
    pub n: usize,
    /// First quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub q3: f64,
    /// End of the lower whisker, at most `q1`.
    pub whisker_low: f64,
    /// End of the upper whisker, at least `q3`.
    pub whisker_high: f64,
    /// What lies below the lower whisker.
    pub below: Outliers,
    /// What lies above the upper whisker.
    pub above: Outliers,
}

/// The box plot of a sample. At most `listed` outliers are listed on each side; all are counted.
///
/// # Errors
/// [`StatsError::TooFew`] for fewer than 5 values, which are better shown one by one;
/// [`StatsError::OutOfRange`] for whiskers that would end inside the box.
pub fn boxplot(
    sample: Sorted<'_>,
    whiskers: Whiskers,
    listed: usize,
) -> Result<BoxPlot, StatsError> {
    refuse_fewer("box plot", 5, sample.len())?;
    let five = five_numbers(sample);
    let (floor, ceiling) = match whiskers {
        Whiskers::Ranges(ranges) => {
            refuse_outside("whisker length", ranges, 0.0..=f64::MAX, "0 or more")?;
            let reach = ranges * (five.q3 - five.q1);
            (five.q1 - reach, five.q3 + reach)
        }
        Whiskers::Percentiles { low, high } => {
            refuse_outside("lower whisker", low, 0.0..=0.25, "from 0 to 0.25")?;
            refuse_outside("upper whisker", high, 0.75..=1.0, "from 0.75 to 1")?;
            (plain_quantile(sample, low), plain_quantile(sample, high))
        }
    };
    let values = sample.values();
    let first = values.partition_point(|&v| v < floor);
    let end = sample.count_up_to(ceiling);
    Ok(BoxPlot {
        n: values.len(),
        q1: five.q1,
        median: five.median,
        q3: five.q3,
        // A quartile is interpolated: the outermost value inside the limit can lie inside the box.
        whisker_low: values.get(first).map_or(five.q1, |v| v.min(five.q1)),
        whisker_high: values[..end].last().map_or(five.q3, |v| v.max(five.q3)),
        below: Outliers {
            count: first,
            farthest: values[..first].iter().take(listed).copied().collect(),
        },
        above: Outliers {
            count: values.len() - end,
            farthest: values[end..].iter().rev().take(listed).copied().collect(),
        },
    })
}

fn refuse_outside(
    subject: &'static str,
    value: f64,
    range: RangeInclusive<f64>,
    wanted: &'static str,
) -> Result<(), StatsError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(StatsError::OutOfRange {
            subject,
            value,
            wanted,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whiskers_end_at_values_and_outliers_are_counted() {
        let values = [-50.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 90.0, 100.0, 110.0];
        let b = boxplot(Sorted::check(&values).unwrap(), Whiskers::TUKEY, 2).unwrap();
        assert_eq!((b.q1, b.median, b.q3), (2.5, 5.0, 48.5));
        assert_eq!((b.whisker_low, b.whisker_high), (-50.0, 110.0));
        let b = boxplot(Sorted::check(&values).unwrap(), Whiskers::Ranges(0.5), 2).unwrap();
        assert_eq!((b.whisker_low, b.whisker_high), (1.0, 48.5));
        assert_eq!(
            b.below,
            Outliers {
                count: 1,
                farthest: vec![-50.0]
            }
        );
        assert_eq!(
            b.above,
            Outliers {
                count: 3,
                farthest: vec![110.0, 100.0]
            }
        );
    }

    #[test]
    fn percentile_whiskers_that_end_in_the_box_are_refused() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let sample = Sorted::check(&values).unwrap();
        let whiskers = Whiskers::Percentiles {
            low: 0.01,
            high: 0.99,
        };
        let b = boxplot(sample, whiskers, 9).unwrap();
        assert_eq!(
            (b.whisker_low, b.whisker_high, b.above.count),
            (1.0, 98.0, 1)
        );
        let wrong = Whiskers::Percentiles {
            low: 0.3,
            high: 0.99,
        };
        assert!(matches!(
            boxplot(sample, wrong, 9),
            Err(StatsError::OutOfRange { .. })
        ));
    }

    proptest! {
        #[test]
        fn every_value_is_within_the_whiskers_or_counted_as_outlier(
            mut values in prop::collection::vec(-1e6..1e6_f64, 5..200), ranges in 0.0..3.0_f64,
        ) {
            let sample = Sorted::sort(&mut values).unwrap();
            let b = boxplot(sample, Whiskers::Ranges(ranges), 3).unwrap();
            let inside = sample.values().iter()
                .filter(|&&v| b.whisker_low <= v && v <= b.whisker_high).count();
            prop_assert_eq!(inside + b.below.count + b.above.count, b.n);
            prop_assert!(b.whisker_low <= b.q1 && b.q3 <= b.whisker_high);
        }
    }
}
