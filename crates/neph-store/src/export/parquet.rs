//! Parquet: the messages of one or several experiments, with columns that tell whose they are.

use std::path::Path;

use neph_model::Experiment;

use super::matrices::Matrices;
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
    let matrices = Matrices::of(store, experiments)?;
    let facts = match experiments {
        [one] => FileFacts::of(one, matrices.belonging(one).scenario),
        _ => FileFacts::of_several(),
    };
    let mut writer = ColumnsWriter::create_leading(path, facts)?;
    for experiment in experiments {
        writer.begin(&matrices.belonging(experiment))?;
        store.visit_messages(experiment.id, &mut |batch| {
            batch.iter().try_for_each(|message| writer.push(message))
        })?;
    }
    writer.finish()
}
