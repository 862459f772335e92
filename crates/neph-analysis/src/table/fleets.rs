//! Fleets in numbers: latency classes, path changes, persistence, unfairness, loss.

use neph_flows::{Curve, FleetView, FlowQuantile, OverBins};
use neph_model::Span;
use neph_stats::Level;

use super::cells::{Cell, Column, LOST_FLOWS, Table};
use super::{advice, transfers_and_traces};
use crate::discarded_changes;
use crate::fleet::Pair;
use crate::fleet::pairs;
use crate::{CampaignData, PlotSettings};

/// Prefix of the names of these tables and of the figures of fleets; the tables' first column is the
/// scenario.
pub const FLEET_PREFIX: &str = "flow-";

/// A table of fleets.
struct FleetTable {
    name: &'static str,
    title: &'static str,
    /// Its columns after those that identify the pair.
    columns: &'static [&'static str],
    note: &'static str,
    rows: fn(&Pair<'_>) -> Vec<Vec<Cell>>,
}

/// Every table of fleets, in the order of the report.
const FLEET_TABLES: [FleetTable; 7] = [
    FleetTable {
        name: "flow-pairs",
        title: "Flows and path changes",
        columns: &PAIRS,
        note: "Inflation: highest over lowest class, minus one. Unfairness: median over bins of the percentiles over flows; p95 needs 59 flows, p99 299. A flow that lost half of its messages in a bin, or more, counts as slower than all others in that bin. A percentile of such a flow is lost; most_lost_flows is the largest number in one bin. Changes per flow and hour exclude the time in which a shared queue hid them. dip_p: p-value of Hartigan's dip test for one group.",
        rows: |pair| vec![pair_row(pair)],
    },
    FleetTable {
        name: "flow-classes",
        title: "Latency classes",
        columns: &CLASSES,
        note: "A class is flows with the same base latency, so probably a path. share: of all flows' time; moved: of all moves away from a class, with its 95 % confidence interval (Wilson). loss: of the messages of flows that were known to be in it.",
        rows: classes,
    },
    FleetTable {
        name: "flow-persistence",
        title: "Persistence",
        columns: &PERSISTENCE,
        note: "Kaplan-Meier with 95 % confidence intervals, in which what many flows did at once is one event; what had not ended with the measurement is censored. Empty medians: more than half lasted longer than was watched. Within: to the nearest interval between two messages of a flow.",
        rows: persistence,
    },
    FleetTable {
        name: "flow-loss",
        title: "Loss by direction",
        columns: &LOSS,
        note: "Lost: no reply within the timeout. Came late: the reply arrived after it, so no direction lost it (empty with several targets). Directions are known where the peer counts what it receives. Loss: share of sent messages, with its 95 % confidence interval (Wilson). Reordered: replies that arrived after the reply to a later request. By direction as in RFC 4737, where the peer's counter and timestamps show it.",
        rows: |pair| vec![loss_row(pair)],
    },
    FleetTable {
        name: "flow-transfers",
        title: "Transfers on the classes' ports",
        columns: &transfers_and_traces::TRANSFERS,
        note: "Each port counts once, by the median of its transfers, connecting included; those that failed count as longer than all others. The interval holds the median of ports with 95 %; it takes 6 ports. ratio: to the first class.",
        rows: transfers_and_traces::transfers,
    },
    FleetTable {
        name: "flow-traced",
        title: "Path changes that were traced",
        columns: &transfers_and_traces::TRACED,
        note: "compared: the routes before and after the change are both known. other_routers: at some distance another router answered than before the change, which confirms it. same_routers: where routers answered both times they were the same; paths can part behind routers that do not answer.",
        rows: transfers_and_traces::traced,
    },
    FleetTable {
        name: "flow-advice",
        title: "Which source ports",
        columns: &advice::COLUMNS,
        note: "Kept best: of so many connections the best one. Tested: the port that was advised so long ago, against a random one.",
        rows: advice::rows,
    },
];

