//! Reads the TCP statistics that a Latency Tester's client samples from its socket:
//! `tcp-stats_*.csv`.

use std::path::Path;

use neph_model::TcpField;

use super::lines::Lines;
use super::raw::{RawFile, TcpRow};
use super::report::ImportReport;
use crate::StoreError;

/// Start of the first line; the names of the kernel's fields follow.
pub(super) const FIRST_LINE_PREFIX: &str = "#timestamp,message-id,";
/// Columns before the first field.
const LEADING_COLUMNS: usize = 2;
/// Statistics up to this long after the last reply belong to the experiment.
const MAX_STATS_DELAY_NANOS: i64 = 1_000_000_000;

/// Reads a file and assigns each row to its experiment. `files` are sorted by start.
pub(super) fn read_tcp_stats(
    path: &Path,
    files: &mut [RawFile],
    report: &mut ImportReport,
) -> Result<(), StoreError> {
    let mut columns: Vec<Option<TcpField>> = Vec::new();
    let mut lines = Lines::of(path)?;
    while let Some(line) = lines.next()? {
        if let Some(names) = line.text.strip_prefix(FIRST_LINE_PREFIX) {
            columns = names.split(',').map(TcpField::of_kernel).collect();
        } else if !line.text.is_empty() && !line.text.ends_with(",Connection Reset") {
            match parse_row(&line.text, &columns) {
                Ok(row) => assign_row(row, files, report),
                Err(message) => report.add_problem(path, Some(line.number), message),
            }
        }
    }
    Ok(())
}

/// `1611336441708429104,1,1,0,0,...`: Unix nanoseconds, the number of messages sent, the fields. A
/// row may have more fields than the header has names, if the kernel returned more.
fn parse_row(text: &str, columns: &[Option<TcpField>]) -> Result<TcpRow, String> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    if fields.len() < LEADING_COLUMNS + columns.len() {
        return Err(format!(
            "{} fields instead of {}: left out",
            fields.len(),
            LEADING_COLUMNS + columns.len()
        ));
    }
    let at_unix_ns = fields[0].parse().ok().filter(|nanos: &i64| *nanos >= 0);
    let at_unix_ns = at_unix_ns
        .ok_or_else(|| format!("'{}' is no time in Unix nanoseconds: left out", fields[0]))?;
    let named_fields = columns.iter().zip(&fields[LEADING_COLUMNS..]);
    let values = named_fields.filter_map(|(field, text)| Some(((*field)?, text)));
    let values = values.map(|(field, text)| {
        let value = text.parse::<u64>();
        value
            .map(|value| (field, value))
            .map_err(|_| format!("'{text}' is no {}: left out", field.kernel_name()))
    });
    Ok(TcpRow {
        at_unix_ns,
        values: values.collect::<Result<_, _>>()?,
    })
}

fn assign_row(row: TcpRow, files: &mut [RawFile], report: &mut ImportReport) {
    let after = files.partition_point(|file| file.started_unix_ns() <= row.at_unix_ns);
    let file = after.checked_sub(1).and_then(|index| files.get_mut(index));
    let belongs_to = |file: &&mut RawFile| {
        row.at_unix_ns <= file.ended_unix_ns().saturating_add(MAX_STATS_DELAY_NANOS)
    };
    match file.filter(belongs_to) {
        Some(file) => file.tcp_rows.push(row),
        None => report.tcp_rows_outside += 1,
    }
}
