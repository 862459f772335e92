//! Stalls are named, with their length and whose they are, and no queue, loss or server instead.

use neph_model::{Instant, Local, ProbeKind};

use super::stalling::{Stalling, Still};
use super::world::World;
use super::{diagnoses_of, number};
use crate::PlotSettings;
use crate::diagnosis::{Diagnosis, Level, diagnose};

fn world(who: Still) -> World {
    World {
        round_trip_ms: 2.0,
        intervals_ms: vec![10],
        blocks: 1,
        stalling: Some(Stalling {
            who,
            every_ms: 1000.0,
            for_ms: 900.0,
        }),
        ..World::default()
    }
}

/// Every way of asking: over one connection, a connection a message, and by datagrams.
fn ways(world: &World) -> [World; 3] {
    let ask = |probe, dials| World {
        dials,
        probe,
        ..world.clone()
    };
    [
        ask(ProbeKind::Ws, None),
        ask(ProbeKind::Http, Some(0.0)),
        ask(ProbeKind::Udp, None),
    ]
}

/// The one cause, beside connections that are opened for each message.
fn only(world: &World, rule: &str) -> Diagnosis {
    let mut diagnoses = diagnoses_of(world);
    diagnoses.retain(|diagnosis| world.dials.is_none() || diagnosis.rule != "connection-setup");
    let names: Vec<&str> = diagnoses.iter().map(|diagnosis| diagnosis.rule).collect();
    assert_eq!(names, [rule], "{diagnoses:#?}");
    diagnoses.remove(0)
}

#[test]
fn a_peer_that_stands_still_is_named_with_its_stalls() {
    for (who, level, subject) in [
        (
            Still::Program,
            Level::Sure,
            "the server application stalled",
        ),
        (
            Still::Host,
            Level::Likely,
            "the peer's host, or a device on the path",
        ),
    ] {
        for world in ways(&world(who)) {
            let diagnosis = only(&world, "stalled-peer");
            assert!(
                (number(&diagnosis, "stalls") - 12.0).abs() < 1.1,
                "{diagnosis:#?}"
            );
            let length = number(&diagnosis, "median length");
            assert!((length - 900.0).abs() < 25.0, "{diagnosis:#?}");
            let slope = number(&diagnosis, "slope of the delay");
            assert!((slope + 1.0).abs() < 0.03, "{diagnosis:#?}");
            assert_eq!(diagnosis.confidence.level, level, "{diagnosis:#?}");
            assert!(diagnosis.cause.contains(subject), "{diagnosis:#?}");
        }
    }
}

#[test]
fn a_stalled_server_is_also_slow_only_with_long_processing_times() {
    for (think_ms, rules) in [
        (1.0, &["stalled-peer"][..]),
        (20.0, &["stalled-peer", "slow-server"]),
    ] {
        let stalled = World {
            think_ms,
            ..world(Still::Program)
        };
        let diagnoses = diagnoses_of(&stalled);
        let names: Vec<&str> = diagnoses.iter().map(|diagnosis| diagnosis.rule).collect();
        assert_eq!(names, rules, "{diagnoses:#?}");
    }
}

#[test]
fn a_client_that_stands_still_is_named_whether_it_sends_late_or_not_at_all() {
    for who in [Still::ClientLate, Still::ClientSkips] {
        for world in ways(&world(who)) {
            let diagnosis = only(&world, "stalled-client");
            assert!(
                (number(&diagnosis, "stalls") - 12.0).abs() < 1.1,
                "{diagnosis:#?}"
            );
            let length = number(&diagnosis, "median length");
            assert!((length - 900.0).abs() < 25.0, "{diagnosis:#?}");
        }
    }
}

#[test]
fn a_quota_of_half_a_core_is_named() {
    let throttled = World {
        stalling: Some(Stalling {
            who: Still::Program,
            every_ms: 100.0,
            for_ms: 50.0,
        }),
        ..world(Still::Program)
    };
    let diagnosis = only(&throttled, "stalled-peer");
    assert!((number(&diagnosis, "median length") - 50.0).abs() < 12.0);
}

#[test]
fn echoes_that_meet_each_stall_are_no_slow_echoes() {
    // Five a second, and a peer that is awake between two of them.
    let mut data = World {
        probe: ProbeKind::Udp,
        sizes: vec![104],
        stalling: Some(Stalling {
            who: Still::Host,
            every_ms: 1000.0,
            for_ms: 920.0,
        }),
        ..world(Still::Host)
    }
    .campaign();
    // Those from before the first stall.
    for flow in &mut data.experiments[0].flows {
        let is_later = |at: Instant<Local>| at.nanos() > 500_000_000;
        flow.exchanges
            .retain(|exchange| is_later(exchange.intended));
    }
    let causes = diagnose(&data, &PlotSettings::default()).causes;
    let names: Vec<&str> = causes.iter().map(|diagnosis| diagnosis.rule).collect();
    assert_eq!(names, ["stalled-peer"], "{causes:#?}");
}
