//! Causes that are there are named, alone, with the numbers that were put in.

use neph_model::ProbeKind;

use super::world::{Queue, World};
use super::{number, only};
use crate::PlotSettings;
use crate::diagnosis::{Level, diagnose};

#[test]
fn unequal_paths_are_told_by_port_with_the_best_one() {
    let world = World {
        round_trip_ms: 8.1,
        paths_ms: vec![0.0, 8.0],
        ports: vec![40_001, 40_002, 40_003, 40_004, 40_005],
        blocks: 15,
        ..World::default()
    };
    let told = only(&world, "ecmp-imbalance");
    let best = number(&told, "best source port");
    let is_best = |port: &&u16| (f64::from(**port) - best).abs() < 0.5;
    let port = world.ports.iter().find(is_best).unwrap();
    assert!(world.path_of(*port).abs() < 1e-9, "{best}");
    assert!((number(&told, "shortest path") - 8.1).abs() < 0.2);
    assert!((told.cost_ms - 8.0).abs() < 0.2, "{told:#?}");
    assert_eq!(told.confidence.level, Level::Sure);
    // The kernel's own choice of ports shows it too.
    let chosen = World {
        ports: Vec::new(),
        ..world
    };
    let told = only(&chosen, "ecmp-imbalance");
    // Without a port that came again there is a doubt.
    assert_eq!(told.confidence.level, Level::Likely, "{told:#?}");
}

#[test]
fn unequal_paths_are_told_although_one_short_flow_stalled() {
    let world = World {
        round_trip_ms: 8.1,
        paths_ms: vec![0.0, 8.0],
        ports: vec![40_001, 40_002, 40_003, 40_004],
        blocks: 24,
        seconds: 0.6,
        stalled: Some(7),
        ..World::default()
    };
    let told = only(&world, "ecmp-imbalance");
    assert!((told.cost_ms - 8.0).abs() < 0.2, "{told:#?}");
    let but = "Each of 24 flows but 1, most of whose messages were held up, stayed";
    assert!(told.cause.contains(but), "{told:#?}");
}

#[test]
fn unequal_paths_are_told_although_the_route_changes_as_well() {
    let world = World {
        round_trip_ms: 20.0,
        paths_ms: vec![0.0, 8.0],
        ports: (40_001..40_011).collect(),
        blocks: 16,
        later_ms: 5.0,
        ..World::default()
    };
    let told = only(&world, "ecmp-imbalance");
    assert!(told.cause.contains("the route itself was 5"), "{told:#?}");
    assert!((told.cost_ms - 8.0).abs() < 0.3, "{told:#?}");
    assert!(told.confidence.level < Level::Sure, "{told:#?}");
}

#[test]
fn a_window_forgotten_while_idle_is_told_in_round_trips() {
    let world = World {
        round_trip_ms: 40.0,
        restarts: true,
        sizes: vec![100_000],
        intervals_ms: vec![100, 1000],
        ..World::default()
    };
    let told = only(&world, "slow-start-after-idle");
    // 10, 20, 40 segments: three windows hold 70 segments.
    assert!((told.cost_ms - 120.0).abs() < 45.0, "{told:#?}");
    assert!((number(&told, "round trip") - 40.0).abs() < 0.5);
    assert!(told.cause.contains("every 1 s"), "{}", told.cause);
    assert!(told.remedy.contains("tcp_slow_start_after_idle=0"));
}

#[test]
fn a_slow_link_is_told_with_its_rate() {
    for rate_mbit in [3.0, 15.0] {
        let world = World {
            round_trip_ms: 35.0,
            rate_mbit,
            sizes: vec![1024, 10_240, 51_200],
            intervals_ms: vec![500],
            ..World::default()
        };
        let told = only(&world, "serialisation");
        let rate = number(&told, "rate");
        assert!((rate / rate_mbit - 1.0).abs() < 0.1, "{rate}");
        assert_eq!(told.confidence.level, Level::Sure, "{told:#?}");
    }
}

