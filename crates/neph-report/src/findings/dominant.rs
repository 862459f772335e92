//! Where the time goes: which stage takes most of it in which scenario.

use std::collections::BTreeMap;

use neph_model::StageSet;

use super::{Finding, FindingKind, plural};
use crate::axis::{millis, percent};
use crate::figure::Means;
use crate::{CampaignData, PlotSettings};

/// Scenarios are named one by one up to this many.
const NAMED: usize = 3;

/// The stage that takes most of a scenario's mean time.
struct Heaviest {
    scenario: usize,
    set: StageSet,
    mean: f64,
    total: f64,
}

impl Heaviest {
    fn share(&self) -> f64 {
        self.mean / self.total.max(f64::MIN_POSITIVE)
    }
}

pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let all: Vec<Heaviest> = data
        .measured(settings)
        .into_iter()
        .filter_map(|scenario| heaviest(data, settings, scenario))
        .collect();
    let mut by_set: BTreeMap<StageSet, Vec<&Heaviest>> = BTreeMap::new();
    for one in &all {
        by_set.entry(one.set).or_default().push(one);
    }
    let mut groups: Vec<(StageSet, Vec<&Heaviest>)> = by_set.into_iter().collect();
    groups.sort_by_key(|(set, members)| (std::cmp::Reverse(members.len()), *set));
    groups
        .iter_mut()
        .map(|(set, members)| sentence(data, *set, members, all.len()))
        .collect()
}

fn heaviest(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Option<Heaviest> {
    let means = Means::of(data.main_flows(scenario, settings))?;
    let (set, mean) = means
        .entries
        .iter()
        .copied()
        .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(Heaviest {
        scenario,
        set,
        mean,
        total: means.total,
    })
}

fn sentence(data: &CampaignData, set: StageSet, members: &mut [&Heaviest], all: usize) -> Finding {
    members.sort_by(|a, b| b.share().total_cmp(&a.share()));
    let (most, least) = (members[0].share(), members[members.len() - 1].share());
    let text = if members.len() <= NAMED {
        let named: Vec<String> = members
            .iter()
            .map(|one| {
                format!(
                    "{} ({} of {}, {})",
                    data.scenarios[one.scenario].label(),
                    millis(one.mean),
                    millis(one.total),
                    percent(one.share())
                )
            })
            .collect();
        format!("Most of the time is {set} in {}.", named.join("; "))
    } else {
        let which = if members.len() == all { "all" } else { "of" };
        let scenarios = if which == "all" {
            format!("all {}", plural(all, "scenario"))
        } else {
            format!("{} of {}", members.len(), plural(all, "scenario"))
        };
        format!(
            "Most of the time is {set} in {scenarios}: from {} ({}) to {} ({}).",
            percent(least),
            data.scenarios[members[members.len() - 1].scenario].label(),
            percent(most),
            data.scenarios[members[0].scenario].label()
        )
    };
    Finding::new(FindingKind::StandsOut, "ledger", text)
        .with("share_least", least)
        .with("share_most", most)
        .with("scenarios", super::real(members.len()))
}
