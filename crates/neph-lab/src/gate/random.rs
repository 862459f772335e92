//! What a gate leaves to chance: a seeded generator and a hash, the same in every run.

use neph_model::Span;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::Share;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A uniform number.
    pub(super) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws `true` with probability `share`. Draws nothing if the share is 0, so that
    /// a feature that is not used does not change what the others draw.
    pub(super) fn bernoulli(&mut self, share: Share) -> bool {
        share > Share::NONE && self.uniform() < share.fraction()
    }

    /// Evenly from [0, 1), with the 53 bits that a float holds.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(super) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From the normal distribution with mean 0 and deviation 1 (Box and Muller, 1958).
    pub(super) fn normal(&mut self) -> f64 {
        // 1 - u keeps the logarithm finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a random factor needs no last nanosecond"
)]
pub(super) fn scaled(span: Span, factor: f64) -> Span {
    Span::from_nanos((span.nanos() as f64 * factor) as i64)
}

/// Every bit of the outcome depends on every bit of `x` (the end of `SplitMix64`, Steele 2014).
pub(crate) const fn mix_bits(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
