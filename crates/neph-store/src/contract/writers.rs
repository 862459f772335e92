//! Concurrent writers, each on a thread and with its own handle.

use std::sync::Barrier;
use std::thread;

use neph_model::{
    CampaignStatus, EventKind, Experiment, ExperimentId, ExperimentStatus, Message, Recorder,
};

use super::values::{campaign, event, experiment, message, provenance, traced_route};
use super::{StoreLocation, complete, prepared};
use crate::{Access, Store, StoreError};

const WRITERS: u32 = 4;
/// Experiments per writer.
const EXPERIMENTS: u32 = 5;
const MESSAGES: u64 = 60;

fn messages_of(writer: u32, number: u32) -> Vec<Message> {
    (0..MESSAGES)
        .map(|seq| Message {
            connection: writer * EXPERIMENTS + number,
            ..message(0, seq)
        })
        .collect()
}

/// Records and finishes an experiment that has begun; only routes and the end need the store.
fn record(
    store: &mut dyn Store,
    mut recorder: Box<dyn Recorder>,
    experiment: &Experiment,
    messages: &[Message],
) {
    for batch in messages.chunks(7) {
        recorder.messages(batch).expect("recorded");
    }
    recorder
        .event(&event(1, EventKind::Connected))
        .expect("recorded");
    store
        .add_traced_routes(experiment.id, &[traced_route(0)])
        .expect("added");
    store
        .finish(recorder, &complete(experiment), &provenance(experiment.id))
        .expect("finished");
}

pub(super) fn four_writers_record_one_campaign_at_the_same_time(location: &StoreLocation) {
    let (store, first) = prepared(location);
    let barrier = Barrier::new(4);
    let work = |mut handle: Box<dyn Store>, writer: u32| {
        let mut ids = Vec::new();
        for number in 0..EXPERIMENTS {
            let mut own_experiment = experiment(first.campaign);
            (own_experiment.block, own_experiment.position) = (writer, number);
            // All four experiments run before one of them ends.
            let recorder = handle.begin(&own_experiment).expect("begun");
            barrier.wait();
            let messages = messages_of(writer, number);
            record(handle.as_mut(), recorder, &own_experiment, &messages);
            ids.push(own_experiment.id);
        }
        ids
    };
    let ids: Vec<ExperimentId> = thread::scope(|scope| {
        let start = |writer| {
            let handle = store.handle().expect("a further handle");
            scope.spawn(move || work(handle, writer))
        };
        let threads: Vec<_> = (0..WRITERS).map(start).collect();
        let ids_of_writers = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ids_of_writers
            .flat_map(|ids| ids.expect("no panic"))
            .collect()
    });
    let experiments = store.experiments(first.campaign).expect("readable");
    // By block and position: the order of the writers and of their work.
    let order: Vec<ExperimentId> = experiments.iter().map(|experiment| experiment.id).collect();
    assert_eq!(order, ids);
    for experiment in &experiments {
        let expected = messages_of(experiment.block, experiment.position);
        assert_eq!(store.messages(experiment.id).expect("readable"), expected);
        assert_eq!(store.events(experiment.id).expect("readable").len(), 1);
        assert_eq!(experiment.status, ExperimentStatus::Complete);
        let mut routes = 0;
        let mut count = |batch: &[_]| {
            routes += batch.len();
            Ok(())
        };
        store
            .visit_traced_routes(experiment.id, &mut count)
            .expect("readable");
        assert_eq!(routes, 1);
    }
}

pub(super) fn recovery_leaves_what_another_handle_records(location: &StoreLocation) {
    let (mut store, cut_off) = prepared(location);
    drop(store.begin(&cut_off).expect("begun"));
    drop(store);
    let mut store = location.open(Access::Write);
    let status = |store: &dyn Store| store.campaigns().expect("readable")[0].status;
    let mut running = experiment(cut_off.campaign);
    running.block = 7;
    let mut second_handle = store.handle().expect("a further handle");
    let mut recorder = second_handle.begin(&running).expect("begun");
    let recovered = store.recover().expect("recovered");
    let ids: Vec<ExperimentId> = recovered.iter().map(|experiment| experiment.id).collect();
    assert_eq!(ids, [cut_off.id], "only what has no writer");
    assert_eq!(status(store.as_ref()), CampaignStatus::Running);
    recorder.messages(&[message(0, 0)]).expect("recorded");
    let ended = complete(&running);
    let facts = provenance(running.id);
    // Another handle than the one that began it may end it.
    store.finish(recorder, &ended, &facts).expect("finished");
    assert_eq!(
        second_handle.messages(running.id).expect("readable"),
        [message(0, 0)]
    );
    assert_eq!(store.recover().expect("nothing left"), []);
    assert_eq!(status(store.as_ref()), CampaignStatus::Interrupted);
}

pub(super) fn a_store_is_open_until_its_last_handle_is_dropped(location: &StoreLocation) {
    let (store, _) = prepared(location);
    let mut second_handle = store.handle().expect("a further handle");
    drop(store);
    let error = location.try_open(Access::Write).expect_err("taken");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    second_handle.add_campaign(&campaign(), &[]).expect("added");
    let reader = location.open(Access::Read);
    drop(second_handle);
    let mut reading = reader.handle().expect("a further handle");
    assert_eq!(reading.campaigns().expect("readable").len(), 2);
    reading
        .add_campaign(&campaign(), &[])
        .expect_err("a handle has the access of its store");
    location.open(Access::Write);
}
