//! The records of links, one by one, for programs.

use std::io::{self, Write};

use neph_lab::{Handling, Passing, Record, Verdict};
use serde_json::{Map, Value, json};

use crate::sheet::field;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One JSON list.
    List,
    /// A JSON object a line.
    Lines,
    /// A header and a line a record.
    Csv,
}

/// What is known of a record; absent where it has no such thing. Moments are `CLOCK_REALTIME`.
const KEYS: [&str; 24] = [
    "file",
    "link",
    "direction",
    "kind",
    "at_ns",
    "due_ns",
    "left_ns",
    "delay_ns",
    "lateness_ns",
    "length_bytes",
    "verdict",
    "path",
    "copy",
    "flipped_bit",
    "early",
    "protocol",
    "source_port",
    "destination_port",
    "tcp_seq",
    "ip_id",
    "hash",
    "entry",
    "turn",
    "raw_ns",
];

/// Records on their way out.
pub(super) struct Rows<'o> {
    shape: Shape,
    out: &'o mut dyn Write,
    written: bool,
}

impl<'o> Rows<'o> {
    /// Writes what comes before the first.
    pub(super) fn begin(shape: Shape, out: &'o mut dyn Write) -> io::Result<Self> {
        match shape {
            Shape::List => write!(out, "[")?,
            Shape::Lines => {}
            Shape::Csv => writeln!(out, "{}", KEYS.join(","))?,
        }
        Ok(Self {
            shape,
            out,
            written: false,
        })
    }

    /// Writes one, of this file and this link.
    pub(super) fn write(
        &mut self,
        (file, link): &(String, String),
        record: &Record,
    ) -> io::Result<()> {
        let mut row = row(record);
        row.insert("file".to_owned(), json!(file));
        row.insert("link".to_owned(), json!(link));
        if self.shape == Shape::Csv {
            let fields = KEYS.map(|key| row.get(key).map(field).unwrap_or_default());
            return writeln!(self.out, "{}", fields.join(","));
        }
        let row = Value::Object(row);
        match (self.shape, self.written) {
            (Shape::List, true) => write!(self.out, ",\n{row}")?,
            (Shape::List, false) => write!(self.out, "\n{row}")?,
            _ => writeln!(self.out, "{row}")?,
        }
        self.written = true;
        Ok(())
    }

    /// Writes what comes after the last.
    pub(super) fn end(self) -> io::Result<()> {
        match self.shape {
            Shape::List => writeln!(self.out, "\n]"),
            Shape::Lines | Shape::Csv => Ok(()),
        }
    }
}

/// In words, as a topology names it.
fn way(direction: u8) -> &'static str {
    if direction == 0 { "a_to_b" } else { "b_to_a" }
}

fn row(record: &Record) -> Map<String, Value> {
    let row = match record {
        Record::Packet {
            passing,
            handling,
            verdict,
            due,
            left,
        } => return packet(passing, *handling, (*verdict, *due, *left)),
        Record::Step {
            direction,
            number,
            turn,
            at,
        } => json!({
            "kind": "step", "direction": way(*direction), "at_ns": at,
            "entry": number, "turn": turn.name(),
        }),
        Record::Cue { at } => json!({ "kind": "cue", "at_ns": at }),
        Record::Anchor { wall, raw } => {
            json!({ "kind": "anchor", "at_ns": wall, "raw_ns": raw })
        }
    };
    match row {
        Value::Object(row) => row,
        _ => unreachable!("each of these is an object"),
    }
}

fn packet(
    passing: &Passing,
    handling: Handling,
    (verdict, due, left): (Verdict, i64, i64),
) -> Map<String, Value> {
    let identity = &passing.identity;
    let mut row = Map::new();
    let mut put = |key: &str, value: Value| row.insert(key.to_owned(), value);
    put("kind", json!("packet"));
    put("direction", json!(way(passing.direction)));
    put("at_ns", json!(passing.arrival));
    put("length_bytes", json!(passing.length));
    put("verdict", json!(verdict.name()));
    put("path", json!(handling.path));
    put("copy", json!(handling.copy));
    put("flipped_bit", json!(handling.flipped));
    put("early", json!(handling.early));
    put("protocol", json!(identity.protocol));
    put("source_port", json!(identity.source_port));
    put("destination_port", json!(identity.destination_port));
    put("tcp_seq", json!(identity.tcp_seq));
    put("ip_id", json!(identity.ip_id));
    // Not as a number: readers of JSON keep 53 bits of one.
    put("hash", json!(format!("{:016x}", identity.hash)));
    // One that the kernel refused was due as well.
    if matches!(verdict, Verdict::Delivered | Verdict::Refused) && left != 0 {
        put("due_ns", json!(due));
        put("left_ns", json!(left));
        put("delay_ns", json!(left.saturating_sub(passing.arrival)));
        put("lateness_ns", json!(left.saturating_sub(due)));
    }
    row
}
