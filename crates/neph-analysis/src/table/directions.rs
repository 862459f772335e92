//! One-way delays in numbers: a row for each scenario whose peers give kernel stamps.

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
        "forward_p50_ms",
        "forward_p99_ms",
        "reverse_p50_ms",
        "reverse_p99_ms",
        "bound_ms",
        "without_delay",
    ];
    let rows = data.measured(settings).into_iter().filter_map(|scenario| {
        let flows = data.main_flows(scenario, settings);
        let directions: Vec<Directions> = flows.filter_map(Directions::of).collect();
        row(&directions, data.label(scenario))
    });
    Table {
        name: "directions",
        title: "One-way delays",
        columns: columns.map(Column).to_vec(),
        rows: rows.collect(),
        notes: vec![
            "Delay through the network, from the timestamp of the sending kernel to that of the receiving kernel, of answered messages. bound_ms is the largest error bound. If forward is too large by some time, reverse is too small by the same time. The bound is 0 if both ends read one clock. without_delay counts messages whose clocks could not be compared."
                .to_owned(),
        ],
    }
}

fn row(flows: &[Directions], label: String) -> Option<Vec<Cell>> {
    let bound = flows.iter().map(|flow| flow.bound).max()?;
    let pooled = |delays_of: fn(&Directions) -> &[Span]| -> Vec<f64> {
        let spans = flows.iter().flat_map(delays_of);
        spans.map(|span| span.millis_f64()).collect()
    };
    let mut forward = pooled(|flow| &flow.forward);
    let mut reverse = pooled(|flow| &flow.reverse);
    let without_delay: usize = flows.iter().map(|flow| flow.messages_without_delay).sum();
    let n = forward.len();
    let [forward_p50, forward_p99] = quantiles(&mut forward);
    let [reverse_p50, reverse_p99] = quantiles(&mut reverse);
    Some(vec![
        Cell::Text(label),
        Cell::Integer(flows.len() as u64),
        Cell::Integer(n as u64),
        forward_p50,
        forward_p99,
        reverse_p50,
        reverse_p99,
        Cell::Real(bound.millis_f64()),
        Cell::Integer(without_delay as u64),
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
