use neph_model::Span;

use super::*;
use crate::world::World;

fn port_advice(world: &World) -> PortAdvice {
    let (digest, _) = world.digest();
    advise(&digest.view(), 0).port_advice
}

fn evidence_of(world: &World) -> AdviceEvidence {
    match port_advice(world) {
        PortAdvice::Given(evidence) => *evidence,
        PortAdvice::Refused { why: reason } => panic!("{reason}"),
    }
}

#[test]
fn ports_on_stable_paths_are_advised_and_confirmed_by_the_backtest() {
    let evidence = evidence_of(&World {
        reshuffle_seconds: 0,
        seconds: 200,
        ..World::default()
    });
    assert_eq!(evidence.holds, Some(Span::from_secs(60)));
    assert_eq!(evidence.ports.len(), MAX_PORTS, "{:?}", evidence.no_ports);
    assert!(
        evidence
            .ports
            .iter()
            .all(|port| (port.base - Span::from_millis(70)).abs() < Span::from_micros(100))
    );
    let first = evidence.horizons[0];
    assert!((first.on_low.share - 1.0).abs() < 1e-9 && first.random_on_lowest_class < 0.5);
    // Four paths of 70, 74, 79 and 86 ms, a quarter of the flows on each.
    assert!(first.p50.unwrap().gain() > Span::from_millis(3));
    assert_eq!(first.p99, None, "19 times are too few for it");
}

/// The source's case: most flows are still there ten seconds later, and hardly one a minute later.
#[test]
fn port_advice_that_holds_for_seconds_is_refused_as_stale() {
    let evidence = evidence_of(&World {
        reshuffle_seconds: 40,
        seconds: 400,
        ..World::default()
    });
    assert!(evidence.horizons[0].holds(), "{:?}", evidence.horizons[0]);
    assert!(evidence.ports.is_empty() && evidence.holds.is_none());
    let reason = evidence.no_ports.unwrap();
    assert!(reason.contains("ports do not keep their path"), "{reason}");
}

#[test]
fn a_dead_port_is_not_advised() {
    let world = World {
        reshuffle_seconds: 0,
        seconds: 200,
        ..World::default()
    };
    let first_port = |world: &World| evidence_of(world).ports[0];
    let best = first_port(&world);
    assert_eq!(best.loss.map(|loss| (loss.hits, loss.n)), Some((0, 63)));
    let slot = (0..world.slots).find(|slot| crate::world::port(*slot) == best.port);
    let world_with_dead_port = |from| World {
        dead_slot: slot.map(|slot| (slot, from)),
        ..world.clone()
    };
    // It has been silent for five seconds of two hundred: the loss of its last messages says so.
    let others = evidence_of(&world_with_dead_port(195)).ports;
    assert_eq!(others.len(), MAX_PORTS);
    assert!(others.iter().all(|port| port.port != best.port));
    // For most of the time: it was the port to take, and such advice did not hold.
    let reason = evidence_of(&world_with_dead_port(60)).no_ports.unwrap();
    assert!(reason.contains("ports do not keep their path"), "{reason}");
}

#[test]
fn loss_shared_by_all_flows_excludes_no_port() {
    let flow = |port: u16, class, lost| FinalFlow {
        flow: 0,
        port,
        base: Span::from_millis(70),
        class: Some(class),
        start: Instant::from_nanos(0),
        until: Instant::from_nanos(1),
        last_messages: LastMessages { lost, of: 63 },
    };
    let named_ports = |flows: &[FinalFlow]| {
        choose_ports(flows)
            .iter()
            .map(|port| port.port)
            .collect::<Vec<_>>()
    };
    let shared = [flow(1, 0, 6), flow(2, 0, 7), flow(3, 1, 5), flow(4, 1, 6)];
    assert_eq!(named_ports(&shared), [1, 2]);
    let flows = [flow(1, 0, 6), flow(2, 0, 0), flow(3, 1, 0), flow(4, 1, 0)];
    assert_eq!(named_ports(&flows), [2]);
    let low_path = [
        flow(1, 0, 9),
        flow(2, 0, 8),
        flow(3, 1, 0),
        flow(4, 1, 0),
        flow(5, 1, 0),
    ];
    assert!(named_ports(&low_path).is_empty());
}

