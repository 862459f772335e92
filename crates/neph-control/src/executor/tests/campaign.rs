//! Campaigns with experiments at an agent: the store has the same contents as with local
//! experiments.

use std::collections::BTreeSet;
use std::path::Path;

use neph_campaign::plan::parse;
use neph_campaign::{Build, Clock, NoObserver, Participants, Plan, RunError, resume, start};
use neph_model::{
    Campaign, CampaignId, CampaignStatus, EventKind, Executor, ExecutorLost, Experiment,
    ExperimentId, ExperimentStatus, FleetMessage, FlowIndex, Order, Span, Stop, Ticket, Update,
    Wall,
};
use neph_store::{Access, SentWithin, Store, open};
use neph_sys::clock;
use neph_text::Source;

use super::agent::{OneAgent, lasting};
use crate::AgentsExecutor;

const MESSAGES: usize = 30;
const EXPERIMENTS: usize = 6;

/// Two endpoints, three blocks, and an alarm that every RTT raises.
fn plan() -> Plan {
    let text = format!(
        "version = 1\nname = \"p\"\ninterval = \"5ms\"\nmessages = {MESSAGES}\nblocks = 3\n\
         timeout = \"1s\"\nalarm = \"round_trip > 1ns p50\"\n\
         [[endpoint]]\nname = \"one\"\nurl = \"ws://{at}\"\n\
         [[endpoint]]\nname = \"two\"\nurl = \"http://{at}\"\n",
        at = lasting()
    );
    parse(&Source::new("p.toml", text)).expect("a good plan")
}

/// The time of this host.
#[derive(Debug)]
struct HostClock;

impl Clock for HostClock {
    fn now(&self) -> Wall {
        Wall::from_unix_nanos(clock::wall().0)
    }

    /// Skips pauses.
    fn wait_until(&self, _until: Wall, _stop: &Stop) {}
}

/// Ends after a number of polls, like a process that is killed.
#[derive(Debug)]
struct KilledExecutor<E> {
    inner: E,
    polls: u32,
}

impl<E: Executor> Executor for KilledExecutor<E> {
    fn submit(&mut self, order: Order) -> Ticket {
        self.inner.submit(order)
    }

    fn poll(&mut self, patience: Span) -> Result<Vec<(Ticket, Update)>, ExecutorLost> {
        self.polls = self
            .polls
            .checked_sub(1)
            .ok_or_else(|| ExecutorLost::new("killed"))?;
        self.inner.poll(patience)
    }

    fn cancel(&mut self, _ticket: Ticket) {}

    fn gives_journals(&self) -> bool {
        self.inner.gives_journals()
    }

    fn stored(&mut self, experiment: ExperimentId) -> Result<(), ExecutorLost> {
        self.inner.stored(experiment)
    }

    fn adopt(&mut self, campaign: CampaignId) -> Result<Vec<(Ticket, Order)>, ExecutorLost> {
        self.inner.adopt(campaign)
    }
}

/// Begins or resumes a campaign.
fn run(
    folder: &Path,
    executor: &mut dyn Executor,
    before: Option<&Campaign>,
) -> Result<Campaign, RunError> {
    run_plan(&plan(), folder, executor, before)
}

fn run_plan(
    plan: &Plan,
    folder: &Path,
    executor: &mut dyn Executor,
    before: Option<&Campaign>,
) -> Result<Campaign, RunError> {
    let path = folder.join("store");
    let mut store = open(path.to_str().expect("text"), Access::Write).expect("writable");
    let build = Build {
        version: "1".to_owned(),
        commit: "c".to_owned(),
    };
    let mut participants = Participants {
        store: store.as_mut(),
        executor,
        observer: &mut NoObserver,
        clock: &HostClock,
        stop: &Stop::new(),
    };
    let ended = match before {
        None => start(plan, None, None, &build, &mut participants),
        Some(campaign) => resume(plan, campaign, &build, &mut participants),
    };
    ended.map(|(campaign, _)| campaign)
}

fn stored(folder: &Path) -> (Box<dyn Store>, Vec<Experiment>) {
    let path = folder.join("store");
    let store = open(path.to_str().expect("text"), Access::Read).expect("readable");
    let campaigns = store.campaigns().expect("readable");
    let experiments = store.experiments(campaigns[0].id).expect("readable");
    (store, experiments)
}

