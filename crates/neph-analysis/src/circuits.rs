//! Circuits: what was measured between two sites, over each network that the plan names.
//!
//! Owns the matrix: a row for each circuit, kind of measurement and quantity, a cell for each network.

use neph_model::{ParameterName, Quantity, Scenario};

use crate::{CampaignData, PlotSettings, QuantityCourse};

/// The matrix of circuits and networks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circuits {
    /// The networks; the first is what the others are compared with.
    pub networks: Vec<String>,
    /// By kind of measurement, quantity and circuit, in the plan's order.
    pub rows: Vec<CircuitRow>,
}

/// A quantity of a circuit over each network.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitRow {
    /// The circuit, as the plan names it.
    pub circuit: String,
    /// What was measured, with what it fixes.
    pub measurement: String,
    /// Which number of it.
    pub quantity: Quantity,
    /// One for each network, in their order; `None` where it was not measured.
    pub cells: Vec<Option<QuantityCourse>>,
}

/// Whether a plan names the networks of its circuits.
pub(crate) fn are_named(scenarios: &[Scenario]) -> bool {
    scenarios
        .iter()
        .any(|scenario| scenario.parameters.network().is_some())
}

/// The circuits of a campaign; empty where its plan names none.
pub fn of(data: &CampaignData, settings: &PlotSettings) -> Circuits {
    let mut networks: Vec<String> = Vec::new();
    for scenario in &data.scenarios {
        let network = scenario.parameters.network();
        networks.extend(network.filter(|name| !networks.contains(name)).cloned());
    }
    let baseline = settings.baseline.as_ref();
    if let Some(position) =
        baseline.and_then(|name| networks.iter().position(|network| network == name))
    {
        networks[..=position].rotate_right(1);
    }
    let mut rows: Vec<CircuitRow> = Vec::new();
    for (index, scenario) in data.scenarios.iter().enumerate() {
        let parameters = &scenario.parameters;
        let (Some(circuit), Some(network)) = (parameters.circuit(), parameters.network()) else {
            continue;
        };
        let column = networks.iter().position(|known| known == network);
        let measurement = parameters_text(scenario);
        for course in data.courses(index, settings) {
            let is_row_of_course = |row: &CircuitRow| {
                row.circuit == *circuit
                    && row.measurement == measurement
                    && row.quantity == course.quantity
            };
            let row = rows.iter().position(is_row_of_course).unwrap_or_else(|| {
                rows.push(CircuitRow {
                    circuit: circuit.clone(),
                    measurement: measurement.clone(),
                    quantity: course.quantity,
                    cells: vec![None; networks.len()],
                });
                rows.len() - 1
            });
            if let Some(cell) = column.and_then(|column| rows[row].cells.get_mut(column)) {
                *cell = Some(course);
            }
        }
    }
    let order = |row: &CircuitRow| {
        let first = rows
            .iter()
            .position(|other| other.measurement == row.measurement);
        (first, row.quantity)
    };
    let mut sorted = rows.clone();
    sorted.sort_by_key(order);
    Circuits {
        networks,
        rows: sorted,
    }
}

/// The measurement of a scenario, without its place: the key of a row.
pub(crate) fn parameters_text(scenario: &Scenario) -> String {
    const PLACES: [ParameterName; 3] = [
        ParameterName::Circuit,
        ParameterName::Network,
        ParameterName::Site,
    ];
    let site_parameters: Vec<String> = PLACES
        .iter()
        .filter_map(|name| scenario.level(*name))
        .collect();
    let seconds = format!("{} s", scenario.messages);
    let is_length = |part: &String| scenario.measure().is_transfer() && *part == seconds;
    let parts = scenario.label_parts().into_iter().skip(1);
    let parts = parts.filter(|part| !site_parameters.contains(part) && !is_length(part));
    parts.collect::<Vec<_>>().join(" · ")
}
