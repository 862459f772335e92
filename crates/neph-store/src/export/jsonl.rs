//! JSON lines: one object per message.

use std::io::Write;

use neph_model::{Experiment, Message};
use serde_json::{Map, Value};

use super::rows::{self, StoredRow};
use super::stages;
use crate::columns::{Cell, ExperimentContext, LeadingValue};
use crate::{Store, StoreError};

/// Writes the messages of `experiments`, one JSON object per line; returns the number of lines.
///
/// Keys: those that identify the experiment (`experiment_id`, `scenario`, `block`, `status` ...),
/// then the columns of the message files. A reply also has `response_ns`, `service_ns` and
/// `stages_ns`: an object from `network` or `network+peer_send` to nanoseconds that add up to
/// `response_ns`. An absent value has no key.
///
/// # Errors
/// The store cannot be read, or `out` cannot be written.
pub fn export_jsonl(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    write(store, experiments, out, |_, message, object| {
        insert_ledger(message, object);
    })
}

/// Writes rows as objects: the leading keys, the table's columns, and what `insert_extra` adds.
pub(super) fn write<R: StoredRow>(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
    insert_extra: impl Fn(&Experiment, &R, &mut Map<String, Value>),
) -> Result<u64, StoreError> {
    let lines = rows::for_each_row(
        store,
        experiments,
        leading_keys,
        |experiment, leading, row| {
            let mut object = leading.clone();
            let present = R::COLUMNS
                .iter()
                .map(|column| (column.name, column.cell(row)))
                .filter(|(_, cell)| *cell != Cell::Absent);
            object.extend(present.map(|(name, cell)| (name.to_owned(), cell_to_json(cell))));
            insert_extra(experiment, row, &mut object);
            write_object(out, &object)
        },
    )?;
    out.flush().map_err(StoreError::output("JSON"))?;
    Ok(lines)
}

/// Writes one line.
fn write_object(out: &mut dyn Write, object: &Map<String, Value>) -> Result<(), StoreError> {
    serde_json::to_writer(&mut *out, object)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(StoreError::output("JSON"))
}

/// A value as JSON; null if it is absent.
fn cell_to_json(cell: Cell) -> Value {
    match cell {
        Cell::Absent => Value::Null,
        Cell::Signed(value) => value.into(),
        Cell::Unsigned(value) => value.into(),
        Cell::Flag(value) => value.into(),
        Cell::Word(value) => value.into_owned().into(),
    }
}

/// The leading keys of an experiment's objects.
fn leading_keys(context: &ExperimentContext<'_>) -> Map<String, Value> {
    let pairs = context.leading_values().map(|(name, value)| {
        let value: Value = match value {
            LeadingValue::Text(text) => text.into(),
            LeadingValue::Count(count) => count.into(),
        };
        (name.to_owned(), value)
    });
    pairs.collect()
}

fn insert_ledger(message: &Message, object: &mut Map<String, Value>) {
    let Some(ledger) = message.ledger() else {
        return;
    };
    let stages: Map<String, Value> = ledger
        .entries()
        .iter()
        .map(|entry| {
            (
                stages::join_names(entry.stages),
                entry.time().nanos().into(),
            )
        })
        .collect();
    let mut insert = |name: &str, value: Value| object.insert(name.to_owned(), value);
    insert("response_ns", ledger.response_time().nanos().into());
    insert("service_ns", ledger.service_time().nanos().into());
    insert("stages_ns", stages.into());
}
