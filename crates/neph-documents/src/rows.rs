//! Rows: structs whose fields are the columns of a table, the keys of JSON and the header of CSV.
//!
//! [`rows!`](crate::rows!) declares a row once; the text, JSON and CSV forms all come from it.

use std::fmt;
use std::io::{self, Write};

use neph_text::csv_field;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::format::Format;
use crate::table::{Heading, Table};

/// A column of the text form.
#[derive(Clone, Copy, Debug)]
pub struct Column<R> {
    /// The heading and the side.
    pub heading: Heading,
    /// The text of the cell.
    pub cell: fn(&R) -> String,
}

/// A struct that is a row of a table.
pub trait Row: Serialize + JsonSchema + Sized {
    /// The columns of the text form, from left to right.
    fn columns() -> Vec<Column<Self>>;
}

/// Declares a row: a struct with documented fields, and the cell of each in the table.
///
/// `key: Type => left "HEADING"` is a field with a column of words, `right` one of numbers. The
/// text of the cell is the value's [`Cell`](crate::cell::Cell); `by |row| ...` gives another text.
/// A field without a heading is in JSON and CSV only. A field after `shown` is in none of them: it
/// is used to build cells.
#[macro_export]
macro_rules! rows {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Row:ident {
            $(
                $(#[$field_meta:meta])*
                $key:ident: $type:ty $(=> $side:ident $heading:literal $(by $cell:expr)?)?
            ),+ $(,)?
            $(; shown $($(#[$shown_meta:meta])* $shown:ident: $shown_type:ty),+ $(,)?)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
        $vis struct $Row {
            $(
                $(#[$field_meta])*
                pub $key: $type,
            )+
            $($(
                $(#[$shown_meta])*
                #[serde(skip)]
                #[schemars(skip)]
                pub $shown: $shown_type,
            )+)?
        }

        impl $crate::rows::Row for $Row {
            fn columns() -> Vec<$crate::rows::Column<Self>> {
                vec![$($(
                    $crate::rows::Column {
                        heading: $crate::table::Heading::$side($heading),
                        cell: $crate::rows!(@cell $Row $key $($cell)?),
                    },
                )?)+]
            }
        }
    };
    (@cell $Row:ident $key:ident) => {
        |row: &$Row| $crate::cell::Cell::cell(&row.$key)
    };
    (@cell $Row:ident $key:ident $cell:expr) => {{
        let cell: fn(&$Row) -> String = $cell;
        cell
    }};
}

/// The table of these rows.
pub fn table<R: Row>(rows: &[R]) -> Table {
    let columns = R::columns();
    let headings: Vec<Heading> = columns.iter().map(|column| column.heading).collect();
    let mut table = Table::new(headings);
    for row in rows {
        table.push(columns.iter().map(|column| (column.cell)(row)));
    }
    table
}

/// The text form: the table of these rows.
pub fn text<R: Row>(rows: &[R]) -> String {
    table(rows).text()
}

/// The keys of a row in the order of its fields.
pub fn keys<R: Row>() -> Vec<String> {
    let schema = SchemaSettings::default()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<R>();
    let properties = schema.get("properties").and_then(Value::as_object);
    let keys = properties.into_iter().flat_map(|map| map.keys().cloned());
    keys.collect()
}

/// The CSV form: a header and a line for each row.
pub fn csv<R: Row>(rows: &[R]) -> String {
    let keys = keys::<R>();
    let mut text = keys.join(",") + "\n";
    for row in rows {
        text.push_str(&csv_line(&keys, row));
        text.push('\n');
    }
    text
}

/// The line of a row under these keys, without its end.
pub fn csv_line(keys: &[String], row: &impl Serialize) -> String {
    let value = serde_json::to_value(row).unwrap_or_default();
    let fields = keys.iter().map(|key| field(&value[key.as_str()]));
    fields.collect::<Vec<_>>().join(",")
}

/// A field of CSV (RFC 4180); an absent value is empty.
pub fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => csv_field(text).into_owned(),
        other => csv_field(&other.to_string()).into_owned(),
    }
}

/// Writes rows in a format. JSON is one list of objects; NDJSON an object on each line.
///
/// # Errors
/// It cannot be written.
pub fn write<R: Row>(rows: &[R], format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Text => out.write_all(text(rows).as_bytes()),
        Format::Csv => out.write_all(csv(rows).as_bytes()),
        Format::Json => write_json(&rows, out),
        Format::Ndjson => rows.iter().try_for_each(|row| write_json_line(row, out)),
    }
}

/// Writes a value as one indented JSON document.
///
/// # Errors
/// It cannot be written.
pub fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// A value as one line of JSON, without its end.
///
/// # Panics
/// A map of the value has keys that are no strings; no document has.
pub fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("documents have no keys but strings")
}

/// Writes a value as one line of JSON.
///
/// # Errors
/// It cannot be written.
pub fn write_json_line(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Writes rows one after the other, so that many need no more memory than few.
pub struct RowWriter<'o> {
    format: Format,
    out: &'o mut dyn Write,
    keys: Vec<String>,
    rows: u64,
}

impl fmt::Debug for RowWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, rows, .. } = self;
        write!(f, "RowWriter({format:?}, {rows})")
    }
}

