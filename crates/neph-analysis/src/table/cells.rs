//! A table as plain cells, and its two files: csv (RFC 4180) and json.

use neph_text::csv_field;
use serde_json::{Map, Number, Value};

/// What stands instead of a value that flows decide which lost half of their messages or more.
pub(crate) const LOST_FLOWS: &str = "lost";

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A count.
    Integer(u64),
    /// A measurement, in the column's unit.
    Real(f64),
    /// Above every reply: the word for the messages without a reply, or the flows, that decide it.
    Censored(&'static str),
    /// Not to be had, for the reason in the table's notes. Empty in csv, `null` in json.
    Absent,
}

impl Cell {
    /// A measurement that may be absent.
    pub fn real(value: Option<f64>) -> Self {
        value.map_or(Self::Absent, Self::Real)
    }

    fn csv(&self) -> String {
        match self {
            Self::Text(text) => csv_field(text).into_owned(),
            Self::Integer(count) => count.to_string(),
            Self::Real(value) => rounded(*value).to_string(),
            Self::Censored(word) => (*word).to_owned(),
            Self::Absent => String::new(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Integer(count) => Value::from(*count),
            Self::Real(value) => {
                Number::from_f64(rounded(*value)).map_or(Value::Null, Value::Number)
            }
            Self::Censored(word) => Value::from(*word),
            Self::Absent => Value::Null,
        }
    }
}

/// To nine decimals: finer than any clock behind it, and without the noise of binary fractions.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// A column: its name in files, with the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column(pub &'static str);

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name of its files.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

impl Table {
    /// As csv, with a header line and without notes.
    pub fn csv(&self) -> String {
        let header: Vec<&str> = self.columns.iter().map(|column| column.0).collect();
        let mut out = header.join(",");
        out.push_str("\r\n");
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(Cell::csv).collect();
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
        out
    }

    /// As json: `{"title", "notes", "rows": [{column: value}]}`.
    pub fn json(&self) -> String {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let cells = self.columns.iter().zip(row);
                let object: Map<String, Value> = cells
                    .map(|(column, cell)| (column.0.to_owned(), cell.json()))
                    .collect();
                Value::Object(object)
            })
            .collect();
        let document = serde_json::json!({
            "title": self.title,
            "notes": self.notes,
            "rows": rows,
        });
        format!("{document:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_and_json_distinguish_lost_and_absent_values() {
        let table = Table {
            name: "t",
            title: "T",
            columns: vec![Column("label"), Column("n"), Column("p99_ms")],
            rows: vec![
                vec![
                    Cell::Text("a, \"b\"".into()),
                    Cell::Integer(7),
                    Cell::Absent,
                ],
                vec![
                    Cell::Text("c".into()),
                    Cell::Integer(9),
                    Cell::Censored("not sent"),
                ],
                vec![Cell::Text("d".into()), Cell::Integer(9), Cell::Real(40.125)],
            ],
            notes: vec!["why".into()],
        };
        assert_eq!(
            table.csv(),
            "label,n,p99_ms\r\n\"a, \"\"b\"\"\",7,\r\nc,9,not sent\r\nd,9,40.125\r\n"
        );
        let parsed: Value = serde_json::from_str(&table.json()).unwrap();
        assert_eq!(parsed["rows"][0]["p99_ms"], Value::Null);
        assert_eq!(parsed["rows"][1]["p99_ms"], "not sent");
        assert_eq!(parsed["rows"][2]["p99_ms"], 40.125);
    }
}
