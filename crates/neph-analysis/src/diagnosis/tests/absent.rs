//! Effects that are similar to a cause are not reported as one.

use neph_model::ProbeKind;

use super::rules_of;
use super::world::{Queue, World};

#[test]
fn an_undisturbed_path_has_no_root_cause() {
    for seed in 0..8 {
        let world = World {
            seed,
            sizes: vec![1024, 10_240, 100_000],
            intervals_ms: vec![100, 400],
            ..World::default()
        };
        assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
    }
}

#[test]
fn jitter_is_reported_neither_as_ecmp_nor_as_bufferbloat() {
    for seed in 0..8 {
        let world = World {
            seed,
            jitter_ms: 2.0,
            blocks: 8,
            ..World::default()
        };
        assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
    }
}

#[test]
fn a_route_change_is_not_reported_as_ecmp() {
    let world = World {
        path_change_ms: 8.0,
        ports: vec![40_001, 40_002],
        blocks: 8,
        ..World::default()
    };
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn a_temporary_route_change_is_not_reported_as_ecmp() {
    // Of 12 blocks the middle four, two, or one.
    for later in [0.33..0.66, 0.45..0.6, 0.4..0.45] {
        for path_change_ms in [4.0, 8.0] {
            let world = World {
                path_change_ms,
                path_change_blocks: later.clone(),
                blocks: 12,
                ..World::default()
            };
            assert!(
                rules_of(&world).is_empty(),
                "{later:?} {:?}",
                rules_of(&world)
            );
        }
    }
}

#[test]
fn slow_start_of_a_new_connection_is_not_reported_as_idle_restart() {
    let world = World {
        round_trip_ms: 40.0,
        sizes: vec![100_000],
        intervals_ms: vec![1000],
        seconds: 6.0,
        ..World::default()
    };
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn messages_within_the_initial_window_show_no_idle_restart() {
    let world = World {
        has_idle_restart: true,
        sizes: vec![1024],
        intervals_ms: vec![1000],
        ..World::default()
    };
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn a_temporarily_longer_path_is_not_reported_as_bufferbloat() {
    let world = World {
        longer_path: Some(Queue {
            from: 4.0,
            to: 8.0,
            peak_ms: 30.0,
        }),
        ..World::default()
    };
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn retransmissions_on_a_longer_path_are_not_reported_as_bufferbloat() {
    for handshake_round_trips in [None, Some(1.0)] {
        for seed in 0..6 {
            let world = World {
                seed,
                handshake_round_trips,
                probe: ProbeKind::Tcp,
                scheme: "tcp",
                loss: 0.13,
                intervals_ms: vec![50],
                longer_path: Some(Queue {
                    from: 4.0,
                    to: 8.0,
                    peak_ms: 30.0,
                }),
                ..World::default()
            };
            let rules = rules_of(&world);
            assert!(!rules.contains(&"bufferbloat"), "{rules:?} {world:?}");
        }
    }
}

#[test]
fn a_temporarily_longer_path_with_jitter_is_not_reported_as_bufferbloat() {
    for seed in 0..12 {
        for (jitter_ms, peak_ms) in [(0.5, 8.0), (0.7, 8.0), (1.0, 10.0), (1.0, 20.0)] {
            let world = World {
                seed,
                round_trip_ms: 8.0,
                jitter_ms,
                longer_path: Some(Queue {
                    from: 4.0,
                    to: 8.0,
                    peak_ms,
                }),
                ..World::default()
            };
            assert!(
                rules_of(&world).is_empty(),
                "{:?} {world:?}",
                rules_of(&world)
            );
        }
    }
}

#[test]
fn piggybacked_acknowledgements_of_a_proxy_are_not_reported_as_slow_link() {
    let world = World {
        round_trip_ms: 5.9,
        proxy_ms: 4.4,
        quick_acks: 0.0,
        sizes: vec![1200],
        ..World::default()
    };
    // Nor a proxy: 1200 B may take so long on a link of 2 Mbit/s.
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn a_permanent_queue_is_not_diagnosed_as_bufferbloat() {
    let world = World {
        queue: Some(Queue {
            from: -5.0,
            to: 60.0,
            peak_ms: 100.0,
        }),
        ..World::default()
    };
    // Nothing shows how long the path is without it.
    assert!(
        !rules_of(&world).contains(&"bufferbloat"),
        "{:?}",
        rules_of(&world)
    );
}

#[test]
fn a_window_reduced_by_loss_is_not_reported_as_idle_restart() {
    let world = World {
        round_trip_ms: 40.0,
        loss: 0.02,
        sizes: vec![60_000],
        intervals_ms: vec![1000],
        seconds: 40.0,
        ..World::default()
    };
    assert!(
        !rules_of(&world).contains(&"slow-start-after-idle"),
        "{:?}",
        rules_of(&world)
    );
}

#[test]
fn losses_at_the_peak_of_a_queue_are_not_random() {
    let world = World {
        intervals_ms: vec![50],
        seconds: 40.0,
        blocks: 3,
        queue_loss: 0.2,
        queue: Some(Queue {
            from: 10.0,
            to: 30.0,
            peak_ms: 150.0,
        }),
        ..World::default()
    };
    assert_eq!(rules_of(&world), ["bufferbloat"]);
}

#[test]
fn codel_drops_from_a_short_queue_are_not_random_loss() {
    let world = World {
        round_trip_ms: 35.0,
        intervals_ms: vec![50],
        seconds: 40.0,
        blocks: 3,
        queue_loss: 0.03,
        queue: Some(Queue {
            from: 10.0,
            to: 26.0,
            peak_ms: 6.0,
        }),
        ..World::default()
    };
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn an_outage_is_one_loss() {
    for probe in [ProbeKind::Ws, ProbeKind::Udp] {
        let world = World {
            outage: 4.0..5.0,
            blocks: 3,
            probe,
            ..World::default()
        };
        assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
    }
}

#[test]
fn losses_in_a_long_standing_queue_are_not_random() {
    let world = World {
        intervals_ms: vec![20],
        seconds: 40.0,
        blocks: 4,
        loss: 0.006,
        queue_loss: 0.02,
        queue: Some(Queue {
            from: 10.0,
            to: 34.0,
            peak_ms: 150.0,
        }),
        ..World::default()
    };
    assert_eq!(rules_of(&world), ["bufferbloat"]);
}

#[test]
fn wake_up_delays_of_50_us_are_no_root_cause() {
    let world = World {
        client_delay_ms: 0.05,
        ..World::default()
    };
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn a_window_limited_by_receiver_or_pacing_is_not_reported_as_idle_restart() {
    let world = World {
        round_trip_ms: 40.0,
        sizes: vec![100_000],
        intervals_ms: vec![1000],
        seconds: 25.0,
        ..World::default()
    };
    let limited_by_receiver = World {
        receive_window: Some(16),
        ..world.clone()
    };
    let limited_by_pacing = |congestion| World {
        pacing: Some(6.0),
        congestion,
        ..world.clone()
    };
    for world in [
        limited_by_receiver,
        limited_by_pacing(Some("bbr")),
        limited_by_pacing(None),
        limited_by_pacing(Some("cubic")),
    ] {
        assert!(
            rules_of(&world).is_empty(),
            "{:?} {world:?}",
            rules_of(&world)
        );
    }
}

#[test]
fn no_slow_start_after_idle_with_bbr_or_the_sysctl_off() {
    let idle_restarts = World {
        round_trip_ms: 40.0,
        has_idle_restart: true,
        sizes: vec![100_000],
        intervals_ms: vec![1000],
        seconds: 25.0,
        ..World::default()
    };
    assert_eq!(rules_of(&idle_restarts), ["slow-start-after-idle"]);
    for (sysctl, congestion) in [("0", "cubic"), ("1", "bbr")] {
        let world = World {
            sysctl,
            congestion: Some(congestion),
            ..idle_restarts.clone()
        };
        assert!(
            rules_of(&world).is_empty(),
            "{:?} {world:?}",
            rules_of(&world)
        );
    }
}

#[test]
fn filling_a_connection_pool_is_not_reported_as_connection_setup() {
    let world = World {
        handshake_round_trips: Some(2.0),
        handshake_share: 0.1,
        probe: ProbeKind::Http,
        ..World::default()
    };
    assert!(rules_of(&world).is_empty(), "{:?}", rules_of(&world));
}

#[test]
fn lost_segments_are_reported_neither_as_starved_client_nor_as_slow_server() {
    let lossy_replies = World {
        reply_bytes: 100_000,
        reply_segment_loss: 0.002,
        ..World::default()
    };
    assert!(
        rules_of(&lossy_replies).is_empty(),
        "{:?}",
        rules_of(&lossy_replies)
    );
    let lossy_requests = World {
        sizes: vec![60_000],
        loss: 0.03,
        round_trip_ms: 40.0,
        ..World::default()
    };
    assert!(
        !rules_of(&lossy_requests).contains(&"slow-server"),
        "{:?}",
        rules_of(&lossy_requests)
    );
}
