//! Pings between experiments: a row for each destination and the block that was waited for.

use std::collections::BTreeMap;

use neph_model::{PingBetween, Span, Tally};
use serde_json::json;

use crate::p50::P50;
use crate::sheet::{Cell, Column, Sheet};

/// The JSON has every ping: when it was sent (Unix ns) and its round trip (ns; null without a reply).
pub(super) fn sheet(pings: &[PingBetween]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("DESTINATION", "name"),
        Column::right("BEFORE BLOCK", "block"),
        Column::right("SENT", "sent"),
        Column::right("ERRORS", "errors"),
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
        let mut tally = Tally::default();
        for ping in &group {
            tally.count(ping.outcome);
        }
        let most = group.iter().filter_map(|ping| ping.round_trip).max();
        let all: Vec<_> = group
            .iter()
            .map(|ping| json!([ping.sent.unix_nanos(), ping.round_trip.map(Span::nanos)]))
            .collect();
        sheet.rows.push(vec![
            Cell::text(name),
            Cell::block(block),
            Cell::count(tally.messages),
            Cell::count(tally.errors),
            Cell::count(tally.lost),
            Cell::count(tally.failed),
            p50(&group, &tally),
            most.map_or_else(Cell::absent, |at| Cell::new(at.to_string(), at.nanos())),
            Cell::new("", json!(all)),
        ]);
    }
    sheet
}

/// A round trip counts from sending: pings that were not sent do not belong to its population.
fn p50(group: &[&PingBetween], tally: &Tally) -> Cell {
    let replies = group.iter().filter_map(|ping| ping.round_trip);
    let p50 = P50::of(replies, tally.without_service());
    Cell::new(p50.to_string(), p50.time().map(Span::nanos))
}

#[cfg(test)]
mod tests {
    use neph_model::{Outcome, Wall};
    use serde_json::Value;

    use super::*;

    /// Text and number of the P50 of pings with replies after these milliseconds, and of others.
    fn p50(millis: &[i64], others: &[Outcome]) -> (String, Value) {
        let ping = |outcome, round_trip| PingBetween {
            block: 1,
            name: "self".to_owned(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            sent: Wall::from_unix_nanos(0),
            outcome,
            round_trip,
        };
        let replies = millis.iter().copied().map(Span::from_millis);
        let replies = replies.map(|time| ping(Outcome::Reply, Some(time)));
        let others = others.iter().map(|outcome| ping(*outcome, None));
        let pings: Vec<PingBetween> = replies.chain(others).collect();
        let sheet = sheet(&pings);
        let shown = |column: &Column| column.key == "p50_ns";
        let place = sheet.columns.iter().position(shown).expect("a column");
        let cell = &sheet.rows[0][place];
        (cell.shown.clone(), cell.value.clone())
    }

    #[test]
    fn the_p50_is_that_of_all_that_were_sent_and_those_without_a_reply_are_latest() {
        let four = ("4.00 ms".to_owned(), json!(4_000_000));
        assert_eq!(p50(&[7, 1, 6, 2, 5, 3, 4], &[]), four);
        assert_eq!(p50(&[1, 2, 3, 4, 5], &[Outcome::Lost; 2]), four);
        let refused = [Outcome::Lost, Outcome::Error];
        assert_eq!(p50(&[1, 2, 3, 4, 5], &refused), four, "no reply either");
        assert_eq!(
            p50(&[1, 2, 3, 4, 5, 6, 7], &[Outcome::Failed; 9]),
            four,
            "never sent"
        );
        let half = p50(&[1, 2, 3, 4], &[Outcome::Lost; 4]);
        assert_eq!(half, ("lost".to_owned(), Value::Null));
        let refused = p50(&[1, 2, 3, 4], &[Outcome::Error; 4]);
        assert_eq!(refused, ("error".to_owned(), Value::Null));
        let both = [Outcome::Error, Outcome::Lost, Outcome::Lost, Outcome::Lost];
        assert_eq!(p50(&[1, 2, 3, 4], &both).0, "no reply");
        let few = ("-".to_owned(), Value::Null);
        assert_eq!(p50(&[1; 5], &[]), few, "6 are needed");
    }
}
