//! Clocks that are set so far that no window has both sides of it.

use super::super::{ClockCut, ClockNature, clock_course, clock_course_between};
use super::{Exchanges, Peer, SECOND};

/// Our clock is set by so much, 30 s after the beginning, which peers see the other way round.
fn with_local_clock_step(by: i64) -> Exchanges {
    let peer = Peer {
        offset: 0,
        rate: 0.0,
        set: Vec::new(),
    };
    let mut simulated = peer.exchanges(600, SECOND / 10, [5_000_000, 5_000_000], 7);
    for limits in [&mut simulated.at_most, &mut simulated.at_least] {
        for limit in limits.iter_mut().filter(|limit| limit.at >= 30 * SECOND) {
            limit.at += by;
            limit.offset -= by;
        }
    }
    simulated
}

#[test]
fn a_forward_step_of_the_local_clock_is_detected_at_any_size() {
    for seconds in [2, 30, 60, 90, 110, 3_600, 86_400 * 30, 86_400 * 365 * 50] {
        let simulated = with_local_clock_step(seconds * SECOND);
        let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
        let steps = course.steps();
        let [step] = steps[..] else {
            panic!("{seconds}: {steps:?}");
        };
        assert!(
            (step.by + seconds * SECOND).abs() <= step.bound,
            "{seconds}: {step:?}"
        );
        assert!(step.bound < SECOND, "{seconds}: {step:?}");
        for at in [29 * SECOND, (seconds + 31) * SECOND] {
            let fit = course.at(at).unwrap();
            let truth = if at < 30 * SECOND {
                0
            } else {
                -seconds * SECOND
            };
            assert!(
                (fit.offset - truth).abs() <= fit.bound,
                "{seconds}: {fit:?}"
            );
            assert!(fit.bound < 20_000_000, "{seconds}: {fit:?}");
        }
    }
}

#[test]
fn a_silence_alone_is_no_clock_step() {
    for hours in [1, 24] {
        let mut simulated = with_local_clock_step(0);
        for limits in [&mut simulated.at_most, &mut simulated.at_least] {
            let later = limits.iter_mut().filter(|limit| limit.at >= 30 * SECOND);
            later.for_each(|limit| limit.at += hours * 3_600 * SECOND);
        }
        let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
        assert_eq!(course.steps(), []);
    }
}

#[test]
fn no_limit_applies_across_a_known_clock_step() {
    // By less than the delays leave room for, and not for as long as looks take.
    let peer = Peer {
        offset: 0,
        rate: 0.0,
        set: vec![(29 * SECOND, 3_000_000)],
    };
    let simulated = peer.exchanges(300, SECOND / 10, [5_000_000, 5_000_000], 7);
    let cut = ClockCut {
        until: 29 * SECOND - SECOND / 10,
        from: 29 * SECOND,
    };
    let course = clock_course_between(simulated.limits(), &[cut], ClockNature::default()).unwrap();
    let step = course.steps()[0];
    assert_eq!(course.steps().len(), 1);
    assert!(
        step.after <= cut.until && step.before >= cut.from,
        "{step:?}"
    );
    for at in [10 * SECOND, 29 * SECOND + SECOND / 2] {
        let (fit, truth) = (course.at(at).unwrap(), peer.offset_at(at));
        assert!((fit.offset - truth).abs() < 1_500_000, "{fit:?}");
    }
}

/// By 40 ms after a minute, and back by 30 ms 5 s later. The first exchange behind the first step waits for
/// 7 s: that it is back behind the second step makes no one of the two.
#[test]
fn an_exchange_across_the_next_step_does_not_merge_two_steps() {
    let set = vec![(60 * SECOND, 40_000_000), (65 * SECOND, -30_000_000)];
    let peer = Peer {
        offset: 0,
        rate: 0.0,
        set: set.clone(),
    };
    let mut simulated = peer.exchanges(2_000, SECOND / 10, [2_000_000, 2_000_000], 11);
    for limits in [&mut simulated.at_most, &mut simulated.at_least] {
        let first = limits.iter_mut().find(|limit| limit.at >= 60 * SECOND);
        first.expect("one").within = 7 * SECOND;
    }
    let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
    let steps = course.steps();
    assert_eq!(steps.len(), 2, "{steps:?}");
    for (step, (_, by)) in steps.iter().zip(set) {
        assert!((step.by - by).abs() <= step.bound, "{step:?}");
    }
}
