//! CSV: one row per message with its timestamps, stages and TCP states.

use std::io::Write;

use neph_model::{Experiment, Message, StageSet};
use neph_text::csv_field;

use super::rows::{self, Stored};
use super::stages;
use crate::columns::{Belonging, Cell, Constant, LEADING, Row};
use crate::{Store, StoreError};

/// Writes the messages of `experiments` as CSV with a header; returns the number of rows.
///
/// Columns: first those that identify the experiment (`experiment_id`, `scenario`, `block`,
/// `status` ...), then those of the message files, `response_ns` and `service_ns`. A column
/// `stage_<stages>_ns` follows for each ledger entry that occurs: `stage_network_ns`, or
/// `stage_network+peer_send_ns` where the timestamp between two stages is absent. In a row with a
/// reply the stages add up to `response_ns` exactly. An absent value is an empty field.
///
/// # Errors
/// The store cannot be read, or `out` cannot be written.
pub fn export_csv(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
) -> Result<u64, StoreError> {
    let entries = stages::occurring(store, experiments)?;
    let stages = entries
        .iter()
        .map(|entry| format!("stage_{}_ns", stages::joined(*entry)));
    let behind: Vec<String> = ["response_ns", "service_ns"]
        .map(str::to_owned)
        .into_iter()
        .chain(stages)
        .collect();
    write(store, experiments, out, &behind, |_, message, line| {
        ledger(message, &entries, line);
    })
}

/// Writes a header and rows. A row has the leading columns, the table's columns, and the fields
/// `behind`, which `put_behind` appends with a comma before each.
pub(super) fn write<R: Stored>(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
    behind: &[impl AsRef<str>],
    put_behind: impl Fn(&Experiment, &R, &mut String),
) -> Result<u64, StoreError> {
    let leading = LEADING.iter().map(|column| column.name);
    let columns = R::COLUMNS.iter().map(|column| column.name);
    let behind = behind.iter().map(AsRef::as_ref);
    let names: Vec<&str> = leading.chain(columns).chain(behind).collect();
    let mut line = names.join(",") + "\n";
    put(out, &line)?;
    let rows = rows::each(store, experiments, whose, |experiment, whose, row| {
        line.clear();
        line.push_str(whose);
        cells(row, &mut line);
        put_behind(experiment, row, &mut line);
        line.push('\n');
        put(out, &line)
    })?;
    out.flush().map_err(StoreError::output("CSV"))?;
    Ok(rows)
}

fn put(out: &mut dyn Write, line: &str) -> Result<(), StoreError> {
    out.write_all(line.as_bytes())
        .map_err(StoreError::output("CSV"))
}

/// The leading fields of an experiment's rows.
fn whose(belonging: &Belonging<'_>) -> String {
    let fields: Vec<String> = belonging
        .constants()
        .map(|(_, value)| match value {
            Constant::Text(text) => csv_field(&text).into_owned(),
            Constant::Count(count) => count.to_string(),
        })
        .collect();
    fields.join(",")
}

/// Appends one field for each column, with a comma before each.
fn cells<R: Row>(row: &R, line: &mut String) {
    for column in R::COLUMNS {
        line.push(',');
        match column.cell(row) {
            Cell::Absent => {}
            Cell::Signed(value) => line.push_str(&value.to_string()),
            Cell::Unsigned(value) => line.push_str(&value.to_string()),
            Cell::Flag(value) => line.push_str(if value { "true" } else { "false" }),
            Cell::Word(value) => line.push_str(&csv_field(&value)),
        }
    }
}

/// Appends the columns of a ledger.
fn ledger(message: &Message, entries: &[StageSet], line: &mut String) {
    match message.ledger() {
        None => line.extend(std::iter::repeat_n(',', 2 + entries.len())),
        Some(ledger) => {
            let response = ledger.response_time().nanos();
            let service = ledger.service_time().nanos();
            line.push_str(&format!(",{response},{service}"));
            for stages in entries {
                line.push(',');
                let entry = ledger.entries().iter().find(|e| e.stages == *stages);
                if let Some(entry) = entry {
                    line.push_str(&entry.time().nanos().to_string());
                }
            }
        }
    }
}
