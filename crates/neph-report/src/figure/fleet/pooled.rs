//! A pair over all of its blocks: sums of what was counted, medians of what was compared. Owns no
//! curves, which are never mixed.

use neph_flows::{Counsel, Measure, PairView, Share};
use neph_model::Span;
use neph_stats::Level;

use super::pair::Pair;
use super::standing_out::Effect;
use crate::findings::median;

/// A pair, once, whatever the number of its blocks.
#[derive(Clone, Debug)]
pub(crate) struct Pooled<'a> {
    /// Its first block, for its names.
    pub(crate) pair: &'a Pair<'a>,
    pub(crate) blocks: usize,
    /// The most flows that a block had.
    pub(crate) flows: usize,
    /// The fewest and the most classes.
    pub(crate) classes: (usize, usize),
    /// The lowest class and the highest, over all blocks; none where no flow had a base latency.
    pub(crate) ends: Option<(Span, Span)>,
    /// Highest class over lowest, less one: the median over blocks, which are no pairs of their own.
    pub(crate) inflation: Option<f64>,
    /// How much more latency the slowest twentieth of the flows has than the median one in each
    /// bin of time, a share: the median over blocks. None where flows are too few for it.
    pub(crate) unfairness: Option<f64>,
    /// Path changes, all together.
    pub(crate) changes: usize,
    /// For each flow and hour in which they could be told; none before any flow was watched, and where
    /// flows are too short for all changes to be told.
    pub(crate) changes_per_flow_hour: Option<f64>,
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
    pub(crate) left_soon: Option<Share>,
    /// How soon that is.
    pub(crate) soon: Span,
    /// The source ports that are advised at the end of its last block; none where none are.
    pub(crate) ports: Vec<u16>,
}

fn ports(pair: &Pair<'_>) -> Vec<u16> {
    match pair.advice().map(|advice| &advice.counsel) {
        Some(Counsel::Given(guide)) => guide.ports.iter().map(|port| port.port).collect(),
        Some(Counsel::Refused { .. }) | None => Vec::new(),
    }
}

impl<'a> Pooled<'a> {
    /// By what it stands out among others.
    pub(crate) fn effect(&self) -> Effect {
        Effect::new(self.inflation, self.changes as u64)
    }

    /// Every pair, in the order of `pairs`.
    pub(crate) fn all(pairs: &'a [Pair<'a>]) -> Vec<Self> {
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
