//! What is compared: each measure of each level against the first level, and the verdicts.

use std::collections::BTreeMap;

use neph_flows::{FleetView, Measure, NoValue, PairView};
use neph_model::{Scenario, Span};
use neph_stats::{
    Level, LevelShift, Verdict, holm, median_of_levels, shift_of_blocks, shift_of_levels,
};

use crate::axis::percent;
use crate::data::{Factor, factors};
use crate::figure::{Group, groups};
use crate::findings::compare::{blocks_needed, median, verdict_of};
use crate::{CampaignData, PlotSettings};

/// Path changes differ if by so much of the first level's.
const SHARE_OF_CHANGES: f64 = 0.05;
/// Inflation and unfairness differ if by 5 % of the latency that they are told in.
const SHARE_OF_LATENCY: f64 = 0.05;

/// An experiment's value in each block.
type ByBlock = BTreeMap<u32, Level>;

/// One measure of one level against the first level.
pub(crate) struct Compared {
    pub(crate) measure: Measure,
    /// The medians over experiments: of this level and of the first one.
    pub(crate) medians: [Level; 2],
    /// This level minus the first one.
    pub(crate) test: LevelShift,
    /// The smallest difference that matters.
    pub(crate) least: f64,
    /// Whether both levels were measured in the same blocks.
    pub(crate) paired: bool,
    /// After Holm's correction, over all comparisons of the report.
    pub(crate) p_holm: f64,
    pub(crate) verdict: Verdict,
}

/// One level against the first, to one endpoint.
pub(crate) struct Against {
    /// What both have in common.
    pub(crate) title: String,
    pub(crate) level: String,
    pub(crate) first: String,
    pub(crate) endpoint: String,
    pub(crate) compared: Vec<Compared>,
    /// Sentences about what could not be compared, or only in part.
    pub(crate) limits: Vec<String>,
}

/// All that a report compares. It is told together, so it is one family to Holm.
pub(crate) fn compared(data: &CampaignData, settings: &PlotSettings) -> Vec<Against> {
    let mut found = of_each_group(data, settings);
    let mut family: Vec<&mut Compared> =
        found.iter_mut().flat_map(|one| &mut one.compared).collect();
    let p_values: Vec<f64> = family.iter().map(|one| one.test.p).collect();
    let corrected = holm(&p_values).expect("a test's p values lie between 0 and 1");
    for (one, p) in family.iter_mut().zip(corrected) {
        one.judge(p);
    }
    found
}

/// How many blocks it takes at least until fleets of these scenarios can be told apart: `None` where
/// none differ in anything but whom they ask.
pub fn blocks_to_compare(scenarios: &[Scenario]) -> Option<usize> {
    let fleets = scenarios.iter().enumerate();
    let fleets = fleets.filter(|(_, one)| one.flows().is_some());
    let fleets: Vec<usize> = fleets.map(|(index, _)| index).collect();
    let mut comparisons = 0;
    for group in compared_groups(scenarios, &fleets) {
        let others = group.members.iter().skip(1);
        let measures = others.map(|(index, _)| measures_of(&scenarios[*index]));
        comparisons += measures.sum::<usize>();
    }
    (comparisons > 0).then(|| blocks_needed(comparisons))
}

/// Unfairness takes many flows.
fn measures_of(fleet: &Scenario) -> usize {
    let flows = fleet.flows().unwrap_or(1);
    let takes = |measure: &&Measure| flows >= measure.needs();
    Measure::ALL.iter().filter(takes).count()
}

/// Fleets that differ in one factor only. Two endpoints are two networks, whose paths have nothing to
/// do with each other, and so are two sites that one endpoint is asked from.
fn compared_groups(scenarios: &[Scenario], fleets: &[usize]) -> Vec<Group> {
    let shown: Vec<&Scenario> = fleets.iter().map(|index| &scenarios[*index]).collect();
    let mut found = factors(&shown);
    let place = [Factor::Endpoint, Factor::Parameter("from".to_owned())];
    found.retain(|factor| !place.contains(factor));
    let of = |factor: &Factor| groups(scenarios, fleets, factor);
    found.iter().flat_map(of).collect()
}

fn of_each_group(data: &CampaignData, settings: &PlotSettings) -> Vec<Against> {
    let mut shown = data.measured(settings);
    shown.retain(|index| {
        let mut all = data.experiments_of(*index, settings);
        all.any(|one| one.fleet.is_some())
    });
    let mut found = Vec::new();
    for group in compared_groups(&data.scenarios, &shown) {
        let Some((first, others)) = group.members.split_first() else {
            continue;
        };
        let names = endpoints(data, settings, first.0);
        for other in others {
            for (endpoint, name) in names.iter().enumerate() {
                // With one endpoint, the title names it already.
                let title = match names.as_slice() {
                    [_] => group.title.clone(),
                    _ => format!("{}, {name}", group.title),
                };
                let sides = [first, other].map(|(scenario, level)| Side {
                    level,
                    fleets: fleets(data, settings, *scenario),
                    endpoint,
                });
                found.push(Against::of(title, name, &sides));
            }
        }
    }
    found
}

