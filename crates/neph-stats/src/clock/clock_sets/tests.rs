use super::super::tests::{Exchanges, Peer, SECOND};
use super::super::{ClockNature, clock_course};
use super::*;
use crate::random::Random;

const MICRO: i64 = 1_000;

fn steps(simulated: &Exchanges) -> Vec<super::super::ClockStep> {
    let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
    course.steps()
}

/// Whether the truth lies in every reported bound, and how often one is reported.
fn contains(peer: &Peer, simulated: &Exchanges, seconds: i64) -> usize {
    let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
    let fits = (0..seconds * 10).filter_map(|tenth| course.at(tenth * SECOND / 10));
    let found_fits: Vec<_> = fits.collect();
    for fit in &found_fits {
        let off = fit.offset - peer.offset_at(fit.at);
        assert!(off.abs() <= fit.bound, "{fit:?} is {off} off");
    }
    found_fits.len()
}

#[test]
fn a_clock_step_below_the_rtt_is_found_and_all_bounds_hold() {
    // The delays' spread is 50 us, the round trip 20 ms; the ways alike, and as unlike as can be.
    for (min_delay, by) in [
        ([10, 10], 15),
        ([10, 10], 10),
        ([10, 10], -5),
        ([1, 19], 2),
        ([19, 1], -18),
    ] {
        let (step_time, by) = (31 * SECOND + 20_000_000, by * MILLI);
        for interval in [SECOND / 20, SECOND / 2] {
            let peer = Peer {
                offset: -5 * SECOND,
                rate: 40e-6,
                set: vec![(step_time, by)],
            };
            let simulated = peer.exchanges(
                80 * SECOND / interval,
                interval,
                min_delay.map(|m| m * MILLI),
                3,
            );
            let steps = steps(&simulated);
            let [step] = steps[..] else {
                panic!("{min_delay:?} {by} {interval}: {steps:?}")
            };
            assert!(
                step.after <= step_time && step_time <= step.before,
                "{step:?}"
            );
            assert!(
                step.before - step.after <= 3 * interval + SECOND / 5,
                "{step:?}"
            );
            assert!((step.by - by).abs() <= step.bound, "{step:?}");
            assert!(
                (step.by - by).abs() <= 200 * MICRO,
                "about what both moved by: {step:?}"
            );
            assert!(contains(&peer, &simulated, 80) > 780);
        }
    }
}

#[test]
fn a_path_change_in_one_or_both_directions_is_no_clock_step() {
    for moved in [[5, 0], [0, 5], [5, 5], [-3, 0], [-3, -3]] {
        let peer = Peer {
            offset: 7,
            rate: -20e-6,
            set: Vec::new(),
        };
        let mut simulated = peer.exchanges(600, SECOND / 10, [10 * MILLI, 10 * MILLI], 9);
        for limit in &mut simulated.at_most[300..] {
            limit.offset += moved[0] * MILLI;
        }
        for limit in &mut simulated.at_least[300..] {
            limit.offset -= moved[1] * MILLI;
        }
        assert_eq!(steps(&simulated), [], "{moved:?}");
        assert_eq!(contains(&peer, &simulated, 60), 600);
    }
}

#[test]
fn varying_delays_are_no_clock_steps() {
    // Each of 12 kinds twice for 50 minutes. If both directions change their paths ten times as often, they
    // accidentally move equally and at once in 3 of 300 minutes.
    let mut random = Random::new(5);
    for turn in 0..24 {
        let scale = [100_000.0, 1_000_000.0, 5_000_000.0][turn % 3];
        let mut queues = [0.0_f64; 2];
        let mut simulated = Exchanges::default();
        for at in (0..30_000).map(|n| n * SECOND / 10) {
            let mut delay = |queue: &mut f64| {
                let more = match turn / 3 % 4 {
                    // Each for itself; a random walk; each 50 s another path; heavy tails.
                    0 => scale * -(1.0 - random.unit()).ln(),
                    1 => {
                        *queue = (*queue + scale * (random.unit() - 0.5)).clamp(0.0, 10.0 * scale);
                        *queue
                    }
                    2 => {
                        if random.unit() < 0.002 {
                            *queue = scale * 4.0 * random.unit();
                        }
                        *queue + scale / 50.0 * random.unit()
                    }
                    _ => scale * ((1.0 - random.unit()).powf(-0.7) - 1.0).min(1e3),
                };
                1_000_000 + crate::casts::round_to_i64(more)
            };
            let [there, back] = &mut queues;
            let (there, back) = (delay(there), delay(back));
            let shows = |offset| OffsetLimit {
                at,
                within: there + back,
                offset,
            };
            simulated.at_most.push(shows(there));
            simulated.at_least.push(shows(-back));
        }
        let sets = find_clock_sets(simulated.limits());
        assert_eq!(sets, [], "kind {}, {scale}", turn / 3 % 4);
    }
}

#[test]
fn slewing_is_detected_at_its_start_or_end_or_stays_within_the_bound() {
    // 500 ppm for four seconds: 2 ms, in a room of 20.
    let peer = |at: i64| (at - 30 * SECOND).clamp(0, 4 * SECOND) / 2_000;
    let mut simulated = Exchanges::default();
    let mut random = Random::new(1);
    for at in (0..1_200).map(|n| n * SECOND / 20) {
        let mut delay =
            || 10 * MILLI + crate::casts::round_to_i64(-20_000.0 * (1.0 - random.unit()).ln());
        let (there, back) = (delay(), delay());
        let shows = |offset| OffsetLimit {
            at,
            within: there + back,
            offset: peer(at + there) + offset,
        };
        simulated.at_most.push(shows(there));
        simulated.at_least.push(shows(-back));
    }
    let course = clock_course(simulated.limits(), ClockNature::default()).unwrap();
    for at in (0..600).map(|n| n * SECOND / 10) {
        let Some(fit) = course.at(at) else { continue };
        assert!((fit.offset - peer(at)).abs() <= fit.bound, "{fit:?}");
    }
}
