//! Clock offsets as JSON. Times are integer nanoseconds, rates parts per million.

use neph_capture::clocks::value_format::ppm;
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

use super::{Clocks, LabelledStep, Means, Row, Summary};

/// The JSON document.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClockDocument {
    /// Offsets over time.
    pub offsets: Vec<ClockLine>,
    /// Summary; null if nothing was measured.
    pub summary: Option<ClockLine>,
}

/// An NDJSON line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClockLine {
    /// Clock offsets at one moment.
    Offset(OffsetDocument),
    /// A step of a clock.
    Step(StepDocument),
    /// Summary: the last line.
    Summary(Box<SummaryDocument>),
}

/// The clock offsets at one moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OffsetDocument {
    #[serde(flatten)]
    pub at: MomentDocument,
    /// Whether nothing was exchanged since the previous line: the offset is the last one, with a
    /// larger error bound.
    pub no_new_exchanges: bool,
}

/// The clock offsets at one moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MomentDocument {
    /// Time since the start of the measurement.
    pub since_ns: Span,
    /// Wall clocks, the peer's minus the local one; absent if only one kind of clock is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall: Option<BoundedDocument>,
    /// Monotonic clocks, the peer's minus the local one; absent if only one kind of clock is
    /// compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monotonic: Option<FitDocument>,
    /// Clocks of captures (second minus first), or of a peer that reports one clock only (peer's
    /// minus local); absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<FitDocument>,
    /// Minimum round trip until now; null if not known.
    pub round_trip_min_ns: Option<i64>,
    /// Number of exchanges until now; of captures, packets.
    pub n: u64,
}

/// A clock offset with its error bound.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BoundedDocument {
    /// The offset.
    pub offset_ns: i64,
    /// Error bound of the offset.
    pub bound_ns: i64,
}

/// A clock offset with its drift.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FitDocument {
    /// The offset.
    pub offset_ns: i64,
    /// Error bound of the offset.
    pub bound_ns: i64,
    /// The drift; null if not known.
    pub rate_ppm: Option<f64>,
    /// Error bound of the drift; null if not known.
    pub rate_bound_ppm: Option<f64>,
}

/// A step of a clock.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct StepDocument {
    /// The clock: `local wall clock`, `peer's wall clock`, `raw clocks` or `clocks` (one against
    /// the other).
    pub clock: &'static str,
    /// Earliest time of the step, since the start of the measurement.
    pub after_ns: i64,
    /// Latest time of the step, since the start of the measurement.
    pub before_ns: i64,
    /// Size of the step.
    pub size_ns: i64,
    /// Error bound of the size; null if the stepped host itself reported the step.
    pub bound_ns: Option<i64>,
}

/// The summary of a measurement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryDocument {
    /// Version of this schema.
    pub schema: Version,
    /// Clock offsets at the end.
    #[serde(flatten)]
    pub at: MomentDocument,
    /// The peer, or both captures.
    pub subject: String,
    /// Number of exchanges without a reply; null for captures.
    pub lost: Option<u64>,
    /// A drift that no clock has: a host was suspended, or the times of a capture were changed.
    /// null if there is none.
    pub implausible_drift_ppm: Option<f64>,
    /// The drift; null if not known.
    pub drift: Option<RateDocument>,
    /// Change of the drift.
    pub wander: WanderDocument,
    /// Steps of clocks.
    pub steps: Vec<StepDocument>,
    /// Offset by the mean of four timestamps; null if not requested.
    pub four_timestamps: Option<FourTimestampsDocument>,
}

/// A drift with its error bound.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RateDocument {
    /// The drift.
    pub ppm: f64,
    /// Error bound of the drift.
    pub bound_ppm: f64,
}

/// The wander: change of a drift.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct WanderDocument {
    /// Assumed maximum change of the drift within 100 s.
    pub assumed_ppm: f64,
    /// Lowest drift; null if not known.
    pub rate_min_ppm: Option<f64>,
    /// Highest drift; null if not known.
    pub rate_max_ppm: Option<f64>,
}

/// The clock offset as the mean of T2 - T1 - RTT / 2. It has no error bound: if one direction takes
/// d longer than the other, it is wrong by d / 2.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FourTimestampsDocument {
    /// Standard deviation.
    pub deviation_ns: f64,
    /// Always null: this method has no error bound.
    pub bound_ns: Option<i64>,
    /// Number of exchanges.
    pub n: usize,
    /// Offset of the clocks of captures; absent for a peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// Offset of the monotonic clocks; absent for captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monotonic_offset_ns: Option<i64>,
    /// Offset of the wall clocks; absent if not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_offset_ns: Option<i64>,
}

impl From<&Row> for MomentDocument {
    fn from(row: &Row) -> Self {
        let fit = FitDocument {
            offset_ns: row.fit.offset,
            bound_ns: row.fit.bound,
            rate_ppm: row.drift.map(|drift| ppm(drift.rate)),
            rate_bound_ppm: row.drift.map(|drift| drift.bound * 1e6),
        };
        let wall = row.wall.map(|(offset_ns, bound_ns)| BoundedDocument {
            offset_ns,
            bound_ns,
        });
        Self {
            since_ns: row.since_start,
            monotonic: wall.is_some().then_some(fit),
            clocks: wall.is_none().then_some(fit),
            wall,
            round_trip_min_ns: row.round_trip,
            n: row.n,
        }
    }
}

impl From<&Row> for ClockLine {
    fn from(row: &Row) -> Self {
        Self::Offset(OffsetDocument {
            at: row.into(),
            no_new_exchanges: row.is_repeated,
        })
    }
}

impl StepDocument {
    /// The document of a step; times count from `began`.
    pub const fn of(step: &LabelledStep, began: i64) -> Self {
        Self {
            clock: step.clock,
            after_ns: step.after - began,
            before_ns: step.before - began,
            size_ns: step.size,
            bound_ns: step.bound,
        }
    }
}

impl From<&Summary> for ClockLine {
    fn from(summary: &Summary) -> Self {
        let drift = summary.drift();
        let rates = summary.course.rate_range.filter(|_| drift.is_some());
        let steps = summary.steps.iter();
        Self::Summary(Box::new(SummaryDocument {
            schema: Version,
            at: (&summary.row).into(),
            subject: summary.subject.clone(),
            lost: summary.lost,
            implausible_drift_ppm: summary.course.rate_above_any_drift.map(ppm),
            drift: drift.map(|drift| RateDocument {
                ppm: ppm(drift.rate),
                bound_ppm: drift.bound * 1e6,
            }),
            wander: WanderDocument {
                assumed_ppm: ppm(summary.nature.wander),
                rate_min_ppm: rates.map(|(min, _)| ppm(min)),
                rate_max_ppm: rates.map(|(_, max)| ppm(max)),
            },
            steps: steps
                .map(|step| StepDocument::of(step, summary.began))
                .collect(),
            four_timestamps: summary
                .means
                .map(|means| four_timestamps_document(means, summary.clocks)),
        }))
    }
}

fn four_timestamps_document(means: Means, clocks: Clocks) -> FourTimestampsDocument {
    let is_of_captures = clocks == Clocks::Captures;
    FourTimestampsDocument {
        deviation_ns: means.deviation,
        bound_ns: None,
        n: means.n,
        offset_ns: is_of_captures.then_some(means.offset),
        monotonic_offset_ns: (!is_of_captures).then_some(means.offset),
        wall_offset_ns: means.wall,
    }
}
