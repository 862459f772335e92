//! Rows other than messages, as CSV or JSON lines.

use std::io::{self, Write};

use neph_documents::export_rows::RowExperiment;
use neph_documents::rows::{Row, csv_line, keys};
use neph_model::Experiment;
use neph_store::{Store, StoreError};
use serde_json::Value;

use super::FileFormat;

/// The experiment that rows belong to.
pub(super) fn row_experiment(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<RowExperiment, StoreError> {
    let scenarios = store.scenarios(experiment.campaign)?;
    let scenario = scenarios
        .iter()
        .find(|scenario| scenario.id == experiment.scenario);
    Ok(RowExperiment::of(experiment, scenario))
}

/// A writer of rows.
pub(super) struct Rows<'a> {
    format: FileFormat,
    keys: Vec<String>,
    out: &'a mut dyn Write,
    row_count: u64,
}

impl<'a> Rows<'a> {
    /// Writes the header of CSV.
    pub(super) fn begin<R: Row>(format: FileFormat, out: &'a mut dyn Write) -> io::Result<Self> {
        let keys = keys::<R>();
        if format == FileFormat::Csv {
            writeln!(out, "{}", keys.join(","))?;
        }
        Ok(Self {
            format,
            keys,
            out,
            row_count: 0,
        })
    }

    /// Writes a row.
    pub(super) fn push<R: Row>(&mut self, row: &R) -> io::Result<()> {
        self.row_count += 1;
        if self.format == FileFormat::Csv {
            return writeln!(self.out, "{}", csv_line(&self.keys, row));
        }
        let mut row = serde_json::to_value(row)?;
        if let Value::Object(row) = &mut row {
            // As in the other exports, absent values have no key.
            row.retain(|_, value| !value.is_null());
        }
        writeln!(self.out, "{row}")
    }

    /// The number of written rows.
    pub(super) fn end(self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.row_count)
    }
}
