//! Pings between experiments: a row for each destination and the block that was waited for.

use std::collections::BTreeMap;

use neph_model::{Outcome, PingBetween, Span};
use serde_json::json;

use crate::sheet::{Cell, Column, Sheet};

/// The JSON has every ping: when it was sent (Unix ns) and its round trip (ns; null without a reply).
pub(super) fn sheet(pings: &[PingBetween]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("DESTINATION", "name"),
        Column::right("BEFORE BLOCK", "block"),
        Column::right("SENT", "sent"),
        Column::right("LOST", "lost"),
        Column::right("NOT SENT", "failed"),
        Column::right("P50", "p50_ns"),
        Column::right("MOST", "most_ns"),
        Column::left("", "pings"),
    ]);
    let mut groups: BTreeMap<(&str, u32), Vec<&PingBetween>> = BTreeMap::new();
    for ping in pings {
        let group = groups.entry((ping.name.as_str(), ping.block));
        group.or_default().push(ping);
    }
    for ((name, block), group) in groups {
        let ended = |outcome: Outcome| {
            let of = group.iter().filter(|ping| ping.outcome == outcome);
            Cell::count(of.count() as u64)
        };
        let mut times: Vec<Span> = group.iter().filter_map(|ping| ping.round_trip).collect();
        times.sort_unstable();
        let time = |span: Option<&Span>| {
            span.map_or_else(Cell::absent, |at| Cell::new(at.to_string(), at.nanos()))
        };
        let all: Vec<_> = group
            .iter()
            .map(|ping| json!([ping.sent.unix_nanos(), ping.round_trip.map(Span::nanos)]))
            .collect();
        sheet.rows.push(vec![
            Cell::text(name),
            Cell::block(block),
            Cell::count(group.len() as u64),
            ended(Outcome::Lost),
            ended(Outcome::Failed),
            // The lower median: a time that was measured.
            time(times.get(times.len().saturating_sub(1) / 2)),
            time(times.last()),
            Cell::new("", json!(all)),
        ]);
    }
    sheet
}
