//! Results for all flows of one pair together, as plain values.

use neph_model::{Instant, Local, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::flow_tally::FlowTally;
use crate::share::Share;

/// Results for the flows from this site to one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PairView {
    /// The endpoint's name.
    pub endpoint: String,
    /// Outcomes of all messages to it.
    pub tally: FlowTally,
    /// Lost messages whose reply arrived after the timeout; `None` if they were not counted for this endpoint
    /// alone.
    pub late: Option<u64>,
    /// If more path changes or consecutive flows occurred than are kept: the history of flows before this
    /// moment is missing. Bins of time, queues and tallies are complete.
    pub forgotten: Option<Instant<Local>>,
    /// Number of flows that ever had a base latency.
    pub flows: u64,
    /// Path changes.
    pub changes: u64,
    /// Whether flows were too short to detect their path changes: then there is no rate.
    pub too_short: bool,
    /// Whether most messages were lost while others got replies. Then the latencies are random: there are no
    /// classes, inflation, dip test and rate of changes.
    pub mostly_lost: bool,
    /// If the peer stopped replying: send time of the last replied message, and number of messages after it.
    pub silence: Option<(Instant<Local>, u64)>,
    /// Sum over flows of the time since their base latency was known.
    pub watched: Span,
    /// The part of it that rates exclude.
    pub hidden: Hidden,
    /// Sum over flows of the time at lasting latencies that were taken for queues, not paths. Excludes queues
    /// that all flows shared.
    pub unexplained: Span,
    /// The slow drift of round trips that all flows share: base latencies, classes and changes exclude it.
    pub drift: SharedDrift,
    /// Highest over lowest latency class; `None` without a class.
    pub inflation: Option<Inflation>,
    /// Whether the flows form two groups or more.
    pub bimodality: Option<Bimodality>,
    /// Time from a path change to the flow's next one, all changes.
    pub between: Option<Curve>,
    /// Time from a change of class to the flow's next change of class.
    pub persistence: Option<Curve>,
    /// Time from a change of the forward path only to the flow's next such change, if directions are known.
    /// Changes of both directions do not count.
    pub persistence_forward: Option<Curve>,
    /// The same for changes of the reverse path only.
    pub persistence_reverse: Option<Curve>,
    /// The share of flows that left a new class within [`Settings::soon`](crate::Settings), by the curve of
    /// `persistence`.
    pub leave_share: Option<Share>,
    /// Changes away from each class against its share of time, in the order of the classes.
    pub moved: Vec<ClassMoves>,
    /// Number of flows in each class over time.
    pub shares: Vec<ShareBin>,
    /// When all flows shared a queue that increased their round trips, so that paths were not observable.
    pub congested: Vec<(Instant<Local>, Instant<Local>)>,
    /// Whether there were so many such queues that close ones are merged: then `hidden` includes the time
    /// between them.
    pub congestion_periods_merged: bool,
}

/// The range of the drift that all flows share, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharedDrift {
    /// The minimum, at most 0.
    pub lowest: Span,
    /// The maximum, at least 0.
    pub highest: Span,
}

impl SharedDrift {
    /// From the lowest to the highest.
    pub fn extent(&self) -> Span {
        self.highest - self.lowest
    }
}

impl PairView {
    /// Path changes per flow and hour of observable time. `None` without such time, if flows were too short
    /// to detect changes, or if most messages were lost.
    pub fn changes_per_flow_hour(&self) -> Option<f64> {
        Self::changes_per_flow_hour_of([self])
    }

    /// The same for several together, such as a pair's blocks; `None` too if any has flows that are too
    /// short.
    pub fn changes_per_flow_hour_of<'a>(pairs: impl IntoIterator<Item = &'a Self>) -> Option<f64> {
        let (mut observable_time, mut changes) = (Span::ZERO, 0);
        for pair in pairs {
            if pair.too_short || pair.mostly_lost {
                return None;
            }
            observable_time += pair.observable_time();
            changes += pair.observable_changes();
        }
        let hours = observable_time.secs_f64() / 3600.0;
        #[expect(clippy::cast_precision_loss, reason = "statistics")]
        (hours > 0.0).then(|| changes as f64 / hours)
    }

    /// The observable time, sum over flows.
    pub fn observable_time(&self) -> Span {
        (self.watched - self.hidden.total()).max(Span::ZERO)
    }

    /// Path changes in it.
    pub const fn observable_changes(&self) -> u64 {
        self.changes.saturating_sub(self.hidden.changes)
    }
}

