//! Rules with campaigns of known causes: each cause is reported with the correct numbers, and similar
//! effects are not.

mod absent;
mod each_rule;
mod echoes;
mod load;
mod mtu;
mod not_evaluated;
mod notes;
mod path;
mod randomised;
mod stalled;
mod stalling;
mod world;

use super::{Diagnosis, diagnose};
use crate::{CampaignData, PlotSettings};
use world::World;

/// The root causes that the rules report for a world's campaign.
fn diagnoses_of(world: &World) -> Vec<Diagnosis> {
    diagnose(&world.campaign(), &PlotSettings::default()).causes
}

/// The root causes of a campaign that a rule reports.
fn causes(data: &CampaignData, rule: &str) -> Vec<Diagnosis> {
    let mut diagnoses = diagnose(data, &PlotSettings::default()).causes;
    diagnoses.retain(|diagnosis| diagnosis.rule == rule);
    diagnoses
}

/// The names of the rules that report a cause.
fn rules_of(world: &World) -> Vec<&'static str> {
    let mut rules: Vec<&str> = diagnoses_of(world)
        .into_iter()
        .map(|diagnosis| diagnosis.rule)
        .collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// The one cause that is reported for a world.
fn only_cause(world: &World, rule: &str) -> Diagnosis {
    let mut diagnoses = diagnoses_of(world);
    assert_eq!(rules_of(world), [rule], "{diagnoses:#?}");
    diagnoses.remove(0)
}

/// A number of a diagnosis, by name.
fn number(diagnosis: &Diagnosis, name: &str) -> f64 {
    let value = diagnosis.evidence.iter().find(|number| number.name == name);
    value
        .unwrap_or_else(|| panic!("{name}: {diagnosis:#?}"))
        .value
}
