//! Transfers: their number, and how their goodput differs between the levels of a factor.

use std::collections::BTreeSet;

use neph_model::{ParameterName, Quantity, Scenario};

use super::compare::{Decisions, Family};
use super::levels::baseline_first;
use super::measured::missing_text;
use super::quantity_shift::{Pair, QuantityShift};
use super::{Finding, FindingKind, networks};
use crate::circuits;
use crate::data::{Factor, factors};
use crate::text::{plural, to_f64};
use crate::view::groups;
use crate::{CampaignData, PlotSettings};

/// The quantities that are compared.
const COMPARED_QUANTITIES: [Quantity; 6] = [
    Quantity::MediaRate,
    Quantity::Transactions,
    Quantity::RttP50,
    Quantity::RttP99,
    Quantity::UpGoodput,
    Quantity::DownGoodput,
];

/// Every level of each factor against the first; comparisons of circuits over networks replace these.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<QuantityShift> {
    let indices = data.transfers(settings);
    let scenarios: Vec<&Scenario> = indices
        .iter()
        .map(|index| &data.scenarios[*index])
        .collect();
    if scenarios.is_empty() {
        return Vec::new();
    }
    let factors = compared_factors(&scenarios, circuits::are_named(&data.scenarios));
    let combinations =
        factors.flat_map(|factor| COMPARED_QUANTITIES.map(|quantity| (factor.clone(), quantity)));
    let combinations: Vec<(Factor, Quantity)> = combinations.collect();
    let shifts = combinations
        .iter()
        .map(|(factor, quantity)| compare_levels(data, settings, factor, *quantity, family));
    shifts.flatten().collect()
}

/// The factors by which transfers are compared. Another kind of transfer is no level of a factor.
fn compared_factors(
    scenarios: &[&Scenario],
    compares_circuits: bool,
) -> impl Iterator<Item = Factor> {
    let factors = factors(scenarios).into_iter();
    factors.filter(move |factor| match factor {
        Factor::Interval | Factor::Size | Factor::Parameter(ParameterName::Measure) => false,
        factor => !(compares_circuits && factor.is_place()),
    })
}

/// Number of transfer comparisons in a report of these scenarios.
pub(crate) fn comparisons(scenarios: &[Scenario]) -> usize {
    let transfers = scenarios.iter().enumerate();
    let indices = transfers.filter(|(_, scenario)| scenario.measure().is_transfer());
    let indices: Vec<usize> = indices.map(|(index, _)| index).collect();
    if indices.is_empty() {
        return 0;
    }
    let members: Vec<&Scenario> = indices.iter().map(|index| &scenarios[*index]).collect();
    let factors = compared_factors(&members, circuits::are_named(scenarios));
    let groups = factors.flat_map(|factor| groups(scenarios, &indices, &factor));
    let counts = groups.map(|group| {
        let compared_levels = group.members.len().saturating_sub(1);
        let first = group.members.first();
        compared_levels
            * first.map_or(0, |(index, _)| {
                networks::compared_quantities(&scenarios[*index])
            })
    });
    counts.sum()
}

fn compare_levels(
    data: &CampaignData,
    settings: &PlotSettings,
    factor: &Factor,
    quantity: Quantity,
    family: &mut Family,
) -> Vec<QuantityShift> {
    let indices = data.transfers(settings);
    let levels = baseline_first(data, &indices, settings, factor);
    let Some((baseline, others)) = levels.split_first() else {
        return Vec::new();
    };
    let groups = groups(&data.scenarios, &indices, factor);
    let shifts = others.iter().map(|name| {
        let pairs = groups.iter().filter_map(|group| {
            let level_by_block = |level: &str| {
                let member = group
                    .members
                    .iter()
                    .find(|(_, member_level)| member_level == level);
                member.map(|(index, _)| data.by_block(*index, settings, quantity))
            };
            let (level, other) = (level_by_block(name)?, level_by_block(baseline)?);
            Pair::of(group.title.clone(), quantity, &level, &other, family)
        });
        QuantityShift {
            quantity,
            measurement: String::new(),
            name: name.clone(),
            baseline: baseline.clone(),
            pairs: pairs.collect(),
        }
    });
    shifts.collect()
}

/// The number of transfers, and one sentence for each comparison.
pub(crate) fn findings(
    data: &CampaignData,
    settings: &PlotSettings,
    shifts: &[QuantityShift],
    decisions: &Decisions,
) -> Vec<Finding> {
    let count_finding = count_finding(data, settings).into_iter();
    let findings = shifts
        .iter()
        .filter_map(|shift| shift.sentence("transfer", decisions));
    count_finding.chain(findings).collect()
}

fn count_finding(data: &CampaignData, settings: &PlotSettings) -> Option<Finding> {
    let indices = data.transfers(settings);
    let quantities = indices
        .iter()
        .flat_map(|index| data.quantities(*index, settings));
    let blocks: Vec<u32> = quantities.map(|(block, _)| block).collect();
    let distinct: BTreeSet<u32> = blocks.iter().copied().collect();
    // With messages, their findings state what is missing.
    let missing = if data.measured(settings).is_empty() {
        missing_text(data, settings, indices.len())
    } else {
        String::new()
    };
    let text = format!(
        "{} of transfers, measured in {}: {}.{missing}",
        plural(indices.len(), "scenario"),
        plural(distinct.len(), "block"),
        plural(blocks.len(), "transfer"),
    );
    (!blocks.is_empty()).then(|| {
        Finding::new(FindingKind::Measured, "transfers", text)
            .with("scenarios", to_f64(indices.len()))
            .with("transfers", to_f64(blocks.len()))
    })
}