/// Every table of fleets; those without a row are left out by the caller.
pub(crate) fn tables(data: &CampaignData, settings: &PlotSettings) -> Vec<Table> {
    let pairs = pairs(data, settings);
    let mut tables: Vec<Table> = FLEET_TABLES
        .iter()
        .map(|fleet_table| table(fleet_table, &pairs))
        .collect();
    let mut scenarios: Vec<usize> = pairs.iter().map(|pair| pair.scenario).collect();
    scenarios.dedup();
    let discarded_note = discarded_changes::note(data, scenarios, settings);
    // Tallies are of the whole time.
    for table in tables.iter_mut().filter(|table| table.name != "flow-loss") {
        table.notes.extend(discarded_note.clone());
    }
    let caution = pairs.iter().find_map(|pair| Some(pair.advice()?.caution));
    if let (Some(caution), Some(advice)) = (caution, tables.last_mut()) {
        advice.notes.push(caution.to_owned());
    }
    tables
}

fn table(fleet_table: &FleetTable, pairs: &[Pair<'_>]) -> Table {
    let columns = ["scenario", "block", "endpoint"]
        .iter()
        .chain(fleet_table.columns);
    let rows_of_pair = |pair: &Pair<'_>| {
        let pair_columns = [
            Cell::Text(pair.scenario_label.clone()),
            Cell::Integer(u64::from(pair.block)),
            Cell::Text(pair.endpoint_name()),
        ];
        let rows = (fleet_table.rows)(pair).into_iter();
        rows.map(|row| {
            pair_columns
                .iter()
                .cloned()
                .chain(row)
                .collect::<Vec<Cell>>()
        })
        .collect::<Vec<_>>()
    };
    Table {
        name: fleet_table.name,
        title: fleet_table.title,
        columns: columns.map(|column| Column(column)).collect(),
        rows: pairs.iter().flat_map(rows_of_pair).collect(),
        notes: vec![fleet_table.note.to_owned()],
    }
}

const PAIRS: [&str; 13] = [
    "flows",
    "changes",
    "changes_per_flow_hour",
    "lowest_ms",
    "highest_ms",
    "inflation",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "p99_over_p50",
    "most_lost_flows",
    "dip",
    "dip_p",
];

fn pair_row(pair: &Pair<'_>) -> Vec<Cell> {
    let pair_view = pair.pair_view;
    let inflation = pair_view.inflation;
    let ms = |span: Span| span.millis_f64();
    let quantile_cell =
        |quantile: FlowQuantile| median_cell(OverBins::median(pair.latency_bins(), quantile), 1e-6);
    let p99_to_p50 = OverBins::ratio(pair.latency_bins(), FlowQuantile::P99, FlowQuantile::P50);
    let most_lost = pair
        .latency_bins()
        .iter()
        .map(|bin| u64::from(bin.lost))
        .max();
    vec![
        Cell::Integer(pair_view.flows),
        Cell::Integer(pair_view.changes),
        Cell::real(pair_view.changes_per_flow_hour()),
        Cell::real(inflation.map(|range| ms(range.lowest))),
        Cell::real(inflation.map(|range| ms(range.highest))),
        Cell::real(inflation.map(|range| range.ratio - 1.0)),
        quantile_cell(FlowQuantile::P50),
        quantile_cell(FlowQuantile::P95),
        quantile_cell(FlowQuantile::P99),
        median_cell(p99_to_p50, 1.0),
        Cell::Integer(most_lost.unwrap_or(0)),
        Cell::real(pair_view.bimodality.map(|test| test.dip)),
        Cell::real(pair_view.bimodality.map(|test| test.p)),
    ]
}

/// A median over bins in the column's unit, of which there are so many in its own.
fn median_cell(median: Option<OverBins>, unit: f64) -> Cell {
    match median.map(|median| median.level) {
        Some(Level::At(value)) => Cell::Real(value * unit),
        Some(Level::Censored) => Cell::Censored(LOST_FLOWS),
        None => Cell::Absent,
    }
}

