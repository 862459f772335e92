//! Owns advice on source ports, as plain values.

use neph_model::Span;
use serde::Serialize;

use crate::horizon::Horizon;
use crate::share::Share;

/// The warning of the third source about such advice.
pub const CAUTION: &str = "Selfish routing (source 3 of docs/sources.md): \"application developers can force \
multiplexing of traffic on shortest paths, ultimately defeating cloud TE operation\". If many do it, \
the low path fills up, and the provider may move you away the sooner.";

/// Advice for the flows to one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The endpoint's name.
    pub endpoint: String,
    /// The advice itself.
    pub port_advice: PortAdvice,
    /// A caution for readers of the advice.
    pub caution: &'static str,
}

/// Advice on source ports, or its refusal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PortAdvice {
    /// No advice, with the reason.
    Refused {
        /// The reason and the remedy, in a sentence.
        why: String,
    },
    /// Open some connections and keep the best; also ports, if advice on ports holds.
    Given(Box<AdviceEvidence>),
}

/// Advice with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdviceEvidence {
    /// The lowest class's base latency.
    pub low: Span,
    /// The median base latency over flows and time: that of a random flow.
    pub random: Span,
    /// The share of flows in the lowest class at the end.
    pub lowest_class_share: Share,
    /// The loss of the lowest class against the others; `None` if one had no message.
    pub loss: Option<LowestClassLoss>,
    /// The advised ports, those with the longest stay first; empty if advice on ports does not hold.
    pub ports: Vec<AdvisedPort>,
    /// The longest time after which the advice was still significantly better than a random port; `None` if
    /// no port is named.
    pub holds: Option<Span>,
    /// Why no port is named; `None` if ports are named.
    pub no_ports: Option<String>,
    /// The gain from opening several connections and keeping the best.
    pub best_of: Vec<BestOf>,
    /// The backtest of the advice, by time since the advice.
    pub horizons: Vec<Horizon>,
}

/// A port on the path with the lowest latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AdvisedPort {
    /// The source port.
    pub port: u16,
    /// Its base latency.
    pub base: Span,
    /// How long it has been there.
    pub held: Span,
    /// The loss among its last messages; `None` without messages.
    pub loss: Option<Share>,
}

/// Opening `connections` at random ports and keeping the one with the lowest latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BestOf {
    /// Number of connections.
    pub connections: u32,
    /// The probability that at least one is in the lowest class, 0 to 1.
    pub chance: f64,
    /// Median of the best connection's base latency.
    pub p50: Span,
    /// p99 of the best connection's base latency.
    pub p99: Span,
}

/// The loss of the lowest class, and of all others together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LowestClassLoss {
    /// Lost messages of the lowest class.
    pub low: Share,
    /// Lost messages of the other classes.
    pub others: Share,
    /// Whether the lowest class lost significantly more, by at least one message in a thousand.
    pub is_more: bool,
}
