mod alarms;
mod fake;
mod identity;
mod pairs;
mod rounds;
mod seasons;
mod waits;

use std::collections::BTreeMap;
use std::path::Path;

use neph_model::ExperimentStatus;
use neph_store::Access;
use neph_text::Source;

use super::*;
use crate::plan::parse;
use fake::{FakeExecutor, FakeOutcome};

const PLAN: &str = r#"
version = 1
name = "test"
interval = "1s"
messages = 10
request_size = [64, 128, 256]
blocks = 2
block_interval = "1min"
pause = "1s"
tries = 2
seed = 5
[[endpoint]]
name = "a"
url = "ws://a"
[throughput]
duration = "5s"
[traceroute]
"#;

const TOPOLOGY: &str = "version = 1\n";

/// Collects the events as text.
#[derive(Default)]
struct EventLog(Vec<String>);

impl Observer for EventLog {
    fn report(&mut self, events: &CampaignEvent<'_>) {
        let message = match events {
            CampaignEvent::Begun {
                progress,
                remaining,
                ..
            } => format!("begun {} open, {remaining} left", progress.open),
            CampaignEvent::Waiting { block, until } => {
                format!("block {block} at {} s", until.unix_nanos() / 1_000_000_000)
            }
            CampaignEvent::OutOfSeason { season, until } => {
                let until = until.unix_nanos() / 1_000_000_000;
                format!("out of season until {season} at {until} s")
            }
            CampaignEvent::ExperimentBegun { remaining, .. } => format!("{remaining} left"),
            CampaignEvent::Running { figures, .. } => {
                format!("running {} replies", figures[0].tally.replies)
            }
            CampaignEvent::Alarm { change, .. } => {
                let state = if change.is_raised { "alarm" } else { "over" };
                format!("{state} at {} s", change.at.nanos() / 1_000_000_000)
            }
            CampaignEvent::Ended { status, .. } => format!("ended {}", status.name()),
            _ => return,
        };
        self.0.push(message);
    }
}

/// A workspace, and an executor and a clock that are simulated.
struct Lab {
    plan: Plan,
    folder: tempfile::TempDir,
    executor: FakeExecutor,
    event_log: EventLog,
}

impl Lab {
    fn new(plan: &str, outcomes: &[FakeOutcome]) -> Self {
        let executor = FakeExecutor {
            outcomes: outcomes.iter().copied().collect(),
            ..FakeExecutor::default()
        };
        // Time zero would be the epoch, which some stores take for "not set".
        executor.time.pass(Span::from_secs(1_000));
        Self {
            plan: parse(&Source::new("p.toml", plan)).expect("no mistakes"),
            folder: tempfile::tempdir().expect("a folder"),
            executor,
            event_log: EventLog::default(),
        }
    }

    fn store(path: &Path) -> Box<dyn Store> {
        let path = path.to_str().expect("plain characters");
        neph_store::open(path, Access::Write).expect("a workspace")
    }

    /// Starts, or goes on with the only campaign. For the store, it is a process of its
    /// own.
    fn run_campaign(&mut self) -> Result<(Campaign, CampaignProgress), RunError> {
        let mut store = Self::store(self.folder.path());
        let time = self.executor.time.clone();
        let build = Build {
            version: "0.1.0".to_owned(),
            commit: "abc".to_owned(),
        };
        let stop = neph_model::Stop::new();
        self.executor.stop = stop.clone();
        self.executor.is_killed = false;
        let campaign = store.campaigns().expect("campaigns").pop();
        let mut participants = Participants {
            store: store.as_mut(),
            executor: &mut self.executor,
            observer: &mut self.event_log,
            clock: &time,
            stop: &stop,
        };
        match campaign {
            None => start(&self.plan, None, Some(TOPOLOGY), &build, &mut participants),
            Some(campaign) => resume(&self.plan, &campaign, &build, &mut participants),
        }
    }

    fn experiments(&self) -> Vec<neph_model::Experiment> {
        let store = Self::store(self.folder.path());
        let campaign = store.campaigns().expect("campaigns")[0].id;
        store.experiments(campaign).expect("experiments")
    }
}

/// Each scenario of each block has exactly one complete experiment.
fn all_complete_once(experiments: &[neph_model::Experiment], pairs: usize) -> bool {
    let mut complete: BTreeMap<_, u32> = BTreeMap::new();
    for experiment in experiments {
        let key = (experiment.block, experiment.scenario);
        *complete.entry(key).or_default() +=
            u32::from(experiment.status == ExperimentStatus::Complete);
    }
    complete.len() == pairs && complete.values().all(|count| *count == 1)
}

