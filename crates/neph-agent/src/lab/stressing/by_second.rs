//! The seconds of a load by what `neph execute` wrote at its end.
//!
//! Owns when they were: a load ends at the moment at which it is asked to, and its beginning is as long
//! before that as it lasted. A guest has another clock, and its seconds are moved by as long as its console
//! took to pass the request on.

use neph_model::{Instant, Own, Span};
use serde::Deserialize;

use crate::LoadSeconds;

/// Of the row of a connection or a stream; a plan's load has one.
#[derive(Debug, Deserialize)]
struct Row {
    lasted_ns: i64,
    seconds: Vec<Second>,
}

#[derive(Debug, Deserialize)]
struct Second {
    at_ns: i64,
    sent_bit_s: f64,
    received_bit_s: f64,
}

/// The seconds of a load that was asked to end then; none of one that is no traffic.
pub(super) fn of(told: &[u8], load: u16, ended: Instant<Own>) -> Vec<LoadSeconds> {
    let rows: Vec<Row> = serde_json::from_slice(told).unwrap_or_default();
    let Some(row) = rows.into_iter().next() else {
        return Vec::new();
    };
    let began = ended - Span::from_nanos(row.lasted_ns);
    let mut from = began;
    let mut all = Vec::new();
    for second in row.seconds {
        let until = began + Span::from_nanos(second.at_ns);
        all.push(LoadSeconds {
            load,
            from,
            until,
            sent: second.sent_bit_s,
            received: second.received_bit_s,
        });
        from = until;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_count_from_the_end_back() {
        let told = r#"[{"lasted_ns": 2500000000, "fault": null, "seconds": [
            {"at_ns": 1000000000, "sent_bit_s": 8, "received_bit_s": 7},
            {"at_ns": 2000000001, "sent_bit_s": 6, "received_bit_s": 5}]}]"#;
        let at = Instant::from_nanos;
        let found = of(told.as_bytes(), 3, at(10_000_000_000));
        let ends: Vec<_> = found.iter().map(|one| (one.from, one.until)).collect();
        let middle = at(8_500_000_000);
        let expected = [(at(7_500_000_000), middle), (middle, at(9_500_000_001))];
        assert_eq!(ends, expected);
        assert_eq!(
            (found[1].load, found[1].sent, found[1].received),
            (3, 6.0, 5.0)
        );
        for other in ["", "[]", r#"[{"worked_percent": 80.0}]"#] {
            assert_eq!(of(other.as_bytes(), 1, at(0)), []);
        }
    }
}
