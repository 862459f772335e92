//! Where sites are agents, the experiments of a round run at the same time; blocks keep their period.

use neph_model::{ExperimentStatus, Wall};

use super::fake::FakeOutcome;
use super::{CampaignStatus, Lab, all_complete_once};

/// Two sites measure two endpoints, ten seconds each: two rounds.
const PLAN: &str = r#"
version = 1
name = "rounds"
interval = "1s"
messages = 10
blocks = 3
every = "30s"
pause = "1s"
tries = 2
seed = 5
[[site]]
name = "ams"
agent = "ams"
[[site]]
name = "lju"
agent = "lju"
[[endpoint]]
name = "a"
url = "ws://a"
from = ["ams", "lju"]
[[endpoint]]
name = "b"
url = "ws://b"
from = ["ams", "lju"]
"#;

/// When the first experiment of each block began that was complete, seconds.
fn block_starts(lab: &Lab) -> Vec<i64> {
    let experiments = lab.experiments();
    let block_start = |block| {
        let block_experiments = experiments
            .iter()
            .filter(move |experiment| experiment.block == block);
        let start: Option<Wall> = block_experiments.map(|experiment| experiment.started).min();
        start.map_or(0, |wall| wall.unix_nanos() / 1_000_000_000 - 1_000)
    };
    (0..3).map(block_start).collect()
}

#[test]
fn circuits_of_a_round_run_concurrently_and_use_each_site_once() {
    let mut lab = Lab::new(PLAN, &[]);
    let (campaign, _) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert_eq!(lab.executor.concurrent_counts, [2; 6]);
    let experiments = lab.experiments();
    assert!(all_complete_once(&experiments, 12));
    let scenarios = {
        let store = Lab::store(lab.folder.path());
        store.scenarios(campaign.id).expect("scenarios")
    };
    for experiment in &experiments {
        let site_and_endpoint = |experiment: &neph_model::Experiment| {
            let mut candidates = scenarios.iter();
            let scenario = candidates
                .find(|scenario| scenario.id == experiment.scenario)
                .expect("there");
            (
                scenario.site().map(str::to_owned),
                scenario.endpoint.clone(),
            )
        };
        let simultaneous = experiments
            .iter()
            .filter(|other| other.id != experiment.id && other.started == experiment.started);
        for other in simultaneous {
            let (site, endpoint) = site_and_endpoint(experiment);
            let (other_site, other_endpoint) = site_and_endpoint(other);
            assert!(
                site != other_site && endpoint != other_endpoint,
                "{experiment:?} {other:?}"
            );
        }
    }
    assert_eq!(block_starts(&lab), [1, 31, 61]);
    assert_eq!(lab.event_log.0[0], "begun 12 open, 82.000 s left");
}

#[test]
fn a_block_longer_than_its_period_skips_one_start_and_shifts_no_other() {
    let mut lab = Lab::new(PLAN, &[FakeOutcome::Broken]);
    let (campaign, _) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    let experiments = lab.experiments();
    assert!(all_complete_once(&experiments, 12));
    let failed = experiments
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Failed);
    assert_eq!(failed.count(), 1);
    // The experiment that failed is tried once more after the block, from 32 s on.
    assert_eq!(block_starts(&lab), [1, 61, 91]);
}
