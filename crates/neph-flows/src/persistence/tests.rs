use super::*;
use crate::world::World;
use crate::{Digest, Settings};
use neph_model::{FleetMessage, Instant, Local};

fn curve(stays: &[Stay], bin: Span) -> Option<Curve> {
    stay_curve(stays, (bin, Span::from_secs(10))).map(|stay_curve| stay_curve.curve)
}

const BIN: Span = Span::from_secs(20);

fn instant(seconds: i64) -> Instant<Local> {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn stay(seconds: i64, ended: bool) -> Stay {
    Stay {
        from: instant(0),
        length: Span::from_secs(seconds),
        ended,
    }
}

/// The 21 children who took 6-MP (Freireich et al. 1963), weeks in remission; survival as every
/// textbook has it (Kalbfleisch and Prentice; Kleinbaum, table 2.1).
#[test]
fn the_survival_curve_matches_the_textbook_example() {
    let relapsed = [6, 6, 6, 7, 10, 13, 16, 22, 23].map(|weeks| stay(weeks, true));
    let censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35].map(|weeks| stay(weeks, false));
    let all_stays: Vec<Stay> = relapsed.into_iter().chain(censored).collect();
    let curve = curve(&all_stays, BIN).unwrap();
    assert_eq!((curve.n, curve.ended), (21, 9));
    let survival_at = |weeks| curve.at(Span::from_secs(weeks)).unwrap().surviving;
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
            (survival_at(weeks) - survival).abs() < 5e-4,
            "{weeks}: {}",
            survival_at(weeks)
        );
    }
    assert_eq!(curve.median(), Some(Span::from_secs(23)));
    // R, survival 3.5: survfit(Surv(time, status) ~ 1, conf.type = "log-log") gives 0.620, 0.952
    // for the sixth week. Two blocks of time say less than that.
    let at_six_seconds = curve.at(Span::from_secs(6)).unwrap();
    assert!(
        at_six_seconds.low < 0.620 && at_six_seconds.high > 0.952,
        "{at_six_seconds:?}"
    );
}

/// 200 flows that each leave when they like, and 200 that leave together: a reshuffle each 40 s
/// moves all of them.
#[test]
fn joint_moves_give_wider_intervals_than_independent_moves() {
    let mut random = neph_stats::Random::new(3);
    let (mut independent, mut simultaneous) = (Vec::new(), Vec::new());
    for round in 0..30 {
        for _ in 0..200 {
            let from = instant(40 * round) + Span::from_nanos(to_nanos(40.0 * random.unit()));
            let length = Span::from_nanos(to_nanos(-30.0 * (1.0 - random.unit()).ln()));
            independent.push(ended_stay(from, length));
        }
        let length = Span::from_secs(if random.unit() < 0.5 { 20 } else { 40 });
        simultaneous.extend([ended_stay(instant(40 * round), length); 200]);
    }
    let width = |stays: &[Stay], seconds: i64| {
        let point = curve(stays, BIN)
            .unwrap()
            .at(Span::from_secs(seconds))
            .unwrap();
        (point.surviving, point.high - point.low)
    };
    // A share of 6000 independent cases is known to 1.3 points each way; one of 30 to 18.
    let (share, independent_width) = width(&independent, 20);
    assert!((share - (-20.0_f64 / 30.0).exp()).abs() < 0.03, "{share}");
    assert!(
        independent_width > 0.02 && independent_width < 0.06,
        "{independent_width}"
    );
    let (_, simultaneous_width) = width(&simultaneous, 20);
    assert!(
        simultaneous_width > 0.25 && simultaneous_width < 0.60,
        "{simultaneous_width}"
    );
}

#[expect(clippy::cast_possible_truncation, reason = "a test's times")]
fn to_nanos(seconds: f64) -> i64 {
    (seconds * 1e9) as i64
}

fn ended_stay(from: Instant<Local>, length: Span) -> Stay {
    Stay {
        from,
        length,
        ended: true,
    }
}

#[test]
fn a_single_event_gives_a_wide_confidence_interval() {
    let ended_stays = [ended_stay(instant(0), Span::from_secs(30)); 384];
    let lasting_stays = [stay(60, false); 100];
    let all_stays: Vec<Stay> = ended_stays.into_iter().chain(lasting_stays).collect();
    let point = curve(&all_stays, BIN)
        .unwrap()
        .at(Span::from_secs(30))
        .unwrap();
    assert!(point.low < 1e-9 && point.high > 1.0 - 1e-9, "{point:?}");
    // 384 flows that came together are one case.
    let share = stay_curve(&all_stays[..384], (BIN, Span::from_secs(40)));
    let share = share.unwrap().leave_share.unwrap();
    assert_eq!((share.hits, share.n), (384, 384));
    assert!(share.low < 0.3, "{share:?}");
}

