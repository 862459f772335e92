//! How the paths of a link divide the hash values of flows. This decides which flows move when the weights
//! change.
//!
//! Owns the three methods of routers. None keeps a state of flows, as the third source found: a packet takes
//! the path that its flow's hash has now.

use super::random::mix_bits;

/// A method to divide flows over paths by their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splitting {
    /// Each path has a range of the hash values, by its share, in the order of the paths (hash-threshold, RFC
    /// 2992). Flows between two borders move.
    #[default]
    Ranges,
    /// The hash value modulo the sum of the weights: most flows move when the sum changes.
    Modulo,
    /// Each path draws for each flow, and the best draw in proportion to the weight wins (Thaler and
    /// Ravishankar 1998; weighted: Schindelhauer and Schomaker 2005). A path that loses weight loses flows,
    /// one that gains weight gains them, and no other flow moves.
    Rendezvous,
}

impl Splitting {
    /// The path, of pairs of index and weight, for a hash value; `None` if no path has a weight.
    pub(super) fn pick_path(
        self,
        hash: u64,
        paths: impl Iterator<Item = (usize, u32)> + Clone,
    ) -> Option<usize> {
        if self == Self::Rendezvous {
            return rendezvous(hash, paths);
        }
        let weights = paths.clone().map(|(_, weight)| u64::from(weight));
        let total_weight: u64 = weights.sum();
        let position = match self {
            Self::Modulo => u128::from(hash.checked_rem(total_weight)?),
            _ => (u128::from(hash) * u128::from(total_weight)) >> 64,
        };
        let mut cumulative_weight = 0;
        let mut paths = paths;
        let path = paths.find(|(_, weight)| {
            cumulative_weight += u128::from(*weight);
            position < cumulative_weight
        });
        path.map(|(index, _)| index)
    }
}

fn rendezvous(hash: u64, paths: impl Iterator<Item = (usize, u32)>) -> Option<usize> {
    let weighted_paths = paths.filter(|(_, weight)| *weight > 0);
    let scores = weighted_paths.map(|(index, weight)| {
        let salt = u64::try_from(index).unwrap_or(u64::MAX).wrapping_add(1);
        let random_bits = mix_bits(hash ^ mix_bits(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        (
            index,
            -uniform_above_zero(random_bits).ln() / f64::from(weight),
        )
    });
    let best = scores.min_by(|(_, score), (_, other)| score.total_cmp(other));
    best.map(|(index, _)| index)
}

/// Uniform in (0, 1], with the 53 bits of a float.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn uniform_above_zero(random_bits: u64) -> f64 {
    ((random_bits >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: u64 = 65_536;

    fn path_of_flow(splitting: Splitting, flow: u64, weights: &[u32]) -> usize {
        let paths = weights.iter().copied().enumerate();
        splitting
            .pick_path(mix_bits(flow), paths)
            .expect("a weight")
    }

    /// The share of flows that move from each path to each other one when the weights change.
    fn transition_shares(splitting: Splitting, before: &[u32], after: &[u32]) -> Vec<Vec<f64>> {
        let mut counts = vec![vec![0_u32; after.len()]; before.len()];
        for flow in 0..FLOWS {
            let (from, to) = (
                path_of_flow(splitting, flow, before),
                path_of_flow(splitting, flow, after),
            );
            counts[from][to] += 1;
        }
        let share = |count: &u32| f64::from(*count) / 65_536.0;
        let rows = counts.iter().map(|row| row.iter().map(share).collect());
        rows.collect()
    }

    fn moved_share(shares: &[Vec<f64>]) -> f64 {
        let stayed: f64 = (0..shares.len()).map(|path| shares[path][path]).sum();
        1.0 - stayed
    }

    #[test]
    fn each_splitting_method_gives_each_path_its_share() {
        for splitting in [Splitting::Ranges, Splitting::Modulo, Splitting::Rendezvous] {
            for weights in [&[1, 1][..], &[3, 1], &[1, 2, 5], &[0, 1], &[400, 0, 600]] {
                let total: u32 = weights.iter().sum();
                let shares = transition_shares(splitting, weights, weights);
                for (path, weight) in weights.iter().enumerate() {
                    let expected = f64::from(*weight) / f64::from(total);
                    let share = shares[path][path];
                    // Five standard deviations of the binomial.
                    assert!(
                        (share - expected).abs() <= 0.0098,
                        "{splitting:?} {weights:?}: {share}"
                    );
                }
            }
            let none = splitting.pick_path(7, [(0, 0), (1, 0)].into_iter());
            assert_eq!(none, None, "{splitting:?}");
        }
    }

    /// Four equal paths, and the weight of the first is halved: its share falls from 1/4 to 1/7.
    #[test]
    fn each_method_moves_the_published_share_of_flows_when_a_path_loses_weight() {
        let (before, after) = ([2, 2, 2, 2], [1, 2, 2, 2]);
        let is_near = |share: f64, expected: f64| (share - expected).abs() < 0.01;
        // Borders move from 1/4, 2/4, 3/4 to 1/7, 3/7, 5/7: flows between them move.
        let ranges = transition_shares(Splitting::Ranges, &before, &after);
        assert!(is_near(ranges[0][1], 1.0 / 4.0 - 1.0 / 7.0), "{ranges:?}");
        assert!(is_near(ranges[1][2], 2.0 / 4.0 - 3.0 / 7.0), "{ranges:?}");
        assert!(is_near(ranges[2][3], 3.0 / 4.0 - 5.0 / 7.0), "{ranges:?}");
        assert!(is_near(moved_share(&ranges), 3.0 / 14.0), "{ranges:?}");
        // Of 56 numbers modulo 8 and modulo 7, a quarter keep their path.
        let modulo = transition_shares(Splitting::Modulo, &before, &after);
        let unmoved_count = (0..56).filter(|n| (n % 8) / 2 == (n % 7 + 1) / 2).count();
        assert_eq!(unmoved_count, 14);
        assert!(is_near(moved_share(&modulo), 0.75), "{modulo:?}");
        // Only what the first loses moves, and to all others equally.
        let rendezvous = transition_shares(Splitting::Rendezvous, &before, &after);
        assert!(
            is_near(moved_share(&rendezvous), 1.0 / 4.0 - 1.0 / 7.0),
            "{rendezvous:?}"
        );
        for to in 1..4 {
            assert!(is_near(rendezvous[0][to], 1.0 / 28.0), "{rendezvous:?}");
            assert!(is_near(rendezvous[to][to], 0.25), "{rendezvous:?}");
        }
    }
}
