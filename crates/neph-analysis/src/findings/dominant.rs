//! The dominant stage: which stage takes most of the time in which scenario.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use neph_model::{Stage, StageSet};

use super::{Finding, FindingKind};
use crate::means::Means;
use crate::numbers::{millis, percent};
use crate::text::plural;
use crate::{CampaignData, PlotSettings};

/// Maximum number of scenarios that are listed by name.
const MAX_NAMED: usize = 3;

/// The stage with the largest share of a scenario's mean time.
struct LargestStage {
    scenario: usize,
    set: StageSet,
    mean: f64,
    total: f64,
}

impl LargestStage {
    fn share(&self) -> f64 {
        self.mean / self.total.max(f64::MIN_POSITIVE)
    }

    fn is_majority(&self) -> bool {
        self.share() > 0.5
    }
}

pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let largest_stages: Vec<LargestStage> = data
        .measured(settings)
        .into_iter()
        .filter_map(|scenario| largest_stage(data, settings, scenario))
        .collect();
    // Stages that take more than half of the time come first.
    let mut by_set: BTreeMap<(Reverse<bool>, StageSet), Vec<&LargestStage>> = BTreeMap::new();
    for largest_stage in &largest_stages {
        let group = (Reverse(largest_stage.is_majority()), largest_stage.set);
        by_set.entry(group).or_default().push(largest_stage);
    }
    let mut groups: Vec<Vec<&LargestStage>> = by_set.into_values().collect();
    groups.sort_by_key(|members| Reverse(members.len()));
    groups
        .iter_mut()
        .map(|members| sentence(data, members, largest_stages.len()))
        .collect()
}

fn largest_stage(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
) -> Option<LargestStage> {
    let means = Means::of(data.main_flows(scenario, settings))?;
    let (set, mean) = means
        .entries
        .iter()
        .copied()
        .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let is_everything = means
        .entries
        .iter()
        .all(|(other, mean)| *other == set || *mean == 0.0);
    // A merged stage that is the whole time is no result.
    (!set.is_merged() || !is_everything).then_some(LargestStage {
        scenario,
        set,
        mean,
        total: means.total,
    })
}

/// A sentence about scenarios with the same dominant stage; `scenario_count` is the number of scenarios.
fn sentence(data: &CampaignData, members: &mut [&LargestStage], scenario_count: usize) -> Finding {
    let set = members[0].set;
    let part = if members[0].is_majority() {
        ""
    } else {
        ", the largest part,"
    };
    members.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let (highest, lowest) = (members[0], members[members.len() - 1]);
    let (max, min) = (highest.share(), lowest.share());
    let label = |largest_stage: &LargestStage| {
        format!("'{}'", data.scenarios[largest_stage.scenario].label())
    };
    let text = if members.len() <= MAX_NAMED {
        let sentences = (0..).zip(members.iter()).map(|(index, largest_stage)| {
            let (mean, total) = (millis(largest_stage.mean), millis(largest_stage.total));
            let share = percent(largest_stage.share());
            let beginning = if index == 0 {
                format!("The stage '{set}' takes {share} of the mean response time{part}")
            } else {
                share
            };
            format!(
                "{beginning} in {} ({mean} of {total})",
                label(largest_stage)
            )
        });
        sentences.collect::<Vec<String>>().join("; ") + "."
    } else {
        let scenarios = if members.len() == scenario_count {
            format!("all {}", plural(scenario_count, "scenario"))
        } else {
            format!(
                "{} of {}",
                members.len(),
                plural(scenario_count, "scenario")
            )
        };
        format!(
            "In {scenarios}, the stage '{set}' is the largest part of the mean response time: {} (lowest share: {}) to {} (highest: {}).",
            percent(min),
            label(lowest),
            percent(max),
            label(highest)
        )
    };
    // The network needs no explanation.
    let meaning = match set.single() {
        None | Some(Stage::Network) => String::new(),
        Some(stage) => format!(" This stage is {}.", stage.meaning()),
    };
    Finding::new(FindingKind::Notable, "ledger", text + &meaning)
        .about(&set.to_string())
        .with("share_least", min)
        .with("share_most", max)
        .with("scenarios", crate::text::to_f64(members.len()))
}
