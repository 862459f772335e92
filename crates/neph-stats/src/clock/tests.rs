mod silences;
mod unseen;

use proptest::prelude::*;

use super::*;
use crate::random::Random;

pub(super) const SECOND: i64 = 1_000_000_000;

/// Our clock is true; the peer's is `offset` off at 0 and runs fast by `rate`, but for what it was
/// set by.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) offset: i64,
    pub(super) rate: f64,
    pub(super) set: Vec<(i64, i64)>,
}

impl Peer {
    pub(super) fn offset_at(&self, at: i64) -> i64 {
        let jumps = self.set.iter().filter(|(step_time, _)| *step_time <= at);
        let jumped: i64 = jumps.map(|(_, by)| by).sum();
        self.offset + jumped + round_to_i64(self.rate * nanos_to_f64(at))
    }

    /// An exchange each `interval`; delays are `min_delays` and something skewed above it.
    pub(super) fn exchanges(
        &self,
        count: i64,
        interval: i64,
        min_delays: [i64; 2],
        seed: u64,
    ) -> Exchanges {
        let mut random = Random::new(seed);
        let mut delay =
            |min_delay: i64| min_delay + round_to_i64(-50_000.0 * (1.0 - random.unit()).ln());
        let mut samples = Exchanges::default();
        for sent in (0..count).map(|n| n * interval) {
            let arrived = sent + delay(min_delays[0]);
            let returned = arrived + delay(min_delays[1]);
            let read = arrived + self.offset_at(arrived);
            let shows = |offset| OffsetLimit {
                at: sent,
                within: returned - sent,
                offset,
            };
            samples.at_most.push(shows(read - sent));
            samples.at_least.push(shows(read - returned));
        }
        samples
    }
}

#[derive(Debug, Default)]
pub(super) struct Exchanges {
    pub(super) at_most: Vec<OffsetLimit>,
    pub(super) at_least: Vec<OffsetLimit>,
}

impl Exchanges {
    pub(super) fn limits(&self) -> OffsetLimits<'_> {
        OffsetLimits {
            at_most: &self.at_most,
            at_least: &self.at_least,
        }
    }
}

fn limit(at: i64, offset: i64) -> OffsetLimit {
    OffsetLimit {
        at,
        within: 0,
        offset,
    }
}

fn rigid() -> ClockNature {
    ClockNature {
        wander: 0.0,
        ..ClockNature::default()
    }
}

#[test]
fn two_exchanges_leave_a_parallelogram_of_lines() {
    // At -10 and 10 s the offset lies between 0 and 100. So it does at 0, and the rate is at most 100 ns
    // in 20 s.
    let samples = Exchanges {
        at_most: vec![limit(-10 * SECOND, 100), limit(10 * SECOND, 100)],
        at_least: vec![limit(-10 * SECOND, 0), limit(10 * SECOND, 0)],
    };
    let fit = clock_fit(samples.limits(), 0, rigid()).unwrap().unwrap();
    assert_eq!((fit.offset, fit.bound, fit.n), (50, 51, 4));
    assert!(fit.rate.abs() < 1e-15);
    assert!((fit.rate_bound - 5e-9).abs() < 1e-15);
    // Beyond the data the lines fan out: at 20 s by half as much again on each side.
    let later = clock_fit(samples.limits(), 20 * SECOND, rigid())
        .unwrap()
        .unwrap();
    assert_eq!((later.offset, later.bound), (50, 101));
}

#[test]
fn wander_widens_the_error_bound_with_time() {
    let samples = Exchanges {
        at_most: vec![limit(-10 * SECOND, 100), limit(10 * SECOND, 100)],
        at_least: vec![limit(-10 * SECOND, 0), limit(10 * SECOND, 0)],
    };
    let nature = ClockNature {
        wander: 1e-8,
        ..rigid()
    };
    let fit = clock_fit(samples.limits(), 0, nature).unwrap().unwrap();
    assert_eq!((fit.offset, fit.bound), (50, 151));
}

#[test]
fn one_exchange_gives_the_midpoint_with_half_the_rtt_as_bound() {
    let samples = Exchanges {
        at_most: vec![limit(0, 1_030)],
        at_least: vec![limit(0, 990)],
    };
    let fit = clock_fit(samples.limits(), 0, rigid()).unwrap().unwrap();
    assert_eq!((fit.offset, fit.bound), (1_010, 21));
    assert!(
        (fit.rate_bound - 1e-3).abs() < 1e-15,
        "nothing is known of the rate"
    );
}

