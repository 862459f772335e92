//! Fleets in a terminal: one line for each pair, those that stand out most first.

use unicode_width::UnicodeWidthStr;

use super::fit_to_width;
use neph_analysis::fleet::{PooledPair, pairs};
use neph_analysis::numbers::{count, millis, percent};
use neph_analysis::{CampaignData, PlotSettings};

/// More pairs are counted.
const MAX_PAIRS: usize = 24;
/// Names are cut down to this.
const MAX_NAME_WIDTH: usize = 40;

/// The table with its heading; nothing without a fleet.
pub(super) fn table(data: &CampaignData, settings: &PlotSettings) -> String {
    let pairs = pairs(data, settings);
    let mut pooled = PooledPair::pool(&pairs);
    pooled.sort_by(|a, b| a.effect().larger_first(&b.effect()));
    let Some(first) = pooled.first() else {
        return String::new();
    };
    let left_soon_title = format!("left in {} s", first.soon.secs_f64());
    let (shown, hidden) = pooled.split_at(pooled.len().min(MAX_PAIRS));
    let longest = shown.iter().map(|pair| pair.pair.name.width()).max();
    let name_width = longest.unwrap_or(0).clamp(8, MAX_NAME_WIDTH);
    let mut out = format!(
        "{}{:>8}{:>9}{:>11}{:>11}{:>11}{:>13}{left_soon_title:>14}\n",
        fit_to_width("flows to", &[], name_width),
        "flows",
        "classes",
        "lowest",
        "highest",
        "inflation",
        "moves/flow/h",
    );
    let pair_names: Vec<String> = shown.iter().map(|pair| pair.pair.name.clone()).collect();
    out.extend(shown.iter().map(|pair| row(pair, &pair_names, name_width)));
    if !hidden.is_empty() {
        out.push_str(&format!(
            "{} more, with less inflation or fewer moves\n",
            count(hidden.len())
        ));
    }
    out
}

fn row(pair: &PooledPair<'_>, pair_names: &[String], name_width: usize) -> String {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let classes = match pair.classes {
        (min, max) if min < max => format!("{min}-{max}"),
        (_, max) => max.to_string(),
    };
    format!(
        "{}{:>8}{classes:>9}{:>11}{:>11}{:>11}{:>13}{:>14}\n",
        fit_to_width(&pair.pair.name, pair_names, name_width),
        count(pair.flows),
        or_dash(pair.base_range.map(|range| millis(range.0.millis_f64()))),
        or_dash(pair.base_range.map(|range| millis(range.1.millis_f64()))),
        or_dash(pair.inflation.map(percent)),
        or_dash(pair.changes_per_flow_hour.map(|rate| format!("{rate:.1}"))),
        or_dash(pair.left_soon.map(|share| percent(share.share))),
    )
}
