//! Tails and quantiles of the normal, Student's t, chi-square and binomial distributions.
//!
//! Upper tails are computed as such, not as 1 minus the lower one, so that small p values keep
//! their digits. The functions behind them are in `special.rs`.

use std::f64::consts::TAU;

use crate::casts::usize_to_f64;
use crate::special::{incomplete_beta, incomplete_gamma_above};

/// P(Z > z) of the standard normal distribution.
pub fn normal_above(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_above(-z);
    }
    0.5 * incomplete_gamma_above(0.5, 0.5 * z * z)
}

/// The z that a share `p` of the standard normal distribution lies below; infinite at 0 and 1.
///
/// Starts from Abramowitz and Stegun 26.2.23 (good to 4.5e-4) and takes Halley steps, each of which
/// triples the digits.
pub fn normal_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p);
    if tail <= 0.0 {
        return if p > 0.5 {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
    }
    if tail >= 0.5 {
        return 0.0;
    }
    let t = (-2.0 * tail.ln()).sqrt();
    let mut z = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..3 {
        let density = (-0.5 * z * z).exp() / TAU.sqrt();
        let step = (normal_above(z) - tail) / density;
        z += step / (1.0 - 0.5 * step * z);
    }
    if p < 0.5 { -z } else { z }
}

/// P(T > t) of Student's t distribution with `freedom` > 0 degrees of freedom.
pub fn student_above(t: f64, freedom: f64) -> f64 {
    let square = t * t;
    if square.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    let (x, y) = (freedom / (freedom + square), square / (freedom + square));
    let tail = 0.5 * incomplete_beta(0.5 * freedom, 0.5, x, y);
    if t < 0.0 { 1.0 - tail } else { tail }
}

/// The t that a share `p` of Student's t distribution lies below; infinite at 0 and 1.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let tail = p.min(1.0 - p);
    let sign = if p < 0.5 { -1.0 } else { 1.0 };
    if tail <= 0.0 {
        return sign * f64::INFINITY;
    }
    sign * falls_to(tail, |t| student_above(t, freedom))
}

/// Where a chance that falls from 0 on reaches `tail`, which is above 0.
fn falls_to(tail: f64, above: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while above(high) > tail {
        low = high;
        high *= 2.0;
    }
    // Halving ends when no float lies between the two, after at most about 60 steps.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return high;
        }
        if above(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// P(X > x) of the chi-square distribution with `freedom` > 0 degrees of freedom.
pub fn chi_square_above(x: f64, freedom: f64) -> f64 {
    incomplete_gamma_above(0.5 * freedom, 0.5 * x)
}

/// The x that a share `p` of the chi-square distribution lies below, 0 < p < 1.
pub(crate) fn chi_square_quantile(p: f64, freedom: f64) -> f64 {
    falls_to(1.0 - p, |x| chi_square_above(x, freedom))
}

/// P(K <= k) for K successes in `n` trials of probability `p`.
pub fn binomial_up_to(k: usize, n: usize, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    incomplete_beta(usize_to_f64(n - k), usize_to_f64(k + 1), 1.0 - p, p)
}

/// P(K > k) for K successes in `n` trials of probability `p`.
pub fn binomial_above(k: usize, n: usize, p: f64) -> f64 {
    if k >= n {
        return 0.0;
    }
    incomplete_beta(usize_to_f64(k + 1), usize_to_f64(n - k), p, 1.0 - p)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_binomial_probabilities_equal_their_sum() {
        let (n, p) = (12_usize, 0.3_f64);
        let mut sum = 0.0;
        let mut ways = 1.0;
        for k in 0..=n {
            sum += ways * p.powf(usize_to_f64(k)) * (1.0 - p).powf(usize_to_f64(n - k));
            assert!((binomial_up_to(k, n, p) - sum).abs() < 1e-14);
            ways *= usize_to_f64(n - k) / usize_to_f64(k + 1);
        }
    }

    /// Tables of the chi-square distribution.
    #[test]
    fn chi_square_quantiles_match_published_tables() {
        for (p, freedom, wanted) in [
            (0.05, 5.0, 1.1455),
            (0.05, 11.0, 4.5748),
            (0.95, 1.0, 3.8415),
        ] {
            assert!((chi_square_quantile(p, freedom) - wanted).abs() < 5e-5);
        }
    }

    proptest! {
        #[test]
        fn the_normal_quantile_inverts_the_tail(p in 1e-12..1.0_f64) {
            let back = 1.0 - normal_above(normal_quantile(p));
            prop_assert!((back - p).abs() < 1e-14);
        }

        #[test]
        fn the_student_quantile_inverts_the_tail(p in 1e-6..0.5_f64, freedom in 1.0..500.0_f64) {
            let back = student_above(-student_quantile(p, freedom), freedom);
            prop_assert!((back / p - 1.0).abs() < 1e-11);
        }

        #[test]
        fn the_chi_square_quantile_inverts_the_tail(p in 1e-6..0.999_f64, freedom in 1.0..500.0_f64) {
            let back = 1.0 - chi_square_above(chi_square_quantile(p, freedom), freedom);
            prop_assert!((back - p).abs() < 1e-9);
        }

        #[test]
        fn both_binomial_tails_add_up_to_one(
            n in 1..100_000_usize, share in 0.0..1.0_f64, p in 0.001..0.999_f64,
        ) {
            let k = crate::casts::to_usize(share * usize_to_f64(n));
            prop_assert!((binomial_up_to(k, n, p) + binomial_above(k, n, p) - 1.0).abs() < 1e-12);
        }
    }
}
