//! Lost messages: how many, and where most.

use neph_stats::{Proportion, proportion};

use super::{Finding, FindingKind, plural, real};
use crate::axis::percent;
use crate::figure::Latencies;
use crate::{CampaignData, PlotSettings};

pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut shares: Vec<(usize, Proportion)> = data
        .measured(settings)
        .into_iter()
        .filter_map(|scenario| {
            let found = Latencies::of(data.main_flows(scenario, settings), settings.basis);
            let share = proportion(found.lost, found.lost + found.len()).ok()?;
            Some((scenario, share))
        })
        .collect();
    shares.sort_by(|(_, a), (_, b)| b.share().total_cmp(&a.share()));
    let Some((scenario, worst)) = shares.first() else {
        return Vec::new();
    };
    let affected = shares.iter().filter(|(_, share)| share.hits() > 0).count();
    let text = if affected == 0 {
        let total = shares.iter().map(|(_, share)| share.n()).sum();
        let limit = proportion(0, total).map_or(1.0, |share| share.interval().high);
        format!(
            "No message was lost; with {} that bounds the loss to {}.",
            plural(total, "message"),
            percent(limit)
        )
    } else {
        format!(
            "Messages were lost in {} of {}, most in {}: {} of {} ({}, 95 % interval {} to {}).",
            affected,
            plural(shares.len(), "scenario"),
            data.scenarios[*scenario].label(),
            worst.hits(),
            worst.n(),
            percent(worst.share()),
            percent(worst.interval().low),
            percent(worst.interval().high),
        )
    };
    let finding = Finding::new(FindingKind::StandsOut, "loss", text)
        .with("scenarios_with_loss", real(affected))
        .with("worst_share", worst.share());
    vec![finding]
}
