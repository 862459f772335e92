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
    pub(super) needed: i64,
    /// The ends, by number: one, or a set of which each moment measures half at most.
    pub(super) ends: Vec<usize>,
}

/// The ends with the largest known need: the busiest end, and sets from which the end with the least
/// work was removed, one by one. Not every set is checked, so a timetable may need more.
pub(super) fn densest(circuits: &[WeightedCircuit], ends: usize) -> Density {
    let mut of_end: Vec<Vec<WeightedCircuit>> = vec![Vec::new(); ends];
    for weighed in circuits {
        of_end[weighed.circuit.from].push(*weighed);
        of_end[weighed.circuit.to].push(*weighed);
    }
    let sum = |weighed_circuits: &Vec<WeightedCircuit>| {
        weighed_circuits.iter().map(|weighed| weighed.weight).sum()
    };
    let mut load: Vec<i64> = of_end.iter().map(sum).collect();
    let busiest = (0..ends).max_by_key(|end| (load[*end], ends - end));
    let mut best = Density {
        needed: busiest.map_or(0, |end| load[end]),
        ends: busiest.into_iter().collect(),
    };
    let mut is_left = vec![true; ends];
    let mut inside: i64 = circuits.iter().map(|weighed| weighed.weight).sum();
    for end_count in (2..=ends).rev() {
        let at_a_time = i64::try_from(end_count / 2).unwrap_or(i64::MAX);
        let needed = inside / at_a_time + i64::from(inside % at_a_time > 0);
        if needed > best.needed {
            let ends = (0..ends).filter(|end| is_left[*end]).collect();
            best = Density { needed, ends };
        }
        let remaining_ends = (0..ends).filter(|end| is_left[*end]);
        let Some(least_loaded) = remaining_ends.min_by_key(|end| load[*end]) else {
            break;
        };
        is_left[least_loaded] = false;
        for weighed in &of_end[least_loaded] {
            let other = weighed.circuit.other(least_loaded);
            if is_left[other] {
                load[other] -= weighed.weight;
                inside -= weighed.weight;
            }
        }
    }
    best
}
