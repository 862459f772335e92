use neph_stats::{OffsetLimit, OffsetLimits, clock_course};
use proptest::prelude::*;

use super::*;

const MILLI: i64 = 1_000_000;

fn fitted(fits: Vec<ClockFit>, hidden_steps: Vec<Option<i64>>) -> FittedOffsets {
    FittedOffsets {
        fits,
        hidden_steps,
        set_intervals: Vec::new(),
        steps: Vec::new(),
        conversion: SteadyTimeConversion::default(),
        drift: None,
        readings: ReadOffsets::default(),
        nature: ClockNature::default(),
    }
}

fn fit(at: i64, offset: i64, bound: i64, (rate, rate_bound): (f64, f64)) -> ClockFit {
    ClockFit {
        at,
        offset,
        bound,
        rate,
        rate_bound,
        n: 2,
    }
}

proptest! {
    /// Two fits that are as wrong as they may be, and a step between them: the truth lies within the bound.
    #[test]
    fn the_error_bound_between_two_fits_includes_a_hidden_step(
        seconds in 1..100_i64,
        (step_permille, by) in (0..1_000_i64, -30 * MILLI..30 * MILLI),
        (rate, wander) in (-1e-4..1e-4, -1e-6..1e-6),
        bounds in prop::array::uniform2((MILLI / 10..20 * MILLI, -1.0..1.0, 1e-7..4e-4, -1.0..1.0)),
        is_known: bool,
    ) {
        let duration = seconds * SECOND_NANOS;
        let step_at = duration / 1_000 * step_permille;
        let truth = |at: i64| {
            let wander_offset = scaled(wander, (at - duration / 2).abs());
            scaled(rate, at) + wander_offset + if at > step_at { by } else { 0 }
        };
        let [before, after] = [(0, bounds[0]), (duration, bounds[1])].map(|(at, bounds_of_fit)| {
            let (bound, error_share, rate_bound, rate_error_share) = bounds_of_fit;
            let offset = truth(at) + scaled(error_share, bound - 1);
            fit(at, offset, bound, (rate + rate_error_share * rate_bound, rate_bound))
        });
        let hidden_step = is_known.then_some(by.abs());
        let fitted = fitted(vec![before, after], vec![hidden_step]);
        for at in (0..=50).map(|part| duration / 50 * part) {
            let offset = fitted.at(at).unwrap();
            let error = (offset.value().nanos() - truth(at)).abs();
            prop_assert!(error <= offset.bound().nanos(), "{at}: {offset:?} is {error} off");
        }
    }
}

/// 40 ms of round trip, two a second; queues of 30 to 50 ms stand for 8 of 12 s in one or both directions. The
/// clock is set after 327 s.
fn recorded(by: i64, queued: [bool; 2]) -> [Vec<OffsetLimit>; 2] {
    let mut recorded = [Vec::new(), Vec::new()];
    for index in 0..1_300 {
        let at = index * SECOND_NANOS / 2;
        let is_queued = (at / SECOND_NANOS + 1) % 12 < 8;
        // Something between 0 and 1 that never repeats.
        let scatter = |factor: i64| (index * factor) % 997 * MILLI / 997;
        let [forward, reverse] = [(0, 611), (1, 389)].map(|(side, factor): (usize, i64)| {
            let queue = 30 * MILLI + 20 * scatter(factor + 118);
            20 * MILLI + scatter(factor) / 10 + i64::from(queued[side] && is_queued) * queue
        });
        let truth = if at + forward >= 327 * SECOND_NANOS {
            by
        } else {
            0
        };
        for (limits, offset) in recorded.iter_mut().zip([truth + forward, truth - reverse]) {
            let within = forward + reverse;
            limits.push(OffsetLimit { at, within, offset });
        }
    }
    recorded
}

/// The largest bound of a capture of a day, which has a fit each 43 s. The truth lies within each.
fn widest(by: i64, queued: [bool; 2]) -> i64 {
    let [at_most, at_least] = recorded(by, queued);
    let limits = OffsetLimits {
        at_most: &at_most,
        at_least: &at_least,
    };
    let nature = ClockNature::default();
    let course = clock_course(limits, nature).unwrap();
    assert_eq!(course.steps(), [], "{by} {queued:?}");
    let moments = (0..16).map(|index| index * 43 * SECOND_NANOS);
    let fits: Vec<ClockFit> = moments.filter_map(|at| course.likeliest_at(at)).collect();
    let hidden_steps = find_hidden_steps(&course, &fits, nature);
    let fitted = fitted(fits, hidden_steps);
    let mut widest = 0;
    for at in (0..640 * 4).map(|quarter| quarter * SECOND_NANOS / 4) {
        let offset = fitted.at(at).unwrap();
        let truth = if at >= 327 * SECOND_NANOS { by } else { 0 };
        let error = (offset.value().nanos() - truth).abs();
        let bound = offset.bound().nanos();
        assert!(error <= bound, "{by} {queued:?}: {error} at {at}, {bound}");
        widest = widest.max(bound);
    }
    widest
}

#[test]
fn a_long_capture_has_tight_bounds_without_a_step_and_valid_bounds_with_one() {
    for queued in [[false, false], [true, false], [false, true]] {
        let widest = widest(0, queued);
        assert!(widest < 25 * MILLI, "{queued:?} {widest}");
    }
    for queued in [[true, false], [false, true], [true, true]] {
        for by in [-38, -25, 25, 38] {
            let widest = widest(by * MILLI, queued);
            assert!(widest < 90 * MILLI, "{by} {queued:?} {widest}");
        }
    }
}
