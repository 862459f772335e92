//! Worlds of levels with known answers.

use super::*;

const MS: i64 = 1_000_000;

/// 16 flows are at 70 ms.
fn among_others() -> Levels {
    let mut levels = Levels::new(MS / 2);
    for _ in 0..16 {
        levels.add_flow(70 * MS, 0);
    }
    levels
}

#[test]
fn with_few_flows_one_flow_makes_a_level_known() {
    let mut levels = Levels::new(MS / 2);
    let bucket_key = levels.add_flow(80 * MS, 0);
    levels.remove_flow(bucket_key, 5);
    levels.add_flow(82 * MS, 5);
    assert!(
        levels.is_known_level(80 * MS)
            && levels.is_known_level(82 * MS)
            && !levels.is_known_level(81 * MS)
    );
}

#[test]
fn with_many_flows_a_level_needs_two_flows_to_be_known() {
    let mut levels = among_others();
    levels.add_flow(80 * MS, 0);
    assert!(!levels.is_known_level(80 * MS), "one flow is no company");
    let bucket_key = levels.add_flow(80 * MS + MS / 5, 0);
    assert!(levels.is_known_level(80 * MS) && !levels.is_known_level(82 * MS));
    levels.remove_flow(bucket_key, 5);
    assert!(levels.is_known_level(80 * MS), "it was there lately");
}

#[test]
fn two_paths_slightly_further_apart_than_the_tolerance_are_separate() {
    let mut levels = Levels::new(MS / 2);
    for flow in 0..120 {
        let path = if flow % 4 == 0 { 80_600 } else { 80_000 };
        let off = [-150, -70, 0, 70, 150][flow % 5];
        levels.add_flow((path + off) * 1000, 0);
    }
    let fifths = |path: &PossibleLevel| (path.level + MS / 10) / (MS / 5);
    let bases: Vec<i64> = levels.paths(0).iter().map(fifths).collect();
    assert_eq!(bases, [400, 403]);
}

#[test]
fn a_flow_that_refines_its_level_is_not_counted_as_new() {
    let mut levels = among_others();
    let bucket_key = levels.add_flow(80 * MS, 0);
    levels.move_flow(bucket_key, 80 * MS + MS / 5, 0);
    assert!(!levels.is_known_level(80 * MS));
}

#[test]
fn a_level_without_flows_is_forgotten() {
    let mut levels = Levels::new(MS / 2);
    let bucket_keys = [levels.add_flow(80 * MS, 0), levels.add_flow(80 * MS, 0)];
    for bucket_key in bucket_keys {
        levels.remove_flow(bucket_key, 0);
    }
    assert!(levels.is_known_level(80 * MS));
    let other = levels.add_flow(90 * MS, LEVEL_RETENTION_NS);
    levels.remove_flow(other, LEVEL_RETENTION_NS);
    assert!(!levels.is_known_level(80 * MS) && levels.buckets.len() == 1);
}

#[test]
fn all_levels_follow_a_common_drift() {
    let mut levels = Levels::new(MS / 2);
    let bucket_keys = [levels.add_flow(80 * MS, 0), levels.add_flow(80 * MS, 0)];
    let moved = levels.shift(8 * MS);
    assert!(levels.is_known_level(88 * MS) && !levels.is_known_level(80 * MS));
    assert!(levels.is_in_bucket(moved(bucket_keys[0]), 88 * MS));
}
