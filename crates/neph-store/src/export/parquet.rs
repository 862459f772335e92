//! Parquet: the file of an experiment, or several merged into one with a column that tells them
//! apart.

use std::path::Path;

use neph_model::Experiment;

use crate::columns::{ColumnsWriter, FileFacts};
use crate::{Store, StoreError};

/// Writes the messages of `experiments` to one Parquet file at `path`, over whatever is there;
/// returns the number of rows. With exactly one experiment the file is as the store keeps it; with
/// several the first column is `experiment_id`.
///
/// # Errors
/// What the store cannot read, or the disk does not take.
pub fn export_parquet(
    store: &dyn Store,
    experiments: &[Experiment],
    path: &Path,
) -> Result<u64, StoreError> {
    let mut writer = match experiments {
        [one] => {
            let scenarios = store.scenarios(one.campaign)?;
            let scenario = scenarios.iter().find(|known| known.id == one.scenario);
            ColumnsWriter::create(path, FileFacts::of(one, scenario))?
        }
        _ => ColumnsWriter::create_for_several(path)?,
    };
    for experiment in experiments {
        if experiments.len() > 1 {
            writer.begin(experiment.id)?;
        }
        store.visit_messages(experiment.id, &mut |batch| {
            batch.iter().try_for_each(|message| writer.push(message))
        })?;
    }
    writer.finish()
}
