mod take_in;

use std::fs;
use std::path::PathBuf;

use crate::records_for_tests::{fleet_message, message};
use neph_journal::{JournalRecorder, JournalWriter};
use neph_model::{
    ByteSize, Campaign, CpuUse, EventKind, ExperimentStatus, FleetMessage, FlowIndex, Message,
    ProbeKind, SeriesName, Span, Targets,
};

use super::*;
use crate::samples_for_tests::{self as samples, provenance};

fn open(path: &Path) -> Embedded {
    Embedded::open(path, Access::Write).expect("a free workspace")
}

fn campaign() -> (Campaign, Scenario) {
    let campaign = Campaign {
        seed: u64::MAX,
        ..Campaign::new("test", Wall::from_unix_nanos(1))
    };
    let scenario = Scenario {
        id: samples::experiment().scenario,
        index: 0,
        endpoint: "metro".to_owned(),
        target: Targets::read("ws://10.0.0.1:8080", ProbeKind::Ws),
        interval: Span::from_millis(1),
        request_size: ByteSize(64),
        response_size: ByteSize(64),
        messages: 20,
        parameters: neph_model::Parameters::new(),
        varied: Vec::new(),
    };
    (campaign, scenario)
}

fn recorded() -> Vec<Message> {
    (0..20).map(|seq| message(0, seq)).collect()
}

/// Twelve minutes of a fleet: two segments.
fn fleet() -> Vec<FleetMessage> {
    (0..13)
        .map(|minute| fleet_message(minute % 4, minute / 4, i64::from(minute) * 60))
        .collect()
}

fn event() -> Event {
    Event {
        flow: FlowIndex(0),
        at: 5_000_000,
        kind: EventKind::Connected,
        text: "connected".to_owned(),
    }
}

fn sample() -> Sample {
    Sample {
        series: SeriesName::Cpu(CpuUse::Steal),
        at: 7,
        value: 1.5,
    }
}

/// Begins, records and finishes; stops at the first error, as a killed process does. Also returns
/// whether the recorder's calls returned.
fn record_experiment(
    store: &mut Embedded,
    experiment: &Experiment,
) -> (bool, Result<(), StoreError>) {
    let mut recorder = match store.begin(experiment) {
        Ok(recorder) => recorder,
        Err(error) => return (false, Err(error)),
    };
    recorder.messages(&recorded()).expect("recorded");
    for batch in fleet().chunks(2) {
        recorder.fleet(batch).expect("recorded");
    }
    recorder.event(&event()).expect("recorded");
    recorder.sample(&sample()).expect("recorded");
    let mut ended = experiment.clone();
    ended.status = ExperimentStatus::Complete;
    ended.ended = Some(Wall::from_unix_nanos(2));
    ended.tally.messages = 33;
    ended.tally.replies = 33;
    let result = store.finish(recorder, &ended, &provenance(experiment.id));
    (true, result)
}

/// Files that must not exist when all experiments have ended.
fn leftover_files(store: &Embedded) -> Vec<String> {
    let entries = |folder: PathBuf| fs::read_dir(folder).expect("a folder");
    let journals: Vec<String> = entries(store.workspace.journals_folder())
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    [
        store.workspace.journals_folder(),
        store.workspace.messages_folder(),
    ]
    .iter()
    .flat_map(|folder| fs::read_dir(folder).expect("a folder"))
    .map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    })
    .filter(|name| !name.contains(".parquet"))
    .filter(|name| !name.contains(".fleet") || journals.contains(name))
    .collect()
}