#[test]
fn the_bound_of_a_curve_without_ends_follows_from_its_time_blocks() {
    let stays: Vec<Stay> = (0..100).map(|_| stay(60, false)).collect();
    let curve = curve(&stays, BIN).unwrap();
    let point = curve.at(Span::from_secs(30)).unwrap();
    // Three blocks of 20 s: 3 / (3 + 3.84).
    assert!((point.low - 0.4385).abs() < 1e-3, "{point:?}");
    assert!((point.surviving - 1.0).abs() < 1e-12);
}

/// The network moves flows every 10 s, three of four each time; messages leave up to 4 ms late.
#[test]
fn a_stay_that_ends_exactly_at_the_limit_counts_as_ended() {
    let world = World {
        reshuffle_seconds: 10,
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
    let leave_share = view.pairs[0].leave_share.unwrap().share;
    assert!((0.7..0.8).contains(&leave_share), "{leave_share}");
    let curve = view.pairs[0].between.as_ref().unwrap();
    let left_share = 1.0 - curve.at(view.soon()).unwrap().surviving;
    assert!((0.7..0.8).contains(&left_share), "{left_share}");
}

#[test]
fn a_change_of_both_directions_counts_for_neither_single_direction() {
    let includes = |kind: ChangeKind, direction| kind.includes((Some(0), Some(1)), direction);
    let directions = [Direction::Forward, Direction::Reverse, Direction::Both].map(Some);
    assert_eq!(
        directions.map(|direction| includes(ChangeKind::Forward, direction)),
        [true, false, false]
    );
    assert_eq!(
        directions.map(|direction| includes(ChangeKind::Reverse, direction)),
        [false, true, false]
    );
    assert_eq!(
        directions.map(|direction| includes(ChangeKind::Each, direction)),
        [true; 3]
    );
}

/// Live and from a store the same messages have other clocks.
#[test]
fn shares_do_not_depend_on_the_clock_epoch() {
    let persistence_of = |seconds: i64| {
        let world = World::default();
        let mut digest = Digest::new(&world.fleet(), Settings::default()).unwrap();
        world.messages(&world.truth(), |message| {
            let sent = message.sent + Span::from_secs(seconds);
            digest.push(&FleetMessage { sent, ..*message });
        });
        digest.finish();
        let pair = digest.view().pairs.remove(0);
        (pair.leave_share, pair.persistence, pair.between, pair.moved)
    };
    assert!(persistence_of(0).0.is_some());
    assert_eq!(persistence_of(0), persistence_of(13));
}

/// Of five, one leaves while all are watched; one was not watched for longer than that.
#[test]
fn the_share_at_a_time_equals_the_curve_at_that_time() {
    let stays = [
        stay(3, true),
        stay(5, false),
        stay(8, true),
        stay(60, false),
        stay(100, false),
    ];
    let horizon = Span::from_secs(10);
    let estimate = stay_curve(&stays, (BIN, horizon)).unwrap();
    let (share, point) = (
        estimate.leave_share.unwrap(),
        estimate.curve.at(horizon).unwrap(),
    );
    // 4/5 of 2/3.
    assert!((share.share - (1.0 - 8.0 / 15.0)).abs() < 1e-9, "{share:?}");
    assert_eq!((share.hits, share.n), (2, 5));
    assert_eq!(
        (share.share, share.low, share.high),
        (1.0 - point.surviving, 1.0 - point.high, 1.0 - point.low)
    );
    assert_eq!(
        stay_curve(&stays, (BIN, Span::from_secs(101)))
            .unwrap()
            .leave_share,
        None
    );
}

#[test]
fn the_upper_bound_before_the_first_end_follows_from_time_blocks() {
    let stays = [stay(30, true), stay(60, false)];
    let share = stay_curve(&stays, (BIN, Span::from_secs(10)))
        .unwrap()
        .leave_share
        .unwrap();
    // Three blocks of 20 s: 3.84 / (3 + 3.84).
    assert!((share.share, share.low) == (0.0, 0.0) && (share.high - 0.5615).abs() < 1e-3);
}

#[test]
fn a_long_curve_is_thinned_and_keeps_its_end() {
    let stays: Vec<Stay> = (1..=10_000).map(|seconds| stay(seconds, true)).collect();
    let curve = curve(&stays, BIN).unwrap();
    assert!(curve.points.len() <= MAX_POINTS + 2);
    assert!(curve.points.last().unwrap().surviving.abs() < 1e-9);
    assert!(stay_curve(&[], (BIN, BIN)).is_none());
}
