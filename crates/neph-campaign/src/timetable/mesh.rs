//! Complete meshes by the circle method: as few rounds as there can be.

use std::collections::BTreeMap;

use super::circuit::Circuit;

/// The rounds of a complete mesh: every two ends are measured equally often. `None` of anything else.
/// Each round has the indices of its circuits.
///
/// One end stands still while the others move round a circle; those that face each other are measured.
/// With an odd number of ends, one rests in each round.
pub(super) fn rounds(circuits: &[Circuit], ends: usize) -> Option<Vec<Vec<usize>>> {
    let mut circuits_by_ends: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, circuit) in circuits.iter().enumerate() {
        circuits_by_ends
            .entry(circuit.ends())
            .or_default()
            .push(index);
    }
    let repetitions = circuits_by_ends.values().next()?.len();
    let is_even = circuits_by_ends
        .values()
        .all(|indices| indices.len() == repetitions);
    if !is_even || ends < 2 || circuits_by_ends.len() != ends * (ends - 1) / 2 {
        return None;
    }
    let pairings = circle_rounds(ends);
    let repeated = (0..repetitions)
        .flat_map(|repetition| pairings.iter().map(move |round| (repetition, round)));
    let rounds = repeated.map(|(repetition, round)| {
        let indices = round.iter().map(|pair| circuits_by_ends[pair][repetition]);
        let mut indices: Vec<usize> = indices.collect();
        indices.sort_unstable();
        indices
    });
    Some(rounds.collect())
}

/// Every pair of `ends` once, the lesser first, in rounds in which no end is twice.
fn circle_rounds(ends: usize) -> Vec<Vec<(usize, usize)>> {
    // With an odd number the end that stands still does not exist.
    let even_ends = ends + ends % 2;
    let moving_ends = even_ends - 1;
    (0..moving_ends)
        .map(|round| {
            let fixed_pair = (moving_ends, round);
            let facing_pairs = (1..even_ends / 2).map(|step| {
                let first = (round + step) % moving_ends;
                (first, (round + moving_ends - step) % moving_ends)
            });
            let pairs = std::iter::once(fixed_pair).chain(facing_pairs);
            let pairs = pairs.map(|(first, other)| (first.min(other), first.max(other)));
            pairs.filter(|(_, greater)| *greater < ends).collect()
        })
        .collect()
}
