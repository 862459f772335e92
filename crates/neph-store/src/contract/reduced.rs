//! An experiment has either its messages or its minutes.

use neph_model::{FleetMessage, FlowIndex, Minute, Tally, Wall};

use super::values::{fleet_message, message, provenance};
use super::{StoreLocation, complete, prepared};
use crate::{Access, Reduction, SentWithin, StoreError};

fn minute(number: u32) -> Minute {
    Minute {
        flow: FlowIndex(number % 2),
        minute: number,
        tally: Tally {
            messages: 9,
            replies: 2,
            errors: 1,
            lost: 3,
            failed: 3,
            duplicates: 1,
            reordered: 1,
            late: 0,
        },
        times: vec![8, 1, 2, 3],
    }
}

fn assert_reduced(result: Result<(), StoreError>) {
    let error = result.expect_err("they are gone");
    assert!(matches!(error, StoreError::Reduced { .. }), "{error}");
}

pub(super) fn messages_are_replaced_by_minutes_and_these_removed(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let mut recorder = store.begin(&experiment).expect("begun");
    recorder.messages(&[message(0, 0)]).expect("recorded");
    recorder.fleet(&[fleet_message(1)]).expect("recorded");
    let minutes = [minute(0), minute(2), minute(1)];
    let (first_reduction_time, second_reduction_time) =
        (Wall::from_unix_nanos(5), Wall::from_unix_nanos(6));
    let running = store.reduce(experiment.id, &minutes, first_reduction_time);
    running.expect_err("it is running");
    let ended = complete(&experiment);
    store
        .finish(recorder, &ended, &provenance(experiment.id))
        .expect("finished");
    assert_eq!(store.reduction(experiment.id).expect("readable"), None);
    assert_eq!(store.minutes(experiment.id).expect("readable"), []);

    store
        .reduce(experiment.id, &minutes, first_reduction_time)
        .expect("reduced");
    // A caller that does not know the result repeats the call.
    store
        .reduce(experiment.id, &[], second_reduction_time)
        .expect("it is");
    let mut reduction = Reduction {
        at: first_reduction_time,
        minutes_removed: None,
    };
    drop(store);
    let mut store = location.open(Access::Write);
    store.recover().expect("nothing is left over");
    let stored_reduction = store.reduction(experiment.id).expect("readable");
    assert_eq!(stored_reduction, Some(reduction));
    assert_eq!(store.minutes(experiment.id).expect("readable"), minutes);
    assert_reduced(store.visit_messages(experiment.id, &mut |_| Ok(())));
    let mut visit = |_: &[FleetMessage]| Ok(());
    assert_reduced(store.visit_fleet(experiment.id, SentWithin::ALL, &mut visit));
    let experiments = store.experiments(experiment.campaign).expect("readable");
    assert_eq!(experiments, [ended], "its counts stay");

    store
        .remove_minutes(experiment.id, second_reduction_time)
        .expect("removed");
    reduction.minutes_removed = Some(second_reduction_time);
    let stored_reduction = store.reduction(experiment.id).expect("readable");
    assert_eq!(stored_reduction, Some(reduction));
    assert_eq!(store.minutes(experiment.id).expect("readable"), []);
    assert_reduced(store.visit_messages(experiment.id, &mut |_| Ok(())));
}
