//! A file of delays that were measured somewhere: one a line, or a column of a CSV file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use neph_model::Span;
use neph_text::{Fault, FileKind, parse_duration, read_text};

use crate::gate::Trace;
use crate::topology::quantity::MAX_DELAY;

/// The most entries: 8 MiB in memory.
const MAX_ENTRIES: usize = 1_000_000;
/// What the unit of a column of plain numbers may be, as the end of its name.
const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];
const REMEDY: &str = "write one delay a line such as 4.2ms, or name a column of a CSV file as in \
                      \"trace delays.csv delay_ms\"";

/// The traces of a topology: what many links name is read once, and they share it.
#[derive(Debug, Default)]
pub(super) struct Traces(RefCell<BTreeMap<String, Result<Arc<Trace>, Fault>>>);

impl Traces {
    /// The trace that `spec` names (a file, perhaps a column), its file seen from `folder`.
    pub(super) fn read(&self, folder: &Path, spec: &str) -> Result<Arc<Trace>, Fault> {
        let mut known_traces = self.0.borrow_mut();
        let trace = known_traces.entry(spec.to_owned());
        trace.or_insert_with(|| read_trace(folder, spec)).clone()
    }
}

fn read_trace(folder: &Path, spec: &str) -> Result<Arc<Trace>, Fault> {
    let (file, column) = match spec.split_once(char::is_whitespace) {
        Some((file, column)) => (file, Some(column.trim())),
        None => (spec, None),
    };
    let text = read_text(FileKind::Delays, &folder.join(file)).map_err(|error| {
        let message = format!("the trace {file} cannot be read: {error}");
        Fault::new(message, "name a file in the folder of the topology file")
    })?;
    let delays = parse_delays(&text, column).map_err(|(line, message)| {
        let position = if line > 0 {
            format!("{file}:{line}: ")
        } else {
            format!("{file}: ")
        };
        Fault::new(format!("{position}{message}"), REMEDY)
    })?;
    let trace = Trace::new(delays);
    let empty_fault = || Fault::new(format!("the trace {file} holds no delay"), REMEDY);
    trace.map(Arc::new).ok_or_else(empty_fault)
}

/// The delays of a text, or the line that is wrong (0 for the whole) and why.
fn parse_delays(text: &str, column: Option<&str>) -> Result<Vec<Span>, (usize, String)> {
    let mut lines = text
        .lines()
        .zip(1..)
        .map(|(line, number)| (number, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (mut column_index, mut unit) = (0, "");
    if let Some(name) = column {
        let header = lines.next().map_or("", |(_, line)| line);
        column_index = cells(header)
            .position(|cell| cell == name)
            .ok_or_else(|| (0, format!("there is no column '{name}'")))?;
        let unit_suffix = name.rsplit_once('_').map_or("", |(_, suffix)| suffix);
        unit = UNITS
            .iter()
            .find(|unit| **unit == unit_suffix)
            .unwrap_or(&"");
    }
    let mut delays = Vec::new();
    for (number, line) in lines {
        let cell = cells(line).nth(column_index).unwrap_or_default();
        let has_no_unit = cell.ends_with(|c: char| c.is_ascii_digit());
        let delay = parse_duration(&format!("{cell}{}", if has_no_unit { unit } else { "" }));
        let delay = delay.map_err(|fault| (number, fault.message))?;
        let delay = Span::from_nanos(delay);
        if delay > MAX_DELAY {
            return Err((number, format!("\"{cell}\" is longer than 60 s")));
        }
        if delays.len() == MAX_ENTRIES {
            return Err((number, format!("more than {MAX_ENTRIES} delays")));
        }
        delays.push(delay);
    }
    Ok(delays)
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_read_from_lines_or_a_csv_column() {
        let micros = |micros: &[i64]| Ok(micros.iter().map(|us| Span::from_micros(*us)).collect());
        assert_eq!(
            parse_delays("# a day\n4ms\n\n0.5 ms\n", None),
            micros(&[4_000, 500])
        );
        let csv = "when, delay_ms ,\"rtt\"\n1,4.25,9ms\n2,0.1,\"10us\"\n";
        assert_eq!(parse_delays(csv, Some("delay_ms")), micros(&[4_250, 100]));
        assert_eq!(parse_delays(csv, Some("rtt")), micros(&[9_000, 10]));
    }

    #[test]
    fn mistakes_in_a_trace_are_reported_with_their_line() {
        let wrong = |text, column| parse_delays(text, column).expect_err("wrong");
        let (line, message) = wrong("4ms\n# x\n5\n", None);
        assert!(
            line == 3 && message.contains("unit is missing"),
            "{message}"
        );
        assert_eq!(wrong("61s\n", None).0, 1);
        let (line, message) = wrong("a,b\n1ms,2ms\n", Some("c"));
        assert!(line == 0 && message.contains("no column 'c'"), "{message}");
        assert_eq!(wrong("a,b\n1ms\n", Some("b")).0, 2);
        assert_eq!(wrong("a_ms\n-1\n", Some("a_ms")).0, 2);
    }

    #[test]
    fn a_trace_that_many_links_name_is_read_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("day.csv");
        std::fs::write(&file, "d_us\n7\n").expect("write");
        let traces = Traces::default();
        let first = traces.read(folder.path(), "day.csv d_us").expect("fine");
        std::fs::remove_file(&file).expect("removed");
        let second = traces.read(folder.path(), "day.csv d_us").expect("known");
        assert!(Arc::ptr_eq(&first, &second));
        assert!(traces.read(folder.path(), "night.csv").is_err());
    }

    #[test]
    fn a_trace_file_is_relative_to_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("day.csv"), "d_us\n7\n8\n").expect("write");
        let trace = read_trace(folder.path(), "day.csv d_us").expect("fine");
        assert_eq!(trace.delays(), [Span::from_micros(7), Span::from_micros(8)]);
        let none = read_trace(folder.path(), "night.csv").expect_err("missing");
        assert!(
            none.message.contains("night.csv cannot be read"),
            "{none:?}"
        );
        std::fs::write(folder.path().join("empty"), "# nothing\n").expect("write");
        let none = read_trace(folder.path(), "empty").expect_err("empty");
        assert!(none.message.contains("no delay"), "{none:?}");
    }
}