#[test]
fn the_likeliest_offset_is_robust_against_a_single_message() {
    // The first message to the peer and the last are 50 us late, as those of a connection are.
    let late = |at: i64| if at == 0 || at == 99 { 50_000 } else { 0 };
    let samples = Exchanges {
        at_most: (0..100)
            .map(|n| limit(n * SECOND / 10, 1_000_000 + late(n)))
            .collect(),
        at_least: (0..100)
            .map(|n| limit(n * SECOND / 10, -1_000_000))
            .collect(),
    };
    let course = clock_course(samples.limits(), rigid()).unwrap();
    for (at, is_end) in [(0, true), (99 * SECOND / 10, true), (5 * SECOND, false)] {
        let (fit, likeliest) = (course.at(at).unwrap(), course.likeliest_at(at).unwrap());
        assert_eq!(fit.offset.abs() > 10_000, is_end, "{at}: {fit:?}");
        assert!(likeliest.offset.abs() <= 1, "{at}: {likeliest:?}");
        let aside = (fit.offset - likeliest.offset).abs();
        assert_eq!(likeliest.bound, fit.bound + aside);
    }
}

#[test]
fn one_exchange_has_its_likeliest_offset_at_the_midpoint_without_drift() {
    let samples = Exchanges {
        at_most: vec![limit(0, 1_030)],
        at_least: vec![limit(100_000_000, 990)],
    };
    let course = clock_course(samples.limits(), rigid()).unwrap();
    let likeliest = course.likeliest_at(0).unwrap();
    assert_eq!(likeliest.offset, 1_010);
    assert!(likeliest.rate.abs() < 1e-15, "{likeliest:?}");
}

#[test]
fn the_delay_of_messages_does_not_bias_the_likeliest_offset() {
    // 500 ppm fast, 10 ms each way: while one is under way the clocks part by 5 us.
    let truth = |at: i64| at / 2_000;
    let delay = 10_000_000;
    let sent = || (0..200).map(|n| n * SECOND / 20);
    let shows = |at: i64, read: i64, offset: i64| OffsetLimit {
        at,
        within: 2 * delay,
        offset: truth(read) + offset,
    };
    let samples = Exchanges {
        at_most: sent().map(|at| shows(at, at + delay, delay)).collect(),
        at_least: sent().map(|at| shows(at, at + delay, -delay)).collect(),
    };
    let course = clock_course(samples.limits(), rigid()).unwrap();
    for at in [0, 3 * SECOND, 9 * SECOND] {
        let likeliest = course.likeliest_at(at).unwrap();
        assert!((likeliest.offset - truth(at)).abs() <= 1, "{likeliest:?}");
    }
}

#[test]
fn clock_offsets_of_years_are_exact_to_the_nanosecond() {
    let years = 1_795_381_460_775_046_037;
    let samples = Exchanges {
        at_most: vec![limit(-SECOND, years + 7), limit(SECOND, years + 7)],
        at_least: vec![limit(-SECOND, years + 7), limit(SECOND, years + 7)],
    };
    let fit = clock_fit(samples.limits(), 0, rigid()).unwrap().unwrap();
    assert_eq!((fit.offset, fit.bound), (years + 7, 1));
}

#[test]
fn limits_of_one_direction_give_no_offset() {
    let samples = Exchanges {
        at_most: vec![limit(0, 1)],
        at_least: Vec::new(),
    };
    assert!(matches!(
        clock_fit(samples.limits(), 0, rigid()),
        Err(StatsError::TooFew { .. })
    ));
    let far = Exchanges {
        at_most: vec![limit(0, 1)],
        at_least: vec![limit(300 * SECOND, 0)],
    };
    assert!(
        clock_fit(far.limits(), 0, rigid()).is_err(),
        "beyond the horizon"
    );
}

