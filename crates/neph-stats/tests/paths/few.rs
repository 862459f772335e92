//! Fleets of 1 to 63 flows, which have little company or none.

use neph_stats::{Finding, FleetBase, FleetDetectionSettings};

use super::detectors::{GUARD, RULE, scores};
use super::score::Score;
use super::world::{Jitter, MS, Plan, Queues, S};

/// What a detector told in these worlds: twenty minutes each, on four paths 2 ms apart.
fn worlds(detector: &str, flows: u32, jitter: Jitter, queues: Queues, seeds: &[u64]) -> Score {
    let mut sum = Score::default();
    for &seed in seeds {
        let plan = Plan {
            flows,
            length: 1200 * S,
            jitter,
            queues,
            gaps: (2 * MS, 2 * MS),
            drift: 0,
            seed,
        };
        for (_, score) in scores(plan, Some(detector)) {
            sum.merge(score);
        }
    }
    sum
}

/// The rule's promise holds for flows without company: all is reported, and nothing that was none.
#[test]
fn all_changes_of_few_quiet_flows_are_reported_correctly() {
    for flows in [1, 2, 8, 16, 48] {
        let score = worlds(GUARD, flows, Jitter::Quiet, Queues::None, &[100, 101, 102]);
        assert!(score.wrong.is_empty(), "{flows} flows: {:?}", score.wrong);
        assert!(score.recall() >= 0.98, "{flows} flows: {}", score.recall());
        assert!(score.delay(0.5) < 1000, "{flows} flows");
    }
}

/// A jitter of 0.3 ms makes most of what the rule tells false.
#[test]
fn changes_of_few_noisy_flows_are_nearly_all_correct() {
    for flows in [1, 2, 8, 16, 48] {
        let score = worlds(GUARD, flows, Jitter::Normal, Queues::None, &[100, 101, 102]);
        assert!(
            score.precision() >= 0.98,
            "{flows} flows: {:?}",
            score.wrong
        );
        assert!(score.recall() >= 0.75, "{flows} flows: {}", score.recall());
    }
}

/// A queue cannot be distinguished from a path by a flow alone, and is seldom taken for one.
#[test]
fn queues_are_seldom_paths_of_few_flows() {
    for flows in [1, 2, 8, 16, 48] {
        for (jitter, min_share) in [(Jitter::Quiet, 0.9), (Jitter::Normal, 0.8)] {
            let score = worlds(GUARD, flows, jitter, Queues::Shared, &[100, 101, 102]);
            assert!(
                score.precision() >= min_share,
                "{flows} flows: {:?}",
                score.wrong
            );
            let rule = worlds(RULE, flows, jitter, Queues::Shared, &[100, 101, 102]);
            assert!(3 * score.wrong.len() < rule.wrong.len(), "{flows} flows");
        }
    }
}

/// All flows of a small fleet move by 4 ms and stay: each tells so itself.
#[test]
fn a_move_of_all_flows_of_a_small_fleet_is_reported_by_each() {
    for flows in [16, 63] {
        let mut fleet = FleetBase::new(FleetDetectionSettings::default());
        for i in 0..600_i64 {
            for flow in 0..flows {
                let level = if i < 200 { 80 } else { 84 };
                fleet.push(flow, i * S / 5 + i64::from(flow) * MS, level * MS);
            }
        }
        fleet.finish();
        let detections = std::iter::from_fn(|| fleet.next_detection());
        let changes = detections
            .filter(|t| t.detection.finding == Finding::Change)
            .count();
        assert_eq!(changes, flows as usize);
        assert!((0..flows).all(|flow| fleet.base(flow) == Some(84 * MS)));
        assert_eq!(fleet.queued(), [], "it was no queue");
    }
}

/// The table of few flows of docs/flows-detection.md. `SEED` is the first of eight.
#[test]
#[ignore = "a table"]
fn few_flows_table() {
    table(&[1, 2, 4, 8, 16, 24, 48, 63]);
}

/// The same of fleets whose crowds take queues away; the crowds of 64 and 128 flows are small.
#[test]
#[ignore = "a table"]
fn small_crowds_table() {
    table(&[64, 128, 256, 512]);
}

fn table(fleets: &[u32]) {
    let first: u64 = std::env::var("SEED").map_or(100, |v| v.parse().expect("SEED is a number"));
    let seeds: Vec<u64> = (first..first + 8).collect();
    println!(
        "| flows | jitter | queues | detector | true | told | false | missed | delay ms p50 | p95 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for queues in [Queues::None, Queues::Shared, Queues::OnePath] {
        for jitter in [Jitter::Quiet, Jitter::Normal] {
            for &flows in fleets {
                for detector in [RULE, GUARD] {
                    if detector == RULE && flows > 1 {
                        continue;
                    }
                    let title = format!("{flows} {jitter:?} {queues:?} {detector}");
                    if std::env::var("ROW").is_ok_and(|row| !title.contains(&row)) {
                        continue;
                    }
                    let score = worlds(detector, flows, jitter, queues, &seeds);
                    print_row(&title.replace(' ', " | "), &score);
                }
            }
        }
    }
}

fn print_row(title: &str, score: &Score) {
    if std::env::var("FAULTS").is_ok() {
        score.list_faults();
    }
    println!(
        "| {title} | {} | {} | {} | {} | {} | {} |",
        score.wanted,
        score.reported,
        score.wrong.len(),
        score.missed,
        score.delay(0.5),
        score.delay(0.95),
    );
}
