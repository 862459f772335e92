//! What an alarm is about: which times, which of their quantiles, and for how long.

use crate::Span;

/// Times whose quantile must not exceed a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule<S> {
    /// As it was typed.
    pub text: String,
    /// Which times.
    pub subject: S,
    /// More than this is too long.
    pub limit: Span,
    /// At most this is well again; not more than `limit`.
    pub clear_limit: Span,
    /// Which of the times counts.
    pub quantile: Quantile,
    /// For how long one or the other.
    pub hold_duration: Span,
}

/// A quantile by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile {
    /// As it is typed: `p99`.
    pub name: &'static str,
    /// How many of 10,000 are at most as large.
    of_10_000: u16,
    /// Times that it needs, as everywhere in Nephoscope.
    pub needs: u64,
}

const fn quantile(name: &'static str, of_10_000: u16, needs: u64) -> Quantile {
    Quantile {
        name,
        of_10_000,
        needs,
    }
}

impl Quantile {
    /// The 99th percentile.
    pub const P99: Self = quantile("p99", 9_900, 299);
    /// All that a rule may name.
    pub const ALL: [Self; 5] = [
        quantile("p50", 5_000, 6),
        quantile("p90", 9_000, 29),
        quantile("p95", 9_500, 59),
        Self::P99,
        quantile("p99.9", 9_990, 2_995),
    ];

    /// The one that is typed so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name == name)
    }

    /// The share of the times that are at most as large.
    pub fn share(self) -> f64 {
        f64::from(self.of_10_000) / 10_000.0
    }

    /// Whether it exceeds a limit that `above_limit` of `n` times exceed.
    pub(super) fn exceeds(self, above_limit: u64, n: u64) -> bool {
        let rank = (u128::from(n) * u128::from(self.of_10_000)).div_ceil(10_000);
        u128::from(n - above_limit) < rank
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counting_longer_values_equals_the_nearest_rank_quantile(
            mut numbers in prop::collection::vec(0_u64..20, 1..400),
            limit in 0_u64..20,
            which in 0_usize..5,
        ) {
            numbers.sort_unstable();
            let quantile = Quantile::ALL[which];
            let n = numbers.len() as u64;
            let rank = (n * u64::from(quantile.of_10_000)).div_ceil(10_000).max(1);
            let exact = numbers[usize::try_from(rank - 1).expect("small")];
            let above_limit = numbers.iter().filter(|number| **number > limit).count() as u64;
            prop_assert_eq!(quantile.exceeds(above_limit, n), exact > limit);
        }
    }
}
