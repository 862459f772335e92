//! The entries of a flow's ledgers: the distribution of each, and its share of all time.
//!
//! A share is the sum of an entry over the sum of the response times of all replies, so shares add
//! up to 1 however few messages have the entry. An entry of several stages bounds each of them from
//! above.

use std::collections::BTreeMap;

use neph_model::{Ledger, Stage, StageSet};
use neph_stats::RunningSummary;

/// An entry over all messages that have it.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// In nanoseconds.
    pub(super) values: RunningSummary,
    total: i128,
}

impl Entry {
    #[expect(clippy::cast_precision_loss, reason = "statistics")]
    fn add(&mut self, nanos: i64) {
        self.total += i128::from(nanos);
        let value = nanos as f64;
        self.values.add(value).expect("a span is finite");
    }
}

/// All entries that occur, in order of time.
#[derive(Debug, Default)]
pub(super) struct Entries {
    by_set: BTreeMap<EntryKey, Entry>,
    /// The sum of all response times, in nanoseconds.
    total: i128,
}

/// By the first stage, then by the number of stages: single stages precede merged ones.
type EntryKey = (Option<Stage>, usize, StageSet);

impl Entries {
    pub(super) fn add(&mut self, ledger: &Ledger) {
        self.total += i128::from(ledger.response_time().nanos());
        for entry in ledger.entries() {
            let set = entry.stages;
            let key = (set.iter().next(), set.iter().count(), set);
            self.by_set
                .entry(key)
                .or_default()
                .add(entry.time().nanos());
        }
    }

    /// Each entry with its share, from 0 to 1.
    pub(super) fn shares(&self) -> impl Iterator<Item = (StageSet, &Entry, f64)> {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = |entry: &Entry| entry.total as f64 / self.total.max(1) as f64;
        self.by_set
            .iter()
            .map(move |((_, _, set), entry)| (*set, entry, share(entry)))
    }

    /// The entries of several stages.
    pub(super) fn merged_sets(&self) -> impl Iterator<Item = StageSet> {
        let sets = self.by_set.keys().map(|(_, _, set)| *set);
        sets.filter(|set| set.is_merged())
    }
}

/// Shares in percent with one decimal whose sum is unchanged: the largest remainders are rounded
/// up.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a share in tenths of a percent is small"
)]
pub(super) fn round_percents(shares: &[f64]) -> Vec<f64> {
    let tenths: Vec<f64> = shares.iter().map(|share| share * 1000.0).collect();
    let mut floors: Vec<i64> = tenths.iter().map(|tenth| tenth.floor() as i64).collect();
    let target_sum = tenths.iter().sum::<f64>().round() as i64;
    let missing_tenths = usize::try_from(target_sum - floors.iter().sum::<i64>()).unwrap_or(0);
    let mut indices: Vec<usize> = (0..shares.len()).collect();
    indices.sort_by(|a, b| tenths[*b].fract().total_cmp(&tenths[*a].fract()));
    for index in indices.into_iter().take(missing_tenths) {
        floors[index] += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    floors
        .into_iter()
        .map(|floor| floor as f64 / 10.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use neph_model::{Instant, Marks};

    use super::*;

    /// A message of 10 us, or of 1000 us of which a handshake takes 900.
    fn ledger(has_handshake: bool, has_peer_timestamp: bool) -> Ledger {
        let local_time = |micros: i64| Some(Instant::from_nanos(micros * 1000));
        let peer_time = |micros: i64| Some(Instant::from_nanos(micros * 1000));
        let mut marks = Marks::intended_at(Instant::from_nanos(0));
        let send_micros = if has_handshake { 990 } else { 0 };
        if has_handshake {
            (marks.dialled, marks.connected, marks.opened) =
                (local_time(0), local_time(90), local_time(990));
        }
        marks.app_send = local_time(send_micros);
        (marks.queued, marks.nic_tx) = (local_time(send_micros + 1), local_time(send_micros + 2));
        marks.peer.rx = peer_time(500).filter(|_| has_peer_timestamp);
        (marks.peer.app_rx, marks.peer.app_tx) = (peer_time(501), peer_time(502));
        marks.peer.nic_tx = peer_time(503);
        (marks.nic_rx, marks.app_recv) =
            (local_time(send_micros + 9), local_time(send_micros + 10));
        Ledger::of(&marks).expect("a reply")
    }

    #[test]
    fn shares_add_up_if_only_some_messages_have_an_entry() {
        let mut entries = Entries::default();
        for number in 0..100 {
            entries.add(&ledger(number % 20 == 0, number % 3 == 0));
        }
        let rows: Vec<(String, f64)> = entries
            .shares()
            .map(|(set, _, share)| (set.to_string(), share))
            .collect();
        let share_of = |name: &str| rows.iter().find(|row| row.0 == name).expect("a row").1;
        // 5 messages of 1000 us and 95 of 10: 5950 us, of which handshakes take 5 times 900.
        assert!(
            (share_of("handshake") - 4500.0 / 5950.0).abs() < 1e-12,
            "{rows:?}"
        );
        let sum: f64 = rows.iter().map(|row| row.1).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{rows:?}");
        // Those without the peer's timestamp have a row of their own.
        assert!(share_of("network") > 0.0 && share_of("network + peer kernel") > 0.0);
        assert_eq!(entries.merged_sets().count(), 1);
        let rounded = round_percents(&rows.iter().map(|row| row.1).collect::<Vec<_>>());
        let sum: f64 = rounded.iter().sum();
        assert!((sum - 100.0).abs() < 1e-9, "{rounded:?}");
    }

    #[test]
    fn rounded_shares_add_up() {
        assert_eq!(round_percents(&[1.0 / 3.0; 3]), [33.4, 33.3, 33.3]);
        assert_eq!(round_percents(&[0.0005, 0.9995]), [0.1, 99.9]);
        // A wrong clock can make an entry negative.
        assert_eq!(round_percents(&[-0.25, 1.25]), [-25.0, 125.0]);
        assert!(round_percents(&[]).is_empty());
    }
}
