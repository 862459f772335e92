//! What was measured.

use std::collections::BTreeSet;

use neph_stats::proportion;

use super::{Finding, FindingKind, plural, real};
use crate::axis::{count, percent};
use crate::{CampaignData, PlotSettings};

pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let shown = data.measured(settings);
    let endpoints: BTreeSet<&str> = shown.iter().map(|i| data.scenarios[*i].endpoint.as_str()).collect();
    let intervals: BTreeSet<_> = shown.iter().map(|i| data.scenarios[*i].interval).collect();
    let sizes: BTreeSet<_> = shown.iter().map(|i| data.scenarios[*i].request_size).collect();
    let experiments = data.experiments.iter().filter(|e| settings.shows_block(e.experiment.block));
    let (mut total, mut messages, mut replies, mut lost) = (0, 0, 0, 0);
    let mut blocks = BTreeSet::new();
    for experiment in experiments {
        total += 1;
        blocks.insert(experiment.block());
        let Some(main) = experiment.main() else { continue };
        messages += main.exchanges.len();
        replies += main.exchanges.iter().filter(|e| e.response.is_some()).count();
        lost += main.lost();
    }
    let mut text = format!(
        "{}, {} and {} {} {}, measured in {}: {}, {}, {} of them answered",
        plural(endpoints.len(), "endpoint"),
        plural(intervals.len(), "interval"),
        plural(sizes.len(), "request size"),
        "make",
        plural(shown.len(), "scenario"),
        plural(blocks.len(), "block"),
        plural(total, "experiment"),
        plural(messages, "message"),
        count(replies),
    );
    if let Ok(share) = proportion(lost, lost + replies) {
        let (low, high) = (share.interval().low, share.interval().high);
        text.push_str(&format!(
            ", {} lost ({}, 95 % interval {} to {})",
            count(lost),
            percent(share.share()),
            percent(low),
            percent(high)
        ));
    }
    text.push('.');
    let missing = data.scenarios.len() - shown.len();
    if missing > 0 {
        text.push_str(&format!(" {} of the plan have nothing to show yet.", plural(missing, "scenario")));
    }
    if data.left_out > 0 {
        text.push_str(&format!(
            " {} left out, because they were not carried out to their end.",
            if data.left_out == 1 { "1 experiment is".to_owned() } else { format!("{} experiments are", data.left_out) }
        ));
    }
    let finding = Finding::new(FindingKind::Measured, "campaign", text)
        .with("scenarios", real(shown.len()))
        .with("blocks", real(blocks.len()))
        .with("experiments", real(total))
        .with("messages", real(messages))
        .with("replies", real(replies))
        .with("lost", real(lost));
    vec![finding]
}
