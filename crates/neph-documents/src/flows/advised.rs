//! Advice which source ports to use, as a document.

use neph_flows::{Advice, Counsel, Guide, Share};
use neph_model::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::share::ShareDocument;

/// Advice for one endpoint.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AdviceDocument {
    /// Whether there is advice.
    pub given: bool,
    /// Why there is none, or why no ports are named.
    pub why: Option<String>,
    /// What it rests on, where it is given.
    #[serde(flatten)]
    pub guide: Option<GuideDocument>,
    /// The ports to use, the best first.
    pub ports: Vec<PortDocument>,
    /// What to be careful about.
    pub caution: &'static str,
}

/// What advice rests on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GuideDocument {
    /// The base latency of the lowest class in nanoseconds.
    pub low_ns: Span,
    /// The expected base latency of a random port in nanoseconds.
    pub random_ns: Span,
    /// The share of random ports that are in the lowest class.
    pub lowest_class_share: ShareDocument,
    /// The loss of the lowest class.
    pub lowest_class_loss: Option<ShareDocument>,
    /// The loss of the other classes.
    pub others_loss: Option<ShareDocument>,
    /// Whether the lowest class loses more than the others.
    pub lowest_class_loses_more: Option<bool>,
    /// How long ports are expected to stay in their class, in nanoseconds.
    pub expected_stay_ns: Option<Span>,
    /// What the best of several connections on random ports has.
    pub best_of: Vec<BestOfDocument>,
    /// The advice, tested on the rest of the measurement.
    pub tested: Vec<HorizonDocument>,
}

/// A port to use.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortDocument {
    /// The source port.
    pub source_port: u16,
    /// Its base latency in nanoseconds.
    pub base_ns: Span,
    /// How long it has had that latency, in nanoseconds.
    pub current_for_ns: Span,
    /// The share of its messages that were lost.
    pub loss: Option<ShareDocument>,
}

/// What the best of several connections has.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct BestOfDocument {
    /// How many connections.
    pub connections: u32,
    /// The chance that one of them is in the lowest class.
    pub chance: f64,
    /// The median of the best, in nanoseconds.
    pub p50_ns: Span,
    /// The 99th percentile of the best, in nanoseconds.
    pub p99_ns: Span,
}

/// The advice, tested after a while.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct HorizonDocument {
    /// After which time, in nanoseconds.
    pub after_ns: Span,
    /// The share of advised ports that were still in the lowest class.
    pub on_low: LooksDocument,
    /// The share of random ports that were.
    pub random_on_lowest_class: f64,
    /// The median latency of advised ports in nanoseconds.
    pub p50_advised_ns: Option<Span>,
    /// The median latency of random ports in nanoseconds.
    pub p50_random_ns: Option<Span>,
    /// The difference in nanoseconds.
    pub p50_gain_ns: Option<Span>,
    /// The 99th percentile of advised ports in nanoseconds.
    pub p99_advised_ns: Option<Span>,
    /// The 99th percentile of random ports in nanoseconds.
    pub p99_random_ns: Option<Span>,
    /// The difference in nanoseconds.
    pub p99_gain_ns: Option<Span>,
}

/// A share of looks that see the same time repeatedly; they are worth `n` independent ones.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct LooksDocument {
    /// The share, 0 to 1.
    pub share: f64,
    /// The lower end of the 95 % confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The effective number of looks.
    pub n: u64,
}

impl AdviceDocument {
    /// Of advice.
    pub fn of(advice: &Advice) -> Self {
        let caution = advice.caution;
        match &advice.counsel {
            Counsel::Refused { why } => Self {
                given: false,
                why: Some(why.clone()),
                guide: None,
                ports: Vec::new(),
                caution,
            },
            Counsel::Given(guide) => Self {
                given: true,
                why: guide.no_ports.clone(),
                guide: Some(GuideDocument::of(guide)),
                ports: ports(guide),
                caution,
            },
        }
    }
}

fn ports(guide: &Guide) -> Vec<PortDocument> {
    let ports = guide.ports.iter().map(|port| PortDocument {
        source_port: port.port,
        base_ns: port.base,
        current_for_ns: port.held,
        loss: port.loss.map(ShareDocument::from),
    });
    ports.collect()
}

impl GuideDocument {
    fn of(guide: &Guide) -> Self {
        let best_of = guide.best_of.iter().map(|best| BestOfDocument {
            connections: best.connections,
            chance: best.chance,
            p50_ns: best.p50,
            p99_ns: best.p99,
        });
        let tested = guide.horizons.iter().map(|horizon| HorizonDocument {
            after_ns: horizon.after,
            on_low: looks(&horizon.on_low),
            random_on_lowest_class: horizon.random_on_lowest_class,
            p50_advised_ns: horizon.p50.map(|p50| p50.advised),
            p50_random_ns: horizon.p50.map(|p50| p50.random),
            p50_gain_ns: horizon.p50.map(|p50| p50.gain()),
            p99_advised_ns: horizon.p99.map(|p99| p99.advised),
            p99_random_ns: horizon.p99.map(|p99| p99.random),
            p99_gain_ns: horizon.p99.map(|p99| p99.gain()),
        });
        Self {
            low_ns: guide.low,
            random_ns: guide.random,
            lowest_class_share: guide.lowest_class_share.into(),
            lowest_class_loss: guide.loss.map(|loss| loss.low.into()),
            others_loss: guide.loss.map(|loss| loss.others.into()),
            lowest_class_loses_more: guide.loss.map(|loss| loss.is_more),
            expected_stay_ns: guide.holds,
            best_of: best_of.collect(),
            tested: tested.collect(),
        }
    }
}

const fn looks(share: &Share) -> LooksDocument {
    LooksDocument {
        share: share.share,
        low: share.low,
        high: share.high,
        n: share.n,
    }
}