/// After any number of kills in recovery, exactly what was acknowledged is stored.
fn assert_acknowledged_stored(store: &Embedded, experiment: &Experiment, is_acknowledged: bool) {
    let experiments = store.experiments(experiment.campaign).expect("readable");
    let Some(stored) = experiments.first() else {
        assert!(!is_acknowledged, "the experiment is gone");
        assert_eq!(leftover_files(store), [""; 0]);
        return;
    };
    assert_ne!(stored.status, ExperimentStatus::Running);
    let expected = if is_acknowledged {
        recorded()
    } else {
        Vec::new()
    };
    assert_eq!(store.messages(stored.id).expect("readable"), expected);
    let count = u64::from(is_acknowledged);
    let mut fleet_messages = Vec::new();
    let mut collect = |batch: &[FleetMessage]| {
        fleet_messages.extend_from_slice(batch);
        Ok(())
    };
    store
        .visit_fleet(stored.id, SentWithin::ALL, &mut collect)
        .expect("readable");
    assert_eq!(
        fleet_messages,
        if is_acknowledged { fleet() } else { Vec::new() }
    );
    assert_eq!(stored.tally.replies, 33 * count);
    assert_eq!(
        store.events(stored.id).expect("readable").len() as u64,
        count
    );
    assert_eq!(
        store.samples(stored.id).expect("readable").len() as u64,
        count
    );
    assert_eq!(leftover_files(store), [""; 0]);
}

#[test]
fn a_kill_at_any_step_or_during_recovery_neither_loses_nor_duplicates_messages() {
    for first_step in Step::ALL {
        for second_step in Step::ALL {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let mut experiment = samples::experiment();
            let (campaign, scenario) = campaign();
            experiment.campaign = campaign.id;
            let mut store = open(folder.path());
            store
                .add_campaign(&campaign, &[scenario])
                .expect("a new campaign");
            store.gate.stop_after(first_step);
            let (is_acknowledged, result) = record_experiment(&mut store, &experiment);
            assert!(matches!(result, Err(StoreError::Stopped)), "{first_step:?}");
            drop(store);

            let mut store = open(folder.path());
            store.gate.stop_after(second_step);
            let _recovery_result = store.recover();
            drop(store);

            let mut store = open(folder.path());
            store.recover().expect("recovered");
            assert_acknowledged_stored(&store, &experiment, is_acknowledged);
            assert_eq!(
                store.recover().expect("again"),
                [],
                "{first_step:?} {second_step:?}"
            );
            assert_acknowledged_stored(&store, &experiment, is_acknowledged);
        }
    }
}

/// A kill between any two steps leaves messages or minutes; a second attempt or recovery completes
/// it.
#[test]
fn a_kill_during_reduction_leaves_messages_or_their_minute_summaries() {
    for step in [None, Some(Step::Reduced), Some(Step::MessagesRemoved)] {
        for is_recovered in [false, true] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let (campaign, scenario) = campaign();
            let mut experiment = samples::experiment();
            experiment.campaign = campaign.id;
            let mut store = open(folder.path());
            store.add_campaign(&campaign, &[scenario]).expect("new");
            record_experiment(&mut store, &experiment)
                .1
                .expect("finished");
            let minutes = [neph_model::Minute {
                flow: FlowIndex(0),
                minute: 0,
                tally: neph_model::Tally::default(),
                times: vec![8, 0, 0],
            }];
            if let Some(step) = step {
                store.gate.stop_after(step);
                let stopped = store.reduce(experiment.id, &minutes, Wall::from_unix_nanos(1));
                assert!(matches!(stopped, Err(StoreError::Stopped)), "{step:?}");
            }
            drop(store);
            let mut store = open(folder.path());
            let is_stored = store.messages(experiment.id).is_ok();
            let reduced = store.minutes(experiment.id).expect("readable") == minutes;
            assert!(
                is_stored != reduced && reduced == step.is_some(),
                "{step:?}"
            );
            if is_recovered {
                store.recover().expect("recovered");
            } else {
                let at = Wall::from_unix_nanos(2);
                store.reduce(experiment.id, &minutes, at).expect("reduced");
            }
            let is_gone = !store.workspace.messages_path(experiment.id).exists()
                && !store
                    .workspace
                    .fleet_folders(experiment.id)
                    .segments
                    .exists();
            assert_eq!(is_gone, step.is_some() || !is_recovered, "{step:?}");
        }
    }
}