#[test]
fn a_campaign_runs_its_blocks_on_schedule() {
    let mut lab = Lab::new(PLAN, &[]);
    let (campaign, progress) = lab.run_campaign().expect("it runs");
    assert_eq!(
        (campaign.status, campaign.seed),
        (CampaignStatus::Complete, 5)
    );
    assert_eq!(
        progress,
        CampaignProgress {
            total: 6,
            complete: 6,
            ..CampaignProgress::default()
        }
    );
    let experiments = lab.experiments();
    assert!(all_complete_once(&experiments, 6));
    // Block 0: 5 s of throughput, then 3 x (1 + 10) s. Block 1: one minute after block 0.
    let starts: Vec<i64> = experiments
        .iter()
        .map(|experiment| experiment.started.unix_nanos() / 1_000_000_000 - 1_000)
        .collect();
    assert_eq!(starts, [6, 17, 28, 66, 77, 88]);
    let tally = experiments[0].tally;
    assert_eq!((tally.messages, tally.replies), (10, 10));
    assert_eq!(
        experiments[0].warnings,
        [neph_model::Warning::TimestampsMissing { percent: 100.0 }]
    );
    assert_eq!((lab.executor.checks, lab.executor.routes), (2, 2));
    let event_log = &lab.event_log.0;
    assert_eq!(event_log[0], "begun 6 open, 98.000 s left");
    assert!(
        event_log.contains(&"block 1 at 1060 s".to_owned()),
        "{event_log:#?}"
    );
    assert!(event_log.contains(&"running 10 replies".to_owned()));
    assert_eq!(event_log.last().map(String::as_str), Some("ended complete"));
}

#[test]
fn provenance_is_stored_with_each_experiment() {
    let mut lab = Lab::new(PLAN, &[FakeOutcome::Complete, FakeOutcome::Refused]);
    lab.run_campaign().expect("it runs");
    let store = Lab::store(lab.folder.path());
    let experiments = lab_experiments(store.as_ref());
    let provenance = store
        .provenance(experiments[0].id)
        .expect("read")
        .expect("there");
    assert_eq!(
        (provenance.host.host.as_str(), provenance.commit.as_str()),
        ("here", "abc")
    );
    assert_eq!(provenance.plan_hash, lab.plan.hash());
    assert_eq!(provenance.lateness_p99, Some(Span::from_micros(10)));
    let campaign = &store.campaigns().expect("campaigns")[0];
    assert_eq!(campaign.topology_text.as_deref(), Some(TOPOLOGY));
    assert_eq!(campaign.topology_hash, Some(sha256_hex(TOPOLOGY)));
    let refused = experiments
        .iter()
        .find(|experiment| experiment.status == ExperimentStatus::Failed)
        .expect("one");
    assert_eq!(
        refused.reason.as_deref(),
        Some("connecting to ws://a failed: connection refused")
    );
}

fn lab_experiments(store: &dyn Store) -> Vec<neph_model::Experiment> {
    let campaign = store.campaigns().expect("campaigns")[0].id;
    store.experiments(campaign).expect("experiments")
}

#[test]
fn a_campaign_resumes_after_ctrl_c_with_its_measured_messages() {
    let mut lab = Lab::new(PLAN, &[FakeOutcome::Complete, FakeOutcome::CtrlC]);
    let (campaign, _) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Interrupted);
    let experiments = lab.experiments();
    assert_eq!(experiments.len(), 2);
    assert_eq!(
        (experiments[1].status, experiments[1].tally.replies),
        (ExperimentStatus::Interrupted, 5)
    );
    let (campaign, _) = lab.run_campaign().expect("it goes on");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    let experiments = lab.experiments();
    assert!(all_complete_once(&experiments, 6));
    assert_eq!(experiments.len(), 7);
    assert_eq!(
        (lab.executor.checks, lab.executor.routes),
        (2, 2),
        "checks are not repeated"
    );
}

#[test]
fn an_experiment_cancelled_before_its_start_is_no_attempt() {
    let outcomes = [FakeOutcome::Complete, FakeOutcome::CtrlCBeforeStart];
    let mut lab = Lab::new(PLAN, &outcomes);
    let (campaign, _) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Interrupted);
    assert_eq!(lab.experiments().len(), 1);
    let (campaign, _) = lab.run_campaign().expect("it goes on");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert!(all_complete_once(&lab.experiments(), 6));
    assert_eq!(lab.experiments().len(), 6);
}

#[test]
fn after_a_kill_stored_messages_remain_and_no_experiment_runs_twice() {
    let outcomes = [
        FakeOutcome::Complete,
        FakeOutcome::Killed,
        FakeOutcome::Complete,
        FakeOutcome::Killed,
        FakeOutcome::Killed,
    ];
    let mut lab = Lab::new(PLAN, &outcomes);
    let mut kill_count = 0;
    while lab.run_campaign().is_err() {
        kill_count += 1;
    }
    assert_eq!(kill_count, 3);
    let experiments = lab.experiments();
    assert!(all_complete_once(&experiments, 6));
    assert_eq!(experiments.len(), 9);
    let store = Lab::store(lab.folder.path());
    for experiment in &experiments {
        let expected = if experiment.status == ExperimentStatus::Complete {
            10
        } else {
            5
        };
        let messages = store.messages(experiment.id).expect("messages");
        assert!(
            messages.iter().map(|message| message.seq.0).eq(0..expected),
            "{experiment:?}"
        );
        assert_eq!(experiment.flows.len(), 1, "flows survive the kill");
    }
}

