//! `neph export --transfers`: the transfers on the source ports of latency classes, one row each.

use std::io::{self, Write};

use neph_documents::export_rows::{RowWithExperiment, TransferRow};
use neph_model::Experiment;
use neph_store::{Store, StoreError, WallClock};

use super::FileFormat;
use super::rows::{Rows, row_experiment};

/// Writes the transfers of the experiments' fleets; returns their number.
pub(super) fn write(
    store: &dyn Store,
    experiments: &[Experiment],
    format: FileFormat,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let output_error = |source: io::Error| StoreError::Output {
        format: "transfers",
        source,
    };
    let mut rows =
        Rows::begin::<RowWithExperiment<TransferRow>>(format, out).map_err(output_error)?;
    for experiment in experiments {
        let transfers = store.transfers(experiment.id)?;
        if transfers.is_empty() {
            continue;
        }
        let columns = row_experiment(store, experiment)?;
        let clock = WallClock::of(experiment);
        for transfer in &transfers {
            let row = TransferRow::of(experiment, transfer, clock.wall(transfer.transfer.begun));
            let experiment_row = RowWithExperiment {
                experiment: columns.clone(),
                row,
            };
            rows.push(&experiment_row).map_err(output_error)?;
        }
    }
    rows.end().map_err(output_error)
}
