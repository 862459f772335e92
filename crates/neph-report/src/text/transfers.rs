//! Transfers in a terminal: a line for each scenario with its goodput, and what limits it.

use neph_analysis::numbers::quantity_text;
use neph_analysis::{CampaignData, PlotSettings, QuantityCourse};
use neph_model::Quantity;
use unicode_width::UnicodeWidthStr;

use super::fit_to_width;

/// Names are cut down to this.
const MAX_NAME_WIDTH: usize = 48;
/// The cell of a scenario without the quantity.
const MISSING: &str = "-";
/// The columns after the names, each with the quantities of which it shows the worst.
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
    let width = longest.unwrap_or(0).clamp(8, MAX_NAME_WIDTH);
    let all_courses: Vec<Vec<QuantityCourse>> = shown
        .iter()
        .map(|scenario| data.courses(*scenario, settings))
        .collect();
    let columns: Vec<Column> = COLUMNS
        .iter()
        .filter_map(|(title, quantities)| Column::of(title, quantities, &all_courses))
        .collect();
    let mut out = fit_to_width("medians", &[], width);
    for column in &columns {
        out.push_str(&format!("{:>1$}", column.title, column.width));
    }
    out.push_str("  limit\n");
    for (row, (scenario, label)) in shown.iter().zip(&shown_labels).enumerate() {
        out.push_str(&fit_to_width(label, &shown_labels, width));
        for column in &columns {
            out.push_str(&format!("{:>1$}", column.cells[row], column.width));
        }
        let limit = data.usual_limit(*scenario, settings);
        let limit = limit.map_or_else(String::new, |(limit, _)| limit);
        out.push_str(&format!("  {limit}\n"));
    }
    out
}

/// A column with a value in at least one row.
struct Column {
    title: &'static str,
    cells: Vec<String>,
    /// With the space before it.
    width: usize,
}

impl Column {
    fn of(
        title: &'static str,
        quantities: &[Quantity],
        rows: &[Vec<QuantityCourse>],
    ) -> Option<Self> {
        let cells: Vec<String> = rows
            .iter()
            .map(|courses| cell(courses, quantities))
            .collect();
        let has_value = cells.iter().any(|text| text != MISSING);
        let widths = cells.iter().map(|text| text.width());
        let width = widths.chain([title.width()]).max().unwrap_or(0) + 2;
        has_value.then_some(Self {
            title,
            cells,
            width,
        })
    }
}

/// The worst of these quantities' medians; a dash where there is none.
fn cell(courses: &[QuantityCourse], quantities: &[Quantity]) -> String {
    let matching = courses
        .iter()
        .filter(|course| quantities.contains(&course.quantity));
    let medians =
        matching.filter_map(|course| Some((course.quantity, course.summary()?.median.number()?)));
    let worst = medians.max_by(|(_, a), (_, b)| a.total_cmp(b));
    worst.map_or_else(
        || MISSING.to_owned(),
        |(quantity, value)| quantity_text(quantity, value),
    )
}