#[test]
fn recovery_keeps_complete_records_of_truncated_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (campaign, scenario) = campaign();
    let mut experiment = samples::experiment();
    experiment.campaign = campaign.id;
    let mut store = open(folder.path());
    store
        .add_campaign(&campaign, &[scenario])
        .expect("a new campaign");
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&recorded()).expect("recorded");
    drop((recorder, store));
    let workspace = Workspace::at(folder.path());
    let journal = workspace.journal_path(experiment.id);
    let bytes = fs::read(&journal).expect("readable");
    fs::write(&journal, &bytes[..bytes.len() - 5]).expect("writable");
    fs::write(workspace.partial_messages_path(experiment.id), b"PAR1 torn").expect("writable");

    let mut store = open(folder.path());
    let recovered = store.recover().expect("recovered");
    assert_eq!(recovered[0].status, ExperimentStatus::Interrupted);
    assert_eq!(recovered[0].tally.replies, 19);
    assert_eq!(
        store.messages(experiment.id).expect("readable"),
        recorded()[..19]
    );
    assert_eq!(leftover_files(&store), [""; 0]);
}

#[test]
fn an_experiment_that_is_being_recorded_is_not_recovered() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (campaign, scenario) = campaign();
    let mut experiment = samples::experiment();
    experiment.campaign = campaign.id;
    let mut store = open(folder.path());
    store
        .add_campaign(&campaign, &[scenario])
        .expect("a new campaign");
    let mut recorder = store.begin(&experiment).expect("begun");
    assert_eq!(store.recover().expect("nothing to do"), []);
    recorder.messages(&recorded()).expect("still recording");
    assert_eq!(store.messages(experiment.id).expect("readable"), recorded());
}

#[test]
fn without_journal_and_columns_an_experiment_is_interrupted_with_no_messages() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (campaign, scenario) = campaign();
    let mut experiment = samples::experiment();
    experiment.campaign = campaign.id;
    let mut store = open(folder.path());
    store
        .add_campaign(&campaign, &[scenario])
        .expect("a new campaign");
    drop(store.begin(&experiment).expect("begun"));
    drop(store);
    fs::remove_file(Workspace::at(folder.path()).journal_path(experiment.id)).expect("there");
    let mut store = open(folder.path());
    assert_eq!(store.recover().expect("recovered").len(), 1);
    assert_eq!(store.messages(experiment.id).expect("readable"), []);
}

#[test]
fn recovery_keeps_a_journal_with_records_of_an_unknown_experiment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut store = open(folder.path());
    let id = ExperimentId::new();
    let path = store.workspace.journal_path(id);
    let mut unknown_id = JournalWriter::create(&path, id).expect("a new journal");
    unknown_id.messages(&recorded()).expect("recorded");
    store.recover().expect("recovered");
    assert!(path.exists());
}

#[test]
fn a_read_only_store_and_a_wrong_finish_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (campaign, scenario) = campaign();
    let mut experiment = samples::experiment();
    experiment.campaign = campaign.id;
    let mut store = open(folder.path());
    store
        .add_campaign(&campaign, &[scenario])
        .expect("a new campaign");
    let mut reader = Embedded::open(folder.path(), Access::Read).expect("readable");
    let error = reader
        .begin(&experiment)
        .expect_err("reading only")
        .to_string();
    assert!(error.starts_with("cannot begin an experiment: "), "{error}");
    let recorder = store.begin(&experiment).expect("begun");
    let error = store
        .finish(recorder, &experiment, &provenance(experiment.id))
        .expect_err("still running");
    assert!(matches!(error, StoreError::WrongFinish { .. }), "{error}");
}

#[test]
fn the_same_process_recovers_an_experiment_not_finished_on_disk() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (campaign, scenario) = campaign();
    let mut experiment = samples::experiment();
    experiment.campaign = campaign.id;
    let mut store = open(folder.path());
    store
        .add_campaign(&campaign, &[scenario])
        .expect("a new campaign");
    store.gate.stop_after(Step::ColumnsWritten);
    record_experiment(&mut store, &experiment)
        .1
        .expect_err("the disk refused");
    store.gate = Gate::default();
    assert_eq!(store.recover().expect("recovered").len(), 1);
    assert_acknowledged_stored(&store, &experiment, true);
}
