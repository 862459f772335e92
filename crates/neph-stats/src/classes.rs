//! Classes of values that lie together: base latencies that are probably one path.
//!
//! Single-linkage clustering in one dimension (Sneath 1957), cut at a gap: two neighbours further
//! apart than the gap belong to different classes. Values that a detector tells apart only beyond
//! its tolerance cannot be split more finely, so the tolerance is the gap to take. The number of
//! classes is found, not given; the result does not depend on the order of the values. Because a few
//! values that lie between two paths (a change that was seen halfway) would join them, values of
//! little weight are set aside first: a bridge is lighter than what it joins.

use crate::error::StatsError;

/// A value with its weight, for example a base latency and the time that flows spent at it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// The value.
    pub value: f64,
    /// How much it counts: 0 or above.
    pub weight: f64,
}

/// Values that lie together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelClass {
    /// The weighted median.
    pub centre: f64,
    /// The lowest value.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Its share of all weight that belongs to a class, 0..=1.
    pub share: f64,
    /// How many values it has.
    pub n: usize,
}

/// The classes of `values`, lowest first. Neighbours more than `gap` apart are split. Values whose
/// surroundings, half a gap to both sides, have less than `least` (0..1) of all weight belong to no
/// class.
///
/// # Errors
/// [`StatsError::NotFinite`]; [`StatsError::OutOfRange`] for a negative weight, a gap that is not
/// above 0, a `least` outside 0..1.
pub fn classes(values: &[Weighted], gap: f64, least: f64) -> Result<Vec<LevelClass>, StatsError> {
    refuse(values, gap, least)?;
    let mut sorted: Vec<Weighted> = values.iter().copied().filter(|v| v.weight > 0.0).collect();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let all: f64 = sorted.iter().map(|v| v.weight).sum();
    let kept = dense(&sorted, gap, least * all);
    let total: f64 = kept.iter().map(|v| v.weight).sum();
    Ok(kept
        .chunk_by(|a, b| b.value - a.value <= gap)
        .map(|together| class(together, total))
        .collect())
}

/// Which class a value belongs to: the one whose range, widened by `reach`, holds it, and whose
/// centre is nearest.
pub fn class_of(classes: &[LevelClass], value: f64, reach: f64) -> Option<usize> {
    let holds = |c: &LevelClass| c.low - reach <= value && value <= c.high + reach;
    classes
        .iter()
        .enumerate()
        .filter(|(_, c)| holds(c))
        .min_by(|(_, a), (_, b)| {
            (a.centre - value)
                .abs()
                .total_cmp(&(b.centre - value).abs())
        })
        .map(|(index, _)| index)
}

fn refuse(values: &[Weighted], gap: f64, least: f64) -> Result<(), StatsError> {
    let what = "value or weight of a class";
    if let Some(index) = values
        .iter()
        .position(|v| !v.value.is_finite() || !v.weight.is_finite())
    {
        return Err(StatsError::NotFinite { what, index });
    }
    let out = |what, value, wanted| {
        Err(StatsError::OutOfRange {
            what,
            value,
            wanted,
        })
    };
    if let Some(bad) = values.iter().find(|v| v.weight < 0.0) {
        return out("weight", bad.weight, "0 or above");
    }
    if !(gap.is_finite() && gap > 0.0) {
        return out("gap between classes", gap, "above 0");
    }
    if !(0.0..1.0).contains(&least) {
        return out("least share of a class", least, "from 0 to below 1");
    }
    Ok(())
}

/// The values whose surroundings weigh at least `least`.
fn dense(sorted: &[Weighted], gap: f64, least: f64) -> Vec<Weighted> {
    let (mut from, mut to, mut weight) = (0, 0, 0.0);
    let mut kept = Vec::with_capacity(sorted.len());
    for value in sorted {
        while to < sorted.len() && sorted[to].value <= value.value + 0.5 * gap {
            weight += sorted[to].weight;
            to += 1;
        }
        while sorted[from].value < value.value - 0.5 * gap {
            weight -= sorted[from].weight;
            from += 1;
        }
        if weight >= least {
            kept.push(*value);
        }
    }
    kept
}

