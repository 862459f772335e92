//! Kills a recording process with SIGKILL: every acknowledged message must be stored exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Command, Stdio};
use std::thread;

use neph_model::{
    CampaignId, Experiment, ExperimentId, ExperimentStatus, FleetMessage, Message, Wall,
};

use super::values::{campaign, experiment, fleet_message, message, provenance, scenario};
use super::{StoreLocation, Subject};
use crate::{Access, SentWithin, Store, open};

/// Number of kills of a process with this many writers. Each kill comes later in its work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kills {
    pub(super) writers: u32,
    times: usize,
}

pub(super) const KILLS: [Kills; 2] = [
    Kills {
        writers: 1,
        times: 24,
    },
    Kills {
        writers: 4,
        times: 16,
    },
];

/// Messages of an experiment; then it is finished and the next one begins.
const MESSAGES_PER_EXPERIMENT: u64 = 40;
/// Messages per recorder call.
const BATCH: u64 = 4;
/// Lines that a writer prints until its third experiment has ended.
const LINES_PER_WRITER: usize = 33;
const STORE_VARIABLE: &str = "NEPH_STORE_TEST_CHILD";
const WRITERS_VARIABLE: &str = "NEPH_STORE_TEST_WRITERS";

/// The messages of a batch; they differ between writers.
fn message_batch(writer: u32, batch: u64) -> Vec<Message> {
    (batch * BATCH..(batch + 1) * BATCH)
        .map(|seq| Message {
            connection: writer,
            ..message(0, seq)
        })
        .collect()
}

/// Fleet messages of a batch: one hour per experiment, so that segments close.
fn fleet_batch(writer: u32, batch: u64) -> Vec<FleetMessage> {
    let first_number = u32::try_from(batch).expect("small") * 16_000;
    (first_number..first_number + 16_000)
        .step_by(400)
        .map(|number| fleet_message(number + writer))
        .collect()
}

pub(super) fn record_until_killed() {
    let (Ok(url), Ok(writers)) = (
        std::env::var(STORE_VARIABLE),
        std::env::var(WRITERS_VARIABLE),
    ) else {
        return;
    };
    let mut store = open(&url, Access::Write).expect("a free store");
    let campaign = campaign();
    store
        .add_campaign(&campaign, &[scenario(0)])
        .expect("added");
    thread::scope(|scope| {
        for writer in 0..writers.parse().expect("a number") {
            let mut handle = store.handle().expect("a further handle");
            scope.spawn(move || {
                loop {
                    record_one(handle.as_mut(), campaign.id, writer);
                }
            });
        }
    });
}

fn record_one(store: &mut dyn Store, campaign: CampaignId, writer: u32) {
    let mut experiment = experiment(campaign);
    let mut recorder = store.begin(&experiment).expect("begun");
    for batch in 0..MESSAGES_PER_EXPERIMENT / BATCH {
        let messages = message_batch(writer, batch);
        recorder.messages(&messages).expect("recorded");
        recorder
            .fleet(&fleet_batch(writer, batch))
            .expect("recorded");
        acknowledge("safe", experiment.id, (batch + 1) * BATCH, writer);
    }
    experiment.status = ExperimentStatus::Complete;
    experiment.ended = Some(Wall::from_unix_nanos(1));
    store
        .finish(recorder, &experiment, &provenance(experiment.id))
        .expect("finished");
    acknowledge("finished", experiment.id, MESSAGES_PER_EXPERIMENT, writer);
}

/// Prints a line to the parent, after the output of the test harness.
fn acknowledge(event: &str, experiment: ExperimentId, acknowledged_messages: u64, writer: u32) {
    let line = format!("\n{event} {experiment} {acknowledged_messages} {writer}\n");
    stdout()
        .write_all(line.as_bytes())
        .expect("a parent that reads");
}

/// What the child acknowledged for an experiment.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    writer: u32,
    message_count: u64,
    is_finished: bool,
}

/// `None` for other lines, and for a last line that the kill cut off: it has fewer words.
fn parse(line: &str) -> Option<(ExperimentId, Acknowledged)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [
        event @ ("safe" | "finished"),
        experiment,
        acknowledged_count,
        writer,
    ] = fields[..]
    else {
        return None;
    };
    let acknowledged = Acknowledged {
        writer: writer.parse().ok()?,
        message_count: acknowledged_count.parse().ok()?,
        is_finished: event == "finished",
    };
    Some((experiment.parse().ok()?, acknowledged))
}

