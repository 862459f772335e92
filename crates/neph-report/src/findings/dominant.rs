//! Where the time goes: which stage takes most of it in which scenario.

use std::collections::BTreeMap;

use neph_model::{Stage, StageSet};

use super::{Finding, FindingKind, plural};
use crate::axis::{millis, percent};
use crate::data::FlowData;
use crate::figure::Means;
use crate::{CampaignData, PlotSettings};

/// Scenarios are named one by one up to this many.
const NAMED: usize = 3;
/// A network that takes this many times an echo's time carries more than distance.
const BEYOND_DISTANCE: f64 = 2.0;
/// Milliseconds below which that is not worth a sentence.
const WORTH_TELLING: f64 = 1.0;

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
    let mut found: Vec<Finding> = groups
        .iter_mut()
        .map(|(set, members)| sentence(data, *set, members, all.len()))
        .collect();
    found.extend(beyond_distance(data, settings, &all));
    found
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

/// Where the network takes much longer than an echo: transmission, queueing, or another path.
fn beyond_distance(
    data: &CampaignData,
    settings: &PlotSettings,
    all: &[Heaviest],
) -> Option<Finding> {
    let mut found: Vec<(usize, f64, f64)> = all
        .iter()
        .filter_map(|one| {
            let network = median(data, settings, one.scenario, Side::Network)?;
            let echo = median(data, settings, one.scenario, Side::Echo)?;
            let beyond = network > echo * BEYOND_DISTANCE && network - echo > WORTH_TELLING;
            beyond.then_some((one.scenario, network, echo))
        })
        .collect();
    found.sort_by(|a, b| (b.1 / b.2).total_cmp(&(a.1 / a.2)));
    let (scenario, network, echo) = *found.first()?;
    let others = match found.len() - 1 {
        0 => String::new(),
        more => format!(
            " The same holds, less so, for {}.",
            plural(more, "more scenario")
        ),
    };
    let text = format!(
        "In {} the median network round trip is {}, while an ICMP echo takes {}: {} go into transmitting and queueing {}, not into distance.{others}",
        data.scenarios[scenario].label(),
        millis(network),
        millis(echo),
        millis(network - echo),
        data.scenarios[scenario].request_size,
    );
    let finding = Finding::new(FindingKind::StandsOut, "transmission", text)
        .with("network_ms", network)
        .with("icmp_ms", echo)
        .with("scenarios", super::real(found.len()));
    Some(finding)
}

#[derive(Clone, Copy)]
enum Side {
    Network,
    Echo,
}

fn median(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    side: Side,
) -> Option<f64> {
    let experiments = data.experiments_of(scenario, settings);
    let flows: Vec<&FlowData> = match side {
        Side::Network => experiments.filter_map(|e| e.main()).collect(),
        Side::Echo => experiments.filter_map(|e| e.companion()).collect(),
    };
    let mut values: Vec<f64> = flows
        .iter()
        .flat_map(|flow| flow.exchanges.iter().map(move |exchange| (flow, exchange)))
        .filter_map(|(flow, exchange)| match side {
            Side::Network => flow
                .ledger(exchange)
                .find(|(set, _)| set.contains(Stage::Network))
                .map(|(_, time)| time),
            Side::Echo => flow.round_trip(exchange),
        })
        .map(neph_model::Span::millis_f64)
        .collect();
    super::compare::median(&mut values)
}
