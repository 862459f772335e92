//! Rules against campaigns whose causes are known: each cause is named with the numbers that were
//! put in, and what looks like it is not.

mod absent;
mod each_rule;
mod load;
mod mtu;
mod needs;
mod notes;
mod path;
mod randomised;
mod stalled;
mod stalling;
mod world;

use super::{Diagnosis, diagnose};
use crate::{CampaignData, PlotSettings};
use world::World;

/// What the rules say of a world's campaign.
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
fn names(world: &World) -> Vec<&'static str> {
    let mut names: Vec<&str> = diagnoses_of(world)
        .into_iter()
        .map(|diagnosis| diagnosis.rule)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The one cause that is reported for a world.
fn only(world: &World, rule: &str) -> Diagnosis {
    let mut diagnoses = diagnoses_of(world);
    assert_eq!(names(world), [rule], "{diagnoses:#?}");
    diagnoses.remove(0)
}

/// A number of a diagnosis, by name.
fn number(diagnosis: &Diagnosis, name: &str) -> f64 {
    let value = diagnosis.evidence.iter().find(|number| number.name == name);
    value
        .unwrap_or_else(|| panic!("{name}: {diagnosis:#?}"))
        .value
}
