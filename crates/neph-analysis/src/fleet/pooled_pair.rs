//! A pair over all of its blocks: sums of counts, medians of comparisons. Owns no curves, which are never
//! combined.

use crate::CampaignData;
use crate::text::plural;
use neph_flows::{Measure, PairView, PortAdvice, Share};
use neph_model::Span;
use neph_stats::Level;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::effect::Effect;
use super::pair::Pair;
use crate::findings::median;

/// A pair, once, for all of its blocks.
#[derive(Clone, Debug)]
pub struct PooledPair<'a> {
    /// Its first block, for its names.
    pub pair: &'a Pair<'a>,
    pub blocks: usize,
    /// The largest number of flows in a block.
    pub flows: usize,
    /// The smallest and the largest number of classes.
    pub classes: (usize, usize),
    /// The lowest and the highest class, over all blocks; `None` if no flow had a base latency.
    pub base_range: Option<(Span, Span)>,
    /// Inflation: highest class over lowest, minus one; median over the blocks.
    pub inflation: Option<f64>,
    /// Unfairness: additional latency of the flows at p95 against the median flow, per bin of time, as a
    /// share; median over blocks. `None` with too few flows.
    pub(crate) unfairness: Option<f64>,
    /// Number of path changes.
    pub(crate) changes: usize,
    /// Path changes per flow and hour of observable time. `None` without such time, and if flows are too
    /// short to detect all changes.
    pub changes_per_flow_hour: Option<f64>,
    /// Path changes outside of the observable time: a queue hid changes, or the first base latency of a flow
    /// was not known yet.
    pub(crate) changes_without_rate: usize,
    /// What was too short to detect all path changes, as text.
    pub(crate) too_short_text: Option<&'static str>,
    /// Whether most messages were lost in some block, so that its paths are unknown.
    pub(crate) is_mostly_lost: bool,
    /// Whether `changes` lacks the oldest path changes because more occurred than are kept.
    pub(crate) lacks_oldest_changes: bool,
    /// Share of the sufficiently long observed stays in a class that ended soon.
    pub left_soon: Option<Share>,
    /// The limit for "soon".
    pub soon: Span,
    /// The source ports that are advised at the end of the last block; may be empty.
    pub ports: Vec<u16>,
}

fn ports(pair: &Pair<'_>) -> Vec<u16> {
    match pair.advice().map(|advice| &advice.port_advice) {
        Some(PortAdvice::Given(evidence)) => evidence.ports.iter().map(|port| port.port).collect(),
        Some(PortAdvice::Refused { .. }) | None => Vec::new(),
    }
}

impl<'a> PooledPair<'a> {
    /// The effect by which pairs are ordered.
    pub fn effect(&self) -> Effect {
        Effect::new(self.inflation, self.changes as u64)
    }

    /// Every pair, in the order of `pairs`.
    pub fn pool(pairs: &'a [Pair<'a>]) -> Vec<Self> {
        let mut groups: Vec<Vec<&Pair<'_>>> = Vec::new();
        for pair in pairs {
            let is_same_pair = |group: &&mut Vec<&Pair<'_>>| {
                let first = group.first();
                let key = |pair: &Pair<'_>| (pair.scenario, pair.endpoint);
                first.is_some_and(|first| key(first) == key(pair))
            };
            match groups.iter_mut().find(is_same_pair) {
                Some(blocks) => blocks.push(pair),
                None => groups.push(vec![pair]),
            }
        }
        groups
            .iter()
            .filter_map(|blocks| Self::of(blocks))
            .collect()
    }

    fn of(blocks: &[&'a Pair<'a>]) -> Option<Self> {
        let pair = *blocks.first()?;
        let views = || blocks.iter().map(|block| block.pair_view);
        let classes = || blocks.iter().map(|block| block.classes().len());
        let inflations = || views().filter_map(|view| view.inflation);
        let ranges = inflations().map(|inflation| (inflation.lowest, inflation.highest));
        let mut ratios: Vec<f64> = inflations()
            .map(|inflation| inflation.ratio - 1.0)
            .collect();
        let unfairnesses = blocks.iter().filter_map(|block| unfairness(block));
        let mut unfairnesses: Vec<f64> = unfairnesses.collect();
        let changes = to_usize(views().map(|view| view.changes).sum());
        Some(Self {
            pair,
            blocks: blocks.len(),
            flows: to_usize(views().map(|view| view.flows).max()?),
            classes: (classes().min()?, classes().max()?),
            base_range: ranges
                .reduce(|extremes, range| (extremes.0.min(range.0), extremes.1.max(range.1))),
            inflation: median(&mut ratios),
            unfairness: median(&mut unfairnesses),
            changes,
            changes_per_flow_hour: PairView::changes_per_flow_hour_of(views()),
            changes_without_rate: to_usize(views().map(|view| view.hidden.changes).sum()),
            too_short_text: blocks
                .iter()
                .find(|block| block.pair_view.too_short)
                .map(|block| {
                    if block.view.lifetime_ends_flows() {
                        "flows lived"
                    } else {
                        "the measurement was"
                    }
                }),
            is_mostly_lost: views().any(|view| view.mostly_lost),
            lacks_oldest_changes: views().any(|view| view.forgotten.is_some()),
            left_soon: Share::pool(views().filter_map(|view| view.leave_share)),
            soon: pair.view.settings.soon,
            ports: blocks.last().map_or_else(Vec::new, |last| ports(last)),
        })
    }
}

/// `None` if it cannot be measured, or if lost flows decide it.
fn unfairness(pair: &Pair<'_>) -> Option<f64> {
    match Measure::Unfairness.of(pair.view, pair.endpoint) {
        Ok(Level::At(share)) => Some(share),
        Ok(Level::Censored) | Err(_) => None,
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The identity of a pair over all of its measurements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PairIdentity {
    /// `None` if the plan names no site.
    site: Option<String>,
    scenario_endpoint: String,
    /// A fleet may have several.
    endpoint: String,
}

/// Site and endpoint of a pair: two seasons of a pair are one pair.
fn identity_of(pair: &Pair<'_>, data: &CampaignData) -> PairIdentity {
    let scenario = &data.scenarios[pair.scenario];
    PairIdentity {
        site: scenario.site().map(str::to_owned),
        scenario_endpoint: scenario.endpoint.clone(),
        endpoint: pair.endpoint_name(),
    }
}

/// `512 flows, 4 pairs`, for captions; with settings and blocks, if there are several.
pub fn flows_and_pairs_text(data: &CampaignData, pairs: &[Pair<'_>]) -> String {
    let pooled = PooledPair::pool(pairs);
    let mut flows: BTreeMap<PairIdentity, usize> = BTreeMap::new();
    for pooled_pair in &pooled {
        let max = flows
            .entry(identity_of(pooled_pair.pair, data))
            .or_default();
        *max = pooled_pair.flows.max(*max);
    }
    let settings: BTreeSet<&str> = pairs.iter().map(|pair| pair.setting.as_str()).collect();
    let blocks = pooled
        .iter()
        .map(|pooled_pair| pooled_pair.blocks)
        .max()
        .unwrap_or(0);
    let (flow_count, pair_count) = (flows.values().sum(), flows.len());
    let mut text = format!(
        "{}, {}",
        plural(flow_count, "flow"),
        plural(pair_count, "pair")
    );
    if settings.len() > 1 {
        text.push_str(&format!(", measured in {} ways", settings.len()));
    }
    if blocks > 1 {
        text.push_str(&format!(", {}", plural(blocks, "block")));
    }
    text
}
