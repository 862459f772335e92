//! How long flows stay: from a path change to the next, and on a class.
//!
//! A stay counts from the change that began it: of a flow's first level nobody saw the beginning.
//! What had not ended when the measurement did is censored (Kaplan and Meier 1958). The interval is
//! on the scale of log(-log S), its error the greater of Greenwood's, for which each stay is a case,
//! and that of blocks of time, for which what ends together is one.

use neph_model::{Instant, Own, Span};
use neph_stats::{Lifetime, SurvivalStep, share_interval, student_quantile, survival};

use crate::blocks::uncertainty;
use crate::fairness::span;
use crate::pair::{Curve, CurvePoint, Share};
use crate::share::Groups;
use crate::view::{Direction, FlowHistory, PathChange};

/// Points of a curve, at most and one more.
const POINTS: usize = 400;

/// How long one stay lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stay {
    /// When it began.
    pub(crate) from: Instant<Own>,
    pub(crate) length: Span,
    /// Whether its end was seen.
    pub(crate) ended: bool,
    /// From its beginning until the flow was not watched any more.
    pub(crate) room: Span,
}

impl Stay {
    fn lifetime(&self) -> Lifetime {
        #[expect(clippy::cast_precision_loss, reason = "statistics; exact to 104 days")]
        let length = self.length.nanos().max(0) as f64;
        if self.ended {
            Lifetime::Ended(length)
        } else {
            Lifetime::Lasting(length)
        }
    }
}

/// Which changes begin and end a stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// All.
    Each,
    /// Those from one class to another.
    OfClass,
    /// Those of the way there alone.
    Forward,
    /// Those of the way back alone.
    Reverse,
}

impl Counted {
    fn counts(self, classes: (Option<u16>, Option<u16>), direction: Option<Direction>) -> bool {
        match self {
            Self::Each => true,
            Self::OfClass => classes.0 != classes.1,
            Self::Forward => direction == Some(Direction::Forward),
            Self::Reverse => direction == Some(Direction::Reverse),
        }
    }
}

/// The stays of a flow. `changes` are its own, by time: one for each segment after the first.
pub(crate) fn stays(flow: &FlowHistory, changes: &[&PathChange], counted: Counted) -> Vec<Stay> {
    let Some(end) = flow.segments.last().map(|segment| segment.until) else {
        return Vec::new();
    };
    let mut begun = None;
    let mut stays = Vec::new();
    for (pair, change) in flow.segments.windows(2).zip(changes) {
        let classes = (pair[0].class, pair[1].class);
        if !counted.counts(classes, change.evidence.direction) {
            continue;
        }
        let at = pair[1].from;
        stays.extend(begun.replace(at).map(|from| Stay {
            from,
            length: at - from,
            ended: true,
            room: end - from,
        }));
    }
    stays.extend(begun.map(|from| Stay {
        from,
        length: end - from,
        ended: false,
        room: end - from,
    }));
    stays
}

/// The share of stays that ended within `soon`, of those that could be watched for so long. To take
/// also the short ones from the end, of which only those that ended are known, would be too many.
/// Those that began in one bin of time are a group.
pub(crate) fn ended_within(stays: &[Stay], soon: Span, bin: Span) -> Option<Share> {
    let mut groups = Groups::default();
    for stay in stays.iter().filter(|stay| stay.room >= soon) {
        let group = stay.from.nanos().div_euclid(bin.nanos().max(1));
        groups.add(group, stay.ended && stay.length <= soon);
    }
    groups.share()
}

/// The curve of some stays; `None` of none. Time is cut into blocks of `bin` or longer ones.
pub(crate) fn curve(stays: &[Stay], bin: Span) -> Option<Curve> {
    let lifetimes: Vec<Lifetime> = stays.iter().map(Stay::lifetime).collect();
    let survival = survival(&lifetimes).ok()?;
    let steps = survival.steps();
    let every = steps.len().div_ceil(POINTS).max(1);
    let told = |index: usize| index.is_multiple_of(every) || index + 1 == steps.len();
    let found = uncertainty(stays, steps, (bin, told));
    // Few blocks say little of how blocks vary.
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let reach = match found.ended_in {
        0 | 1 => f64::INFINITY,
        blocks => student_quantile(0.975, (blocks - 1) as f64),
    };
    let kept = steps.iter().enumerate().filter(|(index, _)| told(*index));
    let mut points: Vec<CurvePoint> = kept
        .zip(&found.errors)
        .map(|((_, step), error)| point(step, reach, *error))
        .collect();
    // To where it was watched: without a last point the curve would seem to end with an end.
    if steps.last().is_none_or(|step| step.at < survival.seen()) {
        points.push(last(points.last(), survival.seen(), found.blocks));
    }
    Some(Curve {
        n: stays.len() as u64,
        ended: stays.iter().filter(|stay| stay.ended).count() as u64,
        points,
    })
}

