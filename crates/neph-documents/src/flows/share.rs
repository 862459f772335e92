//! Shares, quantiles over flows and survival curves, as documents.

use neph_flows::{Curve, Latency, Share};
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

/// Quantiles over flows.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantilesDocument {
    /// The lowest, in nanoseconds.
    pub min_ns: FlowLatency,
    /// The median, in nanoseconds.
    pub p50_ns: FlowLatency,
    /// The 95th percentile, in nanoseconds.
    pub p95_ns: FlowLatency,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: FlowLatency,
    /// The highest, in nanoseconds.
    pub max_ns: FlowLatency,
}

/// A latency in nanoseconds, or the word `lost` where flows decide it that lost half of their
/// messages.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FlowLatency {
    /// Nanoseconds.
    Took(Span),
    /// No number.
    Lost(LostWord),
}

/// The word for a latency without a number.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostWord {
    /// Above every reply.
    Lost,
}

/// A share with its confidence interval.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ShareDocument {
    /// The share, 0 to 1.
    pub share: f64,
    /// The lower end of the 95 % confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many of `n` it counts.
    pub hits: u64,
    /// Of how many.
    pub n: u64,
}

/// How long something lasts: a Kaplan-Meier curve.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurveDocument {
    /// How many were observed.
    pub n: u64,
    /// How many of them ended before the measurement did.
    pub ended: u64,
    /// The median in nanoseconds; null where more than half outlast the measurement.
    pub median_ns: Option<Span>,
    /// The steps of the curve.
    pub points: Vec<CurvePointDocument>,
}

/// A step of a curve.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CurvePointDocument {
    /// After this time in nanoseconds.
    pub after_ns: Span,
    /// the share that has not ended.
    pub surviving: f64,
    /// The lower end of its 95 % confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many were observed that long.
    pub at_risk: u64,
}

impl QuantilesDocument {
    pub(super) const fn of([min_ns, p50_ns, p95_ns, p99_ns, max_ns]: [FlowLatency; 5]) -> Self {
        Self {
            min_ns,
            p50_ns,
            p95_ns,
            p99_ns,
            max_ns,
        }
    }
}

impl From<Latency> for FlowLatency {
    fn from(latency: Latency) -> Self {
        latency
            .took()
            .map_or(Self::Lost(LostWord::Lost), Self::Took)
    }
}

impl From<Share> for ShareDocument {
    fn from(share: Share) -> Self {
        Self {
            share: share.share,
            low: share.low,
            high: share.high,
            hits: share.hits,
            n: share.n,
        }
    }
}

impl From<&Curve> for CurveDocument {
    fn from(curve: &Curve) -> Self {
        let points = curve.points.iter().map(|point| CurvePointDocument {
            after_ns: point.at,
            surviving: point.surviving,
            low: point.low,
            high: point.high,
            at_risk: point.at_risk,
        });
        Self {
            n: curve.n,
            ended: curve.ended,
            median_ns: curve.median(),
            points: points.collect(),
        }
    }
}
