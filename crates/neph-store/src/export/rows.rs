//! The rows of an export: messages, or messages of fleets, by experiment.

use neph_model::{Experiment, ExperimentId, FleetMessage, Message};

use super::matrices::Matrices;
use crate::columns::{Belonging, Row};
use crate::{SentWithin, Store, StoreError};

/// Receives a batch of rows.
type Give<'a, R> = &'a mut dyn FnMut(&[R]) -> Result<(), StoreError>;

/// A type of row that a store can read.
pub(super) trait Stored: Row {
    /// Passes all rows of an experiment to `give`.
    fn visit(store: &dyn Store, of: ExperimentId, give: Give<'_, Self>) -> Result<(), StoreError>;
}

impl Stored for Message {
    fn visit(store: &dyn Store, of: ExperimentId, give: Give<'_, Self>) -> Result<(), StoreError> {
        store.visit_messages(of, give)
    }
}

impl Stored for FleetMessage {
    fn visit(store: &dyn Store, of: ExperimentId, give: Give<'_, Self>) -> Result<(), StoreError> {
        store.visit_fleet(of, SentWithin::ALL, give)
    }
}

/// Calls `put` for each row, with its experiment and with the result of `whose` for that
/// experiment. Returns the number of rows.
pub(super) fn each<R: Stored, W>(
    store: &dyn Store,
    experiments: &[Experiment],
    whose: impl Fn(&Belonging<'_>) -> W,
    mut put: impl FnMut(&Experiment, &W, &R) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let matrices = Matrices::of(store, experiments)?;
    let mut rows = 0;
    for experiment in experiments {
        let whose = whose(&matrices.belonging(experiment));
        R::visit(store, experiment.id, &mut |batch| {
            rows += batch.len() as u64;
            batch
                .iter()
                .try_for_each(|row| put(experiment, &whose, row))
        })?;
    }
    Ok(rows)
}
