//! Contract of every store: traced routes and transfers of a fleet.

use crate::{Access, Store, StoreError};
use neph_model::{ClassTransfer, ExperimentId, TracedRoute};

use super::values::{class_transfer, traced_route};
use super::{StoreLocation, prepared};

/// All traced routes, in the order of the batches.
fn routes_of(store: &dyn Store, experiment: ExperimentId) -> Vec<TracedRoute> {
    let mut routes = Vec::new();
    let mut collect = |batch: &[TracedRoute]| {
        routes.extend_from_slice(batch);
        Ok(())
    };
    let visited = store.visit_traced_routes(experiment, &mut collect);
    visited.expect("readable");
    routes
}

pub(super) fn traced_routes_and_transfers_survive_a_kill(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let id = experiment.id;
    let recorder = store.begin(&experiment).expect("begun");
    let routes: Vec<TracedRoute> = (0..600).map(traced_route).collect();
    let (late_routes, early_routes) = routes.split_at(300);
    for batch in [early_routes, late_routes] {
        store.add_traced_routes(id, batch).expect("added");
    }
    let transfers: Vec<ClassTransfer> = (0..7).map(class_transfer).collect();
    store.add_transfers(id, &transfers).expect("added");
    let unknown_id = ExperimentId::new();
    store
        .add_traced_routes(unknown_id, late_routes)
        .expect_err("there is no such experiment");
    store
        .add_transfers(unknown_id, &transfers)
        .expect_err("nor here");
    // As after a kill: the experiment does not end.
    drop((store, recorder));
    let mut store = location.open(Access::Write);
    assert_eq!(store.recover().expect("recovered").len(), 1);
    store
        .add_transfers(id, &transfers)
        .expect("added afterwards");
    let store = location.open(Access::Read);
    assert_eq!(routes_of(store.as_ref(), id), routes, "by time");
    let stored = store.transfers(id).expect("readable");
    let repeated_transfers = transfers
        .iter()
        .flat_map(|transfer| [transfer.clone(), transfer.clone()]);
    assert_eq!(stored, repeated_transfers.collect::<Vec<_>>());
    assert_eq!(routes_of(store.as_ref(), unknown_id), []);
    let mut store = store;
    store
        .add_traced_routes(id, late_routes)
        .expect_err("reading only");
    store
        .add_transfers(id, &transfers)
        .expect_err("reading only");
}

pub(super) fn a_failing_visitor_of_routes_ends_the_visit(location: &StoreLocation) {
    let (mut store, experiment) = prepared(location);
    let _recorder = store.begin(&experiment).expect("begun");
    let routes: Vec<TracedRoute> = (0..600).map(traced_route).collect();
    store
        .add_traced_routes(experiment.id, &routes)
        .expect("added");
    let mut calls = 0;
    let result = store.visit_traced_routes(experiment.id, &mut |_| {
        calls += 1;
        Err(StoreError::ReadOnly {
            operation: "count",
            path: "here".into(),
        })
    });
    assert!(matches!(result, Err(StoreError::ReadOnly { .. })));
    assert_eq!(calls, 1);
}
