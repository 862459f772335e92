//! Points of view: groups of scenarios. One factor varies within a group, and the others stay the same.

use std::collections::BTreeMap;

use neph_model::Scenario;

use crate::CampaignData;
use crate::data::{Factor, factors};

/// Scenarios that differ in one factor only.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they have in common.
    pub title: String,
    /// Index of each scenario, with its level of the factor.
    pub members: Vec<(usize, String)>,
}

/// The groups of one point of view, in the plan's order.
pub fn groups(plan_scenarios: &[Scenario], shown: &[usize], view: &Factor) -> Vec<Group> {
    let scenarios: Vec<_> = shown.iter().map(|index| &plan_scenarios[*index]).collect();
    let others: Vec<Factor> = factors(&scenarios)
        .into_iter()
        .filter(|factor| factor != view)
        .collect();
    let mut keys: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<(Vec<u64>, Group)> = Vec::new();
    for index in shown {
        let scenario = &plan_scenarios[*index];
        let levels: Vec<String> = others.iter().map(|factor| factor.level(scenario)).collect();
        let mut title = levels.join(" · ");
        if title.is_empty() {
            title = constant_parameters(view, scenario);
        }
        let group_index = *keys.entry(title.clone()).or_insert_with(|| {
            let ranks = others.iter().map(|factor| factor.rank(scenario)).collect();
            let members = Vec::new();
            groups.push((ranks, Group { title, members }));
            groups.len() - 1
        });
        groups[group_index]
            .1
            .members
            .push((*index, view.level(scenario)));
    }
    for (_, group) in &mut groups {
        group
            .members
            .sort_by_key(|(index, _)| view.rank(&plan_scenarios[*index]));
    }
    // A stable sort: endpoints stay in the plan's order, and numbers ascend within them.
    groups.sort_by(|(a, _), (b, _)| a.cmp(b));
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The constant parameters of a plan that varies one factor only.
fn constant_parameters(view: &Factor, scenario: &Scenario) -> String {
    let levels: Vec<String> = [Factor::Endpoint, Factor::Interval, Factor::Size]
        .iter()
        .filter(|factor| *factor != view)
        .map(|factor| factor.level(scenario))
        .collect();
    levels.join(" · ")
}

/// The titles of the groups' panels, each unique.
pub fn titles<'a>(groups: impl Iterator<Item = &'a Group>) -> Vec<String> {
    groups.map(|group| group.title.clone()).collect()
}

/// The levels of a factor over all scenarios shown, in order.
pub fn levels(data: &CampaignData, shown: &[usize], view: &Factor) -> Vec<String> {
    let mut levels: Vec<(u64, String)> = Vec::new();
    for index in shown {
        let scenario = &data.scenarios[*index];
        let level = view.level(scenario);
        if !levels.iter().any(|(_, other)| *other == level) {
            levels.push((view.rank(scenario), level));
        }
    }
    levels.sort_by_key(|(rank, _)| *rank);
    levels.into_iter().map(|(_, level)| level).collect()
}
