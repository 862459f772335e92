mod limits;

use super::*;
use crate::direction::Direction;
use crate::world::{World, message};
use neph_model::Span;

const SECOND: i64 = 1_000_000_000;

/// Numbers of true changes, of reported changes, and of reported changes that match a true one in slot, time
/// and both latencies.
fn count_changes(world: &World) -> (usize, usize, usize) {
    let (digest, truth) = world.digest();
    let reported = digest.view().changes;
    let mut true_count = 0;
    let mut hits = 0;
    for (slot, steps) in truth.iter().enumerate() {
        for pair in steps.windows(2) {
            true_count += 1;
            let is_match = |change: &&PathChange| {
                change.slot.0 as usize == slot
                    && (change.at.nanos() - pair[1].0).abs() <= 2 * world.interval.nanos()
                    && is_near(change.before, world.paths[pair[0].1])
                    && is_near(change.after, world.paths[pair[1].1])
            };
            hits += reported.iter().filter(is_match).count();
        }
    }
    (true_count, reported.len(), hits)
}

fn is_near(base: Span, micros: i64) -> bool {
    (base - Span::from_micros(micros)).abs() < Span::from_micros(100)
}

#[test]
fn almost_all_true_changes_and_no_false_ones_are_reported() {
    for seed in 1..4 {
        let world = World {
            seed,
            ..World::default()
        };
        let (true_count, reported_count, hits) = count_changes(&world);
        assert!(true_count > 150, "{true_count}");
        assert_eq!(reported_count, hits, "no false change");
        assert!(hits * 100 >= true_count * 99, "{hits} of {true_count}");
    }
}

/// All round trips grow by 3 ms in 200 s, six times what two paths differ by.
#[test]
fn a_drift_of_all_flows_alters_neither_classes_nor_changes() {
    let world = World {
        seconds: 200,
        drift: 15_000,
        ..World::default()
    };
    let (digest, truth) = world.digest();
    let view = digest.view();
    let true_count: usize = truth.iter().map(|steps| steps.len() - 1).sum();
    let reported_count = view.changes.len();
    assert!(
        reported_count * 100 >= true_count * 99 && reported_count <= true_count,
        "{reported_count} of {true_count}"
    );
    let paths: Vec<i64> = view.classes[0]
        .iter()
        .map(|class| class.base.nanos() / 100_000)
        .collect();
    let expected: Vec<i64> = world.paths.iter().map(|path| path / 100).collect();
    assert_eq!(paths.len(), expected.len(), "{paths:?}");
    for (path, expected) in paths.iter().zip(&expected) {
        assert!((path - expected).abs() <= 3, "{paths:?}");
    }
    let pair = &view.pairs[0];
    assert!(pair.unexplained.secs_f64() < 0.01 * pair.watched.secs_f64());
    let max_drift_millis = pair.drift.highest.millis_f64();
    assert!((2.5..3.2).contains(&max_drift_millis), "{:?}", pair.drift);
    // Each path takes half of its round trip either way.
    let has_both_directions =
        |change: &&PathChange| change.evidence.direction == Some(Direction::Both);
    let both_count = view.changes.iter().filter(has_both_directions).count();
    assert!(
        both_count * 10 >= reported_count * 9,
        "{both_count} of {reported_count}"
    );
}

#[test]
fn classes_and_shares_match_the_simulated_network() {
    let world = World {
        weights: vec![0.4, 0.3, 0.2, 0.1],
        slots: 256,
        ..World::default()
    };
    let (digest, truth) = world.digest();
    let view = digest.view();
    let classes = &view.classes[0];
    assert_eq!(classes.len(), 4, "{classes:?}");
    let end = world.seconds * SECOND;
    for (index, class) in classes.iter().enumerate() {
        assert!(is_near(class.base, world.paths[index]), "{class:?}");
        let mut time = 0;
        for steps in &truth {
            let ends = steps.iter().skip(1).map(|step| step.0).chain([end]);
            let stays = steps
                .iter()
                .zip(ends)
                .filter(|((_, path), _)| *path == index);
            time += stays.map(|((from, _), until)| until - from).sum::<i64>();
        }
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let share = time as f64 / (end * i64::from(world.slots)) as f64;
        assert!(
            (class.share - share).abs() < 0.005,
            "{} and {share}",
            class.share
        );
        let flows_at_end = truth
            .iter()
            .filter(|steps| steps.last().unwrap().1 == index)
            .count();
        assert_eq!(class.flows as usize, flows_at_end);
    }
    let inflation = view.pairs[0].inflation.unwrap();
    assert!(
        (inflation.ratio / (86.0 / 70.0) - 1.0).abs() < 0.01,
        "{inflation:?}"
    );
    let dip = view.pairs[0].bimodality.unwrap();
    assert!(
        dip.n == 256 && dip.p < 0.01,
        "four paths are no single group: {dip:?}"
    );
    let left_count: u64 = classes.iter().map(|class| class.left).sum();
    let joined_count: u64 = classes.iter().map(|class| class.joined).sum();
    let changes = view.changes.len() as u64;
    assert_eq!((left_count, joined_count), (changes, changes));
}

