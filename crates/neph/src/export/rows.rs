//! Rows of what is not messages, as CSV or JSON lines: whose a row is stands before its own keys.

use std::io::{self, Write};

use neph_model::{Experiment, Scenario};
use neph_store::{Store, StoreError};
use serde_json::{Map, Value};

use super::Format;
use crate::sheet::field;

/// Whose a row of an experiment is.
pub(super) const WHOSE: [&str; 6] = [
    "experiment_id",
    "scenario_id",
    "scenario",
    "block",
    "attempt",
    "status",
];

/// What stands at the beginning of an experiment's rows.
pub(super) fn whose(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Map<String, Value>, StoreError> {
    let scenarios = store.scenarios(experiment.campaign)?;
    let scenario = scenarios.iter().find(|one| one.id == experiment.scenario);
    let values: [Value; WHOSE.len()] = [
        experiment.id.to_string().into(),
        experiment.scenario.to_string().into(),
        scenario.map(Scenario::label).into(),
        experiment.block.into(),
        experiment.attempt.into(),
        experiment.status.name().into(),
    ];
    let keys = WHOSE.into_iter().map(str::to_owned);
    Ok(keys.zip(values).collect())
}

/// Writes rows.
pub(super) struct Rows<'a> {
    format: Format,
    /// Of whose a row is.
    whose: &'a [&'a str],
    keys: &'a [&'a str],
    out: &'a mut dyn Write,
    written: u64,
}

impl<'a> Rows<'a> {
    /// Rows with these keys of whose they are, and these of their own; CSV gets its heading.
    pub(super) fn begin(
        format: Format,
        (whose, keys): (&'a [&'a str], &'a [&'a str]),
        out: &'a mut dyn Write,
    ) -> io::Result<Self> {
        if format == Format::Csv {
            let heading: Vec<&str> = whose.iter().chain(keys).copied().collect();
            writeln!(out, "{}", heading.join(","))?;
        }
        Ok(Self {
            format,
            whose,
            keys,
            out,
            written: 0,
        })
    }

    /// Writes one; `own` is an object with this writer's keys.
    pub(super) fn push(&mut self, whose: &Map<String, Value>, own: Value) -> io::Result<()> {
        let mut row = whose.clone();
        if let Value::Object(own) = own {
            row.extend(own);
        }
        self.written += 1;
        if self.format == Format::Csv {
            let keys = self.whose.iter().chain(self.keys);
            let fields: Vec<String> = keys
                .map(|key| field(row.get(*key).unwrap_or(&Value::Null)))
                .collect();
            return writeln!(self.out, "{}", fields.join(","));
        }
        // As in the other exports, what is absent has no key.
        row.retain(|_, value| !value.is_null());
        writeln!(self.out, "{}", Value::Object(row))
    }

    /// How many were written.
    pub(super) fn end(self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.written)
    }
}