impl<'o> RowWriter<'o> {
    /// Writes the start of the output. The text form has a line of JSON for each row too.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(format: Format, out: &'o mut dyn Write) -> io::Result<Self> {
        if format == Format::Json {
            write!(out, "[")?;
        }
        Ok(Self {
            format,
            out,
            keys: Vec::new(),
            rows: 0,
        })
    }

    /// Writes the header of CSV for these rows, once.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn heading<R: Row>(&mut self) -> io::Result<()> {
        if self.format == Format::Csv && self.keys.is_empty() {
            self.keys = keys::<R>();
            writeln!(self.out, "{}", self.keys.join(","))?;
        }
        Ok(())
    }

    /// Writes a row.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn row<R: Row>(&mut self, row: &R) -> io::Result<()> {
        if self.format == Format::Csv {
            return writeln!(self.out, "{}", csv_line(&self.keys, row));
        }
        if self.format == Format::Json {
            let comma = if self.rows > 0 { "," } else { "" };
            writeln!(self.out, "{comma}")?;
        }
        self.rows += 1;
        serde_json::to_writer(&mut *self.out, row)?;
        if self.format == Format::Json {
            return Ok(());
        }
        writeln!(self.out)
    }

    /// Writes the end of the output.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(self) -> io::Result<()> {
        match self.format {
            Format::Json => writeln!(self.out, "\n]"),
            Format::Text | Format::Ndjson | Format::Csv => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use neph_model::Span;
    use serde_json::json;

    use super::*;

    crate::rows! {
        /// A flow.
        struct FlowRow {
            /// The name.
            name: String => left "NAME",
            /// The median round trip.
            p50_ns: Option<Span> => right "P50",
            /// All round trips.
            all: Vec<u32>,
            /// The share of time.
            share: f64 => right "SHARE" by |row| format!("{} %", row.share * 100.0)
            ; shown
            /// Only for cells.
            width: usize,
        }
    }

    fn example_rows() -> [FlowRow; 2] {
        let row = FlowRow {
            name: "b, \"c\"".to_owned(),
            p50_ns: Some(Span::from_nanos(26_830)),
            all: vec![1, 2],
            share: 0.5,
            width: 0,
        };
        let other = FlowRow {
            name: "=1".to_owned(),
            p50_ns: None,
            all: Vec::new(),
            share: -3.5,
            width: 0,
        };
        [row, other]
    }

    #[test]
    fn a_row_is_declared_once_for_text_json_and_csv() {
        let text = "\
NAME        P50   SHARE
b, \"c\"  26.8 us    50 %
=1            -  -350 %
";
        assert_eq!(super::text(&example_rows()), text);
        let csv = "name,p50_ns,all,share\n\"b, \"\"c\"\"\",26830,\"[1,2]\",0.5\n'=1,,[],-3.5\n";
        assert_eq!(super::csv(&example_rows()), csv);
        let values = serde_json::to_value(example_rows()).expect("it is JSON");
        assert_eq!(
            values[1],
            json!({"name": "=1", "p50_ns": null, "all": [], "share": -3.5})
        );
    }

    #[test]
    fn the_csv_header_is_written_without_rows() {
        assert_eq!(csv::<FlowRow>(&[]), "name,p50_ns,all,share\n");
    }
}
