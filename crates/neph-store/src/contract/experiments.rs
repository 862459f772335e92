//! Contract of every store: experiments.

use neph_model::{
    CpuUse, EventKind, ExperimentId, ExperimentStatus, Outcome, Sample, SeriesName, TraceKind,
};

use super::values::{campaign, event, flow_trace, message, provenance};
use super::{StoreLocation, complete, prepared};
use crate::{Access, StoreError};

pub(super) fn a_finished_experiment_reads_back_in_order(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    assert_eq!(recorder.experiment(), experiment.id);
    recorder
        .messages(&[message(1, 0), message(0, 1)])
        .expect("recorded");
    recorder
        .event(&event(20, EventKind::ConnectionLost))
        .expect("recorded");
    recorder.messages(&[]).expect("nothing to record");
    recorder
        .event(&event(10, EventKind::Connected))
        .expect("recorded");
    let steal = |at, value| Sample {
        series: SeriesName::Cpu(CpuUse::Steal),
        at,
        value,
    };
    let busy = Sample {
        series: SeriesName::Cpu(CpuUse::Busy),
        at: 5,
        value: 0.25,
    };
    for sample in [steal(2, 1.0), steal(1, 2.0), busy] {
        recorder.sample(&sample).expect("recorded");
    }
    recorder.messages(&[message(0, 0)]).expect("recorded");
    let ended = complete(&experiment);
    let provenance = provenance(experiment.id);
    store
        .finish(recorder, &ended, &provenance)
        .expect("finished");
    drop(store);

    let store = location.open(Access::Read);
    assert_eq!(
        store.experiments(ended.campaign).expect("readable"),
        std::slice::from_ref(&ended)
    );
    let messages = store.messages(ended.id).expect("readable");
    assert_eq!(messages, [message(0, 0), message(0, 1), message(1, 0)]);
    let events = store.events(ended.id).expect("readable");
    assert_eq!(
        events,
        [
            event(10, EventKind::Connected),
            event(20, EventKind::ConnectionLost)
        ]
    );
    let samples = store.samples(ended.id).expect("readable");
    assert_eq!(samples, [busy, steal(1, 2.0), steal(2, 1.0)]);
    assert_eq!(
        store.provenance(ended.id).expect("readable"),
        Some(provenance)
    );
}

pub(super) fn a_running_experiment_can_be_watched(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    let reader = location.open(Access::Read);
    for seq in 0..10 {
        recorder.messages(&[message(0, seq)]).expect("recorded");
        let observed = reader.messages(experiment.id).expect("readable");
        assert_eq!(observed.last(), Some(&message(0, seq)));
        assert_eq!(observed.len() as u64, seq + 1);
    }
    recorder
        .event(&event(1, EventKind::Refused))
        .expect("recorded");
    assert_eq!(reader.events(experiment.id).expect("readable").len(), 1);
    assert_eq!(reader.provenance(experiment.id).expect("readable"), None);
    let stored = &reader.experiments(experiment.campaign).expect("readable")[0];
    assert_eq!(stored.status, ExperimentStatus::Running);
}

pub(super) fn an_experiment_without_its_writer_becomes_an_interrupted_one(
    location: &StoreLocation,
) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    let mut lost = message(0, 1);
    lost.outcome = Outcome::Lost;
    recorder
        .messages(&[message(0, 0), lost, message(1, 0)])
        .expect("recorded");
    recorder
        .event(&event(3, EventKind::LateReply))
        .expect("recorded");
    drop((recorder, store));

    let mut store = location.open(Access::Write);
    let recovered = store.recover().expect("recovered");
    assert_eq!(recovered.len(), 1);
    assert_eq!(
        store.experiments(experiment.campaign).expect("readable"),
        recovered
    );
    let stored = &recovered[0];
    assert_eq!(stored.status, ExperimentStatus::Interrupted);
    assert!(
        stored
            .reason
            .as_ref()
            .expect("a reason")
            .contains("3 messages"),
        "{stored:?}"
    );
    let tally = stored.tally;
    assert_eq!(
        (tally.messages, tally.replies, tally.lost, tally.late),
        (2, 1, 1, 1)
    );
    assert_eq!(
        store.messages(experiment.id).expect("readable"),
        [message(0, 0), lost, message(1, 0)]
    );
    assert_eq!(store.events(experiment.id).expect("readable").len(), 1);
    assert_eq!(store.recover().expect("nothing left"), []);
}

pub(super) fn experiments_are_returned_by_block_position_and_attempt(location: &StoreLocation) {
    let (mut store, first) = prepared(location);
    let mut expected = Vec::new();
    for (block, position, attempt) in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)] {
        let mut experiment = first.clone();
        experiment.id = ExperimentId::new();
        (experiment.block, experiment.position, experiment.attempt) = (block, position, attempt);
        let recorder = store.begin(&experiment).expect("begun");
        let ended = complete(&experiment);
        store
            .finish(recorder, &ended, &provenance(ended.id))
            .expect("finished");
        expected.insert(0, ended);
    }
    assert_eq!(
        store.experiments(first.campaign).expect("readable"),
        expected
    );
    assert_eq!(store.messages(expected[0].id).expect("an empty one"), []);
}

pub(super) fn traces_of_flows_come_by_time_while_an_experiment_runs_and_afterwards(
    location: &StoreLocation,
) {
    let (mut store, experiment) = prepared(location);
    let id = experiment.id;
    let recorder = store.begin(&experiment).expect("begun");
    let (early, late) = (
        flow_trace(10, TraceKind::Udp, None),
        flow_trace(20, TraceKind::Syn, Some(false)),
    );
    for trace in [&late, &early] {
        store.add_flow_trace(id, trace).expect("added");
    }
    let expected = [early, late];
    assert_eq!(store.flow_traces(id).expect("readable"), expected);
    let ended = complete(&experiment);
    store
        .finish(recorder, &ended, &provenance(id))
        .expect("finished");
    store
        .add_flow_trace(ExperimentId::new(), &expected[0])
        .expect_err("there is no such experiment");
    let store = location.open(Access::Read);
    assert_eq!(store.flow_traces(id).expect("readable"), expected);
    assert_eq!(store.flow_traces(ExperimentId::new()).expect("none"), []);
}

pub(super) fn a_mismatched_recorder_or_provenance_is_refused(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let recorder = store.begin(&experiment).expect("begun");
    store.begin(&experiment).expect_err("it has begun already");
    let mut changed = complete(&experiment);
    changed.id = ExperimentId::new();
    let error = store
        .finish(recorder, &changed, &provenance(changed.id))
        .expect_err("another's recorder");
    assert!(matches!(error, StoreError::WrongFinish { .. }), "{error}");
    let unknown = store.messages(changed.id).expect_err("unknown");
    assert!(
        unknown.to_string().contains(&changed.id.to_string()),
        "{unknown}"
    );
    let mut unknown_id = experiment.clone();
    unknown_id.id = ExperimentId::new();
    unknown_id.campaign = campaign().id;
    store
        .begin(&unknown_id)
        .expect_err("its campaign is unknown");
    unknown_id.campaign = experiment.campaign;
    store
        .begin(&unknown_id)
        .expect("the refusal left nothing behind");
}
