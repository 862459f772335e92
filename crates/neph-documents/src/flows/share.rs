//! Shares, quantiles over flows and survival curves, as documents.

use neph_flows::{Curve, Latency, Share};
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

/// The quantiles of a latency over flows.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct QuantilesDocument {
    /// Minimum.
    pub min_ns: FlowLatency,
    /// Median.
    pub p50_ns: FlowLatency,
    /// 95th percentile.
    pub p95_ns: FlowLatency,
    /// 99th percentile.
    pub p99_ns: FlowLatency,
    /// Maximum.
    pub max_ns: FlowLatency,
}

/// A latency in nanoseconds, or the word `lost` if flows that lost half of their messages decide
/// the quantile.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FlowLatency {
    /// Nanoseconds.
    Took(Span),
    /// The word for no latency.
    Lost(LostWord),
}

/// The word for a latency without a number.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostWord {
    /// Slower than every reply.
    Lost,
}

/// A share with its confidence interval.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ShareDocument {
    /// The share, 0 to 1.
    pub share: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
    /// Number of hits among `n`.
    pub hits: u64,
    /// Number of cases.
    pub n: u64,
}

/// The Kaplan-Meier curve of durations.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurveDocument {
    /// Number of durations that began.
    pub n: u64,
    /// Number of these that ended within the measurement.
    pub ended: u64,
    /// Median duration; null if more than half outlasted the measurement.
    pub median_ns: Option<Span>,
    /// Steps of the curve, by time.
    pub points: Vec<CurvePointDocument>,
}

/// A step of a curve.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CurvePointDocument {
    /// Duration at this step of the curve.
    pub after_ns: Span,
    /// Share of the durations that are longer than `after_ns`, 0 to 1.
    pub surviving: f64,
    /// Lower end of its 95 % confidence interval.
    pub low: f64,
    /// Upper end of its 95 % confidence interval.
    pub high: f64,
    /// Number of durations that were observed for that long and had not ended before.
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
