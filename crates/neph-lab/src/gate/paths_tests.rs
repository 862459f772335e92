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

fn numbered(number: u64) -> Flow {
    let protocol = None;
    Flow { number, protocol }
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

fn delay(millis: i64) -> PartialShape {
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

const fn at(millis: i64) -> Moment {
    Moment(millis * 1_000_000)
}

/// How long a packet of `flow` takes that comes at `millis`, and by which path.
fn passes(gate: &mut Gate, millis: i64, flow: u64) -> (i64, u8) {
    let packet = Arrival {
        at: at(millis),
        length: 100,
        flow: Some(numbered(flow)),
    };
    match gate.admit(packet) {
        Some(PacketOutcome::Leaves(departure)) => {
            let delay = departure.due - packet.at;
            (delay.nanos() / 1_000_000, departure.path)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flow_keeps_its_path_and_paths_do_not_delay_each_other() {
    let mut gate = Gate::new(paths(&[(1, 8), (1, 16)]), 3);
    let first: Vec<(i64, u8)> = (0..100).map(|flow| passes(&mut gate, 0, flow)).collect();
    let slow = first.iter().filter(|(_, path)| *path == 1).count();
    assert!((25..75).contains(&slow), "{slow}");
    for (flow, (delay, path)) in (0..100).zip(&first) {
        assert_eq!(*delay, if *path == 0 { 8 } else { 16 });
        assert_eq!(passes(&mut gate, 1, flow), (*delay, *path));
    }
}

#[test]
fn a_reshuffle_at_its_moment_moves_flows_and_the_cue_brings_them_back() {
    let shuffle = Change {
        every: Some(Span::from_millis(10)),
        ..change(10, ChangeAction::Reshuffle)
    };
    let mut gate = Gate::scheduled(paths(&[(1, 8), (1, 16)]), vec![(0, shuffle)], 3);
    gate.cue(at(0));
    let taken = |gate: &mut Gate, millis| -> Vec<u8> {
        (0..400).map(|flow| passes(gate, millis, flow).1).collect()
    };
    let [first, still, second, third] = [0, 9, 10, 25].map(|ms| taken(&mut gate, ms));
    assert_eq!(first, still);
    for (first_run, other) in [(&first, &second), (&second, &third), (&first, &third)] {
        let moved = first_run.iter().zip(other).filter(|(a, b)| a != b).count();
        assert!((150..250).contains(&moved), "half of them: {moved}");
    }
    gate.cue(at(1_000));
    assert_eq!(taken(&mut gate, 1_000), first);
    assert_eq!(taken(&mut gate, 1_010), second);
}

#[test]
fn a_packet_in_flight_keeps_its_delay_and_can_be_reordered() {
    let mut gate = Gate::scheduled(
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
    gate.cue(at(0));
    assert_eq!(passes(&mut gate, 49, 1), (100, 0));
    assert_eq!(
        passes(&mut gate, 50, 1),
        (10, 1),
        "due long before the other"
    );
}

#[test]
fn on_one_path_a_shorter_delay_does_not_reorder() {
    let shorter = change(50, ChangeAction::Override(delay(10)));
    let mut shape = Shape::default();
    shape.wire.delay = Span::from_millis(100);
    let mut gate = Gate::scheduled(shape, vec![(0, shorter)], 3);
    gate.cue(at(0));
    assert_eq!(passes(&mut gate, 49, 1).0, 100);
    assert_eq!(passes(&mut gate, 50, 1).0, 99, "right behind the other");
    assert_eq!(passes(&mut gate, 200, 1).0, 10);
}

#[test]
fn an_override_for_all_reaches_every_path() {
    let mut lossy = delay(30);
    lossy.wire.loss = Some(Loss::Random(Share::ALL));
    let changes = vec![
        (0, change(10, ChangeAction::Override(delay(30)))),
        (1, change(20, ChangeAction::Override(lossy))),
    ];
    let mut gate = Gate::scheduled(paths(&[(1, 8), (1, 16)]), changes, 3);
    gate.cue(at(0));
    for flow in 0..20 {
        assert_eq!(passes(&mut gate, 10, flow).0, 30);
    }
    let packet = Arrival {
        at: at(20),
        length: 100,
        flow: Some(numbered(1)),
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
fn a_changed_rate_applies_to_packets_still_in_the_queue() {
    let slower = PartialShape {
        rate: Some(BitRate(800_000)),
        ..PartialShape::default()
    };
    let shape = Shape {
        rate: Some(BitRate(8_000_000)),
        ..Shape::default()
    };
    let mut gate = Gate::scheduled(
        shape,
        vec![(0, change(2, ChangeAction::Override(slower)))],
        3,
    );
    gate.cue(at(0));
    let packet = Arrival {
        at: at(0),
        length: 1_000,
        flow: None,
    };
    // 1 ms each: the third begins just as the rate falls to a tenth.
    let outcomes: Vec<Option<PacketOutcome>> = (0..4).map(|_| gate.admit(packet)).collect();
    assert!(outcomes[0].is_some() && outcomes[1..].iter().all(Option::is_none));
    assert_eq!(gate.next_turn(), Some(at(1)));
    gate.advance(at(100));
    let due: Vec<i64> = std::iter::from_fn(|| gate.next_outcome())
        .map(|outcome| match outcome {
            PacketOutcome::Leaves(departure) => departure.due.0 / 1_000_000,
            PacketOutcome::Dropped(..) => -1,
        })
        .collect();
    assert_eq!(due, [2, 12, 22]);
}

#[test]
fn an_idle_gate_schedules_its_next_change() {
    let mut gate = Gate::scheduled(
        Shape::default(),
        vec![(7, change(5, ChangeAction::Override(delay(1))))],
        3,
    );
    assert_eq!(gate.next_turn(), None, "before the cue");
    gate.cue(at(100));
    assert_eq!(gate.next_turn(), Some(at(105)));
    gate.advance(at(105));
    let step = gate.next_step().expect("it came about");
    assert_eq!(
        (step.number, step.at, step.turn),
        (7, at(105), Turn::Begins)
    );
    assert_eq!(gate.next_turn(), None);
}
