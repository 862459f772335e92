//! Fleets: the paths of each pair, how much they differ, and how long flows stay on them.
//!
//! One sentence per pair, over all of its blocks.

use super::{Finding, FindingKind};
use crate::fleet::PooledPair;
use crate::fleet::SOURCE_INFLATION;
use crate::fleet::SettingInflation;
use crate::fleet::pairs;
use crate::numbers::{count, millis, percent};
use crate::text::{plural, to_f64};
use crate::{CampaignData, PlotSettings};

/// Maximum number of pairs with a sentence of their own, largest effect first.
const MAX_REPORTED: usize = 10;

pub(crate) fn findings(data: &CampaignData, settings: &PlotSettings) -> Vec<Finding> {
    let pairs = pairs(data, settings);
    let mut pooled = PooledPair::pool(&pairs);
    pooled.retain(|pair| pair.flows > 0);
    let mut findings: Vec<Finding> = SettingInflation::by_setting(&pooled)
        .iter()
        .map(inflation_finding)
        .collect();
    pooled.sort_by(|a, b| a.effect().larger_first(&b.effect()));
    findings.extend(pooled.iter().take(MAX_REPORTED).map(pair_finding));
    let remaining = pooled.get(MAX_REPORTED..).unwrap_or_default();
    if let Some(first) = remaining.first() {
        let max = remaining.iter().map(|pair| pair.changes).max().unwrap_or(0);
        let text = format!(
            "{} have an inflation of at most {} and at most {} each. The table flow-pairs lists all pairs.",
            plural(remaining.len(), "more pair"),
            percent(first.inflation.unwrap_or(0.0)),
            plural(max, "path change"),
        );
        findings.push(Finding::new(FindingKind::Notable, "flows", text));
    }
    findings
}

/// The share of pairs with more than an inflation, of those that were measured in the same way.
fn inflation_finding(setting_inflation: &SettingInflation<'_>) -> Finding {
    let setting_text = match setting_inflation.setting() {
        "" => String::new(),
        setting => format!(", {setting}"),
    };
    let text = format!(
        "Latency inflation (slowest path over fastest, minus one){setting_text}: {}",
        setting_inflation.to_text()
    );
    let largest = setting_inflation.pairs.last().map_or(0.0, |pair| pair.0);
    Finding::new(FindingKind::Notable, "flows", text)
        .with("pairs", to_f64(setting_inflation.pairs.len()))
        .with("inflation_level", setting_inflation.tail_inflation())
        .with(
            "pairs_above_level",
            to_f64(setting_inflation.pairs_above(setting_inflation.tail_inflation())),
        )
        .with(
            "pairs_above_32_percent",
            to_f64(setting_inflation.pairs_above(SOURCE_INFLATION)),
        )
        .with("median_inflation", setting_inflation.median())
        .with("largest_inflation", largest)
}

fn pair_finding(pair: &PooledPair<'_>) -> Finding {
    let mut text = format!("{}: {}", pair.pair.name, plural(pair.flows, "flow"));
    text.push_str(&classes_text(pair));
    let changes_text = plural(pair.changes, "path change");
    text.push_str(&if pair.lacks_oldest_changes {
        format!(". {changes_text} stored; older ones were discarded")
    } else {
        format!(". {changes_text} in total")
    });
    if let Some(rate) = pair.changes_per_flow_hour {
        let digits = if rate < 9.95 { 2 } else { 1 };
        text.push_str(&format!(", {rate:.digits$} per flow and hour"));
        if pair.changes_without_rate > 0 {
            text.push_str(&format!(
                " (without {} that were detected while a queue hid changes, or before a flow had a base latency)",
                count(pair.changes_without_rate)
            ));
        }
    } else if pair.is_mostly_lost {
        text.push_str("; no rate, because most messages were lost");
    } else if let Some(reason) = pair.too_short_text {
        text.push_str(&format!("; {reason} too short to detect all"));
    }
    if let Some(share) = pair.left_soon {
        text.push_str(&format!(
            "; {} of the stays in a latency class ended within {} s (95 % confidence interval {} to {}, n {})",
            percent(share.share),
            pair.soon.secs_f64(),
            percent(share.low),
            percent(share.high),
            count(usize::try_from(share.n).unwrap_or(usize::MAX))
        ));
    }
    text.push('.');
    text.push_str(&unfairness_text(pair));
    text.push_str(&ports_text(pair));
    let finding = Finding::new(FindingKind::Notable, "flows", text);
    with_evidence(finding.about(&pair.pair.endpoint_name()), pair)
}

/// ` in 4 latency classes from 70.01 ms to 78.01 ms: the slowest path takes 11 % longer than the
/// fastest`.
fn classes_text(pair: &PooledPair<'_>) -> String {
    let (Some((lowest, highest)), Some(inflation)) = (pair.base_range, pair.inflation) else {
        return if pair.is_mostly_lost {
            ", without classes: more than half of the messages were lost or late"
        } else {
            "; no flow had a stable latency"
        }
        .to_owned();
    };
    let number = match pair.classes {
        (_, 1) => return format!(" in one latency class, {}", millis(lowest.millis_f64())),
        (min, max) if min < max => format!("{min} to {max}"),
        (_, max) => max.to_string(),
    };
    let blocks_text = match pair.blocks {
        1 => String::new(),
        several => format!(" (median over {})", plural(several, "block")),
    };
    format!(
        " in {number} latency classes (flows with the same base latency) from {} to {}: the slowest path takes {} longer than the fastest{blocks_text}",
        millis(lowest.millis_f64()),
        millis(highest.millis_f64()),
        percent(inflation)
    )
}

/// A smaller unfairness is not reported.
const MIN_UNFAIRNESS: f64 = 0.01;

/// ` In bins of 20 s the slowest 5 % of the flows have 12 % more latency than the median flow,
/// or more.`
fn unfairness_text(pair: &PooledPair<'_>) -> String {
    pair.unfairness
        .filter(|share| *share >= MIN_UNFAIRNESS)
        .map_or_else(String::new, |share| {
            format!(
                " In bins of {} s the slowest 5 % of the flows have at least {} more latency than the median flow.",
                pair.pair.view.bin().secs_f64(),
                percent(share)
            )
        })
}

/// ` Source ports advised at the end of the last block: 1030, 1041.`
fn ports_text(pair: &PooledPair<'_>) -> String {
    let when = match (pair.ports.as_slice(), pair.blocks) {
        ([], _) => return String::new(),
        (_, 1) => "at the end",
        _ => "at the end of the last block",
    };
    let ports: Vec<String> = pair.ports.iter().map(u16::to_string).collect();
    format!(
        " Source ports with the lowest latency {when}: {}.",
        ports.join(", ")
    )
}

fn with_evidence(finding: Finding, pair: &PooledPair<'_>) -> Finding {
    let finding = finding
        .with("flows", to_f64(pair.flows))
        .with("blocks", to_f64(pair.blocks))
        .with("classes", to_f64(pair.classes.1))
        .with("changes", to_f64(pair.changes));
    let has_several_classes = pair.classes.1 > 1;
    let optional_values = [
        ("inflation", pair.inflation.filter(|_| has_several_classes)),
        ("unfairness", pair.unfairness),
        ("changes_per_flow_hour", pair.changes_per_flow_hour),
        ("leave_share", pair.left_soon.map(|share| share.share)),
    ];
    let optional_values = optional_values.into_iter();
    optional_values
        .filter_map(|(name, value)| Some((name, value?)))
        .fold(finding, |finding, (name, value)| finding.with(name, value))
}
