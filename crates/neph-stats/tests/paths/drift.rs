//! Worlds in which all flows drift together, as behind a host that warms up: by 1.5 ms up and down in
//! ten minutes. No path changes by that.

use super::detectors::{AFTERWARDS, GUARD, RULE, scores};
use super::score::Score;
use super::world::{Jitter, MS, Plan, Queues, S};

const DRIFT: i64 = 3 * MS / 2;

const STEADY: i64 = 0;

fn world(flows: u32, jitter: Jitter, queues: Queues, seed: u64) -> Plan {
    Plan {
        flows,
        length: 1200 * S,
        jitter,
        queues,
        gaps: (2 * MS, 8 * MS),
        drift: DRIFT,
        seed,
    }
}

fn guarded(flows: u32, jitter: Jitter, drift: i64) -> Score {
    let mut sum = Score::default();
    for seed in 1000..1003 {
        let plan = Plan {
            drift,
            ..world(flows, jitter, Queues::None, seed)
        };
        for (_, score) in scores(plan, Some(GUARD)) {
            sum.merge(score);
        }
    }
    sum
}

#[test]
fn a_drift_of_all_flows_is_no_change_and_hides_none() {
    for jitter in [Jitter::Quiet, Jitter::Normal, Jitter::Spikes] {
        let score = guarded(128, jitter, DRIFT);
        assert!(score.wanted > 1000, "{jitter:?}: {}", score.wanted);
        assert!(score.precision() >= 0.995, "{jitter:?}: {:?}", score.wrong);
        assert!(score.recall() >= 0.99, "{jitter:?}: {}", score.recall());
        let steady = guarded(128, jitter, STEADY);
        assert!(score.recall() >= steady.recall() - 0.002, "{jitter:?}");
    }
}

#[test]
fn a_drift_of_few_flows_is_followed_where_their_jitter_allows() {
    for (flows, jitter, min_share) in [
        (1, Jitter::Quiet, 0.95),
        (8, Jitter::Quiet, 0.99),
        (8, Jitter::Normal, 0.98),
        (48, Jitter::Normal, 0.98),
    ] {
        let score = guarded(flows, jitter, DRIFT);
        assert!(score.precision() >= 0.99, "{flows}: {:?}", score.wrong);
        assert!(score.recall() >= min_share, "{flows}: {}", score.recall());
    }
}

/// The table of drifting fleets of docs/flows-detection.md. `SEED` is the first of four; with `STEADY` set
/// the same fleets do not drift.
#[test]
#[ignore = "a table"]
fn drift_table() {
    let first: u64 = std::env::var("SEED").map_or(100, |v| v.parse().expect("SEED is a number"));
    let is_steady = std::env::var("STEADY").is_ok();
    let drift = if is_steady { STEADY } else { DRIFT };
    println!(
        "| flows | jitter | queues | detector | true | told | false | missed | precision % | recall % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for queues in [Queues::None, Queues::Shared] {
        for jitter in [Jitter::Quiet, Jitter::Normal, Jitter::Spikes] {
            for flows in [1, 8, 16, 63, 128, 512] {
                for detector in [RULE, GUARD, AFTERWARDS] {
                    let title = format!("{flows} {jitter:?} {queues:?} {detector}");
                    if std::env::var("ROW").is_ok_and(|row| !title.contains(&row)) {
                        continue;
                    }
                    let mut sum = Score::default();
                    for seed in first..first + 4 {
                        let plan = Plan {
                            drift,
                            ..world(flows, jitter, queues, seed)
                        };
                        for (_, score) in scores(plan, Some(detector)) {
                            sum.merge(score);
                        }
                    }
                    if std::env::var("FAULTS").is_ok() {
                        sum.list_faults();
                    }
                    println!(
                        "| {} | {} | {} | {} | {} | {:.2} | {:.2} |",
                        title.replacen(' ', " | ", 3),
                        sum.wanted,
                        sum.reported,
                        sum.wrong.len(),
                        sum.missed,
                        100.0 * sum.precision(),
                        100.0 * sum.recall()
                    );
                }
            }
        }
    }
}
