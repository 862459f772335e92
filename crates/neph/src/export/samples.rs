//! `neph export --samples`: the time series of experiments (host, TCP statistics), one row per value.

use std::io::{self, Write};

use neph_documents::export_rows::{RowWithExperiment, SampleRow};
use neph_model::{Experiment, Instant};
use neph_store::{Store, StoreError, WallClock};

use super::FileFormat;
use super::rows::{Rows, row_experiment};

/// Writes the samples of the experiments; returns their number.
pub(super) fn write(
    store: &dyn Store,
    experiments: &[Experiment],
    format: FileFormat,
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let output_error = |source: io::Error| StoreError::Output {
        format: "samples",
        source,
    };
    let mut rows =
        Rows::begin::<RowWithExperiment<SampleRow>>(format, out).map_err(output_error)?;
    for experiment in experiments {
        let samples = store.samples(experiment.id)?;
        let columns = row_experiment(store, experiment)?;
        let clock = WallClock::of(experiment);
        for sample in &samples {
            let row = SampleRow::of(sample, clock.wall(Instant::from_nanos(sample.at)));
            let experiment_row = RowWithExperiment {
                experiment: columns.clone(),
                row,
            };
            rows.push(&experiment_row).map_err(output_error)?;
        }
    }
    rows.end().map_err(output_error)
}
