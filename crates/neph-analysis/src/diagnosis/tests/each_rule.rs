//! Each rule reports its cause alone and with the correct numbers.

use neph_model::ProbeKind;

use super::world::{Queue, World};
use super::{causes, diagnoses_of, number, only_cause};
use crate::diagnosis::Level;

#[test]
fn unequal_paths_are_reported_with_the_best_source_port() {
    let world = World {
        round_trip_ms: 8.1,
        paths_ms: vec![0.0, 8.0],
        ports: vec![40_001, 40_002, 40_003, 40_004, 40_005],
        blocks: 15,
        ..World::default()
    };
    let diagnosis = only_cause(&world, "ecmp-imbalance");
    let best = number(&diagnosis, "best source port");
    let is_best = |port: &&u16| (f64::from(**port) - best).abs() < 0.5;
    let port = world.ports.iter().find(is_best).unwrap();
    assert!(world.path_of(*port).abs() < 1e-9, "{best}");
    assert!((number(&diagnosis, "shortest path") - 8.1).abs() < 0.2);
    assert!((diagnosis.added_ms - 8.0).abs() < 0.2, "{diagnosis:#?}");
    assert_eq!(diagnosis.confidence.level, Level::Sure);
    // The kernel's own choice of ports shows it too.
    let kernel_ports = World {
        ports: Vec::new(),
        ..world
    };
    let diagnosis = only_cause(&kernel_ports, "ecmp-imbalance");
    // Without a port that came again there is a doubt.
    assert_eq!(diagnosis.confidence.level, Level::Likely, "{diagnosis:#?}");
}

#[test]
fn unequal_paths_are_detected_although_one_short_flow_stalled() {
    let world = World {
        round_trip_ms: 8.1,
        paths_ms: vec![0.0, 8.0],
        ports: vec![40_001, 40_002, 40_003, 40_004],
        blocks: 24,
        seconds: 0.6,
        stalled_block: Some(7),
        ..World::default()
    };
    let diagnosis = only_cause(&world, "ecmp-imbalance");
    assert!((diagnosis.added_ms - 8.0).abs() < 0.2, "{diagnosis:#?}");
    let exception = "Each of 24 flows but 1 (most of their messages were delayed) stayed";
    assert!(diagnosis.cause.contains(exception), "{diagnosis:#?}");
}

#[test]
fn unequal_paths_are_detected_although_the_route_changes_too() {
    let world = World {
        round_trip_ms: 20.0,
        paths_ms: vec![0.0, 8.0],
        ports: (40_001..40_011).collect(),
        blocks: 16,
        path_change_ms: 5.0,
        ..World::default()
    };
    let diagnosis = only_cause(&world, "ecmp-imbalance");
    assert!(
        diagnosis.cause.contains("the route itself was 5"),
        "{diagnosis:#?}"
    );
    assert!((diagnosis.added_ms - 8.0).abs() < 0.3, "{diagnosis:#?}");
    assert!(diagnosis.confidence.level < Level::Sure, "{diagnosis:#?}");
}

#[test]
fn slow_start_after_idle_is_reported_with_its_added_round_trips() {
    let world = World {
        round_trip_ms: 40.0,
        has_idle_restart: true,
        sizes: vec![100_000],
        intervals_ms: vec![100, 1000],
        ..World::default()
    };
    let diagnosis = only_cause(&world, "slow-start-after-idle");
    // 10, 20, 40 segments: three windows hold 70 segments.
    assert!((diagnosis.added_ms - 120.0).abs() < 45.0, "{diagnosis:#?}");
    assert!((number(&diagnosis, "round trip") - 40.0).abs() < 0.5);
    assert!(diagnosis.cause.contains("every 1 s"), "{}", diagnosis.cause);
    assert!(diagnosis.remedy.contains("tcp_slow_start_after_idle=0"));
}

#[test]
fn a_slow_link_is_reported_with_its_rate() {
    for rate_mbit in [3.0, 15.0] {
        let world = World {
            round_trip_ms: 35.0,
            rate_mbit,
            sizes: vec![1024, 10_240, 51_200],
            intervals_ms: vec![500],
            ..World::default()
        };
        let diagnosis = only_cause(&world, "serialisation");
        let rate = number(&diagnosis, "rate");
        assert!((rate / rate_mbit - 1.0).abs() < 0.1, "{rate}");
        assert_eq!(diagnosis.confidence.level, Level::Sure, "{diagnosis:#?}");
    }
}

