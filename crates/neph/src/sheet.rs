//! A table at the terminal, or the same table as JSON or CSV.
//!
//! Owns columns, alignment and quoting. Nothing is cut: a line longer than the terminal wraps.
//! There is no colour in it, so `NO_COLOR` has nothing to switch off.

use std::io::{self, Write};

use clap::ValueEnum;
use neph_text::{csv_field, visible};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
    /// A header and one line a row.
    Csv,
}

/// On which side of its column a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A column: its heading for people, its key for programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) key: &'static str,
    pub(crate) side: Side,
}

impl Column {
    pub(crate) const fn left(heading: &'static str, key: &'static str) -> Self {
        let side = Side::Left;
        Self { heading, key, side }
    }
    pub(crate) const fn right(heading: &'static str, key: &'static str) -> Self {
        let side = Side::Right;
        Self { heading, key, side }
    }
}

/// A value: as people read it, and as programs do.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) shown: String,
    pub(crate) value: Value,
}

impl Cell {
    /// Shown one way, stored another: `26.8 us` and 26830.
    pub(crate) fn new(shown: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            shown: shown.into(),
            value: value.into(),
        }
    }
    /// The same for both.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(text.clone(), text)
    }
    /// Words that may not have been recorded; nothing instead of none.
    pub(crate) fn known(text: &str) -> Self {
        if text.is_empty() {
            return Self::absent();
        }
        Self::text(text)
    }
    /// A count.
    pub(crate) fn count(n: u64) -> Self {
        Self::new(n.to_string(), n)
    }
    /// A block: people count them from 1, as figures do; files and the store from 0.
    pub(crate) fn block(block: u32) -> Self {
        Self::new((u64::from(block) + 1).to_string(), block)
    }
    /// Nothing is known.
    pub(crate) fn absent() -> Self {
        Self::new("-", Value::Null)
    }
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Sheet {
    /// An empty one.
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Writes it; JSON as a list of objects.
    pub(crate) fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Text => out.write_all(self.text().as_bytes()),
            Format::Json => writeln!(out, "{:#}", self.json()),
            Format::Csv => out.write_all(self.csv().as_bytes()),
        }
    }

    /// Aligned, the headings first; each row is one line, whatever its cells hold.
    pub(crate) fn text(&self) -> String {
        let headings = self.columns.iter().map(|column| column.heading);
        let mut widths: Vec<usize> = headings.clone().map(UnicodeWidthStr::width).collect();
        let shown = |row: &Vec<Cell>| -> Vec<String> {
            let cells = row.iter().map(|cell| visible(&cell.shown).into_owned());
            cells.collect()
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(shown).collect();
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let mut text = self.line(&headings.collect::<Vec<_>>(), &widths);
        for row in &rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            text.push_str(&self.line(&cells, &widths));
        }
        text
    }

    fn line(&self, cells: &[&str], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), column) in cells.iter().zip(widths).zip(&self.columns) {
            let gap = " ".repeat(width - cell.width().min(*width));
            match column.side {
                Side::Left => line.extend([*cell, &gap, "  "]),
                Side::Right => line.extend([&gap, *cell, "  "]),
            }
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }

    /// A list of objects.
    pub(crate) fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let pairs = self.columns.iter().zip(row);
            let object: Map<String, Value> = pairs
                .map(|(column, cell)| (column.key.to_owned(), cell.value.clone()))
                .collect();
            Value::Object(object)
        };
        self.rows.iter().map(object).collect()
    }

    fn csv(&self) -> String {
        let keys: Vec<String> = self.columns.iter().map(|c| c.key.to_owned()).collect();
        let mut text = keys.join(",") + "\n";
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(|cell| field(&cell.value)).collect();
            text.push_str(&(fields.join(",") + "\n"));
        }
        text
    }
}

/// One field of CSV (RFC 4180); what is absent is empty.
pub(crate) fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => csv_field(text).into_owned(),
        other => csv_field(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Sheet {
        let columns = [Column::left("NAME", "name"), Column::right("P50", "p50_ns")];
        let mut sheet = Sheet::new(&columns);
        sheet.rows.push(vec![
            Cell::text("a · \"b\", c"),
            Cell::new("26.8 us", 26_830),
        ]);
        sheet.rows.push(vec![Cell::text("d"), Cell::absent()]);
        sheet
    }

    #[test]
    fn people_get_columns() {
        let expected = "\
NAME            P50
a · \"b\", c  26.8 us
d                 -
";
        assert_eq!(two().text(), expected);
    }

    #[test]
    fn a_cell_neither_controls_the_terminal_nor_makes_a_line_or_a_formula() {
        let mut sheet = Sheet::new(&[Column::left("NAME", "name"), Column::right("N", "n")]);
        sheet.rows.push(vec![
            Cell::text("=1\n\x1b[2J"),
            Cell::new("-3.5", serde_json::json!(-3.5)),
        ]);
        assert_eq!(
            sheet.text(),
            "NAME                  N\n=1\\u000a\\u001b[2J  -3.5\n"
        );
        assert_eq!(sheet.csv(), "name,n\n\"'=1\n\\u001b[2J\",-3.5\n");
    }

    #[test]
    fn programs_get_values_with_units_in_their_keys() {
        let expected = "name,p50_ns\n\"a · \"\"b\"\", c\",26830\nd,\n";
        assert_eq!(two().csv(), expected);
        assert_eq!(two().json()[0]["p50_ns"], 26_830);
        assert!(two().json()[1]["p50_ns"].is_null());
    }
}
