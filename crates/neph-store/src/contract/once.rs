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
struct Foreign(ExperimentId);

impl Recorder for Foreign {
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
fn is_there_once(store: &dyn Store, expected: &Experiment, messages: &[Message]) {
    let experiments = store.experiments(expected.campaign).expect("readable");
    assert_eq!(experiments, std::slice::from_ref(expected));
    assert_eq!(store.messages(expected.id).expect("readable"), messages);
}

fn is_refused(begun: Result<Box<dyn Recorder>, StoreError>, as_it_is: &str) {
    let error = begun.expect_err("it is there already");
    assert!(
        matches!(error, StoreError::ExperimentExists { .. }),
        "{error}"
    );
    assert!(error.to_string().contains(as_it_is), "{error}");
}

pub(super) fn an_experiment_is_begun_once(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    is_refused(store.begin(&experiment), "running");
    let mut other = store.handle().expect("a further handle");
    is_refused(other.begin(&experiment), "running");
    recorder.messages(&[message(0, 1)]).expect("recorded");
    let ended = complete(&experiment);
    let facts = provenance(experiment.id);
    store.finish(recorder, &ended, &facts).expect("finished");
    is_refused(store.begin(&experiment), "complete");
    let expected = [message(0, 0), message(0, 1)];
    is_there_once(store.as_ref(), &ended, &expected);
    assert_eq!(store.recover().expect("nothing to do"), []);
    is_there_once(store.as_ref(), &ended, &expected);

    drop((store, other));
    let mut store = location.open(Access::Write);
    let cut_off = Experiment {
        id: ExperimentId::new(),
        ..experiment
    };
    drop(store.begin(&cut_off).expect("begun"));
    drop(store);
    let mut store = location.open(Access::Write);
    assert_eq!(store.recover().expect("recovered").len(), 1);
    is_refused(store.begin(&cut_off), "interrupted");
}

pub(super) fn one_of_four_writers_begins_an_experiment(location: &StoreLocation) {
    let (store, experiment) = prepared(location);
    let together = Barrier::new(4);
    let begun: Vec<Result<Box<dyn Recorder>, StoreError>> = thread::scope(|scope| {
        let begin = || {
            let mut handle = store.handle().expect("a further handle");
            let (together, experiment) = (&together, &experiment);
            scope.spawn(move || {
                together.wait();
                handle.begin(experiment)
            })
        };
        let threads: Vec<_> = (0..4).map(|_| begin()).collect();
        let outcomes = threads.into_iter().map(thread::ScopedJoinHandle::join);
        outcomes.map(|begun| begun.expect("no panic")).collect()
    });
    let (recorders, refused): (Vec<_>, Vec<_>) = begun.into_iter().partition(Result::is_ok);
    assert_eq!((recorders.len(), refused.len()), (1, 3));
    for refused in refused {
        is_refused(refused, "running");
    }
    let mut recorder = recorders.into_iter().flatten().next().expect("one");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    is_there_once(store.as_ref(), &experiment, &[message(0, 0)]);
}

pub(super) fn an_experiment_ends_once(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    let ended = complete(&experiment);
    let facts = provenance(experiment.id);
    store.finish(recorder, &ended, &facts).expect("finished");
    let mut other = ended.clone();
    other.tally.messages += 1;
    for store in [&mut store.handle().expect("a further handle"), &mut store] {
        let recorder = Box::new(Foreign(experiment.id));
        let error = store.finish(recorder, &other, &facts);
        let error = error.expect_err("it has ended");
        assert!(matches!(error, StoreError::WrongFinish { .. }), "{error}");
        assert!(error.to_string().contains("complete"), "{error}");
        is_there_once(store.as_ref(), &ended, &[message(0, 0)]);
    }
    other.id = ExperimentId::new();
    let recorder = Box::new(Foreign(other.id));
    let facts = provenance(other.id);
    store
        .finish(recorder, &other, &facts)
        .expect_err("it was never begun");
    is_there_once(store.as_ref(), &ended, &[message(0, 0)]);
}
