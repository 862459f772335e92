//! Ends that bound a timetable: one end carries out one circuit at a time, n ends half as many.

use super::circuit::Circuit;

/// A circuit and what it weighs: its length, or 1 where all are as long.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightedCircuit {
    pub(super) circuit: Circuit,
    pub(super) weight: i64,
}

/// What ends need at least.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Density {
    /// In the unit of the weights.
    pub(super) min_length: i64,
    /// The ends, by number: one, or a set of which each moment measures half at most.
    pub(super) ends: Vec<usize>,
}

/// The ends with the largest known need: the busiest end, and sets from which the end with the least
/// work was removed, one by one. Not every set is checked, so a timetable may need more.
pub(super) fn densest(circuits: &[WeightedCircuit], ends: usize) -> Density {
    let mut circuits_by_end: Vec<Vec<WeightedCircuit>> = vec![Vec::new(); ends];
    for weighted in circuits {
        circuits_by_end[weighted.circuit.from].push(*weighted);
        circuits_by_end[weighted.circuit.to].push(*weighted);
    }
    let sum = |weighed_circuits: &Vec<WeightedCircuit>| {
        weighed_circuits
            .iter()
            .map(|weighted| weighted.weight)
            .sum()
    };
    let mut load_by_end: Vec<i64> = circuits_by_end.iter().map(sum).collect();
    let busiest = (0..ends).max_by_key(|end| (load_by_end[*end], ends - end));
    let mut best = Density {
        min_length: busiest.map_or(0, |end| load_by_end[end]),
        ends: busiest.into_iter().collect(),
    };
    let mut is_remaining = vec![true; ends];
    let mut remaining_weight: i64 = circuits.iter().map(|weighted| weighted.weight).sum();
    for end_count in (2..=ends).rev() {
        let max_concurrent = i64::try_from(end_count / 2).unwrap_or(i64::MAX);
        let remainder = remaining_weight % max_concurrent;
        let min_length = remaining_weight / max_concurrent + i64::from(remainder > 0);
        if min_length > best.min_length {
            let ends = (0..ends).filter(|end| is_remaining[*end]).collect();
            best = Density { min_length, ends };
        }
        let remaining_ends = (0..ends).filter(|end| is_remaining[*end]);
        let Some(least_loaded) = remaining_ends.min_by_key(|end| load_by_end[*end]) else {
            break;
        };
        is_remaining[least_loaded] = false;
        for weighted in &circuits_by_end[least_loaded] {
            let other = weighted.circuit.other(least_loaded);
            if is_remaining[other] {
                load_by_end[other] -= weighted.weight;
                remaining_weight -= weighted.weight;
            }
        }
    }
    best
}
