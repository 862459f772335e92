//! A share of messages, such as the lost ones, with Wilson's interval.

use crate::casts::usize_to_f64;
use crate::distribution::normal_quantile;
use crate::error::StatsError;
use crate::interval::{ALPHA, ConfidenceInterval};

/// A share with its 95 % confidence interval and its n. Only [`proportion`] creates it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proportion {
    hits: usize,
    n: usize,
    interval: ConfidenceInterval,
}

impl Proportion {
    /// How many of the n, for example how many were lost.
    pub fn hits(&self) -> usize {
        self.hits
    }

    /// The number of messages.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The share, 0..=1.
    pub fn share(&self) -> f64 {
        usize_to_f64(self.hits) / usize_to_f64(self.n)
    }

    /// Wilson's 95 % confidence interval, inside 0..=1. With no hit among n its upper end is about 3.84 / n:
    /// no observed loss does not mean no loss.
    pub fn interval(&self) -> ConfidenceInterval {
        self.interval
    }
}

/// The share `hits` of `n`, with Wilson's score interval (1927), without continuity correction.
///
/// # Errors
/// [`StatsError::TooFew`] when n is 0 or smaller than `hits`.
pub fn proportion(hits: usize, n: usize) -> Result<Proportion, StatsError> {
    if n == 0 || hits > n {
        return Err(StatsError::TooFew {
            subject: "proportion",
            need: hits.max(1),
            have: n,
        });
    }
    let interval = share_interval(usize_to_f64(hits) / usize_to_f64(n), usize_to_f64(n))?;
    Ok(Proportion { hits, n, interval })
}

/// Wilson's 95 % confidence interval of a share from `n` independent cases, which need not be a whole number:
/// cases that happen together count as fewer.
///
/// # Errors
/// [`StatsError::OutOfRange`] unless the share is within 0..=1 and `n` above 0.
pub fn share_interval(share: f64, n: f64) -> Result<ConfidenceInterval, StatsError> {
    let refuse = |subject, value, wanted| {
        Err(StatsError::OutOfRange {
            subject,
            value,
            wanted,
        })
    };
    if !(0.0..=1.0).contains(&share) {
        return refuse("share", share, "from 0 to 1");
    }
    if !(n.is_finite() && n > 0.0) {
        return refuse("number of cases", n, "above 0");
    }
    let z = normal_quantile(1.0 - 0.5 * ALPHA);
    let spread = z * z / n;
    let centre = (share + 0.5 * spread) / (1.0 + spread);
    let reach = z * (share * (1.0 - share) / n + 0.25 * spread / n).sqrt() / (1.0 + spread);
    // At 0 and 1 the formula gives exactly these, except for rounding.
    let low = if share <= 0.0 {
        0.0
    } else {
        (centre - reach).max(0.0)
    };
    let high = if share >= 1.0 {
        1.0
    } else {
        (centre + reach).min(1.0)
    };
    Ok(ConfidenceInterval { low, high })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of n cases that all agree Wilson's lower end is n / (n + z^2), also of 2.5 cases.
    #[test]
    fn a_share_of_a_fractional_number_of_cases_has_an_interval() {
        let interval = share_interval(1.0, 2.5).unwrap();
        assert!(
            (interval.low - 2.5 / (2.5 + 3.841_459)).abs() < 1e-6,
            "{interval:?}"
        );
        assert!((interval.high - 1.0).abs() < 1e-12);
        let (few, many) = (
            share_interval(0.4, 3.0).unwrap(),
            share_interval(0.4, 30.0).unwrap(),
        );
        assert!(few.low < many.low && many.high < few.high);
        assert!(share_interval(1.1, 3.0).is_err() && share_interval(0.5, 0.0).is_err());
    }

    #[test]
    fn zero_losses_have_an_upper_bound_above_zero() {
        let p = proportion(0, 1000).unwrap();
        assert_eq!((p.share(), p.interval().low), (0.0, 0.0));
        assert!(
            (p.interval().high - 0.003_826_8).abs() < 1e-6,
            "{:?}",
            p.interval()
        );
        assert!(proportion(0, 0).is_err() && proportion(3, 2).is_err());
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_share_and_is_symmetric(n in 1..5000_usize, part in 0.0..=1.0_f64) {
            let hits = crate::casts::to_usize(part * usize_to_f64(n)).min(n);
            let (p, other) = (proportion(hits, n).unwrap(), proportion(n - hits, n).unwrap());
            prop_assert!(p.interval().contains(p.share()));
            prop_assert!((p.interval().low + other.interval().high - 1.0).abs() < 1e-12);
        }
    }
}