#[test]
fn a_step_is_found_between_the_messages_around_it_and_the_offset_holds_on_both_sides() {
    let peer = Peer {
        offset: -5 * SECOND,
        rate: 40e-6,
        set: vec![(70 * SECOND + 500, -3 * SECOND)],
    };
    let samples = peer.exchanges(1_500, SECOND / 10, [100_000, 300_000], 7);
    let course = clock_course(samples.limits(), ClockNature::default()).unwrap();
    let steps = course.steps();
    assert_eq!(steps.len(), 1, "{steps:?}");
    let step = steps[0];
    assert!((step.by + 3 * SECOND).abs() <= step.bound, "{step:?}");
    assert!(step.bound < 1_000_000, "{step:?}");
    assert!(step.after <= 70 * SECOND + 500 && 70 * SECOND + 500 <= step.before);
    assert!(step.before - step.after <= SECOND / 5, "{step:?}");
    for at in (0..150).map(|s| s * SECOND) {
        let Some(fit) = course.at(at) else { continue };
        let off = fit.offset - peer.offset_at(at);
        assert!(off.abs() <= fit.bound, "{at}: {fit:?} is {off} off");
    }
    assert!(course.at(60 * SECOND).is_some() && course.at(80 * SECOND).is_some());
}

#[test]
fn two_steps_five_seconds_apart_are_two() {
    let set = vec![(60 * SECOND, 40_000_000), (65 * SECOND, -30_000_000)];
    let peer = Peer {
        offset: 0,
        rate: -20e-6,
        set: set.clone(),
    };
    let samples = peer.exchanges(2_000, SECOND / 10, [2_000_000, 2_000_000], 11);
    let course = clock_course(samples.limits(), ClockNature::default()).unwrap();
    let steps = course.steps();
    assert_eq!(steps.len(), 2, "{steps:?}");
    for (step, (set_at, by)) in steps.iter().zip(set) {
        assert!(step.after <= set_at && set_at <= step.before, "{step:?}");
        assert!((step.by - by).abs() <= step.bound, "{step:?}");
    }
}

#[test]
fn the_bound_holds_for_the_maximum_variation_of_the_rate() {
    // 2 minutes from one side to the other, as a room's heating would do it.
    let wander = ClockNature::default().wander;
    let swing = 120.0 * nanos_to_f64(SECOND);
    let truth = |at: i64| {
        let turn = nanos_to_f64(at) / swing;
        round_to_i64(
            wander * swing / std::f64::consts::PI * (turn * std::f64::consts::PI).sin() / 2.0,
        )
    };
    let mut samples = Exchanges::default();
    for at in (0..2_400).map(|n| n * SECOND / 4) {
        samples.at_most.push(limit(at, truth(at) + 10_000));
        samples.at_least.push(limit(at, truth(at) - 10_000));
    }
    let course = clock_course(samples.limits(), ClockNature::default()).unwrap();
    assert_eq!(course.steps(), []);
    for at in (0..600).map(|s| s * SECOND) {
        let fit = course.at(at).unwrap();
        assert!((fit.offset - truth(at)).abs() <= fit.bound, "{at}: {fit:?}");
        assert!(fit.bound <= 12_000, "{fit:?}");
    }
}

#[test]
fn a_horizon_beyond_nanosecond_precision_of_floats_is_refused() {
    let samples = Exchanges {
        at_most: vec![limit(-10 * SECOND, 100), limit(10 * SECOND, 120)],
        at_least: vec![limit(-10 * SECOND, 0), limit(10 * SECOND, 0)],
    };
    let course = |horizon| {
        let nature = ClockNature { horizon, ..rigid() };
        clock_course(samples.limits(), nature).map(|course| course.at(SECOND).is_some())
    };
    for horizon in [i64::MIN, 0, MAX_HORIZON_NS + 1, i64::MAX / 2 + 1, i64::MAX] {
        let refused = matches!(course(horizon), Err(StatsError::OutOfRange { .. }));
        assert!(refused, "{horizon}");
    }
    assert_eq!(
        (course(MAX_HORIZON_NS), course(20 * SECOND)),
        (Ok(true), Ok(true))
    );
}

#[test]
fn a_clock_that_was_never_set_has_no_step() {
    let peer = Peer {
        offset: 9 * SECOND,
        rate: -80e-6,
        set: Vec::new(),
    };
    let samples = peer.exchanges(6_000, SECOND / 10, [50_000, 50_000], 3);
    let course = clock_course(samples.limits(), ClockNature::default()).unwrap();
    assert_eq!(course.steps(), []);
}

