//! The lower layers of an imported campaign in a terminal: the RTT of TCP acknowledgements and of pings,
//! which its files hold in addition to the messages.

use super::fit_to_width;
use neph_analysis::Layer;
use neph_analysis::numbers::{count, level};
use neph_analysis::table::{QuantileCell, SummaryRow, summary};
use neph_analysis::{CampaignData, PlotSettings};

/// Names are cut down to this.
const MAX_NAME_WIDTH: usize = 60;

/// A table for each layer, with its heading; nothing of a campaign that neph measured.
pub(super) fn tables(data: &CampaignData, settings: &PlotSettings) -> String {
    if !data.is_imported() {
        return String::new();
    }
    let mut rows = summary(data, settings);
    rows.retain(|row| matches!(row.layer, Layer::Acknowledgement | Layer::Ping(_)));
    let mut names: Vec<String> = Vec::new();
    for row in &rows {
        let name = row.layer.name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let tables = names.iter().map(|name| {
        let of_layer = rows.iter().filter(|row| row.layer.name() == *name);
        table(name, &of_layer.collect::<Vec<_>>())
    });
    tables.collect::<Vec<_>>().join("\n")
}

fn table(name: &str, rows: &[&SummaryRow]) -> String {
    let labels: Vec<String> = rows.iter().map(|row| row.label.clone()).collect();
    let widths = labels.iter().map(|label| label.chars().count());
    let name_width = widths
        .fold(name.chars().count(), usize::max)
        .min(MAX_NAME_WIDTH);
    let mut out = format!(
        "{name:<name_width$}{:>11}{:>11}{:>9}{:>9}\n",
        "p50", "p99", "n", "lost"
    );
    for row in rows {
        let quantile_cell = |index: usize| match row.quantiles[index] {
            QuantileCell::Known { value, .. } => level(value, row.unanswered()),
            QuantileCell::Refused { .. } => "-".to_owned(),
        };
        let lost = row.lost.map_or_else(|| "-".to_owned(), count);
        let label = fit_to_width(&row.label, &labels, name_width);
        out.push_str(&format!(
            "{label}{:>11}{:>11}{:>9}{lost:>9}\n",
            quantile_cell(0),
            quantile_cell(2),
            count(row.n)
        ));
    }
    out
}
