//! JSON lines: an object per message.

use std::io::Write;

use neph_model::{Experiment, Message};
use serde_json::{Map, Value};

use super::matrices::Matrices;
use super::stages;
use crate::columns::{Belonging, COLUMNS, Cell, Constant};
use crate::{Store, StoreError};

/// Writes the messages of `experiments`, one JSON object a line; returns the number of lines.
///
/// Keys: which experiment it belongs to (`experiment_id`, `scenario`, `block`, `status` ...), the
/// columns of the message files, and for a reply `response_ns`,
/// `service_ns` and `stages_ns`, an object from `network` or `network+peer_send` to nanoseconds
/// that add up to `response_ns`. What is absent has no key.
///
/// # Errors
/// What the store cannot read, or `out` does not take.
pub fn export_jsonl(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let matrices = Matrices::of(store, experiments)?;
    let mut lines = 0;
    for experiment in experiments {
        let whose = whose(&matrices.belonging(experiment));
        store.visit_messages(experiment.id, &mut |batch| {
            for message in batch {
                put(out, &object(&whose, message))?;
                lines += 1;
            }
            Ok(())
        })?;
    }
    out.flush().map_err(StoreError::output("JSON"))?;
    Ok(lines)
}

/// Writes one line.
pub(super) fn put(out: &mut dyn Write, object: &Map<String, Value>) -> Result<(), StoreError> {
    serde_json::to_writer(&mut *out, object)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(StoreError::output("JSON"))
}

/// A value as JSON has it; null if it is absent.
pub(super) fn value(cell: Cell) -> Value {
    match cell {
        Cell::Absent => Value::Null,
        Cell::Signed(value) => value.into(),
        Cell::Unsigned(value) => value.into(),
        Cell::Flag(value) => value.into(),
        Cell::Word(value) => value.into(),
    }
}

/// The leading keys of an experiment's objects.
pub(super) fn whose(belonging: &Belonging<'_>) -> Map<String, Value> {
    let pairs = belonging.constants().map(|(name, value)| {
        let value: Value = match value {
            Constant::Text(text) => text.into(),
            Constant::Count(count) => count.into(),
        };
        (name.to_owned(), value)
    });
    pairs.collect()
}

fn object(whose: &Map<String, Value>, message: &Message) -> Map<String, Value> {
    let mut object = whose.clone();
    for column in COLUMNS {
        match column.cell(message) {
            Cell::Absent => {}
            cell => {
                object.insert(column.name.to_owned(), value(cell));
            }
        }
    }
    if let Some(ledger) = message.ledger() {
        let stages: Map<String, Value> = ledger
            .entries()
            .iter()
            .map(|entry| (stages::joined(entry.stages), entry.time.nanos().into()))
            .collect();
        object.insert(
            "response_ns".to_owned(),
            ledger.response_time().nanos().into(),
        );
        object.insert(
            "service_ns".to_owned(),
            ledger.service_time().nanos().into(),
        );
        object.insert("stages_ns".to_owned(), stages.into());
    }
    object
}