/// Every twelfth message of each flow on the low path: of its last 63 some flows lost few by luck.
/// Where all paths lose alike, or the low one alone loses nothing, ports are named.
#[test]
fn a_low_path_that_loses_more_is_not_advised() {
    let evidence_with_loss = |lossy_path| {
        evidence_of(&World {
            reshuffle_seconds: 0,
            seconds: 200,
            lossy_path,
            ..World::default()
        })
    };
    let evidence = evidence_with_loss(Some((0, 12)));
    let loss = evidence.loss.unwrap();
    assert!(loss.is_more && (loss.low.share - 1.0 / 12.0).abs() < 0.01);
    assert_eq!(loss.others.hits, 0);
    assert!(evidence.ports.is_empty() && evidence.holds.is_none());
    let reason = evidence.no_ports.unwrap();
    assert!(reason.contains("the low path loses 8.3 %"), "{reason}");
    for lossy_path in [None, Some((1, 12))] {
        let evidence = evidence_with_loss(lossy_path);
        assert!(!evidence.loss.unwrap().is_more);
        assert_eq!(evidence.ports.len(), MAX_PORTS);
    }
}

#[test]
fn with_frequent_path_changes_several_connections_are_advised_instead_of_ports() {
    let evidence = evidence_of(&World {
        slots: 32,
        reshuffle_seconds: 5,
        seconds: 300,
        ..World::default()
    });
    assert!(evidence.ports.is_empty());
    let reason = evidence.no_ports.unwrap();
    assert!(reason.contains("ports do not keep their path"), "{reason}");
    let last_best = evidence.best_of.last().unwrap();
    assert!(
        last_best.chance > 0.95 && last_best.p50 < Span::from_millis(71),
        "{last_best:?}"
    );
}

#[test]
fn few_flows_one_path_or_little_time_give_no_port_advice() {
    let refusal = |world: &World| match port_advice(world) {
        PortAdvice::Refused { why: reason } => reason,
        PortAdvice::Given(evidence) => panic!("{evidence:?}"),
    };
    let few_flows = World {
        slots: 4,
        ..World::default()
    };
    assert!(refusal(&few_flows).contains("4 flows had a base latency"));
    let single_path = World {
        paths: vec![70_000],
        weights: vec![1.0],
        ..World::default()
    };
    assert!(refusal(&single_path).contains("no source port is better"));
    let short_evidence = evidence_of(&World {
        seconds: 30,
        reshuffle_seconds: 0,
        ..World::default()
    });
    assert!(short_evidence.no_ports.unwrap().contains("too short"));
}

/// By hand: shares 1/2, 3/10, 1/5. Of two flows both miss the lowest in 1/4 of all cases, and both
/// are in the highest in 1/25.
#[test]
fn the_best_of_several_connections_follows_from_the_class_shares() {
    let classes =
        [(10, 0.5), (12, 0.3), (15, 0.2)].map(|(ms, share)| (Span::from_millis(ms), share));
    let best_of = |connections| expected_best(&classes, connections);
    assert!((best_of(1).chance - 0.5).abs() < 1e-12 && (best_of(2).chance - 0.75).abs() < 1e-12);
    assert_eq!(
        (best_of(1).p50, best_of(1).p99),
        (Span::from_millis(10), Span::from_millis(15))
    );
    assert_eq!(
        (best_of(2).p50, best_of(2).p99),
        (Span::from_millis(10), Span::from_millis(15))
    );
    assert_eq!(best_of(3).p99, Span::from_millis(12));
    assert_eq!(best_of(8).p99, Span::from_millis(10));
}

#[test]
fn the_caution_is_the_warning_of_the_paper() {
    assert!(CAUTION.contains("ultimately defeating cloud TE operation"));
}
