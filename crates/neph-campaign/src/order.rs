//! The order of scenarios within a block: shuffled from the campaign's seed, the same on every
//! machine and in every version.
//!
//! The generator is `SplitMix64` (Steele, Lea, Flood 2014; public domain reference by Vigna). The
//! shuffle is Fisher-Yates from the end with rejection. Both are written out here: a new version of a
//! library cannot change the order of a recorded seed.

use neph_model::BlockOrder;

/// `SplitMix64`: passes `BigCrush`, needs 64 bits of state, any seed will do.
#[derive(Clone, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    /// A stream of its own for each seed.
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below `bound`; what would be biased is drawn again.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder of a 32-bit bound"
    )]
    pub(crate) const fn below(&mut self, bound: u32) -> u32 {
        let bound = bound as u64;
        let biased = u64::MAX - u64::MAX % bound;
        loop {
            let draw = self.next();
            if draw < biased {
                return (draw % bound) as u32;
            }
        }
    }
}

/// The indices of `scenarios` scenarios in the order in which `block` carries them out.
pub fn order_of_block(order: BlockOrder, seed: u64, block: u32, scenarios: u32) -> Vec<u32> {
    let mut indices: Vec<u32> = (0..scenarios).collect();
    if order == BlockOrder::Sequential {
        return indices;
    }
    // Each block a stream of its own, begun at a scrambled function of seed and block.
    let mut generator = Generator(seed ^ Generator(u64::from(block)).next());
    for end in (1..scenarios).rev() {
        let chosen = generator.below(end + 1);
        indices.swap(end as usize, chosen as usize);
    }
    indices
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_generator_matches_the_published_sequence() {
        // First outputs of the reference implementation for seed 1234567.
        let mut generator = Generator(1_234_567);
        let first = [generator.next(), generator.next(), generator.next()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn a_seed_gives_the_same_order_in_all_versions() {
        let order = |block| order_of_block(BlockOrder::Random, 42, block, 6);
        assert_eq!(order(0), order(0));
        assert_ne!(order(0), order(1));
        assert_eq!(
            order_of_block(BlockOrder::Sequential, 42, 3, 4),
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn every_scenario_comes_once_per_block_at_any_position() {
        let mut first = [0_u32; 4];
        for block in 0..4_000 {
            let order = order_of_block(BlockOrder::Random, 7, block, 4);
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 4);
            first[order[0] as usize] += 1;
        }
        // Binomial(4000, 1/4): standard deviation 27; the tolerance is five of them.
        assert!(first.iter().all(|n| (863..=1137).contains(n)), "{first:?}");
    }
}
