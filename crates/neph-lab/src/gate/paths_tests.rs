//! Several paths, and changes in time, in virtual time.

use neph_model::BitRate;

use super::*;

fn path(weight: u32, delay_ms: i64) -> Path {
    let wire = Wire {
        delay: Span::from_millis(delay_ms),
        ..Wire::default()
    };
    Path {
        name: format!("{delay_ms}ms"),
        weight,
        only: None,
        wire,
    }
}

fn flow_with_hash(hash: u64) -> Flow {
    let protocol = None;
    Flow { hash, protocol }
}

fn paths(paths: &[(u32, i64)]) -> Shape {
    Shape {
        paths: paths
            .iter()
            .map(|(weight, ms)| path(*weight, *ms))
            .collect(),
        ..Shape::default()
    }
}

fn delay_override(millis: i64) -> PartialShape {
    let wire = PartialWire {
        delay: Some(Span::from_millis(millis)),
        ..PartialWire::default()
    };
    PartialShape {
        wire,
        ..PartialShape::default()
    }
}

fn change(at_ms: i64, action: ChangeAction) -> Change {
    Change {
        direction: None,
        at: Span::from_millis(at_ms),
        until: None,
        every: None,
        action,
    }
}

const fn moment(millis: i64) -> Moment {
    Moment(millis * 1_000_000)
}

