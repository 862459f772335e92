//! Data that exceeded the memory limit of an analysis: the oldest path changes, and where flows were before.
//! Owns the sentence for figures and tables that would otherwise suggest that there were none.

use neph_flows::FleetView;
use neph_model::Span;

use crate::text::first_few;
use crate::{CampaignData, PlotSettings};

/// Time from the start for which a fleet's path changes are no longer known.
pub(crate) fn unknown_period(view: &FleetView) -> Option<Span> {
    let until = view.pairs.iter().filter_map(|pair| pair.forgotten).max()?;
    Some(until - view.from)
}

/// The note about these scenarios; empty if everything was kept.
pub fn note(
    data: &CampaignData,
    scenarios: impl IntoIterator<Item = usize>,
    settings: &PlotSettings,
) -> Option<String> {
    let of_scenario = |scenario: usize| {
        let label = data.scenarios[scenario].label();
        data.experiments_of(scenario, settings)
            .filter_map(|experiment| {
                Some((
                    experiment.block(),
                    unknown_period(experiment.fleet.as_ref()?)?,
                ))
            })
            .map(|(block, time)| format!("{label}, block {block}: {time}"))
            .collect::<Vec<_>>()
    };
    let labelled_periods: Vec<String> = scenarios.into_iter().flat_map(of_scenario).collect();
    (!labelled_periods.is_empty()).then(|| {
        format!(
            "More path changes or consecutive flows than are kept: the beginning is missing, which does not mean that nothing changed then ({}).",
            first_few(&labelled_periods)
        )
    })
}