#[test]
fn a_queue_that_others_fill_is_told_with_its_stretch() {
    let world = World::with_a_queue();
    let told = only(&world, "bufferbloat");
    assert!((number(&told, "from") - 15.0).abs() < 1.5, "{told:#?}");
    assert!((number(&told, "to") - 40.0).abs() < 1.5, "{told:#?}");
    assert!((number(&told, "path alone") - 20.0).abs() < 1.0);
    assert!(told.cause.contains("Others fill it"), "{}", told.cause);
    assert!(
        told.cause.contains("ICMP echoes wait in it too"),
        "{}",
        told.cause
    );
}

#[test]
fn a_queue_that_echoes_go_past_is_told_with_less_confidence() {
    let shared = World::with_a_queue();
    let beside = World {
        echoes_wait: 0.0,
        ..shared.clone()
    };
    let (shared, told) = (only(&shared, "bufferbloat"), only(&beside, "bufferbloat"));
    assert!(told.cause.contains("do not wait in it"), "{}", told.cause);
    assert!(told.confidence.level < shared.confidence.level);
}

#[test]
fn handshakes_are_counted_in_round_trips() {
    for (above, words) in [(0.0, "1 round trip for TCP"), (2.0, "and 2.0 more")] {
        let world = World {
            dials: Some(above),
            probe: ProbeKind::Http,
            sizes: vec![64],
            ..World::default()
        };
        let told = only(&world, "connection-setup");
        assert!(told.cause.contains(words), "{}", told.cause);
        assert!(
            (told.cost_ms - (1.0 + above) * 20.0).abs() < 1.0,
            "{told:#?}"
        );
    }
}

#[test]
fn connections_that_most_messages_open_cost_by_their_share() {
    let world = World {
        dials: Some(1.0),
        dialled: 0.75,
        probe: ProbeKind::Http,
        scheme: "https",
        ..World::default()
    };
    let told = only(&world, "connection-setup");
    assert!(!told.cause.contains("every message"), "{}", told.cause);
    assert!((told.cost_ms - 0.75 * 40.0).abs() < 3.0, "{told:#?}");
    assert!(told.remedy.contains("session resumption"), "{told:#?}");
}

#[test]
fn the_arithmetic_of_a_handshake_is_not_counted_in_round_trips() {
    let world = World {
        round_trip_ms: 0.3,
        jitter_ms: 0.01,
        dials: Some(1.0),
        sums_ms: 1.7,
        probe: ProbeKind::Http,
        ..World::default()
    };
    let told = only(&world, "connection-setup");
    assert!(!told.cause.contains("more for"), "{}", told.cause);
    assert!(!told.remedy.contains("TLS"), "{}", told.remedy);
}

#[test]
fn whoever_answers_behind_a_proxy_is_farther_than_whoever_acknowledges() {
    let world = World {
        proxy_ms: 1.3,
        sizes: vec![256],
        ..World::default()
    };
    let told = only(&world, "l7-proxy");
    assert!(
        (number(&told, "behind the proxy") - 1.3).abs() < 0.1,
        "{told:#?}"
    );
}

#[test]
fn echoes_that_take_another_way_are_told() {
    for icmp_ms in [6.0, -4.0] {
        let world = World {
            icmp_ms,
            ..World::default()
        };
        let told = only(&world, "icmp-differs");
        assert!(
            (number(&told, "difference") - icmp_ms).abs() < 0.3,
            "{told:#?}"
        );
    }
}

