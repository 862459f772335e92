//! How many comparisons a report will judge together, from the plan alone.

use neph_model::Scenario;
use neph_stats::blocks_needed;

use super::{fleet_levels, levels, loads, networks, position, transfers};
use crate::circuits;
use crate::data::{Factor, factors};
use crate::view::groups;

/// The size of the family of a report of these scenarios, with so many margins of equivalence.
pub fn comparisons(scenarios: &[Scenario], margins: usize) -> usize {
    let with_messages = scenarios.iter().enumerate();
    let with_messages = with_messages
        .filter(|(_, scenario)| scenario.flows().is_none() && !scenario.measure().is_transfer());
    let shown: Vec<usize> = with_messages.map(|(index, _)| index).collect();
    let members: Vec<&Scenario> = shown.iter().map(|index| &scenarios[*index]).collect();
    let comparisons_of = |factor: &Factor| -> usize {
        let groups = groups(scenarios, &shown, factor);
        match factor {
            // The longest against the shortest.
            Factor::Interval => groups
                .iter()
                .filter(|group| group.members.len() > 1)
                .count(),
            factor if levels::is_compared(factor) => {
                let compared_levels = groups
                    .iter()
                    .map(|group| group.members.len().saturating_sub(1));
                compared_levels.sum()
            }
            _ => 0,
        }
    };
    let compares_circuits = circuits::are_named(scenarios);
    let factors = factors(&members).into_iter();
    let varied_factors = factors.filter(|factor| !(compares_circuits && factor.is_place()));
    let level_comparisons: usize = varied_factors.map(|factor| comparisons_of(&factor)).sum();
    let endpoint_groups = groups(scenarios, &shown, &Factor::Endpoint);
    let pair_counts = endpoint_groups.iter().map(|group| {
        let names: Vec<&str> = group
            .members
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        position::pairs_among(scenarios, &names)
    });
    let distance_pairs: usize = pair_counts.sum();
    let quantity_comparisons = networks::comparisons(scenarios)
        + transfers::comparisons(scenarios)
        + loads::comparisons(scenarios);
    level_comparisons
        + distance_pairs
        + margins
        + quantity_comparisons
        + fleet_levels::comparisons(scenarios)
}

/// How many blocks it takes at least until such a report can give a verdict: `None` where it compares
/// nothing.
pub fn blocks_to_compare(scenarios: &[Scenario], margins: usize) -> Option<usize> {
    let family = comparisons(scenarios, margins);
    (family > 0).then(|| blocks_needed(family))
}
