//! What holds for all flows of one pair together: plain values.

use neph_model::{Instant, Own, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::flow_tally::FlowTally;
use crate::share::Share;

/// What holds for the flows from here to one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PairView {
    /// The endpoint's name.
    pub endpoint: String,
    /// How all messages to it fared.
    pub tally: FlowTally,
    /// Of the lost, those whose reply came after the timeout; `None` where nobody counted them for this
    /// endpoint alone.
    pub late: Option<u64>,
    /// Where there were more path changes, or more flows one after the other, than are kept: what
    /// flows did before this moment is left out. Bins of time, queues and tallies are whole.
    pub forgotten: Option<Instant<Own>>,
    /// Flows that had a base latency at some time.
    pub flows: u64,
    /// Path changes.
    pub changes: u64,
    /// Whether flows lived too short for their path changes to be told: then there is no rate.
    pub too_short: bool,
    /// Whether more than half of the messages were lost while some came back: what those tell of paths
    /// is chance, so there are no classes, and no inflation, dip test and rate of changes.
    pub mostly_lost: bool,
    /// Where somebody answered at first and nobody did any more, when the last message was sent that
    /// was replied to, and how many were sent after it.
    pub silence: Option<(Instant<Own>, u64)>,
    /// For how long flows were watched since their base latency was known, all together.
    pub watched: Span,
    /// What of it is left out of rates.
    pub hidden: Hidden,
    /// For how long flows, all together, lay at latencies that lasted and were taken for queues, not
    /// for paths; without the time of queues that all flows shared.
    pub elsewhere: Span,
    /// By how much the round trips of all flows drifted together, slowly: base latencies, classes and
    /// changes are without it.
    pub drift: SharedDrift,
    /// Highest over lowest latency class; `None` without a class.
    pub inflation: Option<Inflation>,
    /// Whether the flows fall into two groups or more.
    pub bimodality: Option<Bimodality>,
    /// From a path change to the flow's next, all changes.
    pub between: Option<Curve>,
    /// From a change of class to the flow's next change of class.
    pub persistence: Option<Curve>,
    /// From a change of the way there alone to the flow's next such change, where the direction is
    /// known; a change of both ways is none of these.
    pub persistence_forward: Option<Curve>,
    /// The same, of changes of the way back alone.
    pub persistence_reverse: Option<Curve>,
    /// Of the flows that came to a class, the share that left it again within
    /// [`Settings::soon`](crate::Settings): what `persistence` says of that time.
    pub leave_soon: Option<Share>,
    /// Moves away from each class against its share of time, in the order of the classes.
    pub moved: Vec<Moved>,
    /// How many flows were in which class when.
    pub shares: Vec<ShareBin>,
    /// When a queue that all flows shared raised their round trips, so that nothing was said of
    /// paths.
    pub congested: Vec<(Instant<Own>, Instant<Own>)>,
    /// Whether there were so many such queues that those close together are told as one: then the time
    /// between them is among what is `hidden`.
    pub queues_joined: bool,
}

/// How far all flows drifted together since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharedDrift {
    /// The least, at most 0.
    pub lowest: Span,
    /// The most, at least 0.
    pub highest: Span,
}

impl SharedDrift {
    /// From the lowest to the highest.
    pub fn extent(&self) -> Span {
        self.highest - self.lowest
    }
}

impl PairView {
    /// Path changes per flow and hour, of the time in which they could be told; `None` where there was
    /// none, where flows lived too short for changes to be told, or where most messages were lost.
    pub fn changes_per_flow_hour(&self) -> Option<f64> {
        Self::changes_per_flow_hour_of([self])
    }

    /// The same of several together, such as a pair's blocks; `None` too where any has flows that
    /// lived too short.
    pub fn changes_per_flow_hour_of<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<f64> {
        let (mut clear, mut changes) = (Span::ZERO, 0);
        for one in all {
            if one.too_short || one.mostly_lost {
                return None;
            }
            clear += one.clear();
            changes += one.clear_changes();
        }
        let hours = clear.secs_f64() / 3600.0;
        #[expect(clippy::cast_precision_loss, reason = "statistics")]
        (hours > 0.0).then(|| changes as f64 / hours)
    }

    /// The time in which path changes could be told, of all flows together.
    pub fn clear(&self) -> Span {
        (self.watched - self.hidden.all()).max(Span::ZERO)
    }

    /// Path changes in it.
    pub const fn clear_changes(&self) -> u64 {
        self.changes.saturating_sub(self.hidden.changes)
    }
}

/// What cannot count in a rate of path changes. While a queue stood that all flows shared, and until
/// they were back at their levels, nothing was said of paths: of several changes in that time one is
/// told, when it is over. Nor is a change of a flow whose first level is not learnt yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hidden {
    /// Of the time that flows were watched, all together, what queues hid.
    pub time: Span,
    /// What else of it flows' first levels took to be learnt.
    pub learning: Span,
    /// Of the path changes, those told for the time of both.
    pub changes: u64,
}

