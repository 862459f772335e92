//! Pings between experiments: a row for each destination and the block that was waited for.

use std::collections::BTreeMap;

use neph_model::{Outcome, PingBetween, Span};
use neph_stats::{Sorted, quantile};
use serde_json::{Value, json};

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
        let most = group.iter().filter_map(|ping| ping.round_trip).max();
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
            p50(&group),
            most.map_or_else(Cell::absent, |at| Cell::new(at.to_string(), at.nanos())),
            Cell::new("", json!(all)),
        ]);
    }
    sheet
}

/// Of all that were sent: a lost one counts as later than every reply. None of fewer than it needs.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "nanoseconds of a round trip fit"
)]
fn p50(group: &[&PingBetween]) -> Cell {
    let replies = group.iter().filter_map(|ping| ping.round_trip);
    let mut replies: Vec<f64> = replies.map(|span| span.nanos() as f64).collect();
    let lost = group.iter().filter(|ping| ping.outcome == Outcome::Lost);
    let lost = lost.count();
    let p50 = Sorted::sort(&mut replies).and_then(|replies| quantile(replies, lost, 0.5));
    match p50.map(|p50| p50.value().number()) {
        Ok(Some(nanos)) => {
            let at = Span::from_nanos(nanos.round() as i64);
            Cell::new(at.to_string(), at.nanos())
        }
        Ok(None) => Cell::new("lost", Value::Null),
        Err(_) => Cell::absent(),
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Wall;

    use super::*;

    /// Text and number of the P50 of pings with these round trips in milliseconds.
    fn shown(round_trips: &[Option<i64>]) -> (String, Value) {
        let ping = |millis: &Option<i64>| PingBetween {
            block: 1,
            name: "self".to_owned(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            sent: Wall::from_unix_nanos(0),
            outcome: millis.map_or(Outcome::Lost, |_| Outcome::Reply),
            round_trip: millis.map(Span::from_millis),
        };
        let pings: Vec<PingBetween> = round_trips.iter().map(ping).collect();
        let sheet = sheet(&pings);
        let row = &sheet.json()[0];
        let text = sheet.text();
        let line = text.lines().nth(1).expect("a row");
        let cells: Vec<&str> = line.split("  ").filter(|cell| !cell.is_empty()).collect();
        (cells[5].trim().to_owned(), row["p50_ns"].clone())
    }

    #[test]
    fn a_quantile_is_that_of_all_pings_and_lost_ones_are_later_than_every_reply() {
        let replies = [1, 2, 3, 4, 5, 6, 7].map(Some);
        assert_eq!(shown(&replies), ("4.00 ms".to_owned(), json!(4_000_000)));
        let some = [[Some(1), Some(2), Some(3), Some(4)], [None; 4]].concat();
        assert_eq!(shown(&some).1, Value::Null, "half of them are lost");
        let few = [
            [Some(1), Some(2), Some(3), Some(4), Some(5)].as_slice(),
            &[None, None],
        ]
        .concat();
        assert_eq!(shown(&few), ("4.00 ms".to_owned(), json!(4_000_000)));
        assert_eq!(
            shown(&[Some(1); 5]),
            ("-".to_owned(), Value::Null),
            "6 are needed"
        );
    }
}