/// A step with its interval: `error` is that of log S by blocks of time, `reach` how many of them
/// the interval is wide to each side.
fn point(step: &SurvivalStep, reach: f64, error: f64) -> CurvePoint {
    let (low, high) = if step.survival > 0.0 && step.survival < 1.0 {
        let error = error.max(step.error / step.survival);
        let power = (reach * error / step.survival.ln().abs()).exp();
        (step.survival.powf(power), step.survival.powf(1.0 / power))
    } else {
        // Where nothing is left there is no interval: both ends are the share.
        (step.survival, step.survival)
    };
    CurvePoint {
        at: span(step.at),
        surviving: step.survival,
        low,
        high,
        at_risk: step.at_risk as u64,
    }
}

/// The end of what was watched: as after the last step. Where nothing ever ended each block of time
/// is a case of that.
#[expect(clippy::cast_precision_loss, reason = "a count")]
fn last(step: Option<&CurvePoint>, seen: f64, blocks: usize) -> CurvePoint {
    let none_ended = || CurvePoint {
        at: Span::ZERO,
        surviving: 1.0,
        low: share_interval(1.0, blocks as f64).map_or(0.0, |interval| interval.low),
        high: 1.0,
        at_risk: 1,
    };
    CurvePoint {
        at: span(seen),
        at_risk: 1,
        ..step.copied().unwrap_or_else(none_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use crate::{Digest, Settings};
    use neph_model::FleetMessage;

    const BIN: Span = Span::from_secs(20);

    fn at(seconds: i64) -> Instant<Own> {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn stay(seconds: i64, ended: bool) -> Stay {
        Stay {
            from: at(0),
            length: Span::from_secs(seconds),
            ended,
            room: Span::from_secs(100),
        }
    }

    /// The 21 children who took 6-MP (Freireich et al. 1963), weeks in remission; survival as every
    /// textbook has it (Kalbfleisch and Prentice; Kleinbaum, table 2.1).
    #[test]
    fn the_textbooks_curve_comes_out() {
        let relapsed = [6, 6, 6, 7, 10, 13, 16, 22, 23].map(|weeks| stay(weeks, true));
        let censored =
            [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35].map(|weeks| stay(weeks, false));
        let all: Vec<Stay> = relapsed.into_iter().chain(censored).collect();
        let curve = curve(&all, BIN).unwrap();
        assert_eq!((curve.n, curve.ended), (21, 9));
        let at = |weeks| curve.at(Span::from_secs(weeks)).unwrap().surviving;
        for (weeks, survival) in [
            (6, 0.857),
            (7, 0.807),
            (10, 0.753),
            (13, 0.690),
            (16, 0.627),
            (22, 0.538),
            (23, 0.448),
        ] {
            assert!(
                (at(weeks) - survival).abs() < 5e-4,
                "{weeks}: {}",
                at(weeks)
            );
        }
        assert_eq!(curve.median(), Some(Span::from_secs(23)));
        // R, survival 3.5: survfit(Surv(time, status) ~ 1, conf.type = "log-log") gives 0.620, 0.952
        // for the sixth week. Two blocks of time say less than that.
        let six = curve.at(Span::from_secs(6)).unwrap();
        assert!(six.low < 0.620 && six.high > 0.952, "{six:?}");
    }

    /// 200 flows that each leave when they like, and 200 that leave together: a reshuffle each 40 s
    /// moves all of them.
    #[test]
    fn what_many_flows_do_together_is_less_certain_than_what_each_does_alone() {
        let mut random = neph_stats::Random::new(3);
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for round in 0..30 {
            for _ in 0..200 {
                let from = at(40 * round) + Span::from_nanos(to_nanos(40.0 * random.unit()));
                let length = Span::from_nanos(to_nanos(-30.0 * (1.0 - random.unit()).ln()));
                alone.push(one(from, length));
            }
            let length = Span::from_secs(if random.unit() < 0.5 { 20 } else { 40 });
            together.extend([one(at(40 * round), length); 200]);
        }
        let width = |stays: &[Stay], seconds: i64| {
            let point = curve(stays, BIN)
                .unwrap()
                .at(Span::from_secs(seconds))
                .unwrap();
            (point.surviving, point.high - point.low)
        };
        // A share of 6000 independent cases is known to 1.3 points each way; one of 30 to 18.
        let (share, apart) = width(&alone, 20);
        assert!((share - (-20.0_f64 / 30.0).exp()).abs() < 0.03, "{share}");
        assert!(apart > 0.02 && apart < 0.06, "{apart}");
        let (_, joint) = width(&together, 20);
        assert!(joint > 0.25 && joint < 0.60, "{joint}");
    }

    #[expect(clippy::cast_possible_truncation, reason = "a test's times")]
    fn to_nanos(seconds: f64) -> i64 {
        (seconds * 1e9) as i64
    }

    fn one(from: Instant<Own>, length: Span) -> Stay {
        Stay {
            from,
            length,
            ended: true,
            room: Span::from_secs(1000),
        }
    }

    #[test]
    fn one_event_says_nothing_of_how_often_there_are_such() {
        let moved = [one(at(0), Span::from_secs(30)); 384];
        let stayed = [stay(60, false); 100];
        let both: Vec<Stay> = moved.into_iter().chain(stayed).collect();
        let point = curve(&both, BIN).unwrap().at(Span::from_secs(30)).unwrap();
        assert!(point.low < 1e-9 && point.high > 1.0 - 1e-9, "{point:?}");
        // 384 flows that came together are one case.
        let share = ended_within(&both[..384], Span::from_secs(40), BIN).unwrap();
        assert_eq!((share.hits, share.n), (384, 384));
        assert!(share.low < 0.3, "{share:?}");
    }

    #[test]
    fn where_nothing_ended_time_says_how_sure_that_is() {
        let stays: Vec<Stay> = (0..100).map(|_| stay(60, false)).collect();
        let curve = curve(&stays, BIN).unwrap();
        let point = curve.at(Span::from_secs(30)).unwrap();
        // Three blocks of 20 s: 3 / (3 + 3.84).
        assert!((point.low - 0.4385).abs() < 1e-3, "{point:?}");
        assert!((point.surviving - 1.0).abs() < 1e-12);
    }

    /// The network moves flows every 10 s, three of four each time; messages leave up to 4 ms late.
    #[test]
    fn what_ends_at_the_very_moment_has_ended_within_it() {
        let world = World {
            reshuffle: 10,
            ..World::default()
        };
        let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
        world.messages(&world.truth(), |message| {
            let late = Span::from_millis(i64::from(message.seq * 7 % 5));
            let sent = message.sent + late;
            digest.push(&FleetMessage { sent, ..*message });
        });
        digest.finish();
        let view = digest.view();
        let left = view.pairs[0].leave_soon.unwrap().share;
        assert!((0.7..0.8).contains(&left), "{left}");
        let curve = view.pairs[0].between.as_ref().unwrap();
        let moved = 1.0 - curve.at(view.soon()).unwrap().surviving;
        assert!((0.7..0.8).contains(&moved), "{moved}");
    }

    #[test]
    fn a_change_of_both_ways_is_none_of_one_way_alone() {
        let counts = |counted: Counted, way| counted.counts((Some(0), Some(1)), way);
        let ways = [Direction::Forward, Direction::Reverse, Direction::Both].map(Some);
        assert_eq!(
            ways.map(|way| counts(Counted::Forward, way)),
            [true, false, false]
        );
        assert_eq!(
            ways.map(|way| counts(Counted::Reverse, way)),
            [false, true, false]
        );
        assert_eq!(ways.map(|way| counts(Counted::Each, way)), [true; 3]);
    }

    /// Live and from a store the same messages have other clocks.
    #[test]
    fn when_a_clock_began_says_nothing_of_shares() {
        let told = |seconds: i64| {
            let world = World::default();
            let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
            world.messages(&world.truth(), |message| {
                let sent = message.sent + Span::from_secs(seconds);
                digest.push(&FleetMessage { sent, ..*message });
            });
            digest.finish();
            let pair = digest.view().pairs.remove(0);
            (pair.leave_soon, pair.persistence, pair.between, pair.moved)
        };
        assert!(told(0).0.is_some());
        assert_eq!(told(0), told(13));
    }

    #[test]
    fn those_who_were_not_watched_long_enough_do_not_count() {
        let mut late = stay(3, true);
        late.room = Span::from_secs(5);
        let stays = [
            stay(3, true),
            stay(30, true),
            stay(60, false),
            stay(100, false),
            late,
        ];
        let share = ended_within(&stays, Span::from_secs(10), BIN).unwrap();
        assert_eq!((share.hits, share.n), (1, 4));
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_end() {
        let stays: Vec<Stay> = (1..=10_000).map(|seconds| stay(seconds, true)).collect();
        let curve = curve(&stays, BIN).unwrap();
        assert!(curve.points.len() <= POINTS + 1);
        assert!(curve.points.last().unwrap().surviving.abs() < 1e-9);
        assert!(super::curve(&[], BIN).is_none());
    }
}