#[test]
fn segments_are_contiguous() {
    let (digest, _) = World::default().digest();
    let view = digest.view();
    assert_eq!(view.flows.len(), 64);
    let mut changes = 0;
    for flow in &view.flows {
        for pair in flow.segments.windows(2) {
            assert_eq!(pair[0].until, pair[1].from);
            changes += 1;
        }
        assert!(flow.segments.iter().all(|segment| segment.class.is_some()));
    }
    assert_eq!(changes, view.changes.len());
    assert_eq!(view.tally.replies, 64 * 5 * 120);
    let bins = &view.latency_bins[0];
    assert_eq!((bins.len(), bins[0].flows), (6, 64));
    let change_count: u32 = bins.iter().filter_map(|bin| bin.changes).sum();
    assert_eq!(change_count as usize, changes);
}

#[test]
fn a_quiet_network_has_flows_but_no_changes() {
    let world = World {
        reshuffle_seconds: 0,
        ..World::default()
    };
    let (mut digest, _) = world.digest();
    assert_eq!(digest.changes(), 0);
    assert_eq!(digest.events().count(), 0);
    let view = digest.view();
    assert_eq!(view.pairs[0].flows, 64);
    assert!(view.pairs[0].between.is_none() && view.pairs[0].leave_share.is_none());
    assert!(view.classes[0].iter().all(|class| class.left == 0));
}

#[test]
fn a_replaced_flow_starts_a_new_history_and_is_no_path_change() {
    let world = World {
        reshuffle_seconds: 0,
        ..World::default()
    };
    let mut fleet = world.fleet();
    fleet.lifetime = Some(Span::from_secs(10));
    let mut digest = Digest::new(&fleet, Settings::default()).unwrap();
    for second in 0..40 {
        for slot in 0..64 {
            // Each ten seconds every flow is another one, on the next path.
            let flow = second / 10;
            let base = 70_000_000 + (i64::from(slot) + flow) % 4 * 4_000_000;
            let mut message = message(
                slot,
                u32::try_from(second % 10).unwrap(),
                second * SECOND,
                base,
            );
            message.source_port += u16::try_from(flow * 100).unwrap();
            digest.push(&message);
        }
    }
    digest.finish();
    let view = digest.view();
    assert_eq!((view.flows.len(), view.changes.len()), (256, 0));
    assert!(view.flows.iter().all(|flow| flow.segments.len() == 1));
    assert_eq!(view.classes[0].len(), 4);
}

/// Rounded, the base latencies of one path would lie in heaps.
#[test]
fn flows_on_one_path_are_one_group_despite_jitter() {
    for (seed, jitter) in (1..).zip([10.0, 30.0, 100.0, 300.0]) {
        let world = World {
            slots: 512,
            seconds: 10,
            paths: vec![70_000],
            weights: vec![1.0],
            jitter,
            seed,
            ..World::default()
        };
        let dip = world.digest().0.view().pairs[0].bimodality.unwrap();
        assert!(dip.n == 512 && dip.p > 0.05, "{jitter} us: {dip:?}");
    }
    let two_paths = World {
        slots: 512,
        seconds: 10,
        paths: vec![70_000, 72_000],
        weights: vec![0.5; 2],
        jitter: 100.0,
        reshuffle_seconds: 0,
        ..World::default()
    };
    let dip = two_paths.digest().0.view().pairs[0].bimodality.unwrap();
    assert!(dip.n == 512 && dip.p < 0.05, "{dip:?}");
}

#[test]
fn a_silent_flow_stays_in_its_class_until_its_last_reply() {
    let world = World {
        dead_slot: Some((5, 60)),
        reshuffle_seconds: 0,
        ..World::default()
    };
    let view = world.digest().0.view();
    let until = |slot: usize| view.flows[slot].segments[0].until.nanos() / SECOND;
    assert_eq!((until(5), until(6)), (59, 119));
    let lasting_flows: u32 = view.classes[0].iter().map(|class| class.flows).sum();
    assert_eq!(lasting_flows, 63);
    assert_eq!((view.flows[5].last.lost, view.flows[6].last.lost), (63, 0));
    // And it is among the slowest in every bin: p99 of 64 lies between the slowest two.
    let bins = &view.latency_bins[0];
    assert!(bins[..3].iter().all(|bin| (bin.flows, bin.lost) == (64, 0)));
    assert!(bins[3..].iter().all(|bin| (bin.flows, bin.lost) == (64, 1)));
    let [.., p95, p99, _] = bins[5].latency;
    assert!(p95.took().is_some() && p99 == Latency::Lost, "{bins:?}");
}

#[test]
fn a_restarted_reflector_causes_no_reordering_or_loss() {
    let world = World {
        restart_second: Some(40),
        reshuffle_seconds: 0,
        ..World::default()
    };
    let view = world.digest().0.view();
    let tally = view.tally;
    assert_eq!((tally.reordered, tally.reordered_forward), (0, 0));
    assert_eq!((tally.lost, tally.replies), (0, 64 * 5 * 120));
    assert!(view.changes.is_empty());
    let mut dissector = crate::Dissector::new(&view, 4);
    world.messages(&world.truth(), |message| dissector.push(message));
    let is_reordered = |sample: &crate::DissectedSample| {
        let crate::DissectedOutcome::Reply {
            reordered: direction,
            ..
        } = sample.outcome
        else {
            panic!("{sample:?}");
        };
        direction.is_some()
    };
    for flow in dissector.finish() {
        assert!(
            !flow.samples.iter().any(is_reordered),
            "{:?}",
            flow.source_port
        );
    }
}

#[test]
fn messages_of_unknown_slots_are_skipped() {
    let mut digest = Digest::new(&World::default().fleet(), Settings::default()).unwrap();
    digest.push(&message(64, 0, 0, 1));
    assert_eq!(digest.tally().messages(), 0);
    assert!(digest.view().flows.is_empty());
}
