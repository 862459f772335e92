//! The pairs of a fleet run at the same time, and each ends by itself.

use neph_model::{Experiment, ExperimentStatus, Wall};

use super::fake::FakeOutcome;
use super::{CampaignStatus, Lab, all_complete_once};

/// Three pairs with two flow sets, ten seconds each.
const PLAN: &str = r#"
version = 1
name = "pairs"
interval = "1s"
messages = 10
flows = [8, 64]
blocks = 2
pause = "1s"
tries = 2
seed = 5
[[endpoint]]
name = "a"
url = "udp://10.0.0.1"
[[endpoint]]
name = "b"
url = "udp://10.0.0.2"
[[endpoint]]
name = "c"
url = "udp://10.0.0.3"
"#;

fn starts(experiments: &[Experiment]) -> Vec<i64> {
    let seconds = |wall: Wall| wall.unix_nanos() / 1_000_000_000 - 1_000;
    experiments
        .iter()
        .map(|experiment| seconds(experiment.started))
        .collect()
}

#[test]
fn all_pairs_of_a_flow_set_run_at_the_same_time() {
    let mut lab = Lab::new(PLAN, &[]);
    let (campaign, _) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert_eq!(lab.executor.concurrent_counts, [3; 4]);
    let experiments = lab.experiments();
    assert!(all_complete_once(&experiments, 12));
    assert_eq!(
        starts(&experiments),
        [1, 1, 1, 12, 12, 12, 23, 23, 23, 34, 34, 34]
    );
    let positions: Vec<u32> = experiments
        .iter()
        .map(|experiment| experiment.position)
        .collect();
    assert_eq!(positions, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    assert_eq!(lab.event_log.0[0], "begun 12 open, 44.000 s left");
}

#[test]
fn sequential_pairs_run_one_after_the_other() {
    let plan_text = PLAN.replace("pause", "pairs = \"in turn\"\npause");
    let mut lab = Lab::new(&plan_text, &[]);
    lab.run_campaign().expect("it runs");
    assert_eq!(lab.executor.concurrent_counts, [1; 12]);
    assert!(all_complete_once(&lab.experiments(), 12));
}

#[test]
fn a_failed_pair_is_retried_and_the_others_keep_their_results() {
    let outcomes = [
        FakeOutcome::Complete,
        FakeOutcome::Refused,
        FakeOutcome::Broken,
    ];
    let mut lab = Lab::new(PLAN, &outcomes);
    let (campaign, _) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    let experiments = lab.experiments();
    assert!(all_complete_once(&experiments, 12));
    let failed = experiments
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Failed);
    assert_eq!(failed.count(), 2);
    // Of the first three one was refused; the two that failed are tried again together.
    assert_eq!(lab.executor.concurrent_counts, [2, 3, 2, 3, 3]);
}

#[test]
fn interrupted_pairs_are_measured_concurrently_again_on_resume() {
    for outcome in [FakeOutcome::CtrlC, FakeOutcome::Killed] {
        let mut lab = Lab::new(PLAN, &[outcome; 3]);
        if let Ok((campaign, _)) = lab.run_campaign() {
            assert_eq!(campaign.status, CampaignStatus::Interrupted);
        }
        let (campaign, _) = lab.run_campaign().expect("it goes on");
        assert_eq!(campaign.status, CampaignStatus::Complete);
        let experiments = lab.experiments();
        assert!(all_complete_once(&experiments, 12), "{outcome:?}");
        let interrupted_messages: Vec<u64> = experiments
            .iter()
            .filter(|experiment| experiment.status == ExperimentStatus::Interrupted)
            .map(|experiment| experiment.tally.messages)
            .collect();
        assert_eq!(interrupted_messages, [5; 3], "{outcome:?}");
        assert_eq!(lab.executor.concurrent_counts, [3; 5], "{outcome:?}");
    }
}
