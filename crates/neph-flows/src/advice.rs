//! Owns what can be said of source ports: plain values.

use neph_model::Span;
use serde::Serialize;

use crate::horizon::Horizon;
use crate::share::Share;

/// What the third source says of whoever follows such advice.
pub const CAUTION: &str = "Selfish routing (the third source): \"application developers can force \
multiplexing of traffic on shortest paths, ultimately defeating cloud TE operation\". If many do it, \
the low path fills up, and the provider may move you away the sooner.";

/// Advice for the flows to one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The endpoint's name.
    pub endpoint: String,
    /// What can be said.
    pub counsel: Counsel,
    /// What to mind before following it.
    pub caution: &'static str,
}

/// What can be said of source ports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counsel {
    /// Nothing, and why.
    Refused {
        /// A sentence with what would help.
        why: String,
    },
    /// Open some connections and keep the best; and ports, where they hold.
    Given(Box<Guide>),
}

/// Advice with what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guide {
    /// The lowest class's base latency.
    pub low: Span,
    /// The median over flows and time of the base latency: what a random flow gets.
    pub random: Span,
    /// The share of flows in the lowest class at the end.
    pub low_share: Share,
    /// What the lowest class lost against the others; `None` where one had no message.
    pub loss: Option<LowLoss>,
    /// Which ports to take, those first that have been there longest; empty where ports do not hold.
    pub ports: Vec<AdvisedPort>,
    /// The longest time after which such advice was still better than chance, beyond doubt; `None`
    /// where no port is named.
    pub holds: Option<Span>,
    /// Why no port is named, where none is.
    pub no_ports: Option<String>,
    /// What opening several connections and keeping the best gives.
    pub best_of: Vec<BestOf>,
    /// How the advice would have fared, by the time that went by since it was given.
    pub horizons: Vec<Horizon>,
}

/// A port that is on the low path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AdvisedPort {
    /// The source port.
    pub port: u16,
    /// Its base latency.
    pub base: Span,
    /// How long it has been there.
    pub held: Span,
    /// How many of its last messages were lost; `None` where there were none.
    pub loss: Option<Share>,
}

/// Opening `connections` at random ports and keeping the one with the lowest latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BestOf {
    /// How many.
    pub connections: u32,
    /// The chance that at least one is in the lowest class, 0 to 1.
    pub chance: f64,
    /// The best one's base latency: in half of all cases it is at most this.
    pub p50: Span,
    /// In 99 of 100 cases it is at most this.
    pub p99: Span,
}

/// What the lowest class lost, and all others together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LowLoss {
    /// The lowest class's messages that were lost.
    pub low: Share,
    /// The other classes'.
    pub others: Share,
    /// Whether the lowest class lost more, beyond doubt and by more than one message in a thousand.
    pub is_more: bool,
}
