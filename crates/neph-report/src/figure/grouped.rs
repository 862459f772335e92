//! Panels of scenarios that differ in one factor, with the axis that they share.

use neph_analysis::data::{Factor, factors};
use neph_analysis::latencies::Latencies;
use neph_analysis::view::{Group, groups, levels};
use neph_analysis::{CampaignData, PlotSettings};

use super::Figure;
use crate::axis::{Scale, Spread, group_scales};

/// A group of scenarios with what is drawn of each.
pub(super) struct Panel {
    pub(super) group: Group,
    /// In the order of the group's members.
    pub(super) latencies: Vec<Latencies>,
    pub(super) scale: Option<Scale>,
}

/// A campaign's scenarios by one factor that its plan varies.
pub(super) struct View {
    pub(super) factor: Factor,
    /// The factor's levels, of all panels.
    pub(super) levels: Vec<String>,
    pub(super) panels: Vec<Panel>,
}

/// The figures of each factor that the plan varies.
pub(super) fn by_factor(
    data: &CampaignData,
    settings: &PlotSettings,
    draw: impl Fn(&View) -> Vec<Figure>,
) -> Vec<Figure> {
    let indices = data.scenarios_with_main_flow(settings);
    let scenarios: Vec<_> = indices
        .iter()
        .map(|index| &data.scenarios[*index])
        .collect();
    let views = factors(&scenarios).into_iter().map(|factor| View {
        levels: levels(data, &indices, &factor),
        panels: panels(data, settings, &indices, &factor),
        factor,
    });
    views.flat_map(|view| draw(&view)).collect()
}

/// The panels of these scenarios by a factor.
fn panels(
    data: &CampaignData,
    settings: &PlotSettings,
    shown: &[usize],
    view: &Factor,
) -> Vec<Panel> {
    let groups: Vec<(Group, Vec<Latencies>)> = groups(&data.scenarios, shown, view)
        .into_iter()
        .map(|group| {
            let plotted = |(index, _): &(usize, String)| Latencies::plotted(data, *index, settings);
            let latencies = group.members.iter().map(plotted).collect();
            (group, latencies)
        })
        .collect();
    let spreads: Vec<Vec<Spread>> = groups
        .iter()
        .map(|(_, latencies)| latencies.iter().filter_map(Spread::of_latencies).collect())
        .collect();
    group_scales(&spreads, settings)
        .into_iter()
        .zip(groups)
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
