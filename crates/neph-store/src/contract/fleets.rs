//! Contract of every store: messages of fleets.

use crate::{Access, SentWithin, Store};
use neph_model::{ExperimentId, FleetMessage, Instant};

use super::values::{fleet, fleet_messages, message, provenance};
use super::{StoreLocation, complete, prepared};

/// The messages of an experiment's fleet that were sent in a time range.
fn fleet_messages_in(store: &dyn Store, id: ExperimentId, range: SentWithin) -> Vec<FleetMessage> {
    let mut messages = Vec::new();
    let mut collect = |batch: &[FleetMessage]| {
        messages.extend_from_slice(batch);
        Ok(())
    };
    store
        .visit_fleet(id, range, &mut collect)
        .expect("readable");
    messages
}

pub(super) fn a_fleets_messages_read_back_as_recorded_while_it_runs_and_after(
    location: &StoreLocation,
) {
    let (mut store, mut experiment) = prepared(location);
    experiment.fleet = Some(fleet());
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.fleet(&[]).expect("nothing to record");
    recorder.fleet(&fleet_messages(0..700)).expect("recorded");
    recorder.messages(&[message(1, 0)]).expect("recorded");
    let reader = location.open(Access::Read);
    let observed = fleet_messages_in(&*reader, experiment.id, SentWithin::ALL);
    assert_eq!(observed, fleet_messages(0..700));
    recorder
        .fleet(&fleet_messages(700..9000))
        .expect("recorded");
    let ended = complete(&experiment);
    let facts = provenance(experiment.id);
    store.finish(recorder, &ended, &facts).expect("finished");
    let observed = fleet_messages_in(&*reader, experiment.id, SentWithin::ALL);
    assert_eq!(observed, fleet_messages(0..9000));
    let seconds = |number: i64| Some(Instant::from_nanos(number * 1_000_000_000));
    let (from, until) = (seconds(10), seconds(20));
    let observed = fleet_messages_in(&*reader, experiment.id, SentWithin { from, until });
    assert_eq!(observed, fleet_messages(400..800));
    assert_eq!(
        reader.experiments(ended.campaign).expect("readable"),
        std::slice::from_ref(&ended)
    );
    assert_eq!(
        reader.messages(ended.id).expect("readable"),
        [message(1, 0)]
    );
    let result = reader.visit_fleet(ExperimentId::new(), SentWithin::ALL, &mut |_| Ok(()));
    result.expect_err("unknown");
}

pub(super) fn a_fleet_without_its_writer_keeps_its_messages_and_they_are_counted(
    location: &StoreLocation,
) {
    let (mut store, mut experiment) = prepared(location);
    experiment.fleet = Some(fleet());
    let mut recorder = store.begin(&experiment).expect("begun");
    // Spans more than ten minutes, so one segment closes.
    for number in 0..30 {
        let batch = fleet_messages(number * 1000..number * 1000 + 1000);
        recorder.fleet(&batch).expect("recorded");
    }
    drop((recorder, store));
    let mut store = location.open(Access::Write);
    let recovered = store.recover().expect("recovered");
    let stored = &recovered[0];
    assert_eq!(stored.fleet, Some(fleet()));
    let tally = stored.tally;
    assert_eq!((tally.messages, tally.replies), (30_000, 24_000));
    assert_eq!((tally.lost, tally.failed), (3_000, 3_000));
    assert!(
        stored
            .reason
            .as_ref()
            .expect("a reason")
            .contains("30000 messages")
    );
    let observed = fleet_messages_in(&*store, experiment.id, SentWithin::ALL);
    assert_eq!(observed, fleet_messages(0..30_000));
    assert_eq!(store.recover().expect("nothing left"), []);
}
