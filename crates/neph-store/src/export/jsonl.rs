//! JSON lines: an object per message.

use std::io::Write;

use neph_model::{Experiment, Message};
use serde_json::{Map, Value};

use super::stages;
use crate::columns::{COLUMNS, Cell};
use crate::{Store, StoreError};

/// Writes the messages of `experiments`, one JSON object a line; returns the number of lines.
///
/// Keys: `experiment_id`, the columns of the message files, and for a reply `response_ns`,
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
    let mut lines = 0;
    for experiment in experiments {
        let id = experiment.id.to_string();
        store.visit_messages(experiment.id, &mut |batch| {
            for message in batch {
                let object = object(&id, message);
                serde_json::to_writer(&mut *out, &object)
                    .map_err(std::io::Error::from)
                    .and_then(|()| out.write_all(b"\n"))
                    .map_err(StoreError::output("JSON"))?;
                lines += 1;
            }
            Ok(())
        })?;
    }
    out.flush().map_err(StoreError::output("JSON"))?;
    Ok(lines)
}

fn object(id: &str, message: &Message) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("experiment_id".to_owned(), id.into());
    for column in COLUMNS {
        let value: Value = match column.cell(message) {
            Cell::Absent => continue,
            Cell::Signed(value) => value.into(),
            Cell::Unsigned(value) => value.into(),
            Cell::Flag(value) => value.into(),
            Cell::Word(value) => value.into(),
        };
        object.insert(column.name.to_owned(), value);
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