/// How long a packet of `flow` takes that comes at `millis`, and by which path.
fn admit_packet(gate: &mut Gate, millis: i64, flow: u64) -> (i64, u8) {
    let packet = Arrival {
        at: moment(millis),
        length: 100,
        flow: Some(flow_with_hash(flow)),
    };
    match gate.admit(packet) {
        Some(PacketOutcome::Forwarded(departure)) => {
            let delay = departure.due - packet.at;
            (delay.nanos() / 1_000_000, departure.path)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flow_keeps_its_path_and_paths_do_not_delay_each_other() {
    let mut gate = Gate::new(paths(&[(1, 8), (1, 16)]), 3);
    let first: Vec<(i64, u8)> = (0..100)
        .map(|flow| admit_packet(&mut gate, 0, flow))
        .collect();
    let slow = first.iter().filter(|(_, path)| *path == 1).count();
    assert!((25..75).contains(&slow), "{slow}");
    for (flow, (delay, path)) in (0..100).zip(&first) {
        assert_eq!(*delay, if *path == 0 { 8 } else { 16 });
        assert_eq!(admit_packet(&mut gate, 1, flow), (*delay, *path));
    }
}

#[test]
fn a_scheduled_reshuffle_moves_flows_and_a_cue_restores_their_paths() {
    let shuffle = Change {
        every: Some(Span::from_millis(10)),
        ..change(10, ChangeAction::Reshuffle)
    };
    let mut gate = Gate::with_schedule(paths(&[(1, 8), (1, 16)]), vec![(0, shuffle)], 3);
    gate.apply_cue(moment(0));
    let paths_at = |gate: &mut Gate, millis| -> Vec<u8> {
        (0..400)
            .map(|flow| admit_packet(gate, millis, flow).1)
            .collect()
    };
    let [
        initial_paths,
        unchanged_paths,
        reshuffled_once,
        reshuffled_twice,
    ] = [0, 9, 10, 25].map(|ms| paths_at(&mut gate, ms));
    assert_eq!(initial_paths, unchanged_paths);
    for (paths_before, paths_after) in [
        (&initial_paths, &reshuffled_once),
        (&reshuffled_once, &reshuffled_twice),
        (&initial_paths, &reshuffled_twice),
    ] {
        let moved = paths_before
            .iter()
            .zip(paths_after)
            .filter(|(a, b)| a != b)
            .count();
        assert!((150..250).contains(&moved), "half of them: {moved}");
    }
    gate.apply_cue(moment(1_000));
    assert_eq!(paths_at(&mut gate, 1_000), initial_paths);
    assert_eq!(paths_at(&mut gate, 1_010), reshuffled_once);
}

#[test]
fn a_packet_in_flight_keeps_its_delay_and_can_be_reordered() {
    let mut gate = Gate::with_schedule(
        paths(&[(1, 100), (0, 10)]),
        vec![
            (
                0,
                change(
                    50,
                    ChangeAction::OverridePath(0, Some(0), PartialWire::default()),
                ),
            ),
            (
                1,
                change(
                    50,
                    ChangeAction::OverridePath(1, Some(1), PartialWire::default()),
                ),
            ),
        ],
        3,
    );
    gate.apply_cue(moment(0));
    assert_eq!(admit_packet(&mut gate, 49, 1), (100, 0));
    assert_eq!(
        admit_packet(&mut gate, 50, 1),
        (10, 1),
        "due long before the other"
    );
}

#[test]
fn a_shorter_delay_of_one_path_does_not_reorder() {
    let shorter = change(50, ChangeAction::Override(delay_override(10)));
    let mut shape = Shape::default();
    shape.wire.delay = Span::from_millis(100);
    let mut gate = Gate::with_schedule(shape, vec![(0, shorter)], 3);
    gate.apply_cue(moment(0));
    assert_eq!(admit_packet(&mut gate, 49, 1).0, 100);
    assert_eq!(
        admit_packet(&mut gate, 50, 1).0,
        99,
        "right behind the other"
    );
    assert_eq!(admit_packet(&mut gate, 200, 1).0, 10);
}

#[test]
fn an_override_of_a_link_applies_to_every_path() {
    let mut lossy = delay_override(30);
    lossy.wire.loss = Some(Loss::Random(Share::ALL));
    let changes = vec![
        (0, change(10, ChangeAction::Override(delay_override(30)))),
        (1, change(20, ChangeAction::Override(lossy))),
    ];
    let mut gate = Gate::with_schedule(paths(&[(1, 8), (1, 16)]), changes, 3);
    gate.apply_cue(moment(0));
    for flow in 0..20 {
        assert_eq!(admit_packet(&mut gate, 10, flow).0, 30);
    }
    let packet = Arrival {
        at: moment(20),
        length: 100,
        flow: Some(flow_with_hash(1)),
    };
    let outcome = gate.admit(packet);
    assert!(matches!(
        outcome,
        Some(PacketOutcome::Dropped(DropCause::Random, Some(_)))
    ));
    let numbers: Vec<u16> = std::iter::from_fn(|| gate.next_step())
        .map(|step| step.number)
        .collect();
    assert_eq!(numbers, [0, 1]);
}

#[test]
fn a_changed_rate_applies_to_packets_in_the_queue() {
    let slower = PartialShape {
        rate: Some(BitRate(800_000)),
        ..PartialShape::default()
    };
    let shape = Shape {
        rate: Some(BitRate(8_000_000)),
        ..Shape::default()
    };
    let mut gate = Gate::with_schedule(
        shape,
        vec![(0, change(2, ChangeAction::Override(slower)))],
        3,
    );
    gate.apply_cue(moment(0));
    let packet = Arrival {
        at: moment(0),
        length: 1_000,
        flow: None,
    };
    // 1 ms each: the third begins just as the rate falls to a tenth.
    let outcomes: Vec<Option<PacketOutcome>> = (0..4).map(|_| gate.admit(packet)).collect();
    assert!(outcomes[0].is_some() && outcomes[1..].iter().all(Option::is_none));
    assert_eq!(gate.next_deadline(), Some(moment(1)));
    gate.advance(moment(100));
    let due: Vec<i64> = std::iter::from_fn(|| gate.next_outcome())
        .map(|outcome| match outcome {
            PacketOutcome::Forwarded(departure) => departure.due.0 / 1_000_000,
            PacketOutcome::Dropped(..) => -1,
        })
        .collect();
    assert_eq!(due, [2, 12, 22]);
}

#[test]
fn an_idle_gate_schedules_its_next_change() {
    let mut gate = Gate::with_schedule(
        Shape::default(),
        vec![(7, change(5, ChangeAction::Override(delay_override(1))))],
        3,
    );
    assert_eq!(gate.next_deadline(), None, "before the cue");
    gate.apply_cue(moment(100));
    assert_eq!(gate.next_deadline(), Some(moment(105)));
    gate.advance(moment(105));
    let step = gate.next_step().expect("it came about");
    assert_eq!(
        (step.number, step.at, step.event),
        (7, moment(105), ScheduleEvent::Begins)
    );
    assert_eq!(gate.next_deadline(), None);
}
