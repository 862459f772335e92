//! What holds for all flows of one pair together: plain values.

use neph_model::{Instant, Own, Span};
use serde::Serialize;

use crate::view::FlowTally;

/// What holds for the flows from here to one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PairView {
    /// The endpoint's name.
    pub endpoint: String,
    /// How all messages to it fared.
    pub tally: FlowTally,
    /// Where there were more path changes, or more flows one after the other, than are kept: what
    /// flows did before this moment is left out. Bins of time, queues and tallies are whole.
    pub forgotten: Option<Instant<Own>>,
    /// Flows that had a base latency at some time.
    pub flows: u64,
    /// Path changes.
    pub changes: u64,
    /// For how long flows were watched since their base latency was known, all together.
    pub watched: Span,
    /// Highest over lowest latency class; `None` without a class.
    pub inflation: Option<Inflation>,
    /// Whether the flows fall into two groups or more.
    pub bimodality: Option<Bimodality>,
    /// From a path change to the flow's next, all changes.
    pub between: Option<Curve>,
    /// From a change of class to the flow's next change of class.
    pub persistence: Option<Curve>,
    /// The same, of changes of the way there alone, where the direction is known.
    pub persistence_forward: Option<Curve>,
    /// The same, of changes of the way back alone.
    pub persistence_reverse: Option<Curve>,
    /// Of the flows that came to a class, the share that left it again within
    /// [`Settings::soon`](crate::Settings).
    pub leave_soon: Option<Share>,
    /// Moves away from each class against its share of time, in the order of the classes.
    pub moved: Vec<Moved>,
    /// How many flows were in which class when.
    pub shares: Vec<ShareBin>,
    /// When a queue that all flows shared raised their round trips, so that nothing was said of
    /// paths.
    pub congested: Vec<(Instant<Own>, Instant<Own>)>,
}

impl PairView {
    /// Path changes per flow and hour; `None` before any flow was watched.
    pub fn changes_per_flow_hour(&self) -> Option<f64> {
        let hours = self.watched.secs_f64() / 3600.0;
        #[expect(clippy::cast_precision_loss, reason = "statistics")]
        let changes = self.changes as f64;
        (hours > 0.0).then(|| changes / hours)
    }
}

/// How much longer the slowest path is than the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Inflation {
    /// Base latency of the lowest class.
    pub lowest: Span,
    /// Base latency of the highest.
    pub highest: Span,
    /// Highest over lowest, 1 or more: 1.32 is the source's "32 % latency inflation".
    pub ratio: f64,
    /// Flows that it rests on.
    pub flows: u64,
}

/// Hartigan's dip test of the hypothesis that there is one group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bimodality {
    /// The dip statistic.
    pub dip: f64,
    /// The chance of such a dip, or a deeper one, if there were one group.
    pub p: f64,
    /// Flows: each counts with its base latency in the middle of the time.
    pub n: u64,
}

/// A share with its 95 % interval (Wilson's) and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub hits: u64,
    /// Of how many.
    pub n: u64,
    /// Hits of n, 0 to 1.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How long something lasted: a Kaplan-Meier curve. What had not ended when the measurement did is
/// censored, not left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// How many began.
    pub n: u64,
    /// How many of these were seen to end.
    pub ended: u64,
    /// The curve's steps, by time; thinned out where there are more than some hundreds.
    pub points: Vec<CurvePoint>,
}

impl Curve {
    /// The shortest time that at least half did not outlast; `None` if more than half always did.
    pub fn median(&self) -> Option<Span> {
        let point = self.points.iter().find(|point| point.surviving <= 0.5)?;
        Some(point.at)
    }

    /// The share that lasted longer than `time`, with its interval; `None` where too little was
    /// watched that long.
    pub fn at(&self, time: Span) -> Option<CurvePoint> {
        let last = self.points.iter().rev().find(|point| point.at <= time);
        last.copied().filter(|_| {
            self.points
                .last()
                .is_some_and(|end| end.at >= time || end.at_risk > 0)
        })
    }
}

/// A step of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// How long.
    pub at: Span,
    /// The share that lasted longer, 0 to 1.
    pub surviving: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many were watched for that long and had not ended before.
    pub at_risk: u64,
}

/// Moves away from a class, held against what its share of time would have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Index of the class.
    pub class: u16,
    /// Its share of all flows' time, 0 to 1.
    pub share: f64,
    /// Its share of all moves away from a class, with the interval; `None` without a move.
    pub moved: Option<Share>,
    /// Moves away per flow and hour in the class.
    pub per_flow_hour: f64,
}

/// How many flows were in each class in the middle of a bin of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShareBin {
    /// When the bin begins.
    pub from: Instant<Own>,
    /// Flows by class, in the order of the classes.
    pub flows: Vec<u32>,
}
