//! The messages of a layer in groups that do not depend on each other: its experiments, or where there
//! is one experiment alone, stretches of it.
//!
//! Owns the groups; the intervals are `neph_stats`' ([`grouped_quantile`], [`grouped_share`]).

use neph_model::Outcome;
use neph_stats::{
    GROUPS_NEEDED, Group, GroupedQuantile, GroupedShare, Sorted, grouped_quantile, grouped_share,
};

use crate::CampaignData;
use crate::Layer;
use crate::data::{Exchange, FlowData};

/// Stretches of a single experiment: few, so that each is much longer than what its messages have in
/// common with their neighbours, and enough to know how much they differ.
const STRETCHES: usize = 10;

/// Where intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// From how much experiments differ.
    Experiments,
    /// From how much stretches of the one experiment differ.
    Stretches,
    /// There are none: experiments differ, and there are too few of them to know by how much.
    Nothing,
}

impl Unit {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Experiments => "experiments",
            Self::Stretches => "stretches",
            Self::Nothing => "none",
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
        let members =
            |flow: &FlowData, exchanges: &[Exchange]| Members::of(flow, exchanges, layer, data);
        match flows {
            [flow] => {
                let length = flow.exchanges.len().div_ceil(STRETCHES).max(1);
                let stretches = flow.exchanges.chunks(length);
                Self {
                    unit: Unit::Stretches,
                    groups: stretches.map(|some| members(flow, some)).collect(),
                }
            }
            several => Self {
                unit: if several.len() < GROUPS_NEEDED {
                    Unit::Nothing
                } else {
                    Unit::Experiments
                },
                groups: several
                    .iter()
                    .map(|flow| members(flow, &flow.exchanges))
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
        let of_kind = |outcome: Outcome| {
            let of_stretch = exchanges.iter();
            of_stretch
                .filter(|exchange| exchange.outcome == outcome)
                .count()
        };
        let mut values = layer.values_of(flow, exchanges);
        values.sort_unstable_by(f64::total_cmp);
        let (lost, errors, failed) = (
            of_kind(Outcome::Lost),
            of_kind(Outcome::Error),
            of_kind(Outcome::Failed),
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
