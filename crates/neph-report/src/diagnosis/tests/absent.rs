//! What looks like a cause and is none is not named.

use super::names;
use super::world::World;

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
