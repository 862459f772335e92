//! A small seeded generator: the same seed gives the same numbers on every platform and in every
//! version, which a library's default generator does not promise. Not for secrets.
//!
//! xoshiro256++ by Blackman and Vigna, its state filled by splitmix64 from one 64-bit seed, as its
//! authors recommend (<https://prng.di.unimi.it>).

/// A seeded stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of a seed. Every seed is good, 0 too.
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        Self {
            state: std::array::from_fn(|_| splitmix(&mut counter)),
        }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to below 1, in steps of 2^-53.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a float exactly")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number from 0 to below `count`, each equally likely (Lemire 2019, with rejection).
    /// `count` must not be 0.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half is below count"
    )]
    pub fn below(&mut self, count: usize) -> usize {
        let count = count as u64;
        let unfair = count.wrapping_neg() % count;
        loop {
            let product = u128::from(self.bits()) * u128::from(count);
            if (product as u64) >= unfair {
                return (product >> 64) as usize;
            }
        }
    }
}

fn splitmix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published vectors of both generators.
    #[test]
    fn the_generator_matches_the_published_sequence() {
        let mut counter = 1_234_567;
        assert_eq!(splitmix(&mut counter), 6_457_827_717_110_365_317);
        assert_eq!(splitmix(&mut counter), 3_203_168_211_198_807_973);
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let first: [u64; 4] = std::array::from_fn(|_| random.bits());
        assert_eq!(
            first,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn below_is_uniform() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7)] += 1;
        }
        // 10,000 each, standard deviation 93.
        assert!(
            counts.iter().all(|s| s.abs_diff(10_000) < 400),
            "{counts:?}"
        );
    }
}
