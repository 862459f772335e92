//! Pings between experiments: a row for each destination and the block that followed.

use std::collections::BTreeMap;

use neph_model::{PingBetween, Span, Tally, Wall};

use super::lists::one_based;
use crate::p50::P50;

crate::rows! {
    /// The pings to one destination before one block.
    pub struct PingsRow {
        /// Name of the destination in the plan.
        name: String => left "DESTINATION",
        /// The block that followed, from 0.
        block: u32 => right "BEFORE BLOCK" by |row| one_based(row.block),
        /// Pings sent.
        sent: u64 => right "SENT",
        /// Pings answered with an error.
        errors: u64 => right "ERRORS",
        /// Pings without a reply in time.
        lost: u64 => right "LOST",
        /// Pings that could not be sent.
        failed: u64 => right "NOT SENT",
        /// Median round trip; pings without a reply count as slower. null if they decide it, or
        /// with too few pings.
        p50_ns: Option<Span> => right "P50" by |row| row.p50.to_string(),
        /// Maximum round trip; null without a reply.
        max_ns: Option<Span> => right "MAX",
        /// Each ping: send time in Unix nanoseconds, and round trip in nanoseconds, null without a
        /// reply.
        pings: Vec<(Wall, Option<Span>)>,
        ; shown
        /// The median, or why there is none.
        p50: P50,
    }
}

impl PingsRow {
    /// The rows of these pings.
    pub fn all(pings: &[PingBetween]) -> Vec<Self> {
        let mut groups: BTreeMap<(&str, u32), Vec<&PingBetween>> = BTreeMap::new();
        for ping in pings {
            let group = groups.entry((ping.name.as_str(), ping.block));
            group.or_default().push(ping);
        }
        let rows = groups.into_values().map(|group| Self::of(&group));
        rows.collect()
    }

    /// The row of pings to one destination; `group` has at least one.
    fn of(group: &[&PingBetween]) -> Self {
        let mut tally = Tally::default();
        for ping in group {
            tally.count(ping.outcome);
        }
        let round_trips = || group.iter().filter_map(|ping| ping.round_trip);
        // A round trip counts from sending: pings that were not sent do not belong to its
        // population.
        let p50 = P50::of(round_trips(), tally.without_service());
        let pings = group.iter().map(|ping| (ping.sent, ping.round_trip));
        Self {
            name: group[0].name.clone(),
            block: group[0].block,
            sent: tally.messages,
            errors: tally.errors,
            lost: tally.lost,
            failed: tally.failed,
            p50_ns: p50.time(),
            max_ns: round_trips().max(),
            pings: pings.collect(),
            p50,
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Outcome;

    use super::*;

    /// Text and number of the P50 of pings with replies after these milliseconds, and of others.
    fn p50(millis: &[i64], others: &[Outcome]) -> (String, Option<Span>) {
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
        let row = PingsRow::all(&pings).remove(0);
        (row.p50.to_string(), row.p50_ns)
    }

    #[test]
    fn the_p50_counts_pings_without_a_reply_as_slowest() {
        let expected = ("4.00 ms".to_owned(), Some(Span::from_millis(4)));
        assert_eq!(p50(&[7, 1, 6, 2, 5, 3, 4], &[]), expected);
        assert_eq!(p50(&[1, 2, 3, 4, 5], &[Outcome::Lost; 2]), expected);
        let refused = [Outcome::Lost, Outcome::Error];
        assert_eq!(p50(&[1, 2, 3, 4, 5], &refused), expected, "no reply either");
        let never_sent = p50(&[1, 2, 3, 4, 5, 6, 7], &[Outcome::Failed; 9]);
        assert_eq!(never_sent, expected, "never sent");
        let half_lost = p50(&[1, 2, 3, 4], &[Outcome::Lost; 4]);
        assert_eq!(half_lost, ("lost".to_owned(), None));
        let refused = p50(&[1, 2, 3, 4], &[Outcome::Error; 4]);
        assert_eq!(refused, ("error".to_owned(), None));
        let outcomes = [Outcome::Error, Outcome::Lost, Outcome::Lost, Outcome::Lost];
        assert_eq!(p50(&[1, 2, 3, 4], &outcomes).0, "no reply");
        assert_eq!(p50(&[1; 5], &[]), ("-".to_owned(), None), "6 are needed");
    }
}