#[test]
fn a_queue_filled_by_other_traffic_is_reported_with_its_period() {
    let world = World::with_queue();
    let diagnosis = only_cause(&world, "bufferbloat");
    assert!(
        (number(&diagnosis, "from") - 15.0).abs() < 1.5,
        "{diagnosis:#?}"
    );
    assert!(
        (number(&diagnosis, "to") - 40.0).abs() < 1.5,
        "{diagnosis:#?}"
    );
    assert!((number(&diagnosis, "network time without the queue") - 20.0).abs() < 1.0);
    assert!(
        diagnosis.cause.contains("Other traffic fills it"),
        "{}",
        diagnosis.cause
    );
    assert!(
        diagnosis.cause.contains("ICMP echoes wait in it too"),
        "{}",
        diagnosis.cause
    );
}

#[test]
fn bufferbloat_has_less_confidence_if_echoes_bypass_the_queue() {
    let queued_echoes = World::with_queue();
    let bypassing_echoes = World {
        echo_queue_share: 0.0,
        ..queued_echoes.clone()
    };
    let (queued_echoes, diagnosis) = (
        only_cause(&queued_echoes, "bufferbloat"),
        only_cause(&bypassing_echoes, "bufferbloat"),
    );
    assert!(
        diagnosis.cause.contains("do not wait in it"),
        "{}",
        diagnosis.cause
    );
    assert!(diagnosis.confidence.level < queued_echoes.confidence.level);
}

#[test]
fn handshakes_are_counted_in_round_trips() {
    for (tls_round_trips, expected) in [(0.0, "1 round trip for TCP"), (2.0, "and 2.0 for TLS")] {
        let world = World {
            handshake_round_trips: Some(tls_round_trips),
            probe: ProbeKind::Http,
            sizes: vec![64],
            ..World::default()
        };
        let diagnosis = only_cause(&world, "connection-setup");
        assert!(diagnosis.cause.contains(expected), "{}", diagnosis.cause);
        assert!(
            (diagnosis.added_ms - (1.0 + tls_round_trips) * 20.0).abs() < 1.0,
            "{diagnosis:#?}"
        );
    }
}

#[test]
fn connection_setup_cost_is_weighted_by_the_share_of_opening_messages() {
    let world = World {
        handshake_round_trips: Some(1.0),
        handshake_share: 0.75,
        probe: ProbeKind::Http,
        scheme: "https",
        ..World::default()
    };
    let diagnosis = only_cause(&world, "connection-setup");
    assert!(
        !diagnosis.cause.contains("every message"),
        "{}",
        diagnosis.cause
    );
    assert!(
        (diagnosis.added_ms - 0.75 * 40.0).abs() < 3.0,
        "{diagnosis:#?}"
    );
    assert!(
        diagnosis.remedy.contains("session resumption"),
        "{diagnosis:#?}"
    );
}

#[test]
fn cryptography_of_a_handshake_is_not_counted_in_round_trips() {
    let world = World {
        round_trip_ms: 0.3,
        jitter_ms: 0.01,
        handshake_round_trips: Some(1.0),
        crypto_ms: 1.7,
        probe: ProbeKind::Http,
        ..World::default()
    };
    let diagnosis = only_cause(&world, "connection-setup");
    assert!(!diagnosis.cause.contains("more for"), "{}", diagnosis.cause);
    assert!(!diagnosis.remedy.contains("TLS"), "{}", diagnosis.remedy);
}

#[test]
fn a_proxy_is_reported_with_the_rtt_behind_it() {
    let world = World {
        proxy_ms: 1.3,
        sizes: vec![256],
        ..World::default()
    };
    let diagnosis = only_cause(&world, "l7-proxy");
    assert!(
        (number(&diagnosis, "behind the proxy") - 1.3).abs() < 0.1,
        "{diagnosis:#?}"
    );
}

#[test]
fn echoes_with_a_different_rtt_are_reported() {
    for icmp_ms in [6.0, -4.0] {
        let world = World {
            icmp_ms,
            ..World::default()
        };
        let diagnosis = only_cause(&world, "icmp-differs");
        assert!(
            (number(&diagnosis, "difference") - icmp_ms).abs() < 0.3,
            "{diagnosis:#?}"
        );
    }
}

/// Datagrams every 10 ms in a queue that is empty for a moment in which no echo is sent.
fn rarely_empty_queue() -> World {
    World {
        round_trip_ms: 12.0,
        longer_path: Some(Queue {
            from: 0.0,
            to: 3.9,
            peak_ms: 2.1,
        }),
        probe: ProbeKind::Udp,
        intervals_ms: vec![10],
        sizes: vec![64],
        blocks: 1,
        seconds: 3.99,
        ..World::default()
    }
}