impl Hidden {
    /// The time that no rate is of.
    pub(crate) fn all(&self) -> Span {
        self.time + self.learning
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bimodality {
    /// The dip statistic.
    pub dip: f64,
    /// The chance of such a dip, or a deeper one, if there were one group.
    pub p: f64,
    /// Flows: each counts with its base latency in the middle of the time.
    pub n: u64,
    /// From the lowest of these latencies to the highest. The test takes no notice of how far they
    /// lie apart: what does by less than the tolerance is no other path.
    #[serde(rename = "spread_ns")]
    pub spread: Span,
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

    /// The share that lasted longer than `time`, with its interval; `None` where nothing was
    /// watched that long, unless all have ended.
    pub fn at(&self, time: Span) -> Option<CurvePoint> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        if time > last.at && last.surviving > 0.0 {
            return None;
        }
        let until = self.points.iter().rev().find(|point| point.at <= time);
        Some(until.copied().unwrap_or(CurvePoint {
            at: Span::ZERO,
            surviving: 1.0,
            // At least as many as lasted longer than the first.
            low: first.low,
            high: 1.0,
            at_risk: self.n,
        }))
    }
}

/// A step of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// How long.
    pub at: Span,
    /// The share that lasted longer, 0 to 1.
    pub surviving: f64,
    /// Lower end of its 95 % interval, which takes what happened to many flows at once for one event.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(i64, f64)]) -> Curve {
        let point = |&(seconds, surviving): &(i64, f64)| CurvePoint {
            at: Span::from_secs(seconds),
            surviving,
            low: surviving / 2.0,
            high: surviving,
            at_risk: 5,
        };
        Curve {
            n: 10,
            ended: 5,
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn a_curve_is_one_before_its_first_end_and_ends_where_nothing_was_watched() {
        let curve = curve(&[(10, 0.8), (20, 0.5), (60, 0.5)]);
        let at = |seconds| {
            curve
                .at(Span::from_secs(seconds))
                .map(|point| point.surviving)
        };
        let told: Vec<_> = [0, 9, 10, 19, 20, 60, 61].map(at).to_vec();
        let wanted = [1.0, 1.0, 0.8, 0.8, 0.5, 0.5].map(Some);
        assert_eq!(told[..6], wanted);
        assert_eq!(told[6], None);
        let before = curve.at(Span::ZERO).unwrap();
        assert_eq!((before.at_risk, before.high), (10, 1.0));
        assert!(
            (before.low - 0.4).abs() < 1e-12,
            "as low as at the first end"
        );
    }

    #[test]
    fn where_all_have_ended_none_lasts_longer() {
        let curve = curve(&[(10, 0.5), (20, 0.0)]);
        let later = curve.at(Span::from_secs(1000)).map(|point| point.surviving);
        assert_eq!(later, Some(0.0));
        assert!(
            Curve {
                points: Vec::new(),
                ..curve
            }
            .at(Span::ZERO)
            .is_none()
        );
    }

    #[test]
    fn what_was_hidden_counts_neither_as_time_nor_as_changes() {
        let pair = PairView {
            watched: Span::from_secs(7200),
            changes: 8,
            hidden: Hidden {
                time: Span::from_secs(1800),
                learning: Span::from_secs(1800),
                changes: 2,
            },
            ..PairView::default()
        };
        assert_eq!(pair.changes_per_flow_hour(), Some(6.0));
        let all_hidden = PairView {
            watched: Span::from_secs(3600),
            ..pair
        };
        assert_eq!(all_hidden.changes_per_flow_hour(), None);
    }

    #[test]
    fn flows_too_short_for_changes_have_no_rate() {
        let pair = PairView {
            watched: Span::from_secs(3600),
            changes: 2,
            ..PairView::default()
        };
        assert_eq!(pair.changes_per_flow_hour(), Some(2.0));
        let short = PairView {
            too_short: true,
            ..pair.clone()
        };
        assert_eq!(short.changes_per_flow_hour(), None);
        assert_eq!(PairView::changes_per_flow_hour_of([&pair, &short]), None);
    }

    /// Two changes in an hour and none in three: half a one for each hour, and not one.
    #[test]
    fn several_together_have_the_rate_of_their_sums() {
        let of = |hours: i64, changes| PairView {
            watched: Span::from_secs(3600 * hours),
            changes,
            ..PairView::default()
        };
        let rate = PairView::changes_per_flow_hour_of([&of(1, 2), &of(3, 0)]);
        assert_eq!(rate, Some(0.5));
        assert_eq!(PairView::changes_per_flow_hour_of([]), None);
    }
}
