//! CSV: one row per message with its timestamps, stages and TCP states.

use std::io::Write;

use neph_model::{Experiment, Message, StageSet};
use neph_text::csv_field;

use super::rows::{self, StoredRow};
use super::stages;
use crate::columns::{Cell, ExperimentContext, LEADING_COLUMNS, LeadingValue, Row};
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
    let entries = stages::find_entries(store, experiments)?;
    let stages = entries
        .iter()
        .map(|entry| format!("stage_{}_ns", stages::join_names(*entry)));
    let extra_columns: Vec<String> = ["response_ns", "service_ns"]
        .map(str::to_owned)
        .into_iter()
        .chain(stages)
        .collect();
    write(
        store,
        experiments,
        out,
        &extra_columns,
        |_, message, line| {
            append_ledger(message, &entries, line);
        },
    )
}

/// Writes a header and rows. A row has the leading columns, the table's columns, and the fields
/// `extra_columns`, which `append_extra` appends with a comma before each.
pub(super) fn write<R: StoredRow>(
    store: &dyn Store,
    experiments: &[Experiment],
    out: &mut dyn Write,
    extra_columns: &[impl AsRef<str>],
    append_extra: impl Fn(&Experiment, &R, &mut String),
) -> Result<u64, StoreError> {
    let leading = LEADING_COLUMNS.iter().map(|column| column.name);
    let columns = R::COLUMNS.iter().map(|column| column.name);
    let extra_columns = extra_columns.iter().map(AsRef::as_ref);
    let column_names: Vec<&str> = leading.chain(columns).chain(extra_columns).collect();
    let mut line = column_names.join(",") + "\n";
    write_line(out, &line)?;
    let rows = rows::for_each_row(
        store,
        experiments,
        leading_fields,
        |experiment, leading_text, row| {
            line.clear();
            line.push_str(leading_text);
            append_cells(row, &mut line);
            append_extra(experiment, row, &mut line);
            line.push('\n');
            write_line(out, &line)
        },
    )?;
    out.flush().map_err(StoreError::output("CSV"))?;
    Ok(rows)
}

fn write_line(out: &mut dyn Write, line: &str) -> Result<(), StoreError> {
    out.write_all(line.as_bytes())
        .map_err(StoreError::output("CSV"))
}

/// The leading fields of an experiment's rows.
fn leading_fields(context: &ExperimentContext<'_>) -> String {
    let fields: Vec<String> = context
        .leading_values()
        .map(|(_, field_value)| match field_value {
            LeadingValue::Text(text) => csv_field(&text).into_owned(),
            LeadingValue::Count(count) => count.to_string(),
        })
        .collect();
    fields.join(",")
}

/// Appends one field for each column, with a comma before each.
fn append_cells<R: Row>(row: &R, row_text: &mut String) {
    for column in R::COLUMNS {
        row_text.push(',');
        match column.cell(row) {
            Cell::Absent => {}
            Cell::Signed(value) => row_text.push_str(&value.to_string()),
            Cell::Unsigned(value) => row_text.push_str(&value.to_string()),
            Cell::Flag(value) => row_text.push_str(if value { "true" } else { "false" }),
            Cell::Word(value) => row_text.push_str(&csv_field(&value)),
        }
    }
}

/// Appends the columns of a ledger.
fn append_ledger(message: &Message, entries: &[StageSet], row_text: &mut String) {
    match message.ledger() {
        None => row_text.extend(std::iter::repeat_n(',', 2 + entries.len())),
        Some(ledger) => {
            let response = ledger.response_time().nanos();
            let service = ledger.service_time().nanos();
            row_text.push_str(&format!(",{response},{service}"));
            for stages in entries {
                row_text.push(',');
                let entry = ledger.entries().iter().find(|e| e.stages == *stages);
                if let Some(entry) = entry {
                    row_text.push_str(&entry.time().nanos().to_string());
                }
            }
        }
    }
}
