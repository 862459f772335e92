//! The messages of a layer in groups that do not depend on each other: its experiments, or where there
//! is one experiment alone, parts of it.
//!
//! Owns the groups; the intervals are `neph_stats`' ([`grouped_quantile`], [`grouped_share`]).

use neph_model::Outcome;
use neph_stats::{
    GROUPS_NEEDED, Group, GroupedQuantile, GroupedShare, Sorted, grouped_quantile, grouped_share,
};

use crate::CampaignData;
use crate::Layer;
use crate::data::{Exchange, FlowData};

/// Parts of a single experiment: few, so that each is much longer than what its messages have in
/// common with their neighbours, and enough to know how much they differ.
const PARTS: usize = 10;

/// Where intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// From how much experiments differ.
    Experiments,
    /// From how much parts of the one experiment differ.
    Parts,
    /// There are none: experiments differ, and there are too few of them to know by how much.
    TooFewExperiments,
}

impl Unit {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Experiments => "experiments",
            Self::Parts => "stretches",
            Self::TooFewExperiments => "none",
        }
    }
}

/// One group's messages.
struct Members {
    /// Milliseconds, in ascending order.
    values: Vec<f64>,
    /// Messages without a value, as far as they count in the layer.
    unanswered: usize,
    lost: usize,
    sent: usize,
}

/// The groups of a layer.
pub(crate) struct Grouped {
    pub unit: Unit,
    groups: Vec<Members>,
}

impl Grouped {
    pub(crate) fn of(flows: &[&FlowData], layer: &Layer, data: &CampaignData) -> Self {
        let members_of =
            |flow: &FlowData, exchanges: &[Exchange]| Members::of(flow, exchanges, layer, data);
        match flows {
            [flow] => {
                let length = flow.exchanges.len().div_ceil(PARTS).max(1);
                let parts = flow.exchanges.chunks(length);
                Self {
                    unit: Unit::Parts,
                    groups: parts.map(|part| members_of(flow, part)).collect(),
                }
            }
            several => Self {
                unit: if several.len() < GROUPS_NEEDED {
                    Unit::TooFewExperiments
                } else {
                    Unit::Experiments
                },
                groups: several
                    .iter()
                    .map(|flow| members_of(flow, &flow.exchanges))
                    .collect(),
            },
        }
    }

    /// The values of all groups, in no order.
    pub(crate) fn values(&self) -> Vec<f64> {
        let groups = self.groups.iter();
        groups.flat_map(|group| &group.values).copied().collect()
    }

    /// Quantiles with their intervals; `pooled` has the values of all groups.
    pub(crate) fn quantiles<const N: usize>(
        &self,
        pooled: Sorted<'_>,
        levels: [f64; N],
    ) -> [Option<GroupedQuantile>; N] {
        let groups: Vec<Group<'_>> = self
            .groups
            .iter()
            .map(|group| Group {
                replies: Sorted::check(&group.values).expect("they were sorted"),
                unanswered: group.unanswered,
            })
            .collect();
        levels.map(|p| grouped_quantile(pooled, &groups, p).ok())
    }

    /// The share of messages sent that were lost, with its interval.
    pub(crate) fn loss(&self) -> Option<GroupedShare> {
        let counts: Vec<(usize, usize)> = self
            .groups
            .iter()
            .map(|group| (group.lost, group.sent))
            .collect();
        grouped_share(&counts).ok()
    }
}

impl Members {
    fn of(flow: &FlowData, exchanges: &[Exchange], layer: &Layer, data: &CampaignData) -> Self {
        let count_of = |outcome: Outcome| {
            let matching = exchanges.iter();
            matching
                .filter(|exchange| exchange.outcome == outcome)
                .count()
        };
        let mut values = layer.values_of(flow, exchanges);
        values.sort_unstable_by(f64::total_cmp);
        let (lost, errors, failed) = (
            count_of(Outcome::Lost),
            count_of(Outcome::Error),
            count_of(Outcome::Failed),
        );
        let mut unanswered = 0;
        if layer.counts_loss(data) {
            unanswered += lost + errors;
        }
        if layer.counts_failures(data) {
            unanswered += failed;
        }
        Self {
            sent: values.len() + lost + errors,
            values,
            unanswered,
            lost,
        }
    }
}
