//! Throughput checks: what a bulk transfer achieved at the start of each block.

use neph_model::Throughput;

use super::cells::{Cell, Column, Table};
use crate::{CampaignData, PlotSettings};

pub(super) fn table(data: &CampaignData, settings: &PlotSettings) -> Table {
    let columns = [
        "endpoint",
        "from",
        "block",
        "tool",
        "seconds",
        "goodput_mbit_s",
        "slowest_second_mbit_s",
        "fastest_second_mbit_s",
        "retransmissions",
        "last_cwnd_segments",
        "failure",
    ];
    let shown = data
        .throughputs
        .iter()
        .filter(|check| settings.shows_block(check.block));
    Table {
        name: "throughput",
        title: "Throughput checks",
        columns: columns.map(Column).to_vec(),
        rows: shown.map(row).collect(),
        notes: vec![
            "Payload that the receiver acknowledged, in millions of bits per second.".to_owned(),
        ],
    }
}

#[expect(clippy::cast_precision_loss, reason = "display")]
fn row(check: &Throughput) -> Vec<Cell> {
    let mbit = |bits: u64| bits as f64 / 1e6;
    let seconds = || {
        check
            .seconds
            .iter()
            .map(|second| second.goodput.bits_per_second())
    };
    let known = check.failure.is_none();
    let again: u64 = check
        .seconds
        .iter()
        .map(|s| u64::from(s.retransmissions))
        .sum();
    let cwnd = check.seconds.last().and_then(|second| second.cwnd_segments);
    vec![
        Cell::Text(check.endpoint.clone()),
        check.site.clone().map_or(Cell::Absent, Cell::Text),
        Cell::Integer(u64::from(check.block) + 1),
        Cell::Text(check.tool.clone()),
        Cell::Integer(check.seconds.len() as u64),
        Cell::real(known.then(|| mbit(check.goodput.bits_per_second()))),
        Cell::real(seconds().min().map(mbit)),
        Cell::real(seconds().max().map(mbit)),
        if known {
            Cell::Integer(again)
        } else {
            Cell::Absent
        },
        cwnd.map_or(Cell::Absent, |cwnd| Cell::Integer(u64::from(cwnd))),
        check.failure.clone().map_or(Cell::Absent, Cell::Text),
    ]
}
