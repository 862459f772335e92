//! Tables on the page.

use maud::{Markup, html};
use neph_analysis::Layer;
use neph_analysis::numbers::{count, percent, signed};
use neph_analysis::table::{Cell, FLEET_PREFIX, QuantileCell, SummaryRow, Table, notes};
use neph_model::Stage;
use neph_stats::Level;

/// Longer tables are folded.
const MAX_UNFOLDED_ROWS: usize = 24;

/// The summary: the layers first, the ledger's stages folded below.
/// `shared`: what labels leave out because all scenarios have it.
pub(super) fn summary(rows: &[SummaryRow], shared: Option<String>) -> Markup {
    let stage = |row: &&SummaryRow| matches!(row.layer, Layer::Entry(_));
    let layers: Vec<&SummaryRow> = rows.iter().filter(|row| !stage(row)).collect();
    let stages: Vec<&SummaryRow> = rows.iter().filter(stage).collect();
    html! {
        section {
            h2 id="summary" { "Summary" }
            p.answers { "Latency of each scenario, layer by layer, in milliseconds. Small text: 95 % confidence interval." }
            @if let Some(shared) = shared { p { (shared) } }
            (rows_by_scenario(&layers))
            dl.notes {
                @for (name, meaning) in shown_layers(&layers) { dt { (name) } dd { (meaning) } }
            }
            details {
                summary { "All stages of the response time" }
                (rows_by_scenario(&stages))
                dl.notes {
                    @for stage in shown_stages(&stages) { dt { (stage.name()) } dd { (stage.meaning()) } }
                }
            }
            div.notes { @for note in notes(rows) { p { (note) } } }
            p.notes { (files("summary")) }
        }
    }
}

/// The names and meanings of the layers of these rows, each once.
fn shown_layers(rows: &[&SummaryRow]) -> Vec<(String, &'static str)> {
    let mut layers = Vec::new();
    for row in rows {
        let layer = row
            .layer
            .meaning()
            .map(|meaning| (row.layer.name(), meaning));
        layers.extend(layer.filter(|layer| !layers.contains(layer)));
    }
    layers
}

/// The stages of these rows, each once.
fn shown_stages(rows: &[&SummaryRow]) -> Vec<Stage> {
    let is_shown = |stage: &Stage| {
        let mut layers = rows.iter().map(|row| &row.layer);
        layers.any(|layer| matches!(layer, Layer::Entry(set) if set.contains(*stage)))
    };
    Stage::ALL.into_iter().filter(is_shown).collect()
}

fn rows_by_scenario(rows: &[&SummaryRow]) -> Markup {
    html! {
        div.wide {
            table {
                thead {
                    tr {
                        th { "layer" } th { "n" } th { "loss" } th { "errors" } th { "not sent" } th { "mean" } th { "sd" }
                        th { "p50" } th { "p90" } th { "p99" }
                    }
                }
                @for group in rows.chunk_by(|a, b| a.scenario == b.scenario) {
                    tbody.group {
                        tr {
                            th colspan="10" scope="rowgroup" {
                                (group[0].label)
                                @if group[0].flagged { " " span.flag { "flagged" } }
                            }
                        }
                        @for row in group { (summary_line(row)) }
                    }
                }
            }
        }
    }
}

fn summary_line(row: &SummaryRow) -> Markup {
    let name = row.layer.name();
    html! {
        tr {
            td.words { (name.strip_prefix("stage: ").unwrap_or(&name)) }
            td { (count(row.n)) }
            td {
                @match row.loss {
                    Some(loss) => {
                        (percent(loss.share))
                        @if let Some(interval) = loss.interval {
                            span.range { (percent(interval.low)) "–" (percent(interval.high)) }
                        }
                    }
                    None => { "" }
                }
            }
            td { @if let Some(errors) = row.errors { (count(errors)) } }
            td { @if let Some(not_sent) = row.not_sent { (count(not_sent)) } }
            td { (optional_number(row.mean)) }
            td { (optional_number(row.sd)) }
            @for quantile in &row.quantiles {
                td {
                    @match quantile {
                        QuantileCell::Known { value, interval } => {
                            (level(*value, row))
                            @if let Some(interval) = interval {
                                span.range {
                                    @match interval.high {
                                        Some(high) => { (level(interval.low, row)) "–" (level(high, row)) }
                                        None => { "at least " (level(interval.low, row)) }
                                    }
                                }
                            }
                        }
                        QuantileCell::Refused { .. } => { "–" }
                    }
                }
            }
        }
    }
}

fn level(level: Level, row: &SummaryRow) -> String {
    let word = || row.unanswered().word().to_owned();
    level.number().map_or_else(word, number)
}

