//! How long flows stay: from a path change to the next, and on a class.
//!
//! A stay counts from the change that began it: of a flow's first level nobody saw the beginning.
//! What had not ended when the measurement did is censored (Kaplan and Meier 1958), the interval is
//! Greenwood's.

use neph_model::Span;
use neph_stats::normal_quantile;

use crate::pair::{Curve, CurvePoint, Share};
use crate::share::share;
use crate::view::{Direction, FlowHistory, PathChange};

/// Points of a curve, at most and one more.
const POINTS: usize = 400;

/// How long one stay lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stay {
    pub(crate) length: Span,
    /// Whether its end was seen.
    pub(crate) ended: bool,
    /// From its beginning until the flow was not watched any more.
    pub(crate) room: Span,
}

/// Which changes begin and end a stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// All.
    Each,
    /// Those from one class to another.
    OfClass,
    /// Those of the way there.
    Forward,
    /// Those of the way back.
    Reverse,
}

impl Counted {
    fn counts(self, classes: (Option<u16>, Option<u16>), direction: Option<Direction>) -> bool {
        match self {
            Self::Each => true,
            Self::OfClass => classes.0 != classes.1,
            Self::Forward => matches!(direction, Some(Direction::Forward | Direction::Both)),
            Self::Reverse => matches!(direction, Some(Direction::Reverse | Direction::Both)),
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
            length: at - from,
            ended: true,
            room: end - from,
        }));
    }
    stays.extend(begun.map(|from| Stay {
        length: end - from,
        ended: false,
        room: end - from,
    }));
    stays
}

/// The share of stays that ended within `soon`, of those that could be watched for so long. To take
/// also the short ones from the end, of which only those that ended are known, would be too many.
pub(crate) fn ended_within(stays: &[Stay], soon: Span) -> Option<Share> {
    let (mut ended, mut n) = (0, 0);
    for stay in stays.iter().filter(|stay| stay.room >= soon) {
        n += 1;
        ended += u64::from(stay.ended && stay.length <= soon);
    }
    share(ended, n)
}

/// The curve of some stays; `None` of none.
pub(crate) fn curve(stays: &[Stay]) -> Option<Curve> {
    let mut sorted = stays.to_vec();
    // Of one length, ends come before what was only watched so long.
    sorted.sort_unstable_by_key(|stay| (stay.length, !stay.ended));
    let n = sorted.len();
    let mut points = Vec::new();
    let (mut surviving, mut greenwood) = (1.0_f64, 0.0_f64);
    let mut seen = 0;
    for same in sorted.chunk_by(|one, next| one.length == next.length) {
        let at_risk = real(n - seen);
        let ended = real(same.iter().filter(|stay| stay.ended).count());
        if ended > 0.0 {
            surviving *= 1.0 - ended / at_risk;
            greenwood += ended / (at_risk * (at_risk - ended).max(f64::MIN_POSITIVE));
            points.push(point(same[0].length, (surviving, greenwood), n - seen));
        }
        seen += same.len();
    }
    let last = sorted.last()?;
    if !last.ended {
        points.push(point(last.length, (surviving, greenwood), 1));
    }
    Some(Curve {
        n: n as u64,
        ended: sorted.iter().filter(|stay| stay.ended).count() as u64,
        points: thinned(points),
    })
}

/// The interval is Greenwood's on the scale of log(-log S), which stays between 0 and 1
/// (Kalbfleisch and Prentice 1980); where nothing is left or nothing ended yet there is none.
fn point(at: Span, (surviving, greenwood): (f64, f64), at_risk: usize) -> CurvePoint {
    let (low, high) = if surviving <= 0.0 || surviving >= 1.0 {
        (surviving, surviving)
    } else {
        let reach = normal_quantile(0.975) * greenwood.sqrt() / surviving.ln();
        (surviving.powf((-reach).exp()), surviving.powf(reach.exp()))
    };
    CurvePoint {
        at,
        surviving,
        low,
        high,
        at_risk: at_risk as u64,
    }
}

/// Every so many points, and the last.
fn thinned(points: Vec<CurvePoint>) -> Vec<CurvePoint> {
    let every = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    kept.filter(|(index, _)| index % every == 0 || *index == last)
        .map(|(_, point)| point)
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
const fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(seconds: i64, ended: bool) -> Stay {
        Stay {
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
        let curve = curve(&all).unwrap();
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
        let six = curve.at(Span::from_secs(6)).unwrap();
        // R, survival 3.5: survfit(Surv(time, status) ~ 1, conf.type = "log-log") gives 0.620, 0.952.
        assert!(
            (six.low - 0.620).abs() < 2e-3 && (six.high - 0.952).abs() < 2e-3,
            "{six:?}"
        );
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
        let share = ended_within(&stays, Span::from_secs(10)).unwrap();
        assert_eq!((share.hits, share.n), (1, 4));
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_end() {
        let stays: Vec<Stay> = (1..=10_000).map(|seconds| stay(seconds, true)).collect();
        let curve = curve(&stays).unwrap();
        assert!(curve.points.len() <= POINTS + 1);
        assert!(curve.points.last().unwrap().surviving.abs() < 1e-9);
        assert!(super::curve(&[]).is_none());
    }
}
