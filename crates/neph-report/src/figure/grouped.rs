//! Panels of scenarios that differ in one factor, with the axis that they share.

use neph_analysis::data::Factor;
use neph_analysis::latencies::Latencies;
use neph_analysis::view::{Group, groups};
use neph_analysis::{CampaignData, PlotSettings};

use crate::axis::{Scale, Spread, shared};

/// A group of scenarios with what is drawn of each.
pub(super) struct Panel {
    pub(super) group: Group,
    /// In the order of the group's members.
    pub(super) latencies: Vec<Latencies>,
    pub(super) scale: Option<Scale>,
}

/// The panels of these scenarios by a factor.
pub(super) fn panels(
    data: &CampaignData,
    settings: &PlotSettings,
    shown: &[usize],
    view: &Factor,
) -> Vec<Panel> {
    let found: Vec<(Group, Vec<Latencies>)> = groups(&data.scenarios, shown, view)
        .into_iter()
        .map(|group| {
            let plotted = |(index, _): &(usize, String)| Latencies::plotted(data, *index, settings);
            let latencies = group.members.iter().map(plotted).collect();
            (group, latencies)
        })
        .collect();
    let spreads: Vec<Vec<Spread>> = found
        .iter()
        .map(|(_, all)| all.iter().filter_map(Spread::of_latencies).collect())
        .collect();
    shared(&spreads, settings)
        .into_iter()
        .zip(found)
        .map(|(scale, (group, latencies))| Panel {
            group,
            latencies,
            scale,
        })
        .collect()
}

/// The scenarios of some panels, by index.
pub(super) fn scenarios(panels: &[Panel]) -> impl Iterator<Item = usize> {
    let members = panels.iter().flat_map(|panel| &panel.group.members);
    members.map(|(index, _)| *index)
}