fn optional_number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

/// Milliseconds with four significant digits, at least to the microsecond.
pub(crate) fn number(value: f64) -> String {
    let text = match value.abs() {
        v if v < 99.999_5 => format!("{value:.3}"),
        v if v < 999.995 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    };
    signed(&text)
}

/// The tables of fleets: a part for each scenario, with its rows of each table.
pub(super) fn fleet_section(tables: &[Table]) -> Markup {
    let fleet_tables: Vec<&Table> = tables.iter().filter(|table| is_of_fleets(table)).collect();
    let mut scenarios: Vec<&Cell> = Vec::new();
    for cell in fleet_tables
        .iter()
        .flat_map(|table| &table.rows)
        .filter_map(|row| row.first())
    {
        if !scenarios.contains(&cell) {
            scenarios.push(cell);
        }
    }
    html! {
        @if !fleet_tables.is_empty() {
            section {
                h2 id="flows" { "Flows and paths in numbers" }
                @for scenario in scenarios {
                    h3 { @if let Cell::Text(label) = scenario { (label) } }
                    @for table in &fleet_tables {
                        (scenario_part(table, scenario))
                    }
                }
                @for table in &fleet_tables {
                    div.notes {
                        @for note in &table.notes { p { b { (table.title) ": " } (note) } }
                        p { (files(table.name)) }
                    }
                }
            }
        }
    }
}

/// Whether a table belongs to the section of fleets.
pub(super) fn is_of_fleets(table: &Table) -> bool {
    table.name.starts_with(FLEET_PREFIX)
}

/// The rows of one scenario, without the column that names it.
fn scenario_part(table: &Table, scenario: &Cell) -> Markup {
    let rows = table
        .rows
        .iter()
        .filter(|row| row.first() == Some(scenario));
    let rows: Vec<Vec<Cell>> = rows.map(|row| row[1..].to_vec()).collect();
    let is_folded = rows.len() > MAX_UNFOLDED_ROWS;
    let scenario_table = Table {
        columns: table.columns[1..].to_vec(),
        rows,
        ..table.clone()
    };
    html! {
        @if !scenario_table.rows.is_empty() {
            h4 { (table.title) }
            @if is_folded {
                details {
                    summary { (format!("{} rows", scenario_table.rows.len())) }
                    (cells(&scenario_table))
                }
            } @else {
                (cells(&scenario_table))
            }
        }
    }
}

/// Any other table, cell by cell.
pub(super) fn plain_table(table: &Table) -> Markup {
    html! {
        section {
            h2 id=(table.name) { (table.title) }
            @if table.rows.len() > MAX_UNFOLDED_ROWS {
                details {
                    summary { (format!("{} rows", table.rows.len())) }
                    (cells(table))
                }
            } @else {
                (cells(table))
            }
            div.notes { @for note in &table.notes { p { (note) } } }
            p.notes { (files(table.name)) }
        }
    }
}

fn cells(table: &Table) -> Markup {
    html! {
        div.wide {
            table {
                thead {
                    tr {
                        @for (column_index, column) in table.columns.iter().enumerate() {
                            th.words[is_text_column(table, column_index)] { (heading(column.0)) }
                        }
                    }
                }
                tbody { @for row in &table.rows { tr { @for cell in row { (cell_markup(cell)) } } } }
            }
        }
    }
}

/// Whether a column holds words, which begin at the left.
fn is_text_column(table: &Table, column_index: usize) -> bool {
    table
        .rows
        .iter()
        .any(|row| matches!(row.get(column_index), Some(Cell::Text(_))))
}

/// `goodput_mbit_s` reads as `goodput, Mbit/s`.
fn heading(name: &str) -> String {
    for (ending, unit) in [("_mbit_s", ", Mbit/s"), ("_ms", ", ms"), ("_s", ", s")] {
        if let Some(base_name) = name.strip_suffix(ending) {
            return base_name.replace('_', " ") + unit;
        }
    }
    name.replace('_', " ")
}

fn cell_markup(cell: &Cell) -> Markup {
    html! {
        @match cell {
            Cell::Text(text) => td.words { (text) },
            Cell::Integer(value) => td { (value) },
            Cell::Real(value) => td { (number(*value)) },
            Cell::Censored(word) => td { (word) },
            Cell::Absent => td { "" },
        }
    }
}

fn files(name: &str) -> Markup {
    html! {
        "This table as " a href={ "tables/" (name) ".csv" } { "csv" } ", "
        a href={ "tables/" (name) ".json" } { "json" } "."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_rounds_to_zero_has_no_sign() {
        assert_eq!(number(-0.000_018), "0.000");
        assert_eq!(number(-0.0335), "−0.034");
    }
}
