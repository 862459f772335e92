//! The result as one document, and as lines. Times are integers of nanoseconds.

use neph_capture::Followed;
use neph_capture::clocks::words;
use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::{Passages, segment_names};
use neph_model::Span;
use neph_stats::ClockFit;
use schemars::JsonSchema;
use serde::Serialize;

use super::ends::{EndUnknownDocument, Unknown, UnknownDirection};
use super::{PacketDocument, RoundTripRow, SegmentRow};
use crate::alarm::{AlarmDocument, OfSegment};
use crate::lazy::Lazy;
use crate::version::Version;

/// One document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HopsDocument<'a> {
    /// Every packet, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<Lazy<'a, HopsLine>>,
    /// Delays by segment, direction and protocol.
    pub segments: Vec<SegmentRow>,
    /// Where the time of round trips went.
    pub round_trips: Vec<RoundTripRow>,
    /// Alarms, by time.
    pub alarms: Vec<AlarmDocument<OfSegment>>,
    /// Points, clocks and what is not known.
    pub summary: HopsLine,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HopsLine {
    /// A packet.
    Packet(Box<PacketDocument>),
    /// Delays in a segment.
    Segment(SegmentRow),
    /// A part of round trips.
    RoundTrip(RoundTripRow),
    /// The last line.
    Summary(Box<SummaryDocument>),
}

/// Points, clocks and what is not known.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryDocument {
    /// The version of these keys.
    pub schema: Version,
    /// The capture points, in the order of the path.
    pub points: Vec<PointDocument>,
    /// The clocks of each pair of neighbours.
    pub clocks: Vec<ClocksDocument>,
    /// Packets that were followed.
    pub packets: usize,
    /// Packets that were left out because others are like them.
    pub ambiguous: u64,
    /// Packets that were cut or joined on the way.
    pub joined: u64,
    /// Packets of which it is not known whether they were lost, by reason.
    pub end_unknown: EndUnknownDocument,
    /// Packets whose direction is not known.
    pub one_way: u64,
    /// Segments none of whose packets were seen at both ends.
    pub segments_without_packets: Vec<String>,
    /// The order of the points as packets show it, where it is another than that given.
    pub order: Option<Vec<String>>,
    /// What makes the result doubtful.
    pub doubts: Vec<String>,
}

/// A capture point.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PointDocument {
    /// Its name.
    pub name: String,
    /// Packets that it captured.
    pub packets: u64,
    /// Packets that were captured too short to be recognised.
    pub cut_short: u64,
    /// Packets that the capture holds twice.
    pub capture_duplicates: u64,
    /// The resolution of its time stamps in nanoseconds.
    pub resolution_ns: i64,
}

/// The clocks of two neighbouring points.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ClocksDocument {
    /// One clock.
    Same,
    /// Two clocks, compared by the packets.
    Fitted {
        /// Of which moment, in nanoseconds since the first packet.
        since_ns: Span,
        /// The second clock minus the first, in nanoseconds.
        offset_ns: i64,
        /// The error bound in nanoseconds.
        bound_ns: i64,
        /// The drift in parts per million; null where it is not known.
        rate_ppm: Option<f64>,
        /// Its error bound in parts per million.
        rate_bound_ppm: Option<f64>,
        /// How often one of them was set.
        steps: usize,
    },
    /// Not known.
    Unknown,
}

impl SummaryDocument {
    /// Of packets that were followed.
    pub fn of(passages: &Passages) -> Self {
        let followed = &passages.followed;
        let points = passages.names.iter().enumerate().map(|(at, name)| {
            let point = followed.point(at);
            PointDocument {
                name: name.clone(),
                packets: point.packets,
                cut_short: point.cut,
                capture_duplicates: point.repeats,
                resolution_ns: point.resolution,
            }
        });
        let clocks = passages.clocks.iter().enumerate();
        let clocks = clocks.map(|(segment, offsets)| clocks_of(followed, segment, offsets));
        let segments = segment_names(&passages.names).into_iter().enumerate();
        let unmet = segments.filter_map(|(at, name)| (!followed.is_met(at)).then_some(name));
        let names = |order: &Vec<usize>| {
            let names = order.iter().map(|point| passages.names[*point].clone());
            names.collect()
        };
        Self {
            schema: Version,
            points: points.collect(),
            clocks: clocks.collect(),
            packets: followed.passages().count(),
            ambiguous: followed.identical(),
            joined: followed.joined(),
            end_unknown: Unknown::of(passages).document(),
            one_way: UnknownDirection::of(passages).many(),
            segments_without_packets: unmet.collect(),
            order: passages.order.as_ref().map(names),
            doubts: passages.doubts.clone(),
        }
    }
}

/// How long after the first packet of the segment's first point, by its clock.
pub(super) fn since(followed: &Followed, segment: usize, fit: &ClockFit) -> Span {
    let began = followed.extent(segment);
    let since = began.map_or(0, |(began, _)| fit.at.saturating_sub(began.unix_nanos()));
    Span::from_nanos(since.max(0))
}

fn clocks_of(followed: &Followed, segment: usize, offsets: &Offsets) -> ClocksDocument {
    match (offsets, offsets.best()) {
        (Offsets::Same, _) => ClocksDocument::Same,
        (Offsets::Fitted(fitted), Some(fit)) => {
            let drift = fitted.drift(&fit);
            ClocksDocument::Fitted {
                since_ns: since(followed, segment, &fit),
                offset_ns: fit.offset,
                bound_ns: fit.bound,
                rate_ppm: drift.map(|drift| words::ppm(drift.rate)),
                rate_bound_ppm: drift.map(|drift| words::ppm(drift.bound)),
                steps: fitted.steps.len(),
            }
        }
        _ => ClocksDocument::Unknown,
    }
}