/// What is possible at the moment by trying the lines through all pairs of limits.
fn by_all_pairs(samples: &Exchanges, steepest: f64) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> = (samples.at_most.iter().chain(&samples.at_least))
        .map(|l| (nanos_to_f64(l.at), nanos_to_f64(l.offset)))
        .collect();
    let mut rates = vec![-steepest, steepest];
    for &(x, y) in &points {
        let others = points.iter().filter(|(other, _)| *other != x);
        rates.extend(others.map(|(a, b)| (b - y) / (a - x)));
    }
    let mut possible: Option<(f64, f64)> = None;
    for rate in rates.into_iter().filter(|rate| rate.abs() <= steepest) {
        let through = |l: &OffsetLimit| nanos_to_f64(l.offset) - rate * nanos_to_f64(l.at);
        let (highs, lows) = (samples.at_most.iter(), samples.at_least.iter());
        let high = highs.map(through).fold(f64::INFINITY, f64::min);
        let low = lows.map(through).fold(f64::NEG_INFINITY, f64::max);
        if low <= high + 1e-6 {
            let (a, b) = possible.unwrap_or((f64::INFINITY, f64::NEG_INFINITY));
            possible = Some((a.min(low), b.max(high)));
        }
    }
    possible
}

proptest! {
    /// The hulls give what trying every pair of limits gives.
    #[test]
    fn the_error_bound_covers_all_possible_lines(
        above in prop::collection::vec((-50..50_i64, -100..200_i64), 1..12),
        below in prop::collection::vec((-50..50_i64, -200..100_i64), 1..12),
    ) {
        let sorted = |mut of: Vec<(i64, i64)>| {
            of.sort_unstable();
            of.into_iter().map(|(at, offset)| limit(at, offset)).collect::<Vec<_>>()
        };
        let samples = Exchanges { at_most: sorted(above), at_least: sorted(below) };
        let nature = ClockNature { wander: 0.0, steepest: 0.9, horizon: 1_000 };
        let fit = clock_fit(samples.limits(), 0, nature).unwrap();
        match (fit, by_all_pairs(&samples, 0.9)) {
            (Some(fit), Some((low, high))) => {
                let bound = (high - low) / 2.0;
                prop_assert!((nanos_to_f64(fit.bound) - bound - 1.5).abs() <= 1.5, "{fit:?} {low} {high}");
                prop_assert!((nanos_to_f64(fit.offset) - f64::midpoint(low, high)).abs() <= 1.0);
            }
            (None, None) => {}
            // Where one line alone is possible, rounding decides.
            (None, Some((low, high))) => prop_assert!(high - low < 1e-3, "{low} {high}"),
            (fit, None) => prop_assert!(false, "{fit:?} is impossible"),
        }
    }

    /// Whatever the delays: the truth lies within the bound, and the bound within each round trip.
    #[test]
    fn the_true_offset_lies_within_the_bound(
        offset in -10 * SECOND..10 * SECOND,
        rate in -2e-4..2e-4,
        min_delays in prop::array::uniform2(0..5_000_000_i64),
        seed in any::<u64>(),
        at in 0..60_i64,
    ) {
        let peer = Peer { offset, rate, set: Vec::new() };
        let samples = peer.exchanges(120, SECOND / 2, min_delays, seed);
        let fit = clock_fit(samples.limits(), at * SECOND, ClockNature::default()).unwrap().unwrap();
        let off = fit.offset - peer.offset_at(at * SECOND);
        prop_assert!(off.abs() <= fit.bound, "{fit:?} is {off} off");
        prop_assert!((fit.rate - rate).abs() <= fit.rate_bound + 1e-12, "{fit:?}");
        let half = min_delays[0].midpoint(min_delays[1]);
        prop_assert!(fit.bound >= half, "no more than the delays allow");
        // Each exchange alone shows as much, and the rate is known well enough to extrapolate.
        let by_one = samples.at_most.iter().map(|limit| {
            let rate_error = fit.rate_bound + ClockNature::default().wander;
            let carried = rate_error * nanos_to_f64((limit.at - at * SECOND).abs());
            limit.within / 2 + round_to_i64(carried)
        });
        let by_best = by_one.min().unwrap();
        prop_assert!(fit.bound <= by_best + half / 500 + 1_000, "{fit:?} for {by_best}");
        let likeliest = samples.limits().likeliest(fit, ClockNature::default());
        let off = likeliest.offset - peer.offset_at(at * SECOND);
        prop_assert!(off.abs() <= likeliest.bound, "{likeliest:?} is {off} off");
        prop_assert!((likeliest.rate - rate).abs() <= likeliest.rate_bound + 1e-12);
    }
}
