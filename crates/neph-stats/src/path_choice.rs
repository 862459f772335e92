//! Which of the known paths the last samples of a flow took, and since when: the last stay of the likeliest
//! sequence of levels (Viterbi).
//!
//! No known level is a possible state too: a growing queue supports no path.

/// The cost of a change of level: the logarithm of how rare it is among samples.
const SWITCH_COST: f64 = 6.0;
/// The evidence of a sample at no known level, where the likeliest has 0.
const UNKNOWN_LEVEL: f64 = -5.5;
/// Places that are compared, at most.
pub(crate) const MAX_LEVELS: usize = 16;

/// A possible level of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PossibleLevel {
    /// Nanoseconds.
    pub(crate) level: i64,
    /// Mean distance of its flows from it, in nanoseconds.
    pub(crate) mean_deviation_ns: i64,
}

/// Where the newest samples came from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    /// Which of the places.
    pub(crate) index: usize,
    /// How many samples ago the stay there began; 0 is the newest.
    pub(crate) ago: usize,
    /// How much likelier this is than any other place: a logarithm.
    pub(crate) margin: f64,
    /// How much likelier this is than no place.
    pub(crate) margin_over_unknown: f64,
}

/// The likeliest place at the end of samples without jitter's mean, oldest first. The sequence began at the
/// first place. `height` is the logarithm of the density at a distance from a level.
pub(crate) fn choose(
    samples: &[i64],
    levels: &[PossibleLevel],
    height: impl Fn(i64) -> f64,
) -> Option<Choice> {
    let levels = &levels[..levels.len().min(MAX_LEVELS)];
    let unknown = levels.len();
    // Evidence of the samples up to each one, for each place.
    let mut sums = vec![[0.0; MAX_LEVELS + 1]];
    let mut scores = [-SWITCH_COST; MAX_LEVELS + 1];
    let mut began = [0; MAX_LEVELS + 1];
    scores[0] = 0.0;
    for (number, sample) in samples.iter().enumerate() {
        let mut sum = sums[number];
        let best = scores.iter().copied().fold(f64::MIN, f64::max) - SWITCH_COST;
        for state in 0..=unknown {
            if best > scores[state] {
                (scores[state], began[state]) = (best, number);
            }
            let evidence = levels.get(state).map_or(UNKNOWN_LEVEL, |index| {
                let off = sample.saturating_sub(index.level);
                height((off.abs() - index.mean_deviation_ns).max(0) * off.signum())
            });
            scores[state] += evidence;
            sum[state] += evidence;
        }
        scores[unknown + 1..].fill(f64::MIN);
        sums.push(sum);
    }
    let index = (0..=unknown).max_by(|&a, &b| scores[a].total_cmp(&scores[b]))?;
    let (first, last) = (sums[began[index]], sums.last()?);
    let over = |other: usize| (last[index] - first[index]) - (last[other] - first[other]);
    let others = (0..unknown).filter(|&other| other != index);
    (index < unknown && !samples.is_empty()).then(|| Choice {
        index,
        ago: samples.len() - began[index] - 1,
        margin: others.map(over).fold(f64::MAX, f64::min),
        margin_over_unknown: over(unknown),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::casts::nanos_to_f64;

    /// Levels at 0, 10 and 14; a density that falls by 1 in a distance of 1, to -7.
    fn chosen(samples: &[i64]) -> Option<Choice> {
        let levels = [0, 10, 14].map(|level| PossibleLevel {
            level,
            mean_deviation_ns: 0,
        });
        choose(samples, &levels, |off| (-nanos_to_f64(off.abs())).max(-7.0))
    }

    #[test]
    fn the_last_stay_is_dated_by_its_first_sample() {
        let choice = chosen(&[0, 1, 0, 1, 0, 10, 9, 10, 11]).unwrap();
        assert_eq!((choice.index, choice.ago), (1, 3));
        // By hand: 4 + 5 + 4 + 3 from 14 against 0 + 1 + 0 + 1.
        assert!((choice.margin - 14.0).abs() < 1e-9, "{choice:?}");
    }

    /// The middle stay is not part of the last one, though it lies nearer to it than to the first.
    #[test]
    fn an_intermediate_stay_is_separate() {
        let choice = chosen(&[0, 0, 0, 10, 10, 10, 10, 14, 14, 14, 14]).unwrap();
        assert_eq!((choice.index, choice.ago), (2, 3));
    }

    #[test]
    fn a_single_outlier_or_a_queue_is_no_stay() {
        assert_eq!(chosen(&[0, 0, 0, 0, 10, 0]).map(|c| c.index), Some(0));
        assert_eq!(chosen(&[0, 0, 25, 27, 29, 31, 33, 35]), None);
        assert_eq!(chosen(&[]), None);
    }

    proptest! {
        /// Within 1, which is a quarter of the least difference.
        #[test]
        fn a_path_change_is_dated_by_its_first_sample(
            before in prop::collection::vec(-1..=1_i64, 1..8),
            after in prop::collection::vec(9..=11_i64, 3..8),
        ) {
            let choice = chosen(&[before, after.clone()].concat()).unwrap();
            prop_assert_eq!((choice.index, choice.ago), (1, after.len() - 1));
            prop_assert!(choice.margin > 0.0 && choice.margin_over_unknown > 0.0, "{:?}", choice);
        }
    }
}