#[test]
fn few_echoes_in_a_rarely_empty_queue_are_not_reported_as_slow_icmp() {
    let diagnosis = diagnoses_of(&rarely_empty_queue());
    assert!(
        diagnosis.iter().all(|cause| cause.rule != "icmp-differs"),
        "{diagnosis:#?}"
    );
    // What is more than chance is told, and of as many messages as there are echoes.
    let world = World {
        icmp_ms: 6.0,
        ..rarely_empty_queue()
    };
    let diagnosis = causes(&world.campaign(), "icmp-differs");
    let diagnosis = diagnosis.first().expect("6 ms are no chance");
    assert!(
        (number(diagnosis, "difference") - 6.0).abs() < 0.3,
        "{diagnosis:#?}"
    );
    assert!(!diagnosis.cause.contains("TCP"), "{}", diagnosis.cause);
    assert!(
        diagnosis.cause.contains("in the only experiment"),
        "{diagnosis:#?}"
    );
}

#[test]
fn head_of_line_blocking_is_reported_with_window_or_interface_queue() {
    let world = World {
        round_trip_ms: 150.0,
        max_window: Some(400),
        sizes: vec![100_000],
        intervals_ms: vec![20],
        ..World::default()
    };
    let diagnosis = only_cause(&world, "head-of-line");
    assert!(
        number(&diagnosis, "share of messages that wait") > 0.5,
        "{diagnosis:#?}"
    );
    assert!(diagnosis.cause.contains("held back by the send window"));
    // The kernel may not tell when the bytes came to the interface's queue, or they may stand there.
    for (unqueued_wait_share, expected) in [
        (None, "held back by the send window"),
        (Some(0.0), "interface queue"),
    ] {
        let world = World {
            unqueued_wait_share,
            ..world.clone()
        };
        let diagnosis = only_cause(&world, "head-of-line");
        let share = number(&diagnosis, "share of messages that wait");
        assert!(share > 0.5, "{diagnosis:#?}");
        assert!(diagnosis.cause.contains(expected), "{}", diagnosis.cause);
    }
}

#[test]
fn loss_without_a_queue_is_reported_with_its_share() {
    for probe in [ProbeKind::Ws, ProbeKind::Udp] {
        let world = World {
            loss: 0.01,
            probe,
            intervals_ms: vec![20],
            ..World::default()
        };
        let diagnosis = only_cause(&world, "random-loss");
        let percent = number(&diagnosis, "share lost or retransmitted");
        assert!((0.6..1.5).contains(&percent), "{diagnosis:#?}");
    }
}

#[test]
fn segments_that_open_a_connection_count_in_the_loss_share() {
    for (probe, scheme, segments) in [
        (ProbeKind::Http, "http", 2.0),
        (ProbeKind::Tcp, "tcp", 3.0),
        (ProbeKind::Http, "https", 4.0),
    ] {
        let world = World {
            handshake_round_trips: Some(1.0),
            probe,
            scheme,
            intervals_ms: vec![20],
            ..World::default()
        };
        let mut data = world.campaign();
        for experiment in &mut data.experiments {
            for hit in experiment.flows[0].exchanges.iter_mut().step_by(10) {
                hit.retransmissions = Some(1);
            }
        }
        let diagnosis = causes(&data, "random-loss");
        let loss = diagnosis.first().unwrap();
        let percent = number(loss, "share lost or retransmitted");
        assert!((percent * segments - 10.0).abs() < 1e-4, "{loss:#?}");
    }
}

#[test]
fn a_slow_server_is_reported_with_its_processing_time() {
    let world = World {
        processing_ms: 30.0,
        ..World::default()
    };
    let diagnosis = only_cause(&world, "slow-server");
    assert!((diagnosis.added_ms - 30.0).abs() < 1.0, "{diagnosis:#?}");
}

#[test]
fn a_starved_client_is_reported_as_the_only_root_cause() {
    let world = World {
        client_delay_ms: 3.0,
        ..World::default()
    };
    let diagnosis = only_cause(&world, "starved-client");
    // Twice an exponential delay of 3 ms: its 95th percentile is 6 ln 20.
    assert!((diagnosis.added_ms - 18.0).abs() < 4.0, "{diagnosis:#?}");
}

#[test]
fn a_starved_client_is_detected_with_large_replies_too() {
    let world = World {
        client_delay_ms: 3.0,
        reply_bytes: 100_000,
        ..World::default()
    };
    only_cause(&world, "starved-client");
}

#[test]
fn a_clock_step_is_reported_with_its_size() {
    let world = World {
        has_clock_step: true,
        ..World::default()
    };
    let diagnosis = only_cause(&world, "clock-step");
    let farthest = number(&diagnosis, "farthest step");
    assert!((farthest - 1500.0).abs() < 1.0, "{diagnosis:#?}");
}