#[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
fn record_and_kill(
    location: &StoreLocation,
    child: &str,
    writers: u32,
    after_lines: usize,
) -> BTreeMap<ExperimentId, Acknowledged> {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", child, "--ignored", "--nocapture"])
        .env(STORE_VARIABLE, &location.url)
        .env(WRITERS_VARIABLE, writers.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut acknowledged = BTreeMap::new();
    let mut lines_read = 0;
    for line in lines {
        let Some((experiment, acknowledgement)) = parse(&line.expect("text")) else {
            continue;
        };
        acknowledged.insert(experiment, acknowledgement);
        lines_read += 1;
        if lines_read == after_lines {
            child.kill().expect("alive until now");
        }
    }
    child.wait().expect("ended");
    assert!(
        lines_read >= after_lines,
        "the child ended by itself after {lines_read} lines"
    );
    acknowledged
}

pub(super) fn every_acknowledged_message_survives(subject: Subject, kills: Kills) {
    let location = (subject.fresh)();
    let lines = LINES_PER_WRITER * usize::try_from(kills.writers).expect("few");
    let mut most_running = 0;
    for kill in 0..kills.times {
        // From the first record to the end of each writer's third experiment.
        let after_lines = 1 + kill * lines / kills.times;
        let acknowledged = record_and_kill(&location, subject.child, kills.writers, after_lines);
        let mut store = location.open(Access::Write);
        let recovered = store.recover().expect("recovered");
        most_running = most_running.max(recovered.len());
        assert_eq!(store.recover().expect("nothing left"), []);
        let statuses = experiment_statuses(store.as_ref());
        for (experiment, acknowledgement) in acknowledged {
            let status = statuses.get(&experiment).expect("what was begun is there");
            let is_complete = *status == ExperimentStatus::Complete;
            assert!(
                is_complete || !acknowledgement.is_finished,
                "{experiment}: {status:?}"
            );
            assert_acknowledged_stored(store.as_ref(), experiment, acknowledgement);
        }
    }
    let min = kills.writers.min(2);
    assert!(
        most_running >= usize::try_from(min).expect("few"),
        "no kill met {min} experiments that ran"
    );
}

/// The status of every experiment. Each must exist once, and none may be running.
fn experiment_statuses(store: &dyn Store) -> BTreeMap<ExperimentId, ExperimentStatus> {
    let mut experiments: Vec<Experiment> = Vec::new();
    for campaign in store.campaigns().expect("readable") {
        experiments.extend(store.experiments(campaign.id).expect("readable"));
    }
    let running = experiments
        .iter()
        .filter(|experiment| experiment.status == ExperimentStatus::Running);
    assert_eq!(running.count(), 0, "none runs");
    let ids: BTreeSet<ExperimentId> = experiments.iter().map(|experiment| experiment.id).collect();
    assert_eq!(ids.len(), experiments.len(), "each is there once");
    experiments
        .iter()
        .map(|experiment| (experiment.id, experiment.status))
        .collect()
}

/// Its messages are a prefix of the recorded ones and contain every acknowledged one exactly once.
fn assert_acknowledged_stored(
    store: &dyn Store,
    experiment: ExperimentId,
    acknowledged: Acknowledged,
) {
    let Acknowledged {
        writer,
        message_count: acknowledged_count,
        ..
    } = acknowledged;
    let messages = store.messages(experiment).expect("there");
    let count = messages.len() as u64;
    assert!(
        (acknowledged_count..=acknowledged_count + BATCH).contains(&count),
        "{count} found, {acknowledged_count} acknowledged"
    );
    let batches = 0..MESSAGES_PER_EXPERIMENT / BATCH;
    let recorded: Vec<Message> = batches
        .clone()
        .flat_map(|batch_number| message_batch(writer, batch_number))
        .collect();
    assert_eq!(messages, recorded[..messages.len()]);
    let mut fleet_messages = Vec::new();
    let mut collect = |batch: &[FleetMessage]| {
        fleet_messages.extend_from_slice(batch);
        Ok(())
    };
    store
        .visit_fleet(experiment, SentWithin::ALL, &mut collect)
        .expect("there");
    let recorded: Vec<FleetMessage> = batches
        .flat_map(|batch_number| fleet_batch(writer, batch_number))
        .collect();
    assert_eq!(fleet_messages, recorded[..fleet_messages.len()]);
    let min = usize::try_from(acknowledged_count / BATCH).expect("few") * 40;
    assert!(
        fleet_messages.len() >= min,
        "{} found, {min} acknowledged",
        fleet_messages.len()
    );
    if acknowledged.is_finished {
        let provenance = store.provenance(experiment).expect("readable");
        assert!(provenance.is_some(), "a finished one has its provenance");
    }
}
