//! The leading columns of files with rows of several experiments. Without them a reader would pool
//! aborted attempts and repeats with complete experiments.

use neph_model::{Experiment, Scenario};

/// An experiment and its scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExperimentContext<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) scenario: Option<&'a Scenario>,
}

/// A leading column: its name, and its value for all rows of an experiment.
pub(crate) struct LeadingColumn {
    pub(crate) name: &'static str,
    pub(crate) cells: LeadingCell,
}

/// The type of its values.
pub(crate) enum LeadingCell {
    Text(fn(&ExperimentContext<'_>) -> String),
    Count(fn(&ExperimentContext<'_>) -> u32),
}

/// A value of a leading column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeadingValue {
    Text(String),
    Count(u32),
}

impl<'a> ExperimentContext<'a> {
    /// `scenarios` is the matrix of the experiment's campaign.
    pub(crate) fn of(experiment: &'a Experiment, scenarios: &'a [Scenario]) -> Self {
        let mut candidates = scenarios.iter();
        Self {
            experiment,
            scenario: candidates.find(|scenario| scenario.id == experiment.scenario),
        }
    }

    /// Name and value of every leading column, in order.
    pub(crate) fn leading_values(&self) -> impl Iterator<Item = (&'static str, LeadingValue)> {
        LEADING_COLUMNS.iter().map(|column| {
            let value = match column.cells {
                LeadingCell::Text(get) => LeadingValue::Text(get(self)),
                LeadingCell::Count(get) => LeadingValue::Count(get(self)),
            };
            (column.name, value)
        })
    }
}

fn scenario_label(context: &ExperimentContext<'_>) -> String {
    let id = || context.experiment.scenario.to_string();
    context.scenario.map_or_else(id, Scenario::label)
}

/// Every leading column, in order.
pub(crate) const LEADING_COLUMNS: &[LeadingColumn] = &[
    LeadingColumn {
        name: "experiment_id",
        cells: LeadingCell::Text(|context| context.experiment.id.to_string()),
    },
    LeadingColumn {
        name: "scenario_id",
        cells: LeadingCell::Text(|context| context.experiment.scenario.to_string()),
    },
    LeadingColumn {
        name: "scenario",
        cells: LeadingCell::Text(scenario_label),
    },
    LeadingColumn {
        name: "block",
        cells: LeadingCell::Count(|context| context.experiment.block),
    },
    LeadingColumn {
        name: "attempt",
        cells: LeadingCell::Count(|context| context.experiment.attempt),
    },
    LeadingColumn {
        name: "status",
        cells: LeadingCell::Text(|context| context.experiment.status.name().to_owned()),
    },
];
