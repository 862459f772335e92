//! Clocks that do what no limit contradicts: their rate changes, or they are set by less than the round
//! trip.

use super::super::{ClockCourse, ClockNature, clock_course};
use super::{Exchanges, OffsetLimit, SECOND};
use crate::casts::{nanos_to_f64, round_to_i64};
use crate::random::Random;

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;

/// So many exchanges a second: where the peer's clock is, and how long a message takes at a moment forward and
/// back.
fn exchanges(
    (seconds, per_second): (i64, i64),
    truth: impl Fn(i64) -> i64,
    mut delays: impl FnMut(i64) -> [i64; 2],
) -> Exchanges {
    let mut simulated = Exchanges::default();
    for sent in (0..seconds * per_second).map(|count| count * SECOND / per_second) {
        let [there, back] = delays(sent);
        let arrived = sent + there;
        let shows = |offset| OffsetLimit {
            at: sent,
            within: there + back,
            offset: truth(arrived) + offset,
        };
        simulated.at_most.push(shows(there));
        simulated.at_least.push(shows(-back));
    }
    simulated
}

/// Something skewed in the mean.
fn jitter(random: &mut Random, mean: i64) -> i64 {
    round_to_i64(-nanos_to_f64(mean) * (1.0 - random.unit()).ln())
}

/// The largest bound over so many seconds, and how many of the moments asked have one: three in 2 s. The truth
/// lies within each.
fn widest(course: &ClockCourse<'_>, seconds: i64, truth: impl Fn(i64) -> i64) -> (i64, usize) {
    let tenths = (0..seconds * 10).step_by(7);
    let moments = tenths.map(|tenth| tenth * SECOND / 10);
    let (mut widest, mut count) = (0, 0);
    for fit in moments.filter_map(|moment| course.at(moment)) {
        let off = fit.offset - truth(fit.at);
        assert!(off.abs() <= fit.bound, "{fit:?} is {off} off");
        widest = widest.max(fit.bound);
        count += 1;
    }
    (widest, count)
}

#[test]
fn a_rate_change_of_2_ppm_stays_within_a_slightly_wider_bound() {
    // A lab: 100 us of round trip, nearly all of it forward, or nearly all of it back.
    let jumps = |at: i64| (at - 150 * SECOND).max(0) / 500_000;
    let swings = |at: i64| {
        let turn = std::f64::consts::TAU / 600.0;
        round_to_i64(1_000.0 / turn * (1.0 - (turn * nanos_to_f64(at) / 1e9).cos()))
    };
    let none = |_: i64| 0;
    for truth in [&jumps as &dyn Fn(i64) -> i64, &swings, &none] {
        for min_delays in [[5, 95], [95, 5]] {
            let mut random = Random::new(4);
            let simulated = exchanges((300, 10), truth, |_| {
                min_delays.map(|min_delay| min_delay * MICRO + jitter(&mut random, 5 * MICRO))
            });
            let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
            assert_eq!(course.steps(), []);
            let (widest, count) = widest(&course, 300, truth);
            assert_eq!(count, 429);
            assert!(widest < 60 * MICRO, "{widest}");
        }
    }
}

#[test]
fn the_reported_rate_is_the_mean_with_the_bound_of_a_constant_rate() {
    let truth = |at: i64| at / 100_000;
    let simulated = exchanges((300, 10), truth, |_| [50 * MICRO, 50 * MICRO]);
    let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
    let fit = course.at(150 * SECOND).unwrap();
    assert!((fit.rate - 1e-5).abs() < 1e-8, "{fit:?}");
    assert!(fit.rate_bound < 6e-7, "{fit:?}");
}

#[test]
fn after_a_rate_change_the_mean_rate_error_is_at_most_its_bound_plus_one_rtt() {
    // By the wander; 50 us of round trip are less than the offset bends by within the horizon.
    let horizon = ClockNature::default().horizon;
    for (wander, per_nano) in [(2e-6, 500_000), (20e-6, 50_000)] {
        let jumps = |at: i64| (at - 150 * SECOND).max(0) / per_nano;
        let mut random = Random::new(3);
        let simulated = exchanges((300, 5), jumps, |_| {
            [5, 45].map(|min_delay| min_delay * MICRO + jitter(&mut random, 3 * MICRO))
        });
        let nature = ClockNature {
            wander,
            ..ClockNature::default()
        };
        let course = clock_course(simulated.limits(), nature).unwrap();
        for at in (0..300).step_by(3).map(|second| second * SECOND) {
            let fit = course.at(at).unwrap();
            let (from, until) = ((at - horizon).max(0), (at + horizon).min(300 * SECOND));
            let mean = nanos_to_f64(jumps(until) - jumps(from)) / nanos_to_f64(until - from);
            let off = (fit.rate - mean).abs();
            let rtt_share = nanos_to_f64(50 * MICRO) / nanos_to_f64(until - from);
            assert!(off <= fit.rate_bound + rtt_share, "{fit:?} is {off} off");
        }
    }
}