/// A level's fleets, of which one endpoint is looked at.
struct Side<'a> {
    level: &'a str,
    /// By block.
    fleets: Vec<(u32, &'a FleetView)>,
    endpoint: usize,
}

impl Side<'_> {
    fn by_block(&self, measure: Measure) -> ByBlock {
        let value = |(block, view): &(u32, &FleetView)| {
            Some((*block, measure.of(view, self.endpoint).ok()?))
        };
        self.fleets.iter().filter_map(value).collect()
    }

    /// The share of the flows' time in which a queue hid path changes.
    fn hidden(&self) -> f64 {
        let pairs = || {
            let views = self.fleets.iter();
            views.filter_map(|(_, view)| view.pairs.get(self.endpoint))
        };
        let time = |of: fn(&PairView) -> Span| pairs().map(of).sum::<Span>().secs_f64();
        time(|pair| pair.hidden.time) / time(|pair| pair.watched).max(1e-9)
    }

    /// How many flows unfairness takes, where no experiment has as many.
    fn too_few_flows(&self) -> Option<u32> {
        let mut why =
            self.fleets.iter().map(
                |(_, view)| match Measure::Unfairness.of(view, self.endpoint) {
                    Err(NoValue::TooFewFlows { needs }) => Some(needs),
                    _ => None,
                },
            );
        let first = why.next()??;
        why.all(|one| one.is_some()).then_some(first)
    }
}

impl Against {
    fn of(title: String, endpoint: &str, [first, other]: &[Side<'_>; 2]) -> Self {
        let compared = Measure::ALL
            .into_iter()
            .filter_map(|m| compare(m, &first.by_block(m), &other.by_block(m)));
        Self {
            title,
            level: other.level.to_owned(),
            first: first.level.to_owned(),
            endpoint: endpoint.to_owned(),
            compared: compared.collect(),
            limits: limits(first, other),
        }
    }
}

/// A difference below this in what queues hid is not worth a sentence.
const HARDLY: f64 = 0.01;

fn limits(first: &Side<'_>, other: &Side<'_>) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(needs) = first.too_few_flows().or_else(|| other.too_few_flows()) {
        limits.push(format!(
            "Unfairness is not compared: p95 takes {needs} flows"
        ));
    }
    let hidden = (first.hidden(), other.hidden());
    if hidden.0.max(hidden.1) >= HARDLY {
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
        .filter_map(|one| Some((one.block(), one.fleet.as_ref()?)))
        .collect()
}

/// The names of those whom a scenario's fleets ask.
fn endpoints(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Vec<String> {
    let mut fleets = data
        .experiments_of(scenario, settings)
        .filter_map(|one| one.fleet.as_ref());
    let asked = fleets.next().map(|view| &view.fleet.endpoints);
    asked
        .into_iter()
        .flatten()
        .map(|one| one.name.clone())
        .collect()
}

/// Block by block where any block has both levels, else all of one against all of the other.
fn compare(measure: Measure, first: &ByBlock, other: &ByBlock) -> Option<Compared> {
    let both = other
        .iter()
        .filter_map(|(block, one)| Some((*one, *first.get(block)?)));
    let both: Vec<(Level, Level)> = both.collect();
    let paired = !both.is_empty();
    let (others, ones): (Vec<Level>, Vec<Level>) = if paired {
        both.iter().copied().unzip()
    } else {
        let all = |levels: &ByBlock| levels.values().copied().collect();
        (all(other), all(first))
    };
    let least = match measure {
        Measure::Changes => {
            let mut known: Vec<f64> = ones.iter().filter_map(|one| one.number()).collect();
            SHARE_OF_CHANGES * median(&mut known)?
        }
        Measure::Inflation | Measure::Unfairness => SHARE_OF_LATENCY,
    };
    let test = if paired {
        shift_of_blocks(&both)
    } else {
        shift_of_levels(&others, &ones)
    };
    let middle = |levels: Vec<Level>| median_of_levels(levels).ok();
    Some(Compared {
        measure,
        test: test.ok()?,
        medians: [middle(others)?, middle(ones)?],
        least,
        paired,
        p_holm: 1.0,
        verdict: Verdict::Inconclusive,
    })
}

impl Compared {
    /// What may be said of it with this p after Holm's correction.
    fn judge(&mut self, p: f64) {
        self.p_holm = p;
        self.verdict = verdict_of(self.test.shift, p, self.least);
    }
}
