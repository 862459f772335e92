//! Comparisons of fleets: each measure of each level against the first level, with verdicts.

use std::collections::BTreeMap;

use neph_flows::{FleetView, Measure, NoValue, PairView};
use neph_model::{Scenario, Span};
use neph_stats::{Claim, Decision, Level, Wanted, median_of_levels};

use super::samples::{ByBlock, Samples};
use crate::data::{Factor, factors};
use crate::findings::compare::{ClaimIndex, Decisions, Family};
use crate::numbers::percent;
use crate::view::Group;
use crate::view::groups;
use crate::{CampaignData, PlotSettings};

/// Smallest relevant difference of path changes, as a share of the first level's.
const SHARE_OF_CHANGES: f64 = 0.05;
/// Smallest relevant difference of inflation and unfairness: 5 % of the latency.
const SHARE_OF_LATENCY: f64 = 0.05;

/// One measure of one level against the first level.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) measure: Measure,
    /// Medians over experiments: of this level and of the first one.
    pub(crate) medians: [Level; 2],
    /// This level minus the first one; infinite if lost flows decide it.
    pub shift: f64,
    /// Experiments of this level and of the first one.
    pub(crate) n: (usize, usize),
    /// The smallest difference that matters.
    pub margin: f64,
    /// The place of the claim in the report's family; `None` without a claim because the two were measured in
    /// different blocks.
    claim_index: Option<ClaimIndex>,
    /// The judgement.
    pub(crate) decision: Option<Decision>,
}

/// One level against the first, for one endpoint.
#[derive(Debug)]
pub struct LevelVersusFirst {
    /// What both have in common.
    pub title: String,
    pub(crate) level: String,
    pub(crate) first: String,
    pub(crate) endpoint: String,
    pub(crate) compared: Vec<Compared>,
    /// Sentences about measures that could not be compared, or only in part.
    pub(crate) limits: Vec<String>,
}

/// All comparisons of fleets, as part of the report's family.
pub(crate) fn prepare(
    data: &CampaignData,
    settings: &PlotSettings,
    family: &mut Family,
) -> Vec<LevelVersusFirst> {
    let mut shown = data.measured(settings);
    shown.retain(|index| {
        let mut experiments = data.experiments_of(*index, settings);
        experiments.any(|experiment| experiment.fleet.is_some())
    });
    comparisons_of_groups(data, settings, &shown, family)
}

/// Adds the judgement to each.
pub(crate) fn decide(levels: &mut [LevelVersusFirst], decisions: &Decisions) {
    for compared in levels.iter_mut().flat_map(|level| &mut level.compared) {
        compared.decision = compared.claim_index.map(|index| decisions.for_claim(index));
    }
}

/// Number of comparisons between fleets of these scenarios.
pub(crate) fn comparisons(scenarios: &[Scenario]) -> usize {
    let fleets = scenarios.iter().enumerate();
    let fleets = fleets.filter(|(_, scenario)| scenario.flows().is_some());
    let fleets: Vec<usize> = fleets.map(|(index, _)| index).collect();
    let mut comparisons = 0;
    for group in compared_groups(scenarios, &fleets) {
        let compared_levels = group.members.iter().skip(1);
        let measures = compared_levels.map(|(index, _)| measures_of(&scenarios[*index]));
        comparisons += measures.sum::<usize>();
    }
    comparisons
}

/// Unfairness needs many flows.
fn measures_of(fleet: &Scenario) -> usize {
    let flows = fleet.flows().unwrap_or(1);
    let has_enough_flows = |measure: &&Measure| flows >= measure.needs();
    Measure::ALL.iter().filter(has_enough_flows).count()
}

/// Fleets that differ in one factor only. Endpoints and sites are not compared: other networks have unrelated
/// paths.
fn compared_groups(scenarios: &[Scenario], fleets: &[usize]) -> Vec<Group> {
    let fleet_scenarios: Vec<&Scenario> = fleets.iter().map(|index| &scenarios[*index]).collect();
    let mut factors = factors(&fleet_scenarios);
    factors.retain(|factor| !factor.is_place());
    let groups_by = |factor: &Factor| groups(scenarios, fleets, factor);
    factors.iter().flat_map(groups_by).collect()
}

fn comparisons_of_groups(
    data: &CampaignData,
    settings: &PlotSettings,
    shown: &[usize],
    family: &mut Family,
) -> Vec<LevelVersusFirst> {
    let mut comparisons = Vec::new();
    for group in compared_groups(&data.scenarios, shown) {
        let Some((first, others)) = group.members.split_first() else {
            continue;
        };
        let names = endpoints(data, settings, first.0);
        let side = |(scenario, level): &'_ (usize, String), endpoint| {
            Side::of(level, fleets(data, settings, *scenario), endpoint)
        };
        let first_sides: Vec<Side<'_>> = (0..names.len()).map(|index| side(first, index)).collect();
        for other_member in others {
            for ((endpoint, name), first) in names.iter().enumerate().zip(&first_sides) {
                // With a single endpoint, the title already contains it.
                let title = match names.as_slice() {
                    [_] => group.title.clone(),
                    _ => format!("{}, {name}", group.title),
                };
                let sides = [first, &side(other_member, endpoint)];
                comparisons.push(LevelVersusFirst::of(title, name, sides, family));
            }
        }
    }
    comparisons
}

/// The values of a measure in a level's experiments, by block.
type Values = BTreeMap<u32, Result<Level, NoValue>>;