/// 20 ms of round trip; queues of 9 to 15 ms stand for 8 of 12 s in those directions, also while the clock is
/// set after 100 s.
fn behind_a_queue(by: i64, queued: [bool; 2], seed: u64) -> Exchanges {
    let mut random = Random::new(seed);
    let set = |at: i64| if at >= 100 * SECOND { by } else { 0 };
    exchanges((250, 2), set, |at| {
        queued.map(|is_queued| {
            let stands = (at / SECOND + 1) % 12 < 8;
            let queue = 9 * MILLI + round_to_i64(6e6 * random.unit());
            10 * MILLI + i64::from(is_queued && stands) * queue + jitter(&mut random, 50 * MICRO)
        })
    })
}

#[test]
fn a_clock_step_hidden_by_a_queue_is_within_the_bound() {
    for queued in [[true, false], [false, true], [true, true]] {
        for by in [-14, -11, 12, 15] {
            let by = by * MILLI;
            let simulated = behind_a_queue(by, queued, 8);
            let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
            let truth = |at: i64| if at >= 100 * SECOND { by } else { 0 };
            let (widest, count) = widest(&course, 250, truth);
            assert!(count > 350, "{by} {count}");
            assert!(widest < 30 * MILLI, "{by} {queued:?} {widest}");
        }
    }
}

#[test]
fn a_queue_in_one_direction_without_a_step_does_not_widen_the_bound() {
    for queued in [[false, false], [true, false], [false, true]] {
        let simulated = behind_a_queue(0, queued, 9);
        let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
        assert_eq!(course.steps(), []);
        let (widest, count) = widest(&course, 250, |_| 0);
        assert_eq!(count, 358);
        assert!(widest < 12 * MILLI, "{queued:?} {widest}");
    }
}

#[test]
fn a_standing_queue_at_the_end_does_not_shift_the_offset() {
    // As ping asks: at the latest message, with nothing behind it.
    let mut random = Random::new(2);
    let simulated = exchanges(
        (70, 10),
        |_| 0,
        |at| {
            let queue =
                i64::from(at >= 60 * SECOND) * (45 * MILLI + jitter(&mut random, 2 * MILLI));
            [20 * MILLI + queue, 20 * MILLI]
                .map(|min_delay| min_delay + jitter(&mut random, 200 * MICRO))
        },
    );
    let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
    let fit = course.at(simulated.at_most.last().unwrap().at).unwrap();
    assert!(fit.offset.abs() < 5 * MILLI, "{fit:?}");
    assert!(fit.bound < 26 * MILLI, "{fit:?}");
}

#[test]
fn a_reordered_reply_adds_no_clock_step_and_keeps_the_bound() {
    // The peer reads the clock after it was set, long after the beginning of an exchange that was reordered.
    let by = 30 * MILLI;
    let set = |at: i64| if at >= 50 * SECOND { by } else { 0 };
    // Its reply shows that, or shows a little less than would contradict what was before.
    for (late, back) in [(2, 3), (12, 3), (25, 3), (2, 28), (12, 28)] {
        let mut random = Random::new(6);
        let simulated = exchanges((100, 10), set, |at| {
            let is_late = at == 50 * SECOND - late * SECOND / 10;
            let more = i64::from(is_late) * (late + 2) * SECOND / 10;
            let back = if is_late { back } else { 3 };
            [3 * MILLI + more, back * MILLI]
                .map(|min_delay| min_delay + jitter(&mut random, 50 * MICRO))
        });
        let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
        let steps = course.steps();
        let [step] = steps[..] else {
            panic!("{late}: {steps:?}")
        };
        assert!((step.by - by).abs() <= step.bound, "{late}: {step:?}");
        let (widest, count) = widest(&course, 100, set);
        assert!(count > 120, "{late}: {count}");
        assert!(widest < 5 * MILLI, "{late}: {widest}");
    }
}

#[test]
fn a_reply_received_after_a_step_does_not_change_its_size() {
    // The forward path takes 20 ms before the step and 1 ms behind it. The peer reads its clock as it was set,
    // for a message from before the step: that contradicts nothing, and alone leaves a wrong offset.
    let by = 30 * MILLI;
    let set = |at: i64| if at >= 50 * SECOND { by } else { 0 };
    let late = 50 * SECOND - 2 * SECOND / 10;
    let simulated = exchanges((100, 10), set, |at| match at {
        at if at == late => [SECOND / 2, 20 * MILLI],
        at if at < 50 * SECOND => [20 * MILLI, MILLI],
        _ => [MILLI, MILLI],
    });
    let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
    let steps = course.steps();
    let [step] = steps[..] else {
        panic!("{steps:?}")
    };
    assert!((step.by - by).abs() <= step.bound, "{step:?}");
}

#[test]
fn hidden_steps_are_bounded_only_if_one_direction_keeps_its_delay() {
    let hidden = |by, queued, from, until| {
        let simulated = behind_a_queue(by, queued, 9);
        let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
        course.hidden_step(from * SECOND, until * SECOND)
    };
    for queued in [[false, false], [true, false], [false, true]] {
        for (from, until) in [(0, 40), (80, 123), (200, 249)] {
            let step = hidden(0, queued, from, until);
            assert!(step.is_some_and(|step| step < MILLI), "{queued:?} {step:?}");
        }
        assert_eq!(hidden(0, queued, 10, 240), None, "longer than two horizons");
    }
    for queued in [[false, false], [true, false], [false, true], [true, true]] {
        for by in [-14, -4, 4, 12] {
            assert_eq!(hidden(by * MILLI, queued, 80, 123), None, "{by} {queued:?}");
        }
    }
}
