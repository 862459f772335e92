//! Clock offsets as JSON. Times are integers of nanoseconds, rates parts per million.

use neph_capture::clocks::words::ppm;
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::version::Version;

use super::{Clocks, Means, Row, StepOf, Summary};

/// The document at the end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClockDocument {
    /// The offset over time.
    pub offsets: Vec<ClockLine>,
    /// What it came to; null where nothing was measured.
    pub summary: Option<ClockLine>,
}

/// A line of NDJSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClockLine {
    /// The clocks at one moment.
    Offset(OffsetDocument),
    /// A clock was set.
    Step(StepDocument),
    /// The last line.
    Summary(Box<SummaryDocument>),
}

/// The clocks at one moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OffsetDocument {
    #[serde(flatten)]
    pub at: MomentDocument,
    /// Nothing was exchanged since the line before: the error bound has grown.
    pub no_new_exchanges: bool,
}

/// The clocks at one moment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MomentDocument {
    /// Nanoseconds since the beginning.
    pub since_ns: Span,
    /// The wall clocks, the peer's minus ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall: Option<BoundedDocument>,
    /// The monotonic clocks, the peer's minus ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<FitDocument>,
    /// The clocks of captures or of a foreign peer, the other's minus ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<FitDocument>,
    /// The shortest round trip so far in nanoseconds.
    pub round_trip_min_ns: Option<i64>,
    /// Exchanges so far, or packets.
    pub n: u64,
}

/// An offset with its error bound.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BoundedDocument {
    /// The offset in nanoseconds.
    pub offset_ns: i64,
    /// Its error bound in nanoseconds.
    pub bound_ns: i64,
}

/// An offset with its rate.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FitDocument {
    /// The offset in nanoseconds.
    pub offset_ns: i64,
    /// Its error bound in nanoseconds.
    pub bound_ns: i64,
    /// The drift in parts per million; null where it is not known.
    pub rate_ppm: Option<f64>,
    /// Its error bound in parts per million.
    pub rate_bound_ppm: Option<f64>,
}

/// A step of a clock.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct StepDocument {
    /// Which clock.
    pub clock: &'static str,
    /// Not before this, in nanoseconds since the beginning.
    pub after_ns: i64,
    /// Not after this, in nanoseconds since the beginning.
    pub before_ns: i64,
    /// By how much, in nanoseconds.
    pub by_ns: i64,
    /// The error bound in nanoseconds; null where the machine itself reports the step.
    pub bound_ns: Option<i64>,
}

/// What it came to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SummaryDocument {
    /// The version of these keys.
    pub schema: Version,
    /// The clocks at the end.
    #[serde(flatten)]
    pub at: MomentDocument,
    /// The peer, or both captures.
    pub of: String,
    /// Exchanges without a reply.
    pub lost: Option<u64>,
    /// A rate in parts per million that no clock has: a machine stood still, or a capture was
    /// changed.
    pub implausible_drift_ppm: Option<f64>,
    /// The drift; null where it is not known.
    pub drift: Option<RateDocument>,
    /// How the drift changed.
    pub wander: WanderDocument,
    /// Steps of clocks.
    pub steps: Vec<StepDocument>,
    /// By the mean of four time stamps; null where it was not asked.
    pub four_stamps: Option<FourStampsDocument>,
}

/// A rate with its error bound.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RateDocument {
    /// Parts per million.
    pub ppm: f64,
    /// The error bound in parts per million.
    pub bound_ppm: f64,
}

/// How a drift changed.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct WanderDocument {
    /// How far it was assumed to move within 100 s, in parts per million.
    pub assumed_ppm: f64,
    /// The lowest drift in parts per million.
    pub rate_min_ppm: Option<f64>,
    /// The highest drift in parts per million.
    pub rate_max_ppm: Option<f64>,
}

/// The mean of T2 - T1 - (round trip) / 2. It has no error bound: where one direction takes d longer
/// than the other it is wrong by d/2.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FourStampsDocument {
    /// The standard deviation in nanoseconds.
    pub deviation_ns: f64,
    /// Always null.
    pub bound_ns: Option<i64>,
    /// How many exchanges.
    pub n: usize,
    /// The offset of captures in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// The offset of the monotonic clocks in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_offset_ns: Option<i64>,
    /// The offset of the wall clocks in nanoseconds.
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
            since_ns: row.since,
            raw: wall.is_some().then_some(fit),
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
            no_new_exchanges: row.is_old,
        })
    }
}

impl StepDocument {
    /// Of a step; times count from `began`.
    pub const fn of(step: &StepOf, began: i64) -> Self {
        Self {
            clock: step.clock,
            after_ns: step.after - began,
            before_ns: step.before - began,
            by_ns: step.by,
            bound_ns: step.bound,
        }
    }
}

impl From<&Summary> for ClockLine {
    fn from(summary: &Summary) -> Self {
        let drift = summary.drift();
        let rates = summary.course.rates.filter(|_| drift.is_some());
        let steps = summary.steps.iter();
        Self::Summary(Box::new(SummaryDocument {
            schema: Version,
            at: (&summary.row).into(),
            of: summary.of.clone(),
            lost: summary.lost,
            implausible_drift_ppm: summary.course.parted.map(ppm),
            drift: drift.map(|drift| RateDocument {
                ppm: ppm(drift.rate),
                bound_ppm: drift.bound * 1e6,
            }),
            wander: WanderDocument {
                assumed_ppm: ppm(summary.nature.wander),
                rate_min_ppm: rates.map(|(least, _)| ppm(least)),
                rate_max_ppm: rates.map(|(_, most)| ppm(most)),
            },
            steps: steps
                .map(|step| StepDocument::of(step, summary.began))
                .collect(),
            four_stamps: summary
                .means
                .map(|means| four_stamps(means, summary.clocks)),
        }))
    }
}

fn four_stamps(means: Means, clocks: Clocks) -> FourStampsDocument {
    let is_of_captures = clocks == Clocks::Captures;
    FourStampsDocument {
        deviation_ns: means.deviation,
        bound_ns: None,
        n: means.n,
        offset_ns: is_of_captures.then_some(means.offset),
        raw_offset_ns: (!is_of_captures).then_some(means.offset),
        wall_offset_ns: means.wall,
    }
}