/// Time and changes that a rate of path changes excludes. While all flows share a queue, several changes are
/// reported as one, after it. The time until a flow's first level is known is excluded as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hidden {
    /// The observed time that queues hid, sum over flows.
    pub time: Span,
    /// The rest of it, until flows' first levels were known.
    pub learning: Span,
    /// Path changes that were reported for both.
    pub changes: u64,
}

impl Hidden {
    /// The time that rates exclude.
    pub(crate) fn total(&self) -> Span {
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
    /// Highest over lowest, at least 1: 1.32 is the source's "32 % latency inflation".
    pub ratio: f64,
    /// Number of flows.
    pub flows: u64,
}

/// Hartigan's dip test of the hypothesis that there is one group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bimodality {
    /// The dip statistic.
    pub dip: f64,
    /// The p value: probability of such a dip, or a deeper one, with one group.
    pub p: f64,
    /// Number of flows: each counts with its base latency in the middle of the time.
    pub n: u64,
    /// From the lowest of these latencies to the highest. The test ignores the size of differences: below the
    /// tolerance they are no other path.
    #[serde(rename = "spread_ns")]
    pub spread: Span,
}

/// A Kaplan-Meier curve of durations. Durations that had not ended with the measurement are censored, not
/// left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Number of durations that began.
    pub n: u64,
    /// Number of those that ended within the measurement.
    pub ended: u64,
    /// The curve's steps, by time; reduced to some hundreds.
    pub points: Vec<CurvePoint>,
}

impl Curve {
    /// The shortest time that at most half outlasted; `None` if more than half outlasted every time.
    pub fn median(&self) -> Option<Span> {
        let point = self.points.iter().find(|point| point.surviving <= 0.5)?;
        Some(point.at)
    }

    /// The share that lasted longer than `time`, with its interval; `None` if nothing was observed for that
    /// long, unless all have ended.
    pub fn at(&self, time: Span) -> Option<CurvePoint> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        if time > last.at && last.surviving > 0.0 {
            return None;
        }
        let point = self.points.iter().rev().find(|point| point.at <= time);
        Some(point.copied().unwrap_or(CurvePoint {
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
    /// Duration.
    pub at: Span,
    /// The share that lasted longer, 0 to 1.
    pub surviving: f64,
    /// Lower end of its 95 % confidence interval, in which simultaneous changes of many flows are one event.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of those that were observed for that long and had not ended before.
    pub at_risk: u64,
}

/// Changes away from a class, compared with its share of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassMoves {
    /// Index of the class.
    pub class: u16,
    /// Its share of all flows' time, 0 to 1.
    pub share: f64,
    /// Its share of all changes away from a class, with the interval; `None` without a change.
    pub moved: Option<Share>,
    /// Changes away per flow and hour in the class.
    pub per_flow_hour: f64,
}

/// Number of flows in each class in the middle of a bin of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShareBin {
    /// When the bin begins.
    pub from: Instant<Local>,
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
    fn a_curve_starts_at_one_and_ends_with_the_observed_time() {
        let curve = curve(&[(10, 0.8), (20, 0.5), (60, 0.5)]);
        let at = |seconds| {
            curve
                .at(Span::from_secs(seconds))
                .map(|point| point.surviving)
        };
        let surviving: Vec<_> = [0, 9, 10, 19, 20, 60, 61].map(at).to_vec();
        let expected = [1.0, 1.0, 0.8, 0.8, 0.5, 0.5].map(Some);
        assert_eq!(surviving[..6], expected);
        assert_eq!(surviving[6], None);
        let before_first_end = curve.at(Span::ZERO).unwrap();
        assert_eq!((before_first_end.at_risk, before_first_end.high), (10, 1.0));
        assert!(
            (before_first_end.low - 0.4).abs() < 1e-12,
            "as low as at the first end"
        );
    }

    #[test]
    fn survival_is_zero_after_the_end_of_all_stays() {
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
    fn hidden_time_and_changes_do_not_count_in_the_change_rate() {
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

    /// Two changes in an hour and none in three hours: 0.5 per hour, not 1.
    #[test]
    fn the_rate_of_several_pairs_is_the_rate_of_their_sums() {
        let pair = |hours: i64, changes| PairView {
            watched: Span::from_secs(3600 * hours),
            changes,
            ..PairView::default()
        };
        let rate = PairView::changes_per_flow_hour_of([&pair(1, 2), &pair(3, 0)]);
        assert_eq!(rate, Some(0.5));
        assert_eq!(PairView::changes_per_flow_hour_of([]), None);
    }
}
