use super::*;
use crate::casts::round_to_i64;
use crate::random::Random;

const MS: i64 = 1_000_000;
const S: i64 = 1000 * MS;

fn congestion() -> Congestion {
    Congestion::new(MS / 2, 30 * S)
}

fn at_base(by: impl Fn(i64) -> i64) -> Vec<Reading> {
    let base = 80 * MS;
    (0..64)
        .map(|i| Reading {
            sample: base + by(i),
            base,
        })
        .collect()
}

fn nowhere(_: i64) -> Option<i64> {
    None
}

#[test]
fn a_queue_of_all_flows_is_common_congestion() {
    let mut congestion = congestion();
    let (low, raised) = (at_base(|_| 0), at_base(|i| 20 * MS + i * 1000));
    assert_eq!(congestion.observe(0, &low, nowhere), CommonShift::Calm);
    assert_eq!(congestion.observe(S, &raised, nowhere), CommonShift::Moving);
    let CommonShift::Steady(common) = congestion.observe(2 * S, &raised, nowhere) else {
        panic!("the same twice is steady")
    };
    assert!((common - 20 * MS).abs() < MS / 10, "{common}");
    assert_eq!(
        congestion.observe(3 * S, &low, nowhere),
        CommonShift::Moving
    );
    assert_eq!(congestion.observe(4 * S, &low, nowhere), CommonShift::Calm);
}

/// Three quarters move, to twelve differences of four paths: those who stay decide.
#[test]
fn simultaneous_path_changes_are_no_common_congestion() {
    let mut congestion = congestion();
    congestion.observe(0, &at_base(|_| 0), nowhere);
    let paths = [70, 75, 80, 85];
    let moved: Vec<Reading> = (0..64)
        .map(|i| Reading {
            sample: paths[i % 4] * MS,
            base: paths[i / 4 % 4] * MS,
        })
        .collect();
    assert_eq!(congestion.observe(S, &moved, nowhere), CommonShift::Calm);
}

/// Nobody stays: the paths that are known decide, also while a queue stands.
#[test]
fn path_changes_of_all_flows_are_detected_by_known_paths() {
    let paths = [70, 74, 80, 87];
    let near = |level: i64, path: i64| (level - path).abs() <= MS / 2;
    let known = |level: i64| paths.map(|p| p * MS).into_iter().find(|&p| near(level, p));
    let moved = |queue: i64| -> Vec<Reading> {
        (0..64)
            .map(|i| Reading {
                sample: paths[(i + 1 + i / 4 % 3) % 4] * MS + queue,
                base: paths[i % 4] * MS,
            })
            .collect()
    };
    let mut congestion = congestion();
    congestion.observe(0, &at_base(|_| 0), known);
    assert_eq!(congestion.observe(S, &moved(0), known), CommonShift::Calm);
    assert_eq!(
        congestion.observe(S, &moved(9 * MS), known),
        CommonShift::Moving
    );
}

/// Jitter is as wide as half the difference of two paths, and most flows go from one to the
/// other: nearly all move together, as in a queue of 1 ms.
#[test]
fn path_changes_under_jitter_are_no_common_congestion() {
    let paths = [80 * MS, 81 * MS, 87 * MS];
    let known = |level: i64| paths.into_iter().find(|&p| (level - p).abs() <= MS / 2);
    let mut random = Random::new(11);
    let mut jitter = || -> i64 {
        (0..12)
            .map(|_| round_to_i64(random.unit() * 3e5) - MS * 3 / 20)
            .sum()
    };
    let mut reading = |path: i64, base: i64| {
        let sample = path + jitter();
        Reading { sample, base }
    };
    let from = |i: usize| paths[[0, 0, 0, 0, 0, 0, 1, 2][i % 8]];
    for _ in 0..20 {
        let mut congestion = congestion();
        let before: Vec<_> = (0..64).map(|i| reading(from(i), from(i))).collect();
        congestion.observe(0, &before, known);
        for at in 1..40 {
            let after: Vec<_> = (0..64).map(|i| reading(paths[1], from(i))).collect();
            assert_eq!(congestion.observe(at, &after, known), CommonShift::Calm);
        }
    }
}

#[test]
fn a_shift_longer_than_the_hold_moves_the_bases() {
    let mut congestion = congestion();
    congestion.observe(0, &at_base(|_| 0), nowhere);
    let shifts: Vec<CommonShift> = (1..=32)
        .map(|s| congestion.observe(s * S, &at_base(|_| 8 * MS), nowhere))
        .collect();
    assert_eq!(shifts[0], CommonShift::Moving);
    assert!(
        shifts[1..30]
            .iter()
            .all(|&s| s == CommonShift::Steady(8 * MS))
    );
    let wanted = CommonShift::Lasting {
        by: 8 * MS,
        since: S,
    };
    assert_eq!(shifts[30], wanted);
}

#[test]
fn too_few_samples_report_no_congestion() {
    let mut congestion = congestion();
    let few = &at_base(|_| 9 * MS)[..15];
    assert_eq!(congestion.observe(0, few, nowhere), CommonShift::Calm);
}
