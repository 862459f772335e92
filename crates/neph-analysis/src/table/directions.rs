//! Delays there and back in numbers: a row for each scenario whose peers give kernel stamps.

use neph_model::Span;
use neph_stats::{Level, Sorted, quantile_needs, rough_level};

use super::cells::{Cell, Column, Table};
use crate::directions::Directions;
use crate::{CampaignData, PlotSettings};

pub(crate) fn table(data: &CampaignData, settings: &PlotSettings) -> Table {
    let columns = [
        "scenario",
        "experiments",
        "n",
        "there_p50_ms",
        "there_p99_ms",
        "back_p50_ms",
        "back_p99_ms",
        "bound_ms",
        "without_delay",
    ];
    let rows = data.measured(settings).into_iter().filter_map(|scenario| {
        let flows = data.main_flows(scenario, settings);
        let all: Vec<Directions> = flows.filter_map(Directions::of).collect();
        row(&all, data.label(scenario))
    });
    Table {
        name: "directions",
        title: "Delays there and back",
        columns: columns.map(Column).to_vec(),
        rows: rows.collect(),
        notes: vec![
            "Through the network, from the stamp of the sending kernel to that of the receiving kernel; of messages \
             that were answered. Each delay may be wrong by bound_ms, the widest of all messages: what is too \
             long there is too short back. It is 0 where both ends read one clock. without_delay counts messages \
             for which the clocks could not be compared."
                .to_owned(),
        ],
    }
}

fn row(all: &[Directions], label: String) -> Option<Vec<Cell>> {
    let bound = all.iter().map(|one| one.bound).max()?;
    let pooled = |of: fn(&Directions) -> &[Span]| -> Vec<f64> {
        let spans = all.iter().flat_map(of);
        spans.map(|span| span.millis_f64()).collect()
    };
    let mut there = pooled(|one| &one.there);
    let mut back = pooled(|one| &one.back);
    let without: usize = all.iter().map(|one| one.without).sum();
    let n = there.len();
    let [there_p50, there_p99] = quantiles(&mut there);
    let [back_p50, back_p99] = quantiles(&mut back);
    Some(vec![
        Cell::Text(label),
        Cell::Integer(all.len() as u64),
        Cell::Integer(n as u64),
        there_p50,
        there_p99,
        back_p50,
        back_p99,
        Cell::Real(bound.millis_f64()),
        Cell::Integer(without as u64),
    ])
}

/// Median and 99th percentile, where there are messages enough.
fn quantiles(values: &mut [f64]) -> [Cell; 2] {
    let sample = Sorted::sort(values).expect("delays are finite");
    [0.5, 0.99].map(|p| {
        let need = quantile_needs(p).unwrap_or(usize::MAX);
        let level = rough_level(sample, 0, p).ok();
        let level = level.filter(|_| sample.len() >= need);
        Cell::real(level.and_then(Level::number))
    })
}
