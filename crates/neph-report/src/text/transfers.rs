//! Transfers in a terminal: a line for each scenario with its goodput, and what limits it.

use neph_analysis::{CampaignData, PlotSettings, QuantityCourse};
use neph_model::Quantity;
use unicode_width::UnicodeWidthStr;

use super::padded;

/// Names are cut down to this.
const LONGEST: usize = 48;
/// The columns after the names.
const COLUMNS: [(&str, &[Quantity]); 7] = [
    ("bit rate", &[Quantity::MediaRate]),
    ("transactions", &[Quantity::Transactions]),
    ("RTT p50", &[Quantity::RttP50]),
    ("goodput up", &[Quantity::UpGoodput]),
    ("goodput down", &[Quantity::DownGoodput]),
    (
        "loss",
        &[
            Quantity::MediaLoss,
            Quantity::TransactionLoss,
            Quantity::UpLoss,
            Quantity::DownLoss,
        ],
    ),
    (
        "jitter",
        &[
            Quantity::MediaJitter,
            Quantity::RttJitter,
            Quantity::UpJitter,
            Quantity::DownJitter,
        ],
    ),
];

/// The table with its heading; nothing without a transfer.
pub(super) fn table(data: &CampaignData, settings: &PlotSettings) -> String {
    let shown = data.transfers(settings);
    if shown.is_empty() {
        return String::new();
    }
    let labels = data.labels();
    let shown_labels: Vec<String> = shown.iter().map(|index| labels[*index].clone()).collect();
    let longest = shown_labels.iter().map(|label| label.width()).max();
    let width = longest.unwrap_or(0).clamp(8, LONGEST);
    let mut out = padded("medians", &[], width);
    for (title, _) in COLUMNS {
        out.push_str(&format!("{title:>16}"));
    }
    out.push_str("  limit\n");
    for (scenario, label) in shown.iter().zip(&shown_labels) {
        let courses = data.courses(*scenario, settings);
        out.push_str(&padded(label, &shown_labels, width));
        for (_, quantities) in COLUMNS {
            out.push_str(&format!("{:>16}", cell(&courses, quantities)));
        }
        let limit = data.usual_limit(*scenario, settings);
        let limit = limit.map_or_else(String::new, |(limit, _)| limit);
        out.push_str(&format!("  {limit}\n"));
    }
    out
}

/// The worst of these quantities' medians; a dash where there is none.
fn cell(courses: &[QuantityCourse], quantities: &[Quantity]) -> String {
    let shown_labels = courses
        .iter()
        .filter(|course| quantities.contains(&course.quantity));
    let medians = shown_labels
        .filter_map(|course| Some((course.quantity, course.summary()?.median.number()?)));
    let worst = medians.max_by(|(_, a), (_, b)| a.total_cmp(b));
    worst.map_or_else(
        || "-".to_owned(),
        |(quantity, value)| quantity.to_text(value),
    )
}
