//! A pair over all of its blocks: sums of what was counted, medians of what was compared. Owns no
//! curves, which are never mixed.

use crate::CampaignData;
use crate::words::plural;
use neph_flows::{Counsel, Measure, PairView, Share};
use neph_model::Span;
use neph_stats::Level;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::effect::Effect;
use super::pair::Pair;
use crate::findings::median;

/// A pair, once, whatever the number of its blocks.
#[derive(Clone, Debug)]
pub struct Pooled<'a> {
    /// Its first block, for its names.
    pub pair: &'a Pair<'a>,
    pub blocks: usize,
    /// The most flows that a block had.
    pub flows: usize,
    /// The fewest and the most classes.
    pub classes: (usize, usize),
    /// The lowest class and the highest, over all blocks; none where no flow had a base latency.
    pub ends: Option<(Span, Span)>,
    /// Highest class over lowest, less one: the median over blocks, which are no pairs of their own.
    pub inflation: Option<f64>,
    /// How much more latency the slowest twentieth of the flows has than the median one in each
    /// bin of time, a share: the median over blocks. None where flows are too few for it.
    pub(crate) unfairness: Option<f64>,
    /// Path changes, all together.
    pub(crate) changes: usize,
    /// For each flow and hour in which they could be told; none before any flow was watched, and where
    /// flows are too short for all changes to be told.
    pub changes_per_flow_hour: Option<f64>,
    /// Of the path changes, those told for time that is in no rate: what queues hid, and what flows'
    /// first levels took to be learnt.
    pub(crate) unrated: usize,
    /// What was too short for all path changes to be told, in words.
    pub(crate) too_short: Option<&'static str>,
    /// In some block most messages were lost, so that nothing is said of paths there.
    pub(crate) mostly_lost: bool,
    /// Whether the oldest path changes were more than are kept: `changes` lacks them.
    pub(crate) forgotten: bool,
    /// Of the stays in a class that were watched long enough, the share that ended soon.
    pub left_soon: Option<Share>,
    /// How soon that is.
    pub soon: Span,
    /// The source ports that are advised at the end of its last block; none where none are.
    pub ports: Vec<u16>,
}

fn ports(pair: &Pair<'_>) -> Vec<u16> {
    match pair.advice().map(|advice| &advice.counsel) {
        Some(Counsel::Given(guide)) => guide.ports.iter().map(|port| port.port).collect(),
        Some(Counsel::Refused { .. }) | None => Vec::new(),
    }
}

impl<'a> Pooled<'a> {
    /// By what it stands out among others.
    pub fn effect(&self) -> Effect {
        Effect::new(self.inflation, self.changes as u64)
    }

    /// Every pair, in the order of `pairs`.
    pub fn all(pairs: &'a [Pair<'a>]) -> Vec<Self> {
        let mut found: Vec<Vec<&Pair<'_>>> = Vec::new();
        for pair in pairs {
            let same = |known: &&mut Vec<&Pair<'_>>| {
                let first = known.first();
                let key = |one: &Pair<'_>| (one.scenario, one.endpoint);
                first.is_some_and(|first| key(first) == key(pair))
            };
            match found.iter_mut().find(same) {
                Some(blocks) => blocks.push(pair),
                None => found.push(vec![pair]),
            }
        }
        found.iter().filter_map(|blocks| Self::of(blocks)).collect()
    }

    fn of(blocks: &[&'a Pair<'a>]) -> Option<Self> {
        let pair = *blocks.first()?;
        let known = || blocks.iter().map(|one| one.known);
        let classes = || blocks.iter().map(|one| one.classes().len());
        let inflations = || known().filter_map(|one| one.inflation);
        let ends = inflations().map(|one| (one.lowest, one.highest));
        let mut ratios: Vec<f64> = inflations().map(|one| one.ratio - 1.0).collect();
        let unfair = blocks.iter().filter_map(|one| unfairness(one));
        let mut unfair: Vec<f64> = unfair.collect();
        let changes = whole(known().map(|one| one.changes).sum());
        Some(Self {
            pair,
            blocks: blocks.len(),
            flows: whole(known().map(|one| one.flows).max()?),
            classes: (classes().min()?, classes().max()?),
            ends: ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))),
            inflation: median(&mut ratios),
            unfairness: median(&mut unfair),
            changes,
            changes_per_flow_hour: PairView::changes_per_flow_hour_of(known()),
            unrated: whole(known().map(|one| one.hidden.changes).sum()),
            too_short: blocks.iter().find(|one| one.known.too_short).map(|one| {
                if one.view.renewal_ends_flows() {
                    "flows lived"
                } else {
                    "the measurement was"
                }
            }),
            mostly_lost: known().any(|one| one.mostly_lost),
            forgotten: known().any(|one| one.forgotten.is_some()),
            left_soon: Share::together(known().filter_map(|one| one.leave_soon)),
            soon: pair.view.settings.soon,
            ports: blocks.last().map_or_else(Vec::new, |last| ports(last)),
        })
    }
}

/// Absent where it cannot be measured, and where lost flows decide it.
fn unfairness(pair: &Pair<'_>) -> Option<f64> {
    match Measure::Unfairness.of(pair.view, pair.endpoint) {
        Ok(Level::At(share)) => Some(share),
        Ok(Level::Censored) | Err(_) => None,
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What is one pair, however often and in how many ways it was measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// None where the plan names no site.
    site: Option<String>,
    scenario_endpoint: String,
    /// A fleet may have several.
    endpoint: String,
}

/// From where to where it leads, however it was measured: two seasons of a pair are one pair.
fn place(pair: &Pair<'_>, data: &CampaignData) -> Place {
    let scenario = &data.scenarios[pair.scenario];
    Place {
        site: scenario.site().map(str::to_owned),
        scenario_endpoint: scenario.endpoint.clone(),
        endpoint: pair.endpoint_name(),
    }
}

/// `512 flows, 4 pairs`, for captions; with settings and blocks, where there are several.
pub fn counted(data: &CampaignData, pairs: &[Pair<'_>]) -> String {
    let apart = Pooled::all(pairs);
    let mut flows: BTreeMap<Place, usize> = BTreeMap::new();
    for one in &apart {
        let most = flows.entry(place(one.pair, data)).or_default();
        *most = one.flows.max(*most);
    }
    let settings: BTreeSet<&str> = pairs.iter().map(|pair| pair.setting.as_str()).collect();
    let blocks = apart.iter().map(|one| one.blocks).max().unwrap_or(0);
    let (all, places) = (flows.values().sum(), flows.len());
    let mut text = format!("{}, {}", plural(all, "flow"), plural(places, "pair"));
    if settings.len() > 1 {
        text.push_str(&format!(", measured in {} ways", settings.len()));
    }
    if blocks > 1 {
        text.push_str(&format!(", {}", plural(blocks, "block")));
    }
    text
}
