//! The rows of an export: messages, or messages of fleets, by experiment.

use neph_model::{Experiment, ExperimentId, FleetMessage, Message};

use super::matrices::Matrices;
use crate::columns::{ExperimentContext, Row};
use crate::{SentWithin, Store, StoreError};

/// Receives a batch of rows.
type RowVisitor<'a, R> = &'a mut dyn FnMut(&[R]) -> Result<(), StoreError>;

/// A type of row that a store can read.
pub(super) trait StoredRow: Row {
    /// Passes all rows of an experiment to `visitor`.
    fn visit(
        store: &dyn Store,
        experiment: ExperimentId,
        visitor: RowVisitor<'_, Self>,
    ) -> Result<(), StoreError>;
}

impl StoredRow for Message {
    fn visit(
        store: &dyn Store,
        experiment: ExperimentId,
        visitor: RowVisitor<'_, Self>,
    ) -> Result<(), StoreError> {
        store.visit_messages(experiment, visitor)
    }
}

impl StoredRow for FleetMessage {
    fn visit(
        store: &dyn Store,
        experiment: ExperimentId,
        visitor: RowVisitor<'_, Self>,
    ) -> Result<(), StoreError> {
        store.visit_fleet(experiment, SentWithin::ALL, visitor)
    }
}

/// Calls `write_row` for each row, with its experiment and with the result of `build_leading` for that
/// experiment. Returns the number of rows.
pub(super) fn for_each_row<R: StoredRow, L>(
    store: &dyn Store,
    experiments: &[Experiment],
    build_leading: impl Fn(&ExperimentContext<'_>) -> L,
    mut write_row: impl FnMut(&Experiment, &L, &R) -> Result<(), StoreError>,
) -> Result<u64, StoreError> {
    let matrices = Matrices::from_store(store, experiments)?;
    let mut rows = 0;
    for experiment in experiments {
        let leading = build_leading(&matrices.context_of(experiment));
        R::visit(store, experiment.id, &mut |batch| {
            rows += batch.len() as u64;
            batch
                .iter()
                .try_for_each(|row| write_row(experiment, &leading, row))
        })?;
    }
    Ok(rows)
}