fn class(together: &[Weighted], total: f64) -> LevelClass {
    let weight: f64 = together.iter().map(|v| v.weight).sum();
    let mut passed = 0.0;
    let middle = together.iter().find(|v| {
        passed += v.weight;
        passed >= 0.5 * weight
    });
    let last = together[together.len() - 1];
    LevelClass {
        centre: middle.unwrap_or(&last).value,
        low: together[0].value,
        high: last.value,
        share: weight / total,
        n: together.len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Random;

    fn equal(values: &[f64]) -> Vec<Weighted> {
        values
            .iter()
            .map(|&value| Weighted { value, weight: 1.0 })
            .collect()
    }

    #[test]
    fn gaps_split_and_weights_share() {
        let mut values = equal(&[70.0, 70.3, 70.1, 74.0, 79.2, 79.0]);
        values[3].weight = 5.0;
        let found = classes(&values, 0.5, 0.0).unwrap();
        let shares: Vec<(f64, f64, usize)> =
            found.iter().map(|c| (c.centre, c.share, c.n)).collect();
        assert_eq!(shares, [(70.1, 0.3, 3), (74.0, 0.5, 1), (79.0, 0.2, 2)]);
        assert_eq!(class_of(&found, 74.4, 0.5), Some(1));
        assert_eq!(class_of(&found, 76.0, 0.5), None);
    }

    #[test]
    fn a_few_values_halfway_are_no_bridge() {
        let mut values = equal(&[70.0; 50]);
        values.extend(equal(&[71.2; 50]));
        values.extend(equal(&[70.4, 70.8]));
        assert_eq!(classes(&values, 0.5, 0.0).unwrap().len(), 1);
        let found = classes(&values, 0.5, 0.03).unwrap();
        let shares: Vec<f64> = found.iter().map(|c| c.share).collect();
        assert_eq!(shares.len(), 2);
        assert!((shares[0] - 0.5).abs() < 0.01, "{shares:?}");
    }

    /// Jittered bases of four paths: the number of paths and the shares are the truth's, exactly.
    #[test]
    fn paths_are_found_with_their_shares() {
        for seed in 1000..1100 {
            let mut random = Random::new(seed);
            let counts = [35, 60, 105, 312];
            let mut base = 60.0;
            let mut values = Vec::new();
            for count in counts {
                base += 1.0 + 8.0 * random.unit();
                for _ in 0..count {
                    values.push(base + 0.4 * (random.unit() - 0.5));
                }
            }
            let found = classes(&equal(&values), 0.5, 0.01).unwrap();
            let got: Vec<usize> = found.iter().map(|c| c.n).collect();
            assert_eq!(got, counts, "seed {seed}");
        }
    }

    #[test]
    fn nothing_has_no_classes_and_nonsense_is_refused() {
        assert_eq!(classes(&[], 0.5, 0.0).unwrap(), []);
        assert!(classes(&equal(&[f64::NAN]), 0.5, 0.0).is_err());
        assert!(classes(&equal(&[1.0]), 0.0, 0.0).is_err());
        assert!(classes(&equal(&[1.0]), 0.5, 1.0).is_err());
        let negative = Weighted {
            value: 1.0,
            weight: -1.0,
        };
        assert!(classes(&[negative], 0.5, 0.0).is_err());
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_class_and_classes_are_apart(
            values in prop::collection::vec(0.0..100.0_f64, 1..80),
            gap in 0.1..5.0_f64,
        ) {
            let found = classes(&equal(&values), gap, 0.0).unwrap();
            prop_assert_eq!(found.iter().map(|c| c.n).sum::<usize>(), values.len());
            prop_assert!(found.windows(2).all(|w| w[1].low - w[0].high > gap));
            let share: f64 = found.iter().map(|c| c.share).sum();
            prop_assert!((share - 1.0).abs() < 1e-9);
            for value in values {
                let holds = |c: &LevelClass| c.low <= value && value <= c.high;
                prop_assert_eq!(found.iter().filter(|c| holds(c)).count(), 1);
            }
        }
    }
}
