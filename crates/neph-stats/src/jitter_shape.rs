//! The density of jitter around the flows' levels, learnt from all flows of a fleet together in units of each
//! flow's spread. Owns no flow and no level.
//!
//! Few samples have little weight: the density starts with a heavy tail, and never gives more than
//! [`MAX_EVIDENCE`] to a single sample.

use crate::casts::{nanos_to_f64, round_to_i64, usize_to_f64};

/// Bins on each side of the middle.
const BINS_PER_SIDE: usize = 48;
/// Bins in one spread.
const BINS_PER_SPREAD: f64 = 4.0;
/// Weight of the prior density, in samples.
const PRIOR_WEIGHT: f64 = 200.0;
/// Samples after which half of them are forgotten.
const HALVING_SAMPLES: u32 = 1 << 20;
/// Samples between two evaluations of the counts.
const SAMPLES_PER_REFRESH: u32 = 4096;
/// The weight of the tail: the prior density falls with this power of the distance.
const TAIL_EXPONENT: f64 = 3.0;
/// Largest evidence of a sample: a natural logarithm.
const MAX_EVIDENCE: f64 = 7.0;

/// The density of a fleet's jitter.
#[derive(Debug, Clone)]
pub(crate) struct JitterShape {
    counts: Box<[f64]>,
    total: u32,
    /// The logarithm of the density in the middle of each bin, the highest being 0.
    heights: Box<[f64]>,
}

/// The prior density: per spread, at this many spreads.
fn believed(z: f64) -> f64 {
    (1.0 + z.abs() / 1.5).powf(-TAIL_EXPONENT) * (TAIL_EXPONENT - 1.0) / 3.0
}

fn middle_of(bin: usize) -> f64 {
    (usize_to_f64(bin) - usize_to_f64(BINS_PER_SIDE)) / BINS_PER_SPREAD
}

impl JitterShape {
    pub(crate) fn new() -> Self {
        let mut shape = Self {
            counts: vec![0.0; 2 * BINS_PER_SIDE + 1].into_boxed_slice(),
            total: 0,
            heights: vec![0.0; 2 * BINS_PER_SIDE + 1].into_boxed_slice(),
        };
        shape.refresh();
        shape
    }

    /// A flow's sample was `off` nanoseconds from the flow's mean; their mean distance is `spread`
    /// nanoseconds (above 0).
    pub(crate) fn learn(&mut self, off: i64, spread: i64) {
        let bin_position = nanos_to_f64(off) / nanos_to_f64(spread) * BINS_PER_SPREAD;
        let bin = round_to_i64(bin_position + middle_of(2 * BINS_PER_SIDE) * BINS_PER_SPREAD);
        // Samples beyond the bins count too: they reduce the others.
        self.total += 1;
        if let Some(count) = usize::try_from(bin)
            .ok()
            .and_then(|bin| self.counts.get_mut(bin))
        {
            *count += 1.0;
        }
        if self.total.is_multiple_of(SAMPLES_PER_REFRESH) {
            if self.total >= HALVING_SAMPLES {
                self.total /= 2;
                self.counts.iter_mut().for_each(|count| *count /= 2.0);
            }
            self.refresh();
        }
    }

    fn refresh(&mut self) {
        let total = f64::from(self.total) + PRIOR_WEIGHT;
        let density = |(bin, count): (usize, &f64)| {
            let prior = PRIOR_WEIGHT * believed(middle_of(bin)) / BINS_PER_SPREAD;
            ((count + prior) / total).ln()
        };
        let heights: Vec<f64> = self.counts.iter().enumerate().map(density).collect();
        let highest = heights.iter().copied().fold(f64::MIN, f64::max);
        self.heights = heights
            .iter()
            .map(|h| (h - highest).max(-MAX_EVIDENCE))
            .collect();
    }

    /// The logarithm of the density of a sample `off` nanoseconds from its place, for a flow of this
    /// `spread`: 0 at the highest, never below -[`MAX_EVIDENCE`].
    pub(crate) fn height(&self, off: i64, spread: i64) -> f64 {
        let z = nanos_to_f64(off) / nanos_to_f64(spread.max(1)) * BINS_PER_SPREAD;
        let bin_position = z + middle_of(2 * BINS_PER_SIDE) * BINS_PER_SPREAD;
        let below = bin_position.floor();
        let bin = round_to_i64(below);
        let at = |bin: i64| {
            usize::try_from(bin)
                .ok()
                .and_then(|b| self.heights.get(b))
                .copied()
        };
        if let (Some(here), Some(next)) = (at(bin), at(bin.saturating_add(1))) {
            return here + (next - here) * (bin_position - below);
        }
        // Beyond the bins a tail is assumed, from where they end.
        let end = if z < 0.0 {
            self.heights.first()
        } else {
            self.heights.last()
        };
        let edge = middle_of(2 * BINS_PER_SIDE);
        let falls = TAIL_EXPONENT * ((1.0 + z.abs() / BINS_PER_SPREAD) / (1.0 + edge)).ln();
        (end.copied().unwrap_or(-MAX_EVIDENCE) - falls.max(0.0)).max(-MAX_EVIDENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// One-sided jitter, uniform from 0 to 4 spreads: nothing lies below.
    #[test]
    fn the_distribution_of_jitter_is_estimated() {
        let mut shape = JitterShape::new();
        let mut random = Random::new(5);
        for _ in 0..200_000 {
            shape.learn(round_to_i64(random.unit() * 4000.0), 1000);
        }
        assert!(
            shape.height(2000, 1000) > -0.3,
            "{}",
            shape.height(2000, 1000)
        );
        assert!(
            shape.height(-1000, 1000) < -5.0,
            "{}",
            shape.height(-1000, 1000)
        );
        assert!(
            shape.height(5000, 1000) < -5.0,
            "{}",
            shape.height(5000, 1000)
        );
        assert!(
            (shape.height(20_000, 10_000) - shape.height(2000, 1000)).abs() < 1e-9,
            "in units of the spread"
        );
    }

    #[test]
    fn the_evidence_of_a_height_never_rises_and_has_a_minimum() {
        let shape = JitterShape::new();
        let heights: Vec<f64> = (0..200).map(|z| shape.height(z * 500, 1000)).collect();
        assert!(heights[0].abs() < 1e-9);
        assert!(heights.windows(2).all(|two| two[1] <= two[0] + 1e-9));
        assert!(heights.iter().all(|&height| height >= -MAX_EVIDENCE));
    }
}