const CLASSES: [&str; 13] = [
    "class",
    "base_ms",
    "from_ms",
    "to_ms",
    "share",
    "flows_at_end",
    "left",
    "joined",
    "moved",
    "moved_low",
    "moved_high",
    "moves_per_flow_hour",
    "loss",
];

fn classes(pair: &Pair<'_>) -> Vec<Vec<Cell>> {
    let numbered = pair.classes().iter().zip(1_u64..);
    let row = |(class, number): (&neph_flows::Class, u64)| {
        let moved = pair
            .pair_view
            .moved
            .iter()
            .find(|class_moves| u64::from(class_moves.class) + 1 == number);
        let share = moved.and_then(|class_moves| class_moves.moved);
        vec![
            Cell::Integer(number),
            Cell::Real(class.base.millis_f64()),
            Cell::Real(class.range.0.millis_f64()),
            Cell::Real(class.range.1.millis_f64()),
            Cell::Real(class.share),
            Cell::Integer(u64::from(class.flows)),
            Cell::Integer(class.left),
            Cell::Integer(class.joined),
            Cell::real(share.map(|share| share.share)),
            Cell::real(share.map(|share| share.low)),
            Cell::real(share.map(|share| share.high)),
            Cell::real(
                moved
                    .map(|class_moves| class_moves.per_flow_hour)
                    .filter(|rate| rate.is_finite()),
            ),
            Cell::real(class.loss().map(|loss| loss.share)),
        ]
    };
    numbered.map(row).collect()
}

const PERSISTENCE: [&str; 8] = [
    "of",
    "n",
    "ended",
    "median_s",
    "within_s",
    "left_within",
    "left_low",
    "left_high",
];

fn persistence(pair: &Pair<'_>) -> Vec<Vec<Cell>> {
    let pair_view = pair.pair_view;
    let curves = [
        ("from a path change to the next", &pair_view.between),
        ("in a class", &pair_view.persistence),
        ("forward path only", &pair_view.persistence_forward),
        ("reverse path only", &pair_view.persistence_reverse),
    ];
    let rows = curves.into_iter();
    rows.filter_map(|(name, curve)| Some(persistence_row(name, curve.as_ref()?, pair.view)))
        .collect()
}

fn persistence_row(name: &str, curve: &Curve, view: &FleetView) -> Vec<Cell> {
    let point = curve.at(view.soon());
    vec![
        Cell::Text(name.to_owned()),
        Cell::Integer(curve.n),
        Cell::Integer(curve.ended),
        Cell::real(curve.median().map(Span::secs_f64)),
        Cell::Real(view.settings.soon.secs_f64()),
        Cell::real(point.map(|point| 1.0 - point.surviving)),
        Cell::real(point.map(|point| 1.0 - point.high)),
        Cell::real(point.map(|point| 1.0 - point.low)),
    ]
}

const LOSS: [&str; 13] = [
    "replies",
    "lost",
    "loss",
    "loss_low",
    "loss_high",
    "came_late",
    "lost_there",
    "lost_back",
    "not_sent",
    "copies",
    "reordered",
    "reordered_there",
    "reordered_back",
];

fn loss_row(pair: &Pair<'_>) -> Vec<Cell> {
    // Of the whole time, including flows that are no longer stored.
    let tally = pair.pair_view.tally;
    let share = tally.loss();
    vec![
        Cell::Integer(tally.replies),
        Cell::Integer(tally.lost),
        Cell::real(share.map(|share| share.share)),
        Cell::real(share.map(|share| share.low)),
        Cell::real(share.map(|share| share.high)),
        pair.pair_view.late.map_or(Cell::Absent, Cell::Integer),
        Cell::Integer(tally.lost_forward),
        Cell::Integer(tally.lost_reverse),
        Cell::Integer(tally.failed),
        Cell::Integer(tally.copies),
        Cell::Integer(tally.reordered),
        Cell::Integer(tally.reordered_forward),
        Cell::Integer(tally.reordered_reverse),
    ]
}
