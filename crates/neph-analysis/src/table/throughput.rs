//! Throughput checks: what a bulk transfer achieved at the start of each block.

use std::collections::BTreeMap;

use neph_model::{Throughput, ThroughputSecond};

use super::cells::{Cell, Column, Table};
use crate::findings::capacity::{Traffic, ended_early};
use crate::text::plural;
use crate::{CampaignData, PlotSettings};

/// Maximum number of checks that are named; the others are counted.
const MAX_NAMED: usize = 3;

pub(crate) fn table(data: &CampaignData, settings: &PlotSettings) -> Table {
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
        "spurious_retransmissions",
        "last_cwnd_segments",
        "failure",
    ];
    Table {
        name: "throughput",
        title: "Throughput checks",
        columns: columns.map(Column).to_vec(),
        rows: data.shown_checks(settings).map(row).collect(),
        notes: std::iter::once(
            "Payload that the receiver acknowledged, in millions of bits per second.".to_owned(),
        )
        .chain(early_checks_note(data, settings))
        .collect(),
    }
}

/// Which checks ended early, so that their result is a lower limit of the capacity.
fn early_checks_note(data: &CampaignData, settings: &PlotSettings) -> Option<String> {
    let mut pairs = BTreeMap::new();
    let early = data.successful_checks(settings).filter(|check| {
        let pair = (check.endpoint.as_str(), check.site.as_deref());
        let traffic = pairs
            .entry(pair)
            .or_insert_with(|| Traffic::between(data, settings, pair.0, pair.1));
        ended_early(check, *traffic)
    });
    let early: Vec<String> = early
        .map(|check| format!("{} in block {}", check.endpoint, check.block + 1))
        .collect();
    let more_checks = match early.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more_checks => format!(" and {}", plural(more_checks, "more check")),
    };
    (!early.is_empty()).then(|| {
        format!(
            "At least what the link carries, as the check ended before it had filled it (no losses, \
             and a window that still grew or no queue): {}{more_checks}.",
            early[..early.len().min(MAX_NAMED)].join("; ")
        )
    })
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
    let is_known = check.failure.is_none();
    let sum = |value: fn(&ThroughputSecond) -> u32| {
        let seconds = check.seconds.iter().map(value);
        let total: u64 = seconds.map(u64::from).sum();
        is_known
            .then_some(total)
            .map_or(Cell::Absent, Cell::Integer)
    };
    let cwnd = check.seconds.last().and_then(|second| second.cwnd_segments);
    vec![
        Cell::Text(check.endpoint.clone()),
        check.site.clone().map_or(Cell::Absent, Cell::Text),
        Cell::Integer(u64::from(check.block) + 1),
        Cell::Text(check.tool.clone()),
        Cell::Integer(check.seconds.len() as u64),
        Cell::real(is_known.then(|| mbit(check.goodput.bits_per_second()))),
        Cell::real(seconds().min().map(mbit)),
        Cell::real(seconds().max().map(mbit)),
        sum(|second| second.retransmissions),
        sum(|second| second.spurious_retransmissions),
        cwnd.map_or(Cell::Absent, |cwnd| Cell::Integer(u64::from(cwnd))),
        check.failure.clone().map_or(Cell::Absent, Cell::Text),
    ]
}
