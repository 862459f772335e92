//! What the memory of an analysis had no room for: the oldest path changes, and with them where flows
//! were. Owns the sentence that stands beside each figure and table which would look as if there had
//! been none.

use neph_flows::FleetView;
use neph_model::Span;

use crate::words::first_few;
use crate::{CampaignData, PlotSettings};

/// For how long from the start on a fleet's path changes are not known any more.
pub(crate) fn time(view: &FleetView) -> Option<Span> {
    let until = view.pairs.iter().filter_map(|pair| pair.forgotten).max()?;
    Some(until - view.from)
}

/// The sentence about these scenarios; nothing where everything was kept.
pub fn sentence(
    data: &CampaignData,
    scenarios: impl IntoIterator<Item = usize>,
    settings: &PlotSettings,
) -> Option<String> {
    let of_scenario = |scenario: usize| {
        let label = data.scenarios[scenario].label();
        data.experiments_of(scenario, settings)
            .filter_map(|one| Some((one.block(), time(one.fleet.as_ref()?)?)))
            .map(|(block, time)| format!("{label}, block {block}: {time}"))
            .collect::<Vec<_>>()
    };
    let told: Vec<String> = scenarios.into_iter().flat_map(of_scenario).collect();
    (!told.is_empty()).then(|| {
        format!(
            "There were more path changes, or flows one after the other, than are kept: what flows did at the beginning is left out, which does not mean that nothing changed then ({}).",
            first_few(&told)
        )
    })
}
