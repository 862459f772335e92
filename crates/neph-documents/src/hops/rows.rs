//! The tables of segments and of the parts of round trips.

use crate::cell::OrDash;
use neph_capture::Direction;
use neph_capture::clocks::words;
use neph_capture::path::passages::{PROTOCOLS, Passages, segment_names};
use neph_capture::path::shares::{Delays, RoundTrips};
use neph_model::Span;
use neph_text::decimals::fixed;

crate::rows! {
    /// The delays of one protocol in one direction of a segment.
    pub struct SegmentRow {
        /// The segment: `a - b`.
        segment: String => left "SEGMENT",
        /// `there` or `back`.
        direction: &'static str => left "DIRECTION",
        /// The protocol.
        protocol: &'static str => left "PROTOCOL",
        /// How many packets have a delay.
        n: u64 => right "N",
        /// The mean delay in nanoseconds.
        mean_ns: Option<Span> => right "MEAN",
        /// The error bound of each delay in nanoseconds.
        bound_ns: Option<i64> => right "± BOUND" by |row| {
            row.bound_ns.or_dash(words::up)
        },
        /// The shortest delay in nanoseconds.
        min_ns: Option<Span> => right "MIN",
        /// The median delay in nanoseconds.
        p50_ns: Option<Span> => right "P50",
        /// The 99th percentile in nanoseconds.
        p99_ns: Option<Span> => right "P99",
        /// The longest delay in nanoseconds.
        max_ns: Option<Span> => right "MAX",
        /// Packets that were lost in the segment.
        lost: u64 => right "LOST",
        /// Packets that were reordered in the segment.
        reordered: u64 => right "REORDERED",
        /// Packets that were duplicated in the segment.
        copies: u64 => right "COPIES",
        /// Its share of the round trips of the protocol, 0 to 1.
        share_of_round_trip: Option<f64> => right "SHARE OF RTT" by |row| percent(row.share_of_round_trip),
    }
}

crate::rows! {
    /// A part of the round trips of a protocol.
    pub struct RoundTripRow {
        /// The protocol.
        protocol: &'static str => left "ROUND TRIPS",
        /// `all`, a segment, or what lies beyond the last point.
        part: String => left "PART",
        /// How many round trips.
        n: u64 => right "N",
        /// The mean in nanoseconds.
        mean_ns: Option<Span> => right "MEAN",
        /// Its share of all, 0 to 1.
        share: Option<f64> => right "SHARE" by |row| percent(row.share),
    }
}

impl SegmentRow {
    /// The rows of these delays, with their shares of these round trips.
    pub fn all(passages: &Passages, delays: &[Delays], trips: &[RoundTrips]) -> Vec<Self> {
        let names = segment_names(&passages.names);
        let rows = delays.iter().map(|of| {
            let direction = if of.is_back {
                Direction::Reverse
            } else {
                Direction::Forward
            };
            let trips = trips.iter().find(|trips| trips.protocol == of.protocol);
            let share =
                trips.and_then(|trips| share(trips.part(of.segment, of.is_back)?, trips.total));
            let mean = of.mean();
            let span = |nanos: Option<i64>| nanos.map(Span::from_nanos);
            Self {
                segment: names[of.segment].clone(),
                direction: direction.name(),
                protocol: PROTOCOLS[of.protocol],
                n: of.n,
                mean_ns: span(mean),
                bound_ns: mean.map(|_| of.bound),
                min_ns: span(mean.map(|_| of.least)),
                p50_ns: span(of.p50),
                p99_ns: span(of.p99),
                max_ns: span(mean.map(|_| of.most)),
                lost: of.lost,
                reordered: of.reordered,
                copies: of.copies,
                share_of_round_trip: share,
            }
        });
        rows.collect()
    }
}

impl RoundTripRow {
    /// The parts of these round trips.
    pub fn all(passages: &Passages, trips: &[RoundTrips]) -> Vec<Self> {
        let mut names = vec!["all".to_owned()];
        names.extend(segment_names(&passages.names));
        let last = passages.names.last().map_or("", String::as_str);
        names.push(format!("beyond {last}"));
        let rows = trips.iter().flat_map(|of| {
            let totals = [of.total].into_iter().chain(of.parts.iter().copied());
            names.iter().zip(totals).map(|(part, total)| Self {
                protocol: PROTOCOLS[of.protocol],
                part: part.clone(),
                n: of.n,
                mean_ns: i64::try_from(total / i128::from(of.n))
                    .ok()
                    .map(Span::from_nanos),
                share: share(total, of.total),
            })
        });
        rows.collect()
    }
}

/// The share of a part of the round trips of its protocol.
#[expect(clippy::cast_precision_loss, reason = "a share is shown")]
fn share(part: i128, total: i128) -> Option<f64> {
    (total > 0).then(|| part as f64 / total as f64)
}

fn percent(share: Option<f64>) -> String {
    share.or_dash(|share| format!("{} %", fixed(share * 100.0, 1)))
}
