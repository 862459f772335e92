//! Fleets: the paths of each pair, how much they differ, and how long flows stay on them.

use neph_model::Span;

use super::{Finding, FindingKind, first_few, plural};
use crate::axis::{count, millis, percent};
use crate::figure::{Pair, pairs};
use crate::{CampaignData, PlotSettings};

/// So many pairs are told one by one: those with the most path changes.
const TOLD: usize = 4;

pub(super) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let mut found = pairs(data, settings);
    found.retain(|pair| pair.known.flows > 0);
    found.sort_by_key(|pair| std::cmp::Reverse(pair.known.changes));
    let mut told: Vec<Finding> = found.iter().take(TOLD).map(one).collect();
    let rest: Vec<String> = found
        .iter()
        .skip(TOLD)
        .map(|pair| pair.label.clone())
        .collect();
    if !rest.is_empty() {
        let most = found.get(TOLD).map_or(0, |pair| pair.known.changes);
        let text = format!(
            "The flows of {}, {}, have {} each or fewer; tables and figures tell them one by one.",
            plural(rest.len(), "more pair"),
            first_few(&rest).replace("more scenario", "other"),
            plural(whole(most), "path change"),
        );
        told.push(Finding::new(FindingKind::StandsOut, "flows", text));
    }
    told
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of evidence")]
fn one(pair: &Pair<'_>) -> Finding {
    let known = pair.known;
    let mut text = format!("{}: {}", pair.label, plural(whole(known.flows), "flow"));
    let classes = pair.classes().len();
    let mut evidence = vec![
        ("flows", known.flows as f64),
        ("classes", super::real(classes)),
        ("changes", known.changes as f64),
    ];
    match (classes, known.inflation) {
        (0, _) => text.push_str(", none of which had a stable latency"),
        (1, Some(inflation)) => {
            let base = millis(inflation.lowest.millis_f64());
            text.push_str(&format!(" in one latency class, {base}"));
        }
        (_, Some(inflation)) => {
            let [lowest, highest] = [inflation.lowest, inflation.highest].map(Span::millis_f64);
            text.push_str(&format!(
                " in {classes} latency classes from {} to {}: the slowest path takes {} longer than the fastest",
                millis(lowest),
                millis(highest),
                percent(inflation.ratio - 1.0)
            ));
            evidence.push(("inflation", inflation.ratio - 1.0));
        }
        (_, None) => {}
    }
    text.push_str(&format!(
        ". {} in all",
        plural(whole(known.changes), "path change")
    ));
    if let Some(rate) = known.changes_per_flow_hour() {
        text.push_str(&format!(", {rate:.2} for each flow and hour"));
        evidence.push(("changes_per_flow_hour", rate));
    } else if known.too_short {
        text.push_str("; flows lived too short for all to be told");
    }
    if let Some(share) = known.leave_soon {
        let soon = pair.view.settings.soon.secs_f64();
        text.push_str(&format!(
            "; {} of the flows that came to a class left it within {soon} s (95 % interval {} to {}, n {})",
            percent(share.share),
            percent(share.low),
            percent(share.high),
            count(whole(share.n))
        ));
        evidence.push(("leave_soon", share.share));
    }
    text.push('.');
    let finding = Finding::new(FindingKind::StandsOut, "flows", text).about(&pair.endpoint_name());
    let numbers = evidence.into_iter();
    numbers.fold(finding, |finding, (name, value)| finding.with(name, value))
}
