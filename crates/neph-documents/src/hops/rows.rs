//! The tables of segments and of the parts of round trips.

use crate::cell::OrDash;
use neph_capture::Direction;
use neph_capture::clocks::value_format;
use neph_capture::path::passages::{PROTOCOLS, Passages, segment_names};
use neph_capture::path::shares::{Delays, RoundTrips};
use neph_model::Span;
use neph_text::decimals::fixed;

crate::rows! {
    /// The delays of one protocol in one direction of a segment.
    pub struct SegmentRow {
        /// The segment: `a - b`.
        segment: String => left "SEGMENT",
        /// `forward` or `reverse`.
        direction: &'static str => left "DIRECTION",
        /// Protocol of the packets.
        protocol: &'static str => left "PROTOCOL",
        /// Number of packets with a delay.
        n: u64 => right "N",
        /// Mean delay; null without a delay.
        mean_ns: Option<Span> => right "MEAN",
        /// Error bound of each delay; null without a delay.
        bound_ns: Option<i64> => right "± BOUND" by |row| {
            row.bound_ns.or_dash(value_format::bound_text)
        },
        /// Minimum delay; null without a delay.
        min_ns: Option<Span> => right "MIN",
        /// Median delay; null with too few packets.
        p50_ns: Option<Span> => right "P50",
        /// 99th percentile of the delay; null with too few packets.
        p99_ns: Option<Span> => right "P99",
        /// Maximum delay; null without a delay.
        max_ns: Option<Span> => right "MAX",
        /// Packets lost in the segment.
        lost: u64 => right "LOST",
        /// Packets reordered in the segment.
        reordered: u64 => right "REORDERED",
        /// Packets duplicated in the segment.
        copies: u64 => right "COPIES",
        /// Share of this segment and direction in the round trips of the protocol, 0 to 1; null if
        /// not known.
        share_of_round_trip: Option<f64> => right "SHARE OF RTT" by |row| percent(row.share_of_round_trip),
    }
}

crate::rows! {
    /// A part of the round trips of a protocol.
    pub struct RoundTripRow {
        /// Protocol of the packets.
        protocol: &'static str => left "ROUND TRIPS",
        /// `all`, a segment (`a - b`), or everything beyond the last point (`beyond b`).
        part: String => left "PART",
        /// Number of round trips.
        n: u64 => right "N",
        /// Mean time of the part.
        mean_ns: Option<Span> => right "MEAN",
        /// Share of the whole round trips, 0 to 1; null if these took no time.
        share: Option<f64> => right "SHARE" by |row| percent(row.share),
    }
}

impl SegmentRow {
    /// The rows of these delays, with their shares of these round trips.
    pub fn rows(passages: &Passages, delays: &[Delays], round_trips: &[RoundTrips]) -> Vec<Self> {
        let names = segment_names(&passages.names);
        let rows = delays.iter().map(|segment_delays| {
            let direction = if segment_delays.is_reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            };
            let round_trips = round_trips
                .iter()
                .find(|round_trips| round_trips.protocol == segment_delays.protocol);
            let share = round_trips.and_then(|round_trips| {
                share_of(
                    round_trips.part(segment_delays.segment, segment_delays.is_reverse)?,
                    round_trips.total,
                )
            });
            let mean = segment_delays.mean();
            let span = |nanos: Option<i64>| nanos.map(Span::from_nanos);
            Self {
                segment: names[segment_delays.segment].clone(),
                direction: direction.name(),
                protocol: PROTOCOLS[segment_delays.protocol],
                n: segment_delays.n,
                mean_ns: span(mean),
                bound_ns: mean.map(|_| segment_delays.bound),
                min_ns: span(mean.map(|_| segment_delays.min)),
                p50_ns: span(segment_delays.p50),
                p99_ns: span(segment_delays.p99),
                max_ns: span(mean.map(|_| segment_delays.max)),
                lost: segment_delays.lost,
                reordered: segment_delays.reordered,
                copies: segment_delays.copies,
                share_of_round_trip: share,
            }
        });
        rows.collect()
    }
}

impl RoundTripRow {
    /// The parts of these round trips.
    pub fn rows(passages: &Passages, round_trips: &[RoundTrips]) -> Vec<Self> {
        let mut names = vec!["all".to_owned()];
        names.extend(segment_names(&passages.names));
        let last_point = passages.names.last().map_or("", String::as_str);
        names.push(format!("beyond {last_point}"));
        let rows = round_trips.iter().flat_map(|protocol_trips| {
            let totals = [protocol_trips.total]
                .into_iter()
                .chain(protocol_trips.parts.iter().copied());
            names.iter().zip(totals).map(|(part, total)| Self {
                protocol: PROTOCOLS[protocol_trips.protocol],
                part: part.clone(),
                n: protocol_trips.n,
                mean_ns: i64::try_from(total / i128::from(protocol_trips.n))
                    .ok()
                    .map(Span::from_nanos),
                share: share_of(total, protocol_trips.total),
            })
        });
        rows.collect()
    }
}

/// The share of a part of the round trips of its protocol.
#[expect(clippy::cast_precision_loss, reason = "a share is shown")]
fn share_of(part: i128, total: i128) -> Option<f64> {
    (total > 0).then(|| part as f64 / total as f64)
}

fn percent(share: Option<f64>) -> String {
    share.or_dash(|share| format!("{} %", fixed(share * 100.0, 1)))
}
