//! Journals of another process or host are taken in completely and exactly once.

use std::fs;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;

use neph_journal::{JournalRecorder, journal_path};
use neph_model::{
    Event, EventKind, Experiment, ExperimentId, ExperimentStatus, FleetMessage, Message, Recorder,
    TraceKind, Wall,
};

use super::values::{
    campaign, event, experiment, fleet_message, flow_trace, message, provenance, scenario,
};
use super::{StoreLocation, Subject, prepared};
use crate::{Access, IntakeResult, Journalled, SentWithin, Store, StoreError, open};

/// Messages of the main flow.
const MESSAGES: u64 = 12;
const STORE_VARIABLE: &str = "NEPH_STORE_TEST_TAKES_IN";
const FOLDER_VARIABLE: &str = "NEPH_STORE_TEST_JOURNALS";
/// Delay of each further kill of four, in yields of this thread: some milliseconds.
const KILL_DELAY_YIELDS: usize = 5_000;
/// Number of kills of a process that takes in journals. Each kill comes later in its work.
const KILLS: usize = 12;

/// A temporary folder for journals. This module is also built without dev-dependencies.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("neph-taken-in-{}", ExperimentId::new());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a new folder");
        Self(folder)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main_messages() -> Vec<Message> {
    (0..MESSAGES).map(|seq| message(0, seq)).collect()
}

/// One hour of a fleet: several segments.
fn fleet_messages() -> Vec<FleetMessage> {
    (0..160_000).step_by(400).map(fleet_message).collect()
}

/// Writes the journals of an experiment as an agent does; returns the ended experiment.
fn write_journals(folder: &Path, experiment: &Experiment) -> Experiment {
    let recorder = JournalRecorder::create(folder, experiment.id).expect("a new journal");
    let mut recorder: Box<dyn Recorder> = Box::new(recorder);
    recorder.messages(&main_messages()).expect("recorded");
    recorder.fleet(&fleet_messages()).expect("recorded");
    let connected = event(10, EventKind::Connected);
    recorder.event(&connected).expect("recorded");
    let mut ended = experiment.clone();
    ended.status = ExperimentStatus::Complete;
    ended.ended = Some(Wall::from_unix_nanos(7));
    ended.tally.messages = MESSAGES + fleet_messages().len() as u64;
    ended
}

fn take_in(
    store: &mut dyn Store,
    folder: &Path,
    experiment: &Experiment,
) -> Result<IntakeResult, StoreError> {
    store.take_in(&Journalled {
        folder,
        experiment,
        provenance: Some(&provenance(experiment.id)),
        events: &[extra_event()],
        flow_trace: Some(&flow_trace(10, TraceKind::Udp, None)),
    })
}

/// An event that is in no journal.
fn extra_event() -> Event {
    event(70, EventKind::AlarmRaised)
}

/// The experiment exists, with these messages of its main flow and of its fleet.
fn assert_stored(
    store: &dyn Store,
    expected: &Experiment,
    messages: &[Message],
    fleet_count: usize,
) {
    let experiments = store.experiments(expected.campaign).expect("readable");
    let experiments: Vec<_> = experiments
        .iter()
        .filter(|experiment| experiment.id == expected.id)
        .collect();
    assert_eq!(experiments, [expected]);
    assert_eq!(store.messages(expected.id).expect("readable"), messages);
    let mut stored_messages = Vec::new();
    let mut collect = |batch: &[FleetMessage]| {
        stored_messages.extend_from_slice(batch);
        Ok(())
    };
    let visited = store.visit_fleet(expected.id, SentWithin::ALL, &mut collect);
    visited.expect("readable");
    assert_eq!(stored_messages, fleet_messages()[..fleet_count]);
}

fn assert_stored_completely(store: &dyn Store, expected: &Experiment) {
    assert_stored(store, expected, &main_messages(), fleet_messages().len());
    let events = store.events(expected.id).expect("readable");
    assert_eq!(events.len(), 2);
    assert!(events.contains(&extra_event()));
    let traces = store.flow_traces(expected.id).expect("readable");
    assert_eq!(traces, [flow_trace(10, TraceKind::Udp, None)]);
    let facts = store.provenance(expected.id).expect("readable");
    assert_eq!(facts, Some(provenance(expected.id)));
}

