//! An experiment is added once and ends once: a store only appends.

use std::sync::Barrier;
use std::thread;

use neph_model::{
    Event, Experiment, ExperimentId, FleetMessage, Message, RecordError, Recorder, Sample,
};

use super::values::{message, provenance};
use super::{StoreLocation, complete, prepared};
use crate::{Access, Store, StoreError};

/// A recorder of no store.
#[derive(Debug)]
struct ForeignRecorder(ExperimentId);

impl Recorder for ForeignRecorder {
    fn experiment(&self) -> ExperimentId {
        self.0
    }
    fn messages(&mut self, _: &[Message]) -> Result<(), RecordError> {
        Ok(())
    }
    fn fleet(&mut self, _: &[FleetMessage]) -> Result<(), RecordError> {
        Ok(())
    }
    fn event(&mut self, _: &Event) -> Result<(), RecordError> {
        Ok(())
    }
    fn sample(&mut self, _: &Sample) -> Result<(), RecordError> {
        Ok(())
    }
}

/// The experiment exists exactly once, with these messages.
fn assert_stored_once(store: &dyn Store, expected: &Experiment, messages: &[Message]) {
    let experiments = store.experiments(expected.campaign).expect("readable");
    assert_eq!(experiments, std::slice::from_ref(expected));
    assert_eq!(store.messages(expected.id).expect("readable"), messages);
}

fn assert_begin_refused(result: Result<Box<dyn Recorder>, StoreError>, expected_status: &str) {
    let error = result.expect_err("it is there already");
    assert!(
        matches!(error, StoreError::ExperimentExists { .. }),
        "{error}"
    );
    assert!(error.to_string().contains(expected_status), "{error}");
}

pub(super) fn an_experiment_is_begun_once(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    assert_begin_refused(store.begin(&experiment), "running");
    let mut second_handle = store.handle().expect("a further handle");
    assert_begin_refused(second_handle.begin(&experiment), "running");
    recorder.messages(&[message(0, 1)]).expect("recorded");
    let completed = complete(&experiment);
    let provenance_record = provenance(experiment.id);
    store
        .finish(recorder, &completed, &provenance_record)
        .expect("finished");
    assert_begin_refused(store.begin(&experiment), "complete");
    let expected = [message(0, 0), message(0, 1)];
    assert_stored_once(store.as_ref(), &completed, &expected);
    assert_eq!(store.recover().expect("nothing to do"), []);
    assert_stored_once(store.as_ref(), &completed, &expected);

    drop((store, second_handle));
    let mut store = location.open(Access::Write);
    let interrupted = Experiment {
        id: ExperimentId::new(),
        ..experiment
    };
    drop(store.begin(&interrupted).expect("begun"));
    drop(store);
    let mut store = location.open(Access::Write);
    assert_eq!(store.recover().expect("recovered").len(), 1);
    assert_begin_refused(store.begin(&interrupted), "interrupted");
}

pub(super) fn one_of_four_writers_begins_an_experiment(location: &StoreLocation) {
    let (store, experiment) = prepared(location);
    let barrier = Barrier::new(4);
    let results: Vec<Result<Box<dyn Recorder>, StoreError>> = thread::scope(|scope| {
        let spawn_begin = || {
            let mut handle = store.handle().expect("a further handle");
            let (barrier, experiment) = (&barrier, &experiment);
            scope.spawn(move || {
                barrier.wait();
                handle.begin(experiment)
            })
        };
        let threads: Vec<_> = (0..4).map(|_| spawn_begin()).collect();
        let outcomes = threads.into_iter().map(thread::ScopedJoinHandle::join);
        outcomes.map(|result| result.expect("no panic")).collect()
    });
    let (recorders, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((recorders.len(), refused.len()), (1, 3));
    for refused in refused {
        assert_begin_refused(refused, "running");
    }
    let mut recorder = recorders.into_iter().flatten().next().expect("one");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    assert_stored_once(store.as_ref(), &experiment, &[message(0, 0)]);
}

pub(super) fn an_experiment_ends_once(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    let completed = complete(&experiment);
    let provenance_record = provenance(experiment.id);
    store
        .finish(recorder, &completed, &provenance_record)
        .expect("finished");
    let mut changed = completed.clone();
    changed.tally.messages += 1;
    for store in [&mut store.handle().expect("a further handle"), &mut store] {
        let recorder = Box::new(ForeignRecorder(experiment.id));
        let error = store.finish(recorder, &changed, &provenance_record);
        let error = error.expect_err("it has ended");
        assert!(matches!(error, StoreError::WrongFinish { .. }), "{error}");
        assert!(error.to_string().contains("complete"), "{error}");
        assert_stored_once(store.as_ref(), &completed, &[message(0, 0)]);
    }
    changed.id = ExperimentId::new();
    let recorder = Box::new(ForeignRecorder(changed.id));
    let provenance_record = provenance(changed.id);
    store
        .finish(recorder, &changed, &provenance_record)
        .expect_err("it was never begun");
    assert_stored_once(store.as_ref(), &completed, &[message(0, 0)]);
}
