//! The result as a JSON document and as NDJSON lines. Times are integer nanoseconds.

use neph_capture::Followed;
use neph_capture::clocks::value_format;
use neph_capture::path::offsets::Offsets;
use neph_capture::path::passages::{Passages, segment_names};
use neph_model::Span;
use neph_stats::ClockFit;
use schemars::JsonSchema;
use serde::Serialize;

use super::ends::{LossUnknownDocument, UnknownDirection, UnknownLoss};
use super::{PacketDocument, RoundTripRow, SegmentRow};
use crate::alarm::{AlarmDocument, SegmentReference};
use crate::lazy_list::LazyList;
use crate::version::Version;

/// The JSON document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HopsDocument<'a> {
    /// Every packet; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<LazyList<'a, HopsLine>>,
    /// Delays by segment, direction and protocol.
    pub segments: Vec<SegmentRow>,
    /// Parts of the round trips, by protocol.
    pub round_trips: Vec<RoundTripRow>,
    /// Alarms, by time.
    pub alarms: Vec<AlarmDocument<SegmentReference>>,
    /// Summary: capture points, clocks, and packets with an unknown property.
    pub summary: HopsLine,
}

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HopsLine {
    /// A packet.
    Packet(Box<PacketDocument>),
    /// Delays in a segment.
    Segment(SegmentRow),
    /// A part of the round trips.
    RoundTrip(RoundTripRow),
    /// Summary: the last line.
    Summary(Box<SummaryDocument>),
}

/// The capture points, their clocks, and packets with an unknown property.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Capture points, in the order of the path.
    pub points: Vec<PointDocument>,
    /// Clocks of each pair of adjacent points.
    pub clocks: Vec<ClocksDocument>,
    /// Number of packets that were matched between points.
    pub packets: usize,
    /// Packets that were excluded because other packets are identical.
    pub ambiguous: u64,
    /// Packets that were split or merged on the path.
    pub split_or_merged: u64,
    /// Packets that may have been lost: it is not known, by reason.
    pub loss_unknown: LossUnknownDocument,
    /// Packets whose direction is unknown.
    pub direction_unknown: u64,
    /// Segments without a packet that both ends captured.
    pub segments_without_packets: Vec<String>,
    /// Order of the points according to the packets; null if it is the given order.
    pub order: Option<Vec<String>>,
    /// Reasons to doubt the result.
    pub warnings: Vec<String>,
}

/// A capture point.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PointDocument {
    /// Name of the point.
    pub name: String,
    /// Number of packets that it captured.
    pub packets: u64,
    /// Packets that were captured too short to be identified.
    pub truncated: u64,
    /// Duplicates in the capture.
    pub capture_duplicates: u64,
    /// Resolution of its timestamps.
    pub resolution_ns: i64,
}

/// The clocks of two adjacent points.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ClocksDocument {
    /// Both points have the same clock.
    Same,
    /// Two clocks, compared by packets.
    Fitted {
        /// Time of the offset, since the first packet.
        since_ns: Span,
        /// The second point's clock minus the first's.
        offset_ns: i64,
        /// Error bound of the offset.
        bound_ns: i64,
        /// The drift; null if not known.
        rate_ppm: Option<f64>,
        /// Error bound of the drift; null if not known.
        rate_bound_ppm: Option<f64>,
        /// Number of clock steps.
        steps: usize,
    },
    /// The clock offset is not known.
    Unknown,
}

impl SummaryDocument {
    /// The summary of matched packets.
    pub fn of(passages: &Passages) -> Self {
        let followed = &passages.followed;
        let points = passages.names.iter().enumerate().map(|(index, name)| {
            let point = followed.point(index);
            PointDocument {
                name: name.clone(),
                packets: point.packets,
                truncated: point.truncated,
                capture_duplicates: point.capture_duplicates,
                resolution_ns: point.resolution,
            }
        });
        let clocks = passages.clocks.iter().enumerate();
        let clocks = clocks.map(|(segment, offsets)| clocks_document(followed, segment, offsets));
        let segments = segment_names(&passages.names).into_iter().enumerate();
        let segments_without_packets = segments
            .filter(|(index, _)| !followed.has_common_packets(*index))
            .map(|(_, name)| name);
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
            split_or_merged: followed.split_or_merged(),
            loss_unknown: UnknownLoss::of(passages).document(),
            direction_unknown: UnknownDirection::of(passages).packet_count(),
            segments_without_packets: segments_without_packets.collect(),
            order: passages.order.as_ref().map(names),
            warnings: passages.warnings.clone(),
        }
    }
}

/// Time since the first packet at the segment's first point, by its clock.
pub(super) fn time_since_start(followed: &Followed, segment: usize, fit: &ClockFit) -> Span {
    let extent = followed.packet_extent(segment);
    let elapsed = extent.map_or(0, |(began, _)| fit.at.saturating_sub(began.unix_nanos()));
    Span::from_nanos(elapsed.max(0))
}

fn clocks_document(followed: &Followed, segment: usize, offsets: &Offsets) -> ClocksDocument {
    match (offsets, offsets.best()) {
        (Offsets::Same, _) => ClocksDocument::Same,
        (Offsets::Fitted(fitted), Some(fit)) => {
            let drift = fitted.drift(&fit);
            ClocksDocument::Fitted {
                since_ns: time_since_start(followed, segment, &fit),
                offset_ns: fit.offset,
                bound_ns: fit.bound,
                rate_ppm: drift.map(|drift| value_format::ppm(drift.rate)),
                rate_bound_ppm: drift.map(|drift| value_format::ppm(drift.bound)),
                steps: fitted.steps.len(),
            }
        }
        _ => ClocksDocument::Unknown,
    }
}
