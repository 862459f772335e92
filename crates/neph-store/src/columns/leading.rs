//! The leading columns of files with rows of several experiments. Without them a reader would pool
//! aborted attempts and repeats with complete experiments.

use neph_model::{Experiment, Scenario};

/// An experiment and its scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Belonging<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) scenario: Option<&'a Scenario>,
}

/// A leading column: its name, and its value for all rows of an experiment.
pub(crate) struct Leading {
    pub(crate) name: &'static str,
    pub(crate) cells: LeadingCells,
}

/// The type of its values.
pub(crate) enum LeadingCells {
    Text(fn(&Belonging<'_>) -> String),
    Count(fn(&Belonging<'_>) -> u32),
}

/// A value of a leading column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Constant {
    Text(String),
    Count(u32),
}

impl<'a> Belonging<'a> {
    /// `scenarios` is the matrix of the experiment's campaign.
    pub(crate) fn of(experiment: &'a Experiment, scenarios: &'a [Scenario]) -> Self {
        let mut candidates = scenarios.iter();
        Self {
            experiment,
            scenario: candidates.find(|scenario| scenario.id == experiment.scenario),
        }
    }

    /// Name and value of every leading column, in order.
    pub(crate) fn constants(&self) -> impl Iterator<Item = (&'static str, Constant)> {
        LEADING.iter().map(|column| {
            let value = match column.cells {
                LeadingCells::Text(get) => Constant::Text(get(self)),
                LeadingCells::Count(get) => Constant::Count(get(self)),
            };
            (column.name, value)
        })
    }
}

fn scenario_label(belonging: &Belonging<'_>) -> String {
    let id = || belonging.experiment.scenario.to_string();
    belonging.scenario.map_or_else(id, Scenario::label)
}

/// Every leading column, in order.
pub(crate) const LEADING: &[Leading] = &[
    Leading {
        name: "experiment_id",
        cells: LeadingCells::Text(|belonging| belonging.experiment.id.to_string()),
    },
    Leading {
        name: "scenario_id",
        cells: LeadingCells::Text(|belonging| belonging.experiment.scenario.to_string()),
    },
    Leading {
        name: "scenario",
        cells: LeadingCells::Text(scenario_label),
    },
    Leading {
        name: "block",
        cells: LeadingCells::Count(|belonging| belonging.experiment.block),
    },
    Leading {
        name: "attempt",
        cells: LeadingCells::Count(|belonging| belonging.experiment.attempt),
    },
    Leading {
        name: "status",
        cells: LeadingCells::Text(|belonging| belonging.experiment.status.name().to_owned()),
    },
];