/// A level's fleets, evaluated for one endpoint.
struct Side<'a> {
    level: String,
    /// By block.
    fleets: Vec<(u32, &'a FleetView)>,
    endpoint: usize,
    values: BTreeMap<Measure, Values>,
}

impl<'a> Side<'a> {
    fn of(level: &str, fleets: Vec<(u32, &'a FleetView)>, endpoint: usize) -> Self {
        let values = |measure: Measure| {
            let views = fleets.iter();
            views
                .map(|(block, view)| (*block, measure.of(view, endpoint)))
                .collect()
        };
        let measures = Measure::ALL.into_iter();
        Self {
            level: level.to_owned(),
            values: measures.map(|measure| (measure, values(measure))).collect(),
            fleets,
            endpoint,
        }
    }

    /// The available values of a measure.
    fn by_block(&self, measure: Measure) -> ByBlock {
        let values = self.values.get(&measure).into_iter().flatten();
        values
            .filter_map(|(block, value)| Some((*block, value.ok()?)))
            .collect()
    }

    /// The share of the flows' time in which a queue hid path changes.
    fn hidden(&self) -> f64 {
        let pairs = || {
            let views = self.fleets.iter();
            views.filter_map(|(_, view)| view.pairs.get(self.endpoint))
        };
        let seconds =
            |time_of: fn(&PairView) -> Span| pairs().map(time_of).sum::<Span>().secs_f64();
        seconds(|pair| pair.hidden.time) / seconds(|pair| pair.watched).max(1e-9)
    }

    /// Number of flows that unfairness needs, if no experiment has as many.
    fn too_few_flows(&self) -> Option<u32> {
        let mut values = self.values.get(&Measure::Unfairness)?.values();
        let Some(Err(NoValue::TooFewFlows { needs })) = values.next() else {
            return None;
        };
        values
            .all(|value| matches!(value, Err(NoValue::TooFewFlows { .. })))
            .then_some(*needs)
    }
}

impl LevelVersusFirst {
    fn of(
        title: String,
        endpoint: &str,
        [first, other]: [&Side<'_>; 2],
        family: &mut Family,
    ) -> Self {
        let mut limits = limits(first, other);
        let mut compared = Vec::new();
        for measure in Measure::ALL {
            let samples = Samples::of(&other.by_block(measure), &first.by_block(measure));
            if samples.are_all_lost() {
                let measure = measure.name();
                limits.push(format!("Both lost too much for {measure} to be compared"));
            } else {
                compared.extend(compare(measure, &samples, family));
            }
        }
        if compared
            .iter()
            .any(|comparison| comparison.claim_index.is_none())
        {
            limits.push(DIFFERENT_BLOCKS.to_owned());
        }
        Self {
            title,
            level: other.level.clone(),
            first: first.level.clone(),
            endpoint: endpoint.to_owned(),
            compared,
            limits,
        }
    }
}

/// A smaller difference in the share of hidden time is not reported.
const MIN_HIDDEN_SHARE: f64 = 0.01;

fn limits(first: &Side<'_>, other: &Side<'_>) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(needs) = first.too_few_flows().or_else(|| other.too_few_flows()) {
        limits.push(format!(
            "Unfairness is not compared: p95 takes {needs} flows"
        ));
    }
    let hidden = (first.hidden(), other.hidden());
    if hidden.0.max(hidden.1) >= MIN_HIDDEN_SHARE {
        limits.push(format!(
            "Queues that all flows shared hid path changes for {} of the time in {} and {} in {}; the rates are of the rest",
            percent(hidden.1),
            other.level,
            percent(hidden.0),
            first.level
        ));
    }
    limits
}

fn fleets<'a>(
    data: &'a CampaignData,
    settings: &'a PlotSettings,
    scenario: usize,
) -> Vec<(u32, &'a FleetView)> {
    data.experiments_of(scenario, settings)
        .filter_map(|experiment| Some((experiment.block(), experiment.fleet.as_ref()?)))
        .collect()
}

/// The names of the endpoints of a scenario's fleets.
fn endpoints(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Vec<String> {
    let mut fleets = data
        .experiments_of(scenario, settings)
        .filter_map(|experiment| experiment.fleet.as_ref());
    let endpoints = fleets.next().map(|view| &view.fleet.endpoints);
    endpoints
        .into_iter()
        .flatten()
        .map(|endpoint| endpoint.name.clone())
        .collect()
}

/// Why there is no verdict on measurements from different times.
const DIFFERENT_BLOCKS: &str =
    "No block has both, so that no verdict is given: what lies between may be the time";

/// `None` if there is nothing to compare.
fn compare(measure: Measure, samples: &Samples, family: &mut Family) -> Option<Compared> {
    let (others, firsts) = samples.sides();
    let n = (others.len(), firsts.len());
    let medians = [others, firsts].map(|side| median_of_levels(side).ok());
    let [Some(other), Some(first)] = medians else {
        return None;
    };
    let margin = match measure {
        Measure::Changes => SHARE_OF_CHANGES * first.number()?,
        Measure::Inflation | Measure::Unfairness => SHARE_OF_LATENCY,
    };
    let (estimate, paired_shift) = samples.shift().ok()?;
    let claim = paired_shift.map(|shift| Claim::Shift {
        shift,
        margin,
        wanted: Wanted::Lower,
    });
    Some(Compared {
        measure,
        shift: estimate,
        n,
        medians: [other, first],
        margin,
        claim_index: claim.map(|claim| family.add(claim)),
        decision: None,
    })
}

impl Compared {
    /// Whether both levels were measured in the same blocks.
    pub(crate) const fn is_paired(&self) -> bool {
        self.claim_index.is_some()
    }
}
