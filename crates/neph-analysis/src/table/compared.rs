//! Comparison of fleets that differ in one parameter only, such as the season, in numbers.

use neph_flows::Measure;
use neph_stats::{ConfidenceInterval, Level, Verdict};

use super::cells::{Cell, Column, LOST_FLOWS, Table};
use crate::findings::{Compared, LevelVersusFirst};

const COLUMNS: [&str; 17] = [
    "fleets",
    "endpoint",
    "level",
    "against",
    "measure",
    "n",
    "n_against",
    "same_blocks",
    "median",
    "median_against",
    "shift",
    "shift_low",
    "shift_high",
    "p",
    "p_holm",
    "matters",
    "verdict",
];

const NOTE: &str = "The unit is the experiment: a value of each, n experiments of the level and n_against of the level that it is compared with. shift: level minus against (Hodges and Lehmann) with a 95 % confidence interval that holds together with those of all comparisons of the report. p: Wilcoxon's signed ranks against what matters, not against zero; p_holm: corrected for all comparisons of the report. A verdict takes p_holm of 0.05 at most, and the same blocks. What matters: 5 % of the median of path changes, five percentage points of inflation and unfairness, which are shares here (0.05).";

/// A row for each measure of each level other than the first; empty if nothing is compared.
pub(crate) fn table(comparisons: &[LevelVersusFirst]) -> Table {
    let rows = comparisons.iter().flat_map(|comparison| {
        comparison
            .compared
            .iter()
            .map(move |compared| row(comparison, compared))
    });
    let mut notes = vec![NOTE.to_owned()];
    let limits = comparisons.iter().flat_map(|comparison| {
        let limits = comparison.limits.iter();
        limits.map(|limit| format!("{}, {}: {limit}.", comparison.title, comparison.level))
    });
    notes.extend(limits);
    Table {
        name: "fleets-compared",
        title: "Fleets compared",
        columns: COLUMNS.map(Column).to_vec(),
        rows: rows.collect(),
        notes,
    }
}

fn row(comparison: &LevelVersusFirst, compared: &Compared) -> Vec<Cell> {
    let text = |text_value: &str| Cell::Text(text_value.to_owned());
    let (n, n_against) = compared.n;
    let [median, median_against] = compared
        .medians
        .map(|level| median_cell(compared.measure, level));
    let decision = compared.decision;
    let end = |bound: fn(ConfidenceInterval) -> f64| {
        let interval = decision.and_then(|compared| compared.interval);
        interval.map_or(Cell::Absent, |bounds| difference(bound(bounds)))
    };
    vec![
        text(&comparison.title),
        text(&comparison.endpoint),
        text(&comparison.level),
        text(&comparison.first),
        text(compared.measure.name()),
        Cell::Integer(n as u64),
        Cell::Integer(n_against as u64),
        text(if compared.is_paired() { "yes" } else { "no" }),
        median,
        median_against,
        difference(compared.shift),
        end(|interval| interval.low),
        end(|interval| interval.high),
        Cell::real(decision.map(|compared| compared.p_alone)),
        Cell::real(decision.map(|compared| compared.p)),
        Cell::Real(compared.margin),
        text(match decision.map(|compared| compared.verdict) {
            Some(Verdict::Better) => "better",
            Some(Verdict::Worse) => "worse",
            Some(Verdict::Equivalent) => "equivalent",
            Some(Verdict::Inconclusive) => "inconclusive",
            None => "none",
        }),
    ]
}

/// Inflation is stored as a ratio and shown as a share, as in the rest of a report.
fn median_cell(measure: Measure, level: Level) -> Cell {
    match (level, measure) {
        (Level::Censored, _) => Cell::Censored(LOST_FLOWS),
        (Level::At(ratio), Measure::Inflation) => Cell::Real(ratio - 1.0),
        (Level::At(value), Measure::Changes | Measure::Unfairness) => Cell::Real(value),
    }
}

/// Infinite if lost flows decide it: JSON has no such number.
fn difference(value: f64) -> Cell {
    match value {
        f64::INFINITY => Cell::Text("inf".to_owned()),
        f64::NEG_INFINITY => Cell::Text("-inf".to_owned()),
        value => Cell::Real(value),
    }
}
