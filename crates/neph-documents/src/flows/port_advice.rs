//! Advice on source ports, as a document.

use neph_flows::{Advice, AdviceEvidence, PortAdvice, Share};
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::share::ShareDocument;

/// Advice for one endpoint.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceDocument {
    /// Whether there is advice.
    pub given: bool,
    /// Why there is no advice, or why no ports are named; null otherwise.
    pub why: Option<String>,
    /// Evidence of the advice; absent without advice.
    #[serde(flatten)]
    pub guide: Option<GuideDocument>,
    /// Ports to use, those with the longest stay first.
    pub ports: Vec<PortDocument>,
    /// A caution for readers of the advice.
    pub caution: &'static str,
}

/// The evidence of advice.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GuideDocument {
    /// Base latency of the lowest class.
    pub lowest_class_base_ns: Span,
    /// Median base latency over flows and time: that of a random port.
    pub random_port_base_ns: Span,
    /// Share of flows in the lowest class at the end.
    pub lowest_class_share: ShareDocument,
    /// Share of lost messages of the lowest class; null if it or the others had no message.
    pub lowest_class_loss: Option<ShareDocument>,
    /// Share of lost messages of the other classes; null if they or the lowest class had no
    /// message.
    pub others_loss: Option<ShareDocument>,
    /// Whether the lowest class lost significantly more, by at least one message in 1000; null if
    /// not known.
    pub lowest_class_loses_more: Option<bool>,
    /// Longest time after which such advice was still significantly better than a random port; null
    /// if no ports are named.
    pub valid_for_ns: Option<Span>,
    /// Best of several connections on random ports, by their number.
    pub best_of: Vec<BestOfDocument>,
    /// Tests of the advice on the measurement, by time since the advice.
    pub tested: Vec<HorizonDocument>,
}

/// An advised port.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortDocument {
    /// Local source port.
    pub source_port: u16,
    /// Base latency of its flow.
    pub base_ns: Span,
    /// Time since its flow has this latency.
    pub stable_for_ns: Span,
    /// Share of lost messages among its last ones; null without messages.
    pub loss: Option<ShareDocument>,
}

/// The best of several connections on random ports.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BestOfDocument {
    /// Number of connections.
    pub connections: u32,
    /// Probability that at least one of them is in the lowest class, 0 to 1.
    pub chance: f64,
    /// Median base latency of the best connection.
    pub p50_ns: Span,
    /// 99th percentile of the base latency of the best connection.
    pub p99_ns: Span,
}

/// The test of the advice after some time.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct HorizonDocument {
    /// Time since the advice.
    pub after_ns: Span,
    /// Share of moments at which the advised port was in the lowest class.
    pub advised_on_lowest_class: LooksDocument,
    /// Share of flows in the lowest class, 0 to 1: the expectation for a random port.
    pub random_on_lowest_class: f64,
    /// Median base latency of advised ports; null with too few periods.
    pub p50_advised_ns: Option<Span>,
    /// Median base latency of all flows; null with too few periods.
    pub p50_random_ns: Option<Span>,
    /// Latency of a random port minus that of an advised one, at the median; null with too few
    /// periods.
    pub p50_gain_ns: Option<Span>,
    /// 99th percentile of the base latency of advised ports; null with too few periods.
    pub p99_advised_ns: Option<Span>,
    /// 99th percentile of the base latency of all flows; null with too few periods.
    pub p99_random_ns: Option<Span>,
    /// Latency of a random port minus that of an advised one, at the 99th percentile; null with too
    /// few periods.
    pub p99_gain_ns: Option<Span>,
}

/// A share of overlapping moments, which are worth `n` independent ones.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct LooksDocument {
    /// The share, 0 to 1.
    pub share: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
    /// Effective number of independent moments.
    pub n: u64,
}

impl AdviceDocument {
    /// The document of this advice.
    pub fn of(advice: &Advice) -> Self {
        let caution = advice.caution;
        match &advice.port_advice {
            PortAdvice::Refused { why: reason } => Self {
                given: false,
                why: Some(reason.clone()),
                guide: None,
                ports: Vec::new(),
                caution,
            },
            PortAdvice::Given(evidence) => Self {
                given: true,
                why: evidence.no_ports.clone(),
                guide: Some(GuideDocument::of(evidence)),
                ports: port_documents(evidence),
                caution,
            },
        }
    }
}

fn port_documents(evidence: &AdviceEvidence) -> Vec<PortDocument> {
    let ports = evidence.ports.iter().map(|port| PortDocument {
        source_port: port.port,
        base_ns: port.base,
        stable_for_ns: port.held,
        loss: port.loss.map(ShareDocument::from),
    });
    ports.collect()
}

impl GuideDocument {
    fn of(evidence: &AdviceEvidence) -> Self {
        let best_of = evidence.best_of.iter().map(|best| BestOfDocument {
            connections: best.connections,
            chance: best.chance,
            p50_ns: best.p50,
            p99_ns: best.p99,
        });
        let tested = evidence.horizons.iter().map(|horizon| HorizonDocument {
            after_ns: horizon.after,
            advised_on_lowest_class: looks_document(&horizon.on_low),
            random_on_lowest_class: horizon.random_on_lowest_class,
            p50_advised_ns: horizon.p50.map(|p50| p50.advised),
            p50_random_ns: horizon.p50.map(|p50| p50.random),
            p50_gain_ns: horizon.p50.map(|p50| p50.gain()),
            p99_advised_ns: horizon.p99.map(|p99| p99.advised),
            p99_random_ns: horizon.p99.map(|p99| p99.random),
            p99_gain_ns: horizon.p99.map(|p99| p99.gain()),
        });
        Self {
            lowest_class_base_ns: evidence.low,
            random_port_base_ns: evidence.random,
            lowest_class_share: evidence.lowest_class_share.into(),
            lowest_class_loss: evidence.loss.map(|loss| loss.low.into()),
            others_loss: evidence.loss.map(|loss| loss.others.into()),
            lowest_class_loses_more: evidence.loss.map(|loss| loss.is_more),
            valid_for_ns: evidence.holds,
            best_of: best_of.collect(),
            tested: tested.collect(),
        }
    }
}

const fn looks_document(share: &Share) -> LooksDocument {
    LooksDocument {
        share: share.share,
        low: share.low,
        high: share.high,
        n: share.n,
    }
}
