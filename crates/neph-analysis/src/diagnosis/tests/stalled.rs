//! Stalls are named, with their length and whose they are, and no queue, loss or server instead.

use neph_model::{Instant, Local, ProbeKind};

use super::stalling::{StalledParty, Stalling};
use super::world::World;
use super::{diagnoses_of, number};
use crate::PlotSettings;
use crate::diagnosis::{Diagnosis, Level, diagnose};

fn stalled_world(party: StalledParty) -> World {
    World {
        round_trip_ms: 2.0,
        intervals_ms: vec![10],
        blocks: 1,
        stalling: Some(Stalling {
            party,
            period_ms: 1000.0,
            length_ms: 900.0,
        }),
        ..World::default()
    }
}

/// Every kind of probe: over one connection, a connection per message, and datagrams.
fn with_each_probe(world: &World) -> [World; 3] {
    let with_probe = |probe, handshake_round_trips| World {
        handshake_round_trips,
        probe,
        ..world.clone()
    };
    [
        with_probe(ProbeKind::Ws, None),
        with_probe(ProbeKind::Http, Some(0.0)),
        with_probe(ProbeKind::Udp, None),
    ]
}

/// The only cause, apart from connections that are opened for each message.
fn only_stall(world: &World, rule: &str) -> Diagnosis {
    let mut diagnoses = diagnoses_of(world);
    diagnoses.retain(|diagnosis| {
        world.handshake_round_trips.is_none() || diagnosis.rule != "connection-setup"
    });
    let reported: Vec<&str> = diagnoses.iter().map(|diagnosis| diagnosis.rule).collect();
    assert_eq!(reported, [rule], "{diagnoses:#?}");
    diagnoses.remove(0)
}

#[test]
fn a_stalled_peer_is_reported_with_its_stalls() {
    for (party, level, subject) in [
        (
            StalledParty::Program,
            Level::Sure,
            "the server application stalled",
        ),
        (
            StalledParty::Host,
            Level::Likely,
            "the peer's host, or a device on the path",
        ),
    ] {
        for world in with_each_probe(&stalled_world(party)) {
            let diagnosis = only_stall(&world, "stalled-peer");
            assert!(
                (number(&diagnosis, "stalls") - 12.0).abs() < 1.1,
                "{diagnosis:#?}"
            );
            let length = number(&diagnosis, "median length");
            assert!((length - 900.0).abs() < 25.0, "{diagnosis:#?}");
            let delayed = number(&diagnosis, "messages delayed");
            let text = format!(", and delayed {delayed:.0} of ");
            assert!(diagnosis.cause.contains(&text), "{diagnosis:#?}");
            let percent = number(&diagnosis, "share of messages delayed");
            assert!((1.0..=100.0).contains(&percent), "{diagnosis:#?}");
            let slope = number(&diagnosis, "slope of the delay");
            assert!((slope + 1.0).abs() < 0.03, "{diagnosis:#?}");
            assert_eq!(diagnosis.confidence.level, level, "{diagnosis:#?}");
            assert!(diagnosis.cause.contains(subject), "{diagnosis:#?}");
        }
    }
}

#[test]
fn a_stalled_server_is_also_slow_only_with_long_processing_times() {
    for (processing_ms, rules) in [
        (1.0, &["stalled-peer"][..]),
        (20.0, &["stalled-peer", "slow-server"]),
    ] {
        let stalled = World {
            processing_ms,
            ..stalled_world(StalledParty::Program)
        };
        let diagnoses = diagnoses_of(&stalled);
        let reported: Vec<&str> = diagnoses.iter().map(|diagnosis| diagnosis.rule).collect();
        assert_eq!(reported, rules, "{diagnoses:#?}");
    }
}

#[test]
fn a_stalled_client_is_reported_whether_it_sends_late_or_skips_messages() {
    for party in [StalledParty::ClientLate, StalledParty::ClientSkips] {
        for world in with_each_probe(&stalled_world(party)) {
            let diagnosis = only_stall(&world, "stalled-client");
            assert!(
                (number(&diagnosis, "stalls") - 12.0).abs() < 1.1,
                "{diagnosis:#?}"
            );
            let length = number(&diagnosis, "median length");
            assert!((length - 900.0).abs() < 25.0, "{diagnosis:#?}");
            let delayed = number(&diagnosis, "messages delayed or not sent");
            let text = format!("it neither sent nor read. {delayed:.0} of ");
            assert!(diagnosis.cause.contains(&text), "{diagnosis:#?}");
            let percent = number(&diagnosis, "share of messages delayed or not sent");
            assert!((1.0..=100.0).contains(&percent), "{diagnosis:#?}");
        }
    }
}

#[test]
fn a_cpu_quota_of_half_a_core_is_reported() {
    let throttled = World {
        stalling: Some(Stalling {
            party: StalledParty::Program,
            period_ms: 100.0,
            length_ms: 50.0,
        }),
        ..stalled_world(StalledParty::Program)
    };
    let diagnosis = only_stall(&throttled, "stalled-peer");
    assert!((number(&diagnosis, "median length") - 50.0).abs() < 12.0);
}

#[test]
fn echoes_delayed_by_stalls_are_not_reported_as_slow_icmp() {
    // Five a second, and a peer that is awake between two of them.
    let mut data = World {
        probe: ProbeKind::Udp,
        sizes: vec![104],
        stalling: Some(Stalling {
            party: StalledParty::Host,
            period_ms: 1000.0,
            length_ms: 920.0,
        }),
        ..stalled_world(StalledParty::Host)
    }
    .campaign();
    // Those from before the first stall.
    for flow in &mut data.experiments[0].flows {
        let is_later = |at: Instant<Local>| at.nanos() > 500_000_000;
        flow.exchanges
            .retain(|exchange| is_later(exchange.intended));
    }
    let causes = diagnose(&data, &PlotSettings::default()).causes;
    let reported: Vec<&str> = causes.iter().map(|diagnosis| diagnosis.rule).collect();
    assert_eq!(reported, ["stalled-peer"], "{causes:#?}");
}
