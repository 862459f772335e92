//! The seconds of a load by what `neph execute` wrote at its end.
//!
//! Owns when they were: a load ends at the moment at which it is asked to, and its beginning is as long
//! before that as it lasted. A guest has another clock, and its seconds are moved by as long as its console
//! took to pass the request on.

use neph_model::{Instant, LoadEnd, Local, SeriesName, Span};
use serde::Deserialize;

use crate::LoadSample;

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
pub(super) fn load_samples(output: &[u8], load: u16, ended: Instant<Local>) -> Vec<LoadSample> {
    let rows: Vec<Row> = serde_json::from_slice(output).unwrap_or_default();
    let Some(row) = rows.into_iter().next() else {
        return Vec::new();
    };
    let start = ended - Span::from_nanos(row.lasted_ns);
    let mut from = start;
    let mut seconds = Vec::new();
    for second in row.seconds {
        let until = start + Span::from_nanos(second.at_ns);
        let ends = [
            (LoadEnd::Sent, second.sent_bit_s),
            (LoadEnd::Received, second.received_bit_s),
        ];
        seconds.extend(ends.map(|(end, value)| LoadSample {
            series: SeriesName::Load(load, end),
            from,
            until,
            value,
        }));
        from = until;
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_seconds_are_dated_backwards_from_the_end() {
        let output = r#"[{"lasted_ns": 2500000000, "fault": null, "seconds": [
            {"at_ns": 1000000000, "sent_bit_s": 8, "received_bit_s": 7},
            {"at_ns": 2000000001, "sent_bit_s": 6, "received_bit_s": 5}]}]"#;
        let at = Instant::from_nanos;
        let seconds = load_samples(output.as_bytes(), 3, at(10_000_000_000));
        let (first, middle, last) = (at(7_500_000_000), at(8_500_000_000), at(9_500_000_001));
        let expected = [
            (LoadEnd::Sent, first, middle, 8.0),
            (LoadEnd::Received, first, middle, 7.0),
            (LoadEnd::Sent, middle, last, 6.0),
            (LoadEnd::Received, middle, last, 5.0),
        ];
        let expected = expected.map(|(end, from, until, value)| LoadSample {
            series: SeriesName::Load(3, end),
            from,
            until,
            value,
        });
        assert_eq!(seconds, expected);
        for invalid in ["", "[]", r#"[{"achieved_percent": 80.0}]"#] {
            assert_eq!(load_samples(invalid.as_bytes(), 1, at(0)), []);
        }
    }
}
