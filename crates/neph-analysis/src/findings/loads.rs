//! Generated traffic: how the received rate of a load differs between the levels of a factor.

use std::collections::BTreeMap;

use neph_model::{LoadEnd, ParameterName, Quantity, Scenario, SeriesName};

use neph_stats::Level;

use super::Finding;
use super::compare::{Decisions, Family};
use super::levels::baseline_first;
use super::quantity_shift::{Pair, QuantityShift};
use crate::data::{Factor, factors};
use crate::load_rates::traffic;
use crate::view::{Group, groups};
use crate::{CampaignData, PlotSettings, circuits};

/// A load and the scenarios that have it.
struct SharedLoad {
    load: String,
    scenarios: Vec<usize>,
    factors: Vec<Factor>,
}

/// Every load of several scenarios, in the order of the plan.
fn loads_of_several_scenarios(scenarios: &[Scenario]) -> Vec<SharedLoad> {
    let mut shared_loads: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        for (_, load) in traffic(scenario) {
            match shared_loads.iter_mut().find(|(known, _)| *known == load) {
                Some((_, indices)) => indices.push(index),
                None => shared_loads.push((load, vec![index])),
            }
        }
    }
    let compares_circuits = circuits::are_named(scenarios);
    let shared_loads = shared_loads.into_iter().map(|(load, indices)| {
        let members: Vec<&Scenario> = indices.iter().map(|index| &scenarios[*index]).collect();
        let mut factors = factors(&members);
        factors.retain(|factor| is_compared(factor) && !(compares_circuits && factor.is_place()));
        SharedLoad {
            load,
            scenarios: indices,
            factors,
        }
    });
    shared_loads
        .filter(|shared_load| !shared_load.factors.is_empty())
        .collect()
}

/// Interval and size of messages are no levels of the background load.
const fn is_compared(factor: &Factor) -> bool {
    !matches!(
        factor,
        Factor::Interval | Factor::Size | Factor::Parameter(ParameterName::Measure)
    )
}

/// Number of load comparisons in a report of these scenarios.
pub(crate) fn comparisons(scenarios: &[Scenario]) -> usize {
    let comparisons_of = |shared_load: SharedLoad| {
        let factors = shared_load.factors.iter();
        let groups = factors.flat_map(|factor| groups(scenarios, &shared_load.scenarios, factor));
        let compared_levels = groups.map(|group| group.members.len().saturating_sub(1));
        compared_levels.sum::<usize>()
    };
    loads_of_several_scenarios(scenarios)
        .into_iter()
        .map(comparisons_of)
        .sum()
}

/// Every level of each factor against the first, for each load that both have.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<QuantityShift> {
    let mut shifts = Vec::new();
    for shared_load in loads_of_several_scenarios(&data.scenarios) {
        for factor in &shared_load.factors {
            let levels = baseline_first(data, &shared_load.scenarios, settings, factor);
            let Some((baseline, others)) = levels.split_first() else {
                continue;
            };
            let groups = groups(&data.scenarios, &shared_load.scenarios, factor);
            for name in others {
                let goodput_by_block = |group: &Group, level: &str| {
                    let (index, _) = group
                        .members
                        .iter()
                        .find(|(_, member_level)| member_level == level)?;
                    by_block(data, settings, &shared_load.load, *index)
                };
                let pairs = groups.iter().filter_map(|group| {
                    let (candidate, baseline) = (
                        goodput_by_block(group, name)?,
                        goodput_by_block(group, baseline)?,
                    );
                    let title = group.title.clone();
                    Pair::of(title, Quantity::LoadGoodput, &candidate, &baseline, family)
                });
                shifts.push(QuantityShift {
                    quantity: Quantity::LoadGoodput,
                    measurement: shared_load.load.clone(),
                    name: name.clone(),
                    baseline: baseline.clone(),
                    pairs: pairs.collect(),
                });
            }
        }
    }
    shifts
}

/// The received rate of a scenario's load, by block.
fn by_block(
    data: &CampaignData,
    settings: &PlotSettings,
    load: &str,
    scenario: usize,
) -> Option<BTreeMap<u32, Level>> {
    let loads = traffic(&data.scenarios[scenario]);
    let (number, _) = loads.into_iter().find(|(_, candidate)| candidate == load)?;
    let series = SeriesName::Load(number, LoadEnd::Received);
    Some(data.load_by_block(scenario, settings, series))
}

/// One sentence for each comparison.
pub(crate) fn findings(shifts: &[QuantityShift], decisions: &Decisions) -> Vec<Finding> {
    let findings = shifts.iter();
    findings
        .filter_map(|shift| shift.sentence("load", decisions))
        .collect()
}
