//! Parquet: the messages of one or several experiments, with columns that tell whose they are.

use std::path::Path;

use neph_model::{Experiment, Message};

use super::matrices::Matrices;
use super::rows::Stored;
use crate::columns::{ColumnsWriter, FileFacts};
use crate::{Store, StoreError};

/// Writes the messages of `experiments` to one Parquet file at `path`, over whatever is there;
/// returns the number of rows. The columns are those of the store's own files, after those that
/// tell whose a row is (`experiment_id`, `scenario`, `block`, `status` ...). The file of a single
/// experiment also has the metadata of the store's.
///
/// # Errors
/// What the store cannot read, or the disk does not take.
pub fn export_parquet(
    store: &dyn Store,
    experiments: &[Experiment],
    path: &Path,
) -> Result<u64, StoreError> {
    write::<Message>(store, experiments, path)
}

/// Writes rows, whosever they are.
pub(super) fn write<R: Stored>(
    store: &dyn Store,
    experiments: &[Experiment],
    path: &Path,
) -> Result<u64, StoreError> {
    let matrices = Matrices::of(store, experiments)?;
    let facts = match experiments {
        [one] => FileFacts::of(one, matrices.belonging(one).scenario),
        _ => FileFacts::of_several(),
    };
    let mut writer = ColumnsWriter::<R>::create_leading(path, facts)?;
    for experiment in experiments {
        writer.begin(&matrices.belonging(experiment))?;
        R::visit(store, experiment.id, &mut |batch| {
            batch.iter().try_for_each(|row| writer.push(row))
        })?;
    }
    writer.finish()
}
