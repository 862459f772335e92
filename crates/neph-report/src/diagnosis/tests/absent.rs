//! What looks like a cause and is none is not named.

use super::names;
use super::world::{Queue, World};

#[test]
fn a_quiet_path_has_no_cause() {
    for seed in 0..8 {
        let world = World {
            seed,
            sizes: vec![1024, 10_240, 100_000],
            intervals_ms: vec![100, 400],
            ..World::default()
        };
        assert!(names(&world).is_empty(), "{:?}", names(&world));
    }
}

#[test]
fn jitter_is_neither_paths_nor_a_queue() {
    for seed in 0..8 {
        let world = World {
            seed,
            jitter_ms: 2.0,
            blocks: 8,
            ..World::default()
        };
        assert!(names(&world).is_empty(), "{:?}", names(&world));
    }
}

#[test]
fn a_route_that_changed_is_not_chosen_by_ports() {
    let world = World {
        later_ms: 8.0,
        ports: vec![40_001, 40_002],
        blocks: 8,
        ..World::default()
    };
    assert!(names(&world).is_empty(), "{:?}", names(&world));
}

#[test]
fn a_window_that_grows_for_the_first_time_is_not_forgotten() {
    let world = World {
        round_trip_ms: 40.0,
        sizes: vec![100_000],
        intervals_ms: vec![1000],
        seconds: 6.0,
        ..World::default()
    };
    assert!(names(&world).is_empty(), "{:?}", names(&world));
}

#[test]
fn small_messages_need_no_window() {
    let world = World {
        restarts: true,
        sizes: vec![1024],
        intervals_ms: vec![1000],
        ..World::default()
    };
    assert!(names(&world).is_empty(), "{:?}", names(&world));
}

#[test]
fn a_longer_way_for_a_while_is_no_queue() {
    let world = World {
        detour: Some(Queue {
            from: 4.0,
            to: 8.0,
            peak_ms: 30.0,
        }),
        ..World::default()
    };
    assert!(names(&world).is_empty(), "{:?}", names(&world));
}

#[test]
fn a_proxy_whose_acknowledgements_travel_with_the_reply_is_no_slow_link() {
    let world = World {
        round_trip_ms: 5.9,
        proxy_ms: 4.4,
        quick_acks: 0.0,
        sizes: vec![1200],
        ..World::default()
    };
    // Nor a proxy: 1200 B may take so long on a link of 2 Mbit/s.
    assert!(names(&world).is_empty(), "{:?}", names(&world));
}

#[test]
fn a_queue_that_is_there_all_the_time_is_not_told_from_a_long_path() {
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
        !names(&world).contains(&"bufferbloat"),
        "{:?}",
        names(&world)
    );
}

#[test]
fn a_window_that_a_loss_closed_was_not_forgotten() {
    let world = World {
        round_trip_ms: 40.0,
        loss: 0.02,
        sizes: vec![60_000],
        intervals_ms: vec![1000],
        seconds: 40.0,
        ..World::default()
    };
    assert!(
        !names(&world).contains(&"slow-start-after-idle"),
        "{:?}",
        names(&world)
    );
}

#[test]
fn losses_at_the_peak_of_a_queue_are_not_random() {
    let world = World {
        intervals_ms: vec![50],
        seconds: 40.0,
        blocks: 3,
        congested_loss: 0.2,
        queue: Some(Queue {
            from: 10.0,
            to: 30.0,
            peak_ms: 150.0,
        }),
        ..World::default()
    };
    assert_eq!(names(&world), ["bufferbloat"]);
}

#[test]
fn wake_ups_of_a_twentieth_of_a_millisecond_starve_nobody() {
    let world = World {
        starved_ms: 0.05,
        ..World::default()
    };
    assert!(names(&world).is_empty(), "{:?}", names(&world));
}