/// Each experiment was carried out once, is complete, and has its alarm.
fn check(folder: &Path) {
    let (store, experiments) = stored(folder);
    let places: BTreeSet<_> = experiments
        .iter()
        .map(|experiment| (experiment.block, experiment.scenario))
        .collect();
    assert_eq!(
        (experiments.len(), places.len()),
        (EXPERIMENTS, EXPERIMENTS)
    );
    for experiment in &experiments {
        assert_eq!(
            (experiment.status, experiment.attempt),
            (ExperimentStatus::Complete, 0),
            "{experiment:?}"
        );
        assert_eq!(experiment.tally.messages, MESSAGES as u64);
        let messages = store.messages(experiment.id).expect("readable");
        let main = messages
            .iter()
            .filter(|message| message.flow == FlowIndex(0));
        assert_eq!(main.count(), MESSAGES);
        let events = store.events(experiment.id).expect("readable");
        let raised = events
            .iter()
            .filter(|event| event.kind == EventKind::AlarmRaised);
        assert!(raised.count() >= 1, "{events:?}");
        let provenance = store
            .provenance(experiment.id)
            .expect("readable")
            .expect("there");
        assert!(provenance.lateness_p99.is_some());
    }
}

#[test]
fn a_remote_campaign_is_stored_like_a_local_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = OneAgent::start();
    let mut executor = agent.executor(&folder.path().join("inbox"));
    let ended = run(folder.path(), &mut executor, None).expect("it goes on");
    assert_eq!(ended.status, CampaignStatus::Complete);
    check(folder.path());
}

/// The same from two sites concurrently.
fn plan_of_two() -> Plan {
    let text = format!(
        "version = 1\nname = \"p\"\ninterval = \"5ms\"\nmessages = {MESSAGES}\nblocks = 3\n\
         timeout = \"1s\"\nflows = 4\npairs = \"at once\"\n\
         [[site]]\nname = \"a\"\nagent = \"a\"\n[[site]]\nname = \"b\"\nagent = \"b\"\n\
         [[endpoint]]\nname = \"one\"\nurl = \"udp://{at}\"\nfrom = [\"a\", \"b\"]\n",
        at = lasting()
    );
    parse(&Source::new("p.toml", text)).expect("a good plan")
}

#[test]
fn concurrent_experiments_of_several_sites_are_adopted_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = ["a", "b"].map(|name| OneAgent::with_name(&name.parse().expect("a name")));
    let mut campaign = None;
    // The last number of polls suffices, unless it waits forever.
    for polls in [3, 6, 2_000] {
        let inner = OneAgent::executor_of(&agents, &folder.path().join("inbox"));
        let mut executor = KilledExecutor { inner, polls };
        let ended = run_plan(
            &plan_of_two(),
            folder.path(),
            &mut executor,
            campaign.as_ref(),
        );
        assert_eq!(ended.is_ok(), polls == 2_000, "{polls}: {ended:?}");
        let (store, _) = stored(folder.path());
        campaign = store.campaigns().expect("readable").pop();
    }
    assert_eq!(
        campaign.expect("it is there").status,
        CampaignStatus::Complete
    );
    let (store, experiments) = stored(folder.path());
    assert_eq!(experiments.len(), EXPERIMENTS);
    for block in 0..3 {
        let of_block = experiments
            .iter()
            .filter(|experiment| experiment.block == block);
        let starts: Vec<i64> = of_block
            .map(|experiment| experiment.started.unix_nanos())
            .collect();
        let ends = starts.iter().max().zip(starts.iter().min());
        let spread = ends.map(|(last, first)| last - first);
        assert!(
            spread.is_some_and(|spread| spread < 200_000_000),
            "{starts:?}"
        );
    }
    for experiment in &experiments {
        assert_eq!(
            (experiment.status, experiment.attempt),
            (ExperimentStatus::Complete, 0),
            "{experiment:?}"
        );
        let mut count = 0;
        let mut visit = |batch: &[FleetMessage]| {
            count += batch.len() as u64;
            Ok(())
        };
        let visited = store.visit_fleet(experiment.id, SentWithin::ALL, &mut visit);
        visited.expect("readable");
        assert!(
            count > 0 && count == experiment.tally.messages,
            "{count}: {experiment:?}"
        );
    }
}

#[test]
fn a_new_controller_adopts_running_experiments_after_any_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = OneAgent::start();
    let mut polls = 1;
    let mut campaign = None;
    loop {
        // Each runs longer than the one before.
        polls += 3;
        let inner: AgentsExecutor<_> = agent.executor(&folder.path().join("inbox"));
        let mut executor = KilledExecutor { inner, polls };
        match run(folder.path(), &mut executor, campaign.as_ref()) {
            Ok(ended) => {
                assert_eq!(ended.status, CampaignStatus::Complete);
                break;
            }
            Err(error) => assert!(error.to_string().contains("killed"), "{error}"),
        }
        let (store, _) = stored(folder.path());
        campaign = store.campaigns().expect("readable").pop();
    }
    assert!(polls > 7, "it was killed some times");
    check(folder.path());
}