/// Datagrams every 10 ms in a queue that is empty for a moment in which no echo is sent.
fn hardly_ever_empty() -> World {
    World {
        round_trip_ms: 12.0,
        detour: Some(Queue {
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
fn the_quickest_of_few_echoes_may_be_slower_than_the_quickest_of_many_messages() {
    let causes = |world: &World| diagnose(&world.campaign(), &PlotSettings::default()).causes;
    let told = causes(&hardly_ever_empty());
    assert!(
        told.iter().all(|one| one.rule != "icmp-differs"),
        "{told:#?}"
    );
    // What is more than chance is told, and of as many messages as there are echoes.
    let world = World {
        icmp_ms: 6.0,
        ..hardly_ever_empty()
    };
    let told = causes(&world);
    let told = told.iter().find(|one| one.rule == "icmp-differs");
    let told = told.expect("6 ms are no chance");
    assert!((number(told, "difference") - 6.0).abs() < 0.3, "{told:#?}");
    assert!(!told.cause.contains("TCP"), "{}", told.cause);
    assert!(told.cause.contains("in the only experiment"), "{told:#?}");
}

#[test]
fn messages_that_queue_in_the_sender_are_told() {
    let world = World {
        round_trip_ms: 150.0,
        window: Some(400),
        sizes: vec![100_000],
        intervals_ms: vec![20],
        ..World::default()
    };
    let told = only(&world, "head-of-line");
    assert!(number(&told, "messages that wait") > 0.5, "{told:#?}");
    assert!(told.cause.contains("the window does not let go"));
    // The kernel may not tell when the bytes came to the interface's queue, or they may stand there.
    for (sched, words) in [
        (None, "the window does not let go"),
        (Some(0.0), "own interface"),
    ] {
        let world = World {
            sched,
            ..world.clone()
        };
        let told = only(&world, "head-of-line");
        assert!(number(&told, "messages that wait") > 0.5, "{told:#?}");
        assert!(told.cause.contains(words), "{}", told.cause);
    }
}

#[test]
fn loss_without_a_queue_is_told_with_its_share() {
    for probe in [ProbeKind::Ws, ProbeKind::Udp] {
        let world = World {
            loss: 0.01,
            probe,
            intervals_ms: vec![20],
            ..World::default()
        };
        let told = only(&world, "random-loss");
        let share = number(&told, "lost or sent again");
        assert!((0.006..0.015).contains(&share), "{told:#?}");
    }
}

#[test]
fn what_opens_a_connection_counts_among_the_segments_that_may_be_sent_again() {
    for (probe, scheme, segments) in [
        (ProbeKind::Http, "http", 2.0),
        (ProbeKind::Tcp, "tcp", 3.0),
        (ProbeKind::Http, "https", 4.0),
    ] {
        let world = World {
            dials: Some(1.0),
            probe,
            scheme,
            intervals_ms: vec![20],
            ..World::default()
        };
        let mut data = world.campaign();
        for one in &mut data.experiments {
            for hit in one.flows[0].exchanges.iter_mut().step_by(10) {
                hit.retransmissions = Some(1);
            }
        }
        let told = diagnose(&data, &PlotSettings::default()).causes;
        let loss = told.iter().find(|one| one.rule == "random-loss").unwrap();
        let share = number(loss, "lost or sent again");
        assert!((share * segments - 0.1).abs() < 1e-6, "{loss:#?}");
    }
}

#[test]
fn a_server_that_thinks_is_told_with_its_time() {
    let world = World {
        think_ms: 30.0,
        ..World::default()
    };
    let told = only(&world, "slow-server");
    assert!((told.cost_ms - 30.0).abs() < 1.0, "{told:#?}");
}

#[test]
fn a_starved_client_is_told_and_nobody_else_is_blamed() {
    let world = World {
        starved_ms: 3.0,
        ..World::default()
    };
    let told = only(&world, "starved-client");
    // Twice an exponential delay of 3 ms: its 95th percentile is 6 ln 20.
    assert!((told.cost_ms - 18.0).abs() < 4.0, "{told:#?}");
}

#[test]
fn a_starved_client_is_told_with_large_replies_too() {
    let world = World {
        starved_ms: 3.0,
        reply: 100_000,
        ..World::default()
    };
    only(&world, "starved-client");
}

#[test]
fn a_stepped_clock_is_told_with_how_far() {
    let world = World {
        steps: true,
        ..World::default()
    };
    let told = only(&world, "clock-step");
    assert!(
        (number(&told, "farthest step") - 1500.0).abs() < 1.0,
        "{told:#?}"
    );
}