pub(super) fn a_finished_journal_is_taken_in_once(location: &StoreLocation) {
    let folder = Folder::new();
    let (mut store, experiment) = prepared(location);
    let ended = write_journals(folder.path(), &experiment);
    let already_stored = IntakeResult::Existing(ExperimentStatus::Complete);
    let result = take_in(store.as_mut(), folder.path(), &ended);
    assert_eq!(result.expect("taken in"), IntakeResult::Stored);
    assert_stored_completely(store.as_ref(), &ended);
    let mut changed = ended.clone();
    changed.tally.replies += 1;
    for store in [&mut store.handle().expect("a further handle"), &mut store] {
        let result = take_in(store.as_mut(), folder.path(), &changed);
        assert_eq!(result.expect("it is there"), already_stored);
        assert_stored_completely(store.as_ref(), &ended);
    }
    assert_eq!(store.recover().expect("nothing to do"), []);
    drop(store);
    // The sender repeats until the store confirms, then removes the journals.
    drop(folder);
    let mut store = location.open(Access::Write);
    let missing_folder = Path::new("/nonexistent");
    let result = take_in(store.as_mut(), missing_folder, &ended).expect("it is there");
    assert_eq!(result, already_stored);
    assert_stored_completely(store.as_ref(), &ended);
}

pub(super) fn one_of_four_writers_takes_a_journal_in(location: &StoreLocation) {
    let folder = Folder::new();
    let (store, experiment) = prepared(location);
    let ended = write_journals(folder.path(), &experiment);
    let barrier = Barrier::new(4);
    let results: Vec<_> = thread::scope(|scope| {
        let spawn_intake = || {
            let mut handle = store.handle().expect("a further handle");
            let (barrier, folder, ended) = (&barrier, folder.path(), &ended);
            scope.spawn(move || {
                barrier.wait();
                take_in(handle.as_mut(), folder, ended)
            })
        };
        let threads: Vec<_> = (0..4).map(|_| spawn_intake()).collect();
        let outcomes = threads.into_iter().map(thread::ScopedJoinHandle::join);
        outcomes.map(|result| result.expect("no panic")).collect()
    });
    let is_taken_in =
        |result: &&Result<IntakeResult, StoreError>| matches!(result, Ok(IntakeResult::Stored));
    assert_eq!(results.iter().filter(is_taken_in).count(), 1, "{results:?}");
    assert_stored_completely(store.as_ref(), &ended);
}

pub(super) fn a_truncated_journal_is_taken_in_once_it_is_complete(location: &StoreLocation) {
    let folder = Folder::new();
    let (mut store, experiment) = prepared(location);
    let ended = write_journals(folder.path(), &experiment);
    let journal = journal_path(folder.path(), experiment.id);
    let journal_bytes = fs::read(&journal).expect("readable");
    let assert_nothing_stored = |store: &dyn Store| {
        let experiments = store.experiments(experiment.campaign).expect("readable");
        assert_eq!(experiments, []);
    };
    fs::write(&journal, &journal_bytes[..journal_bytes.len() / 2]).expect("writable");
    let error = take_in(store.as_mut(), folder.path(), &ended).expect_err("half of it");
    assert!(matches!(error, StoreError::JournalCutOff { .. }), "{error}");
    assert!(
        error.to_string().contains("copy the folder again"),
        "{error}"
    );
    assert_nothing_stored(store.as_ref());
    fs::remove_file(&journal).expect("there");
    let error = take_in(store.as_mut(), folder.path(), &ended).expect_err("none of it");
    assert!(matches!(error, StoreError::NoJournal { .. }), "{error}");
    assert_nothing_stored(store.as_ref());
    fs::write(&journal, &journal_bytes).expect("writable");
    let result = take_in(store.as_mut(), folder.path(), &ended);
    assert_eq!(result.expect("whole now"), IntakeResult::Stored);
    assert_stored_completely(store.as_ref(), &ended);
}

pub(super) fn a_journal_without_its_writer_becomes_an_interrupted_experiment(
    location: &StoreLocation,
) {
    let folder = Folder::new();
    let (mut store, running) = prepared(location);
    write_journals(folder.path(), &running);
    let journal = journal_path(folder.path(), running.id);
    let journal_bytes = fs::read(&journal).expect("readable");
    // Cuts off the event, which is the last record.
    fs::write(&journal, &journal_bytes[..journal_bytes.len() - 5]).expect("writable");
    let result = store.take_in(&Journalled {
        folder: folder.path(),
        experiment: &running,
        provenance: None,
        events: &[],
        flow_trace: None,
    });
    assert_eq!(result.expect("taken in"), IntakeResult::Stored);
    let experiments = store.experiments(running.campaign).expect("readable");
    let [interrupted] = &experiments[..] else {
        panic!("{experiments:?}")
    };
    assert_eq!(interrupted.status, ExperimentStatus::Interrupted);
    let message_count = MESSAGES + fleet_messages().len() as u64;
    assert_eq!(interrupted.tally.messages, message_count);
    let reason = interrupted.reason.as_ref().expect("a reason");
    assert!(
        reason.contains(&format!("{message_count} messages were kept")),
        "{reason}"
    );
    assert_stored(
        store.as_ref(),
        interrupted,
        &main_messages(),
        fleet_messages().len(),
    );
    assert_eq!(store.events(running.id).expect("readable"), []);
    let repeated_result = take_in(store.as_mut(), folder.path(), &running).expect("it is there");
    assert_eq!(
        repeated_result,
        IntakeResult::Existing(ExperimentStatus::Interrupted)
    );
}