#[test]
fn throughput_checks_and_routes_are_measured_for_every_pair() {
    let plan_text = PLAN.replace(
        "url = \"ws://a\"",
        "url = \"ws://a\"\nfrom = [\"x\", \"y\"]",
    );
    let plan_text = plan_text + "[lab]\ntopology = \"t.toml\"\nprober = \"z\"\n";
    let mut lab = Lab::new(&plan_text, &[]);
    lab.run_campaign().expect("it runs");
    let store = Lab::store(lab.folder.path());
    let campaign = store.campaigns().expect("campaigns")[0].id;
    let checks = store.throughputs(campaign).expect("checks").into_iter();
    let checks: Vec<_> = checks.map(|check| (check.block, check.site)).collect();
    let routes = store.traceroutes(campaign).expect("routes").into_iter();
    let routes: Vec<_> = routes.map(|route| (route.block, route.site)).collect();
    let site = |name: &str| Some(name.to_owned());
    let every_pair = [
        (0, site("x")),
        (0, site("y")),
        (1, site("x")),
        (1, site("y")),
    ];
    assert_eq!(checks, every_pair);
    assert_eq!(routes, every_pair);
}

#[test]
fn scenarios_that_always_fail_are_abandoned_with_their_reasons() {
    let mut lab = Lab::new(
        &PLAN.replace("[64, 128, 256]", "64"),
        &[FakeOutcome::Broken, FakeOutcome::Mute],
    );
    let (campaign, progress) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Incomplete);
    assert_eq!((progress.complete, progress.given_up), (1, 1));
    let starts: Vec<i64> = lab
        .experiments()
        .iter()
        .filter(|experiment| experiment.block == 0)
        .map(|experiment| experiment.started.unix_nanos() / 1_000_000_000 - 1_000)
        .collect();
    // Half of ten messages until it broke off at 11 s, then ten seconds of rest.
    assert_eq!(starts, [6, 21]);
    let reasons: Vec<_> = lab
        .experiments()
        .into_iter()
        .filter_map(|experiment| experiment.reason)
        .collect();
    assert_eq!(
        reasons,
        [
            "the connection was lost for good",
            "no message could be sent"
        ]
    );
}

#[test]
fn resuming_an_incomplete_campaign_retries_abandoned_scenarios() {
    use FakeOutcome::{Complete, Refused};
    let outcomes = [FakeOutcome::Refused; 4];
    let mut lab = Lab::new(&PLAN.replace("[64, 128, 256]", "64"), &outcomes);
    let (campaign, progress) = lab.run_campaign().expect("it runs");
    assert_eq!(campaign.status, CampaignStatus::Incomplete);
    assert_eq!((progress.given_up, progress.open), (2, 0));
    lab.executor.outcomes.extend([Refused, Complete, Refused]);
    let (campaign, progress) = lab.run_campaign().expect("it goes on");
    let mut newest_lines = lab.event_log.0.iter().rev();
    let newest_begun_line = newest_lines.find(|line| line.starts_with("begun"));
    let begun_line = newest_begun_line.expect("it began");
    assert!(begun_line.starts_with("begun 2 open"), "{begun_line}");
    assert_eq!(campaign.status, CampaignStatus::Incomplete);
    assert_eq!((progress.complete, progress.given_up), (1, 1));
    let (campaign, _) = lab.run_campaign().expect("it goes on");
    assert_eq!(campaign.status, CampaignStatus::Complete);
    assert!(all_complete_once(&lab.experiments(), 2));
    assert_eq!(lab.experiments().len(), 4 + 3 + 1);
}

#[test]
fn a_campaign_completes_after_any_sequence_of_failures() {
    use FakeOutcome::{Broken, Complete, CtrlC, Killed, Mute, Refused};
    let sequence = [
        Complete, Killed, CtrlC, Refused, Killed, Broken, Complete, Mute,
    ];
    for offset in 0..sequence.len() {
        let outcomes: Vec<FakeOutcome> = sequence
            .iter()
            .cycle()
            .skip(offset)
            .step_by(3)
            .take(8)
            .copied()
            .collect();
        let mut lab = Lab::new(&PLAN.replace("tries = 2", "tries = 9"), &outcomes);
        let mut status = None;
        while status != Some(CampaignStatus::Complete) {
            status = lab.run_campaign().ok().map(|(campaign, _)| campaign.status);
        }
        assert!(all_complete_once(&lab.experiments(), 6), "{outcomes:?}");
        assert_eq!(
            (lab.executor.checks, lab.executor.routes),
            (2, 2),
            "{outcomes:?}"
        );
    }
}
