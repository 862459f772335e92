//! Parquet: messages of one or several experiments, with columns that identify the experiment.

use neph_model::{Experiment, Message};

use super::matrices::Matrices;
use super::rows::StoredRow;
use crate::columns::{ColumnsWriter, FileMetadata};
use crate::{Store, StoreError};
use neph_text::WholeFile;

/// Writes the messages of `experiments` to one Parquet file; returns the number of rows. The
/// columns that identify the experiment (`experiment_id`, `scenario`, `block`, `status` ...) come
/// before those of the store's files. The file of a single experiment also has the metadata of the
/// store's file.
///
/// # Errors
/// The store cannot be read, or the file cannot be written.
pub fn export_parquet(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &WholeFile,
) -> Result<u64, StoreError> {
    write::<Message>(store, experiments, out)
}

/// Writes rows of any type.
pub(super) fn write<R: StoredRow>(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &WholeFile,
) -> Result<u64, StoreError> {
    let matrices = Matrices::from_store(store, experiments)?;
    let metadata = match experiments {
        [experiment] => FileMetadata::of(experiment, matrices.context_of(experiment).scenario),
        _ => FileMetadata::of_several(),
    };
    let mut writer = ColumnsWriter::<R>::create_leading(out, metadata)?;
    for experiment in experiments {
        writer.begin(&matrices.context_of(experiment))?;
        R::visit(store, experiment.id, &mut |batch| {
            batch.iter().try_for_each(|row| writer.push(row))
        })?;
    }
    writer.finish()
}