pub(super) fn an_experiment_recorded_here_is_not_taken_in(location: &StoreLocation) {
    let folder = Folder::new();
    let (mut store, experiment) = prepared(location);
    let ended = write_journals(folder.path(), &experiment);
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    let error = take_in(store.as_mut(), folder.path(), &ended).expect_err("it runs here");
    assert!(
        matches!(error, StoreError::ExperimentExists { .. }),
        "{error}"
    );
    recorder.messages(&[message(0, 1)]).expect("recorded");
    let result = store.take_in(&Journalled {
        folder: folder.path(),
        experiment: &ended,
        provenance: Some(&provenance(ExperimentId::new())),
        events: &[],
        flow_trace: None,
    });
    result.expect_err("the provenance of another one");
    drop((recorder, store));
    let mut store = location.open(Access::Write);
    take_in(store.as_mut(), folder.path(), &ended).expect_err("it was cut off here");
    assert_eq!(store.recover().expect("recovered").len(), 1);
    let messages = store.messages(experiment.id).expect("readable");
    assert_eq!(messages, [message(0, 0), message(0, 1)]);
}

/// Runs in the process that is killed: repeatedly journals an experiment and takes it in.
pub(super) fn take_in_until_killed() {
    let (Ok(url), Ok(folder)) = (
        std::env::var(STORE_VARIABLE),
        std::env::var(FOLDER_VARIABLE),
    ) else {
        return;
    };
    let mut store = open(&url, Access::Write).expect("a free store");
    let campaign = campaign();
    let added = store.add_campaign(&campaign, &[scenario(0)]);
    added.expect("added");
    loop {
        let experiment = experiment(campaign.id);
        let ended = write_journals(folder.as_ref(), &experiment);
        let experiment_json = serde_json::to_string(&ended).expect("plain data");
        print(&format!("\njournalled {experiment_json}\n"));
        let result = take_in(store.as_mut(), folder.as_ref(), &ended);
        assert_eq!(result.expect("taken in"), IntakeResult::Stored);
        print(&format!("\ntaken {}\n", ended.id));
    }
}

/// Prints to the parent, after the output of the test harness.
fn print(line: &str) {
    let mut out = stdout();
    out.write_all(line.as_bytes()).expect("a parent that reads");
}

/// Runs the child until it has printed enough lines, then kills it. Returns the experiments that it
/// journalled.
#[expect(clippy::disallowed_methods, reason = "this crate may not use neph-sys")]
fn take_in_and_kill(
    location: &StoreLocation,
    folder: &Path,
    child: &str,
    kill: usize,
) -> Vec<Experiment> {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", child, "--ignored", "--nocapture"])
        .env(STORE_VARIABLE, &location.url)
        .env(FOLDER_VARIABLE, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut experiments = Vec::new();
    let (mut printed, mut is_killed) = (0, false);
    for line in lines {
        let line = line.expect("text");
        let journalled_json = line.strip_prefix("journalled ");
        // The kill may cut off the last line.
        experiments
            .extend(journalled_json.and_then(|json| serde_json::from_str::<Experiment>(json).ok()));
        printed += usize::from(journalled_json.is_some() || line.starts_with("taken "));
        if printed > kill / 4 && !is_killed {
            // Each kill comes at another point of the work.
            (0..kill % 4 * KILL_DELAY_YIELDS).for_each(|_| thread::yield_now());
            child.kill().expect("alive until now");
            is_killed = true;
        }
    }
    child.wait().expect("ended");
    assert!(is_killed, "the child ended by itself");
    experiments
}

pub(super) fn a_kill_in_the_middle_leaves_all_or_nothing(subject: Subject) {
    let location = (subject.fresh)();
    let mut interrupted_count = 0;
    for kill in 0..KILLS {
        let folder = Folder::new();
        let experiments = take_in_and_kill(&location, folder.path(), subject.child, kill);
        let mut store = location.open(Access::Write);
        assert_eq!(store.recover().expect("nothing runs here"), []);
        for ended in experiments {
            let result = take_in(store.as_mut(), folder.path(), &ended);
            interrupted_count +=
                usize::from(result.expect("now or before") == IntakeResult::Stored);
            assert_stored_completely(store.as_ref(), &ended);
        }
    }
    assert!(
        interrupted_count > 0,
        "no kill met one that was being taken in"
    );
}
