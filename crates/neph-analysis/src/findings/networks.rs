//! Circuits over several networks: each network against the first, circuit by circuit.

use std::collections::{BTreeMap, BTreeSet};

use neph_model::{Measure, Quantity, Scenario, TransferDirection};

use super::Finding;
use super::compare::{Decisions, Family};
use super::quantity_shift::{Pair, QuantityShift};
use crate::circuits::{self, Circuits};
use crate::{CampaignData, PlotSettings};

/// What is compared; the others are in the table.
const COMPARED_QUANTITIES: [Quantity; 8] = [
    Quantity::MediaRate,
    Quantity::ResponseP50,
    Quantity::ResponseP99,
    Quantity::Transactions,
    Quantity::RttP50,
    Quantity::RttP99,
    Quantity::UpGoodput,
    Quantity::DownGoodput,
];

/// Each network against the baseline, for each quantity of each kind of measurement.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<QuantityShift> {
    let Circuits { networks, rows, .. } = circuits::of(data, settings);
    let Some((baseline, others)) = networks.split_first() else {
        return Vec::new();
    };
    let mut kinds: Vec<(&str, Quantity)> = Vec::new();
    for row in rows
        .iter()
        .filter(|row| COMPARED_QUANTITIES.contains(&row.quantity))
    {
        let kind = (row.measurement.as_str(), row.quantity);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut shifts = Vec::new();
    for (measurement, quantity) in kinds {
        for (index, name) in others.iter().enumerate() {
            let cells = rows
                .iter()
                .filter(|row| row.measurement == measurement && row.quantity == quantity);
            let pairs = cells.filter_map(|row| {
                let candidate = row.cells.get(index + 1)?.as_ref()?;
                let baseline = row.cells.first()?.as_ref()?;
                let (candidate, baseline) = (&candidate.by_block, &baseline.by_block);
                Pair::of(row.circuit.clone(), quantity, candidate, baseline, family)
            });
            shifts.push(QuantityShift {
                quantity,
                measurement: measurement.to_owned(),
                name: name.clone(),
                baseline: baseline.clone(),
                pairs: pairs.collect(),
            });
        }
    }
    shifts
}

/// One sentence for each.
pub(crate) fn findings(shifts: &[QuantityShift], decisions: &Decisions) -> Vec<Finding> {
    let findings = shifts
        .iter()
        .filter_map(|shift| shift.sentence("network", decisions));
    findings.collect()
}

/// How many comparisons a report of these scenarios makes of networks.
pub(crate) fn comparisons(scenarios: &[Scenario]) -> usize {
    let mut networks: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    let mut quantities: BTreeMap<String, usize> = BTreeMap::new();
    for scenario in scenarios {
        let parameters = &scenario.parameters;
        let (Some(circuit), Some(network)) = (parameters.circuit(), parameters.network()) else {
            continue;
        };
        let measurement = circuits::parameters_text(scenario);
        quantities.insert(measurement.clone(), compared_quantities(scenario));
        let circuit_networks = networks.entry((circuit, measurement)).or_default();
        circuit_networks.insert(network);
    }
    let counts = networks.iter().map(|((_, measurement), networks)| {
        let compared_networks = networks.len().saturating_sub(1);
        compared_networks * quantities.get(measurement).copied().unwrap_or(0)
    });
    counts.sum()
}

/// How many quantities of a scenario are compared: two of messages, one for each direction of a transfer.
pub(super) fn compared_quantities(scenario: &Scenario) -> usize {
    match scenario.measure() {
        Measure::Throughput(test) if test.direction != TransferDirection::Both => 1,
        Measure::Throughput(_) | Measure::Messages => 2,
        Measure::Transactions(_) => 3,
        Measure::Media(_) => 1,
    }
}
