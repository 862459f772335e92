//! Complete meshes by the circle method: as few rounds as there can be.

use std::collections::BTreeMap;

use super::circuit::Circuit;

/// The rounds of a complete mesh: every two ends are measured equally often. `None` of anything else.
/// Each round has the indices of its circuits.
///
/// One end stands still while the others move round a circle; those that face each other are measured.
/// With an odd number of ends, one rests in each round.
pub(super) fn rounds(circuits: &[Circuit], ends: usize) -> Option<Vec<Vec<usize>>> {
    let mut between: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, circuit) in circuits.iter().enumerate() {
        between.entry(circuit.ends()).or_default().push(index);
    }
    let times = between.values().next()?.len();
    let is_even = between.values().all(|indices| indices.len() == times);
    if !is_even || ends < 2 || between.len() != ends * (ends - 1) / 2 {
        return None;
    }
    let pairings = circle(ends);
    let repeated = (0..times).flat_map(|time| pairings.iter().map(move |round| (time, round)));
    let rounds = repeated.map(|(time, round)| {
        let mut indices: Vec<usize> = round.iter().map(|pair| between[pair][time]).collect();
        indices.sort_unstable();
        indices
    });
    Some(rounds.collect())
}

/// Every pair of `ends` once, the lesser first, in rounds in which no end is twice.
fn circle(ends: usize) -> Vec<Vec<(usize, usize)>> {
    // With an odd number the end that stands still does not exist.
    let places = ends + ends % 2;
    let moving = places - 1;
    (0..moving)
        .map(|round| {
            let fixed = (moving, round);
            let facing = (1..places / 2)
                .map(|step| ((round + step) % moving, (round + moving - step) % moving));
            let pairs = std::iter::once(fixed).chain(facing);
            let pairs = pairs.map(|(first, other)| (first.min(other), first.max(other)));
            pairs.filter(|(_, greater)| *greater < ends).collect()
        })
        .collect()
}
