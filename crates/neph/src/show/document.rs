//! What `neph show` says, before it is text or JSON: sections of pairs, tables and quoted text.

use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

use crate::sheet::{Cell, Sheet};

/// Sections in order.
#[derive(Debug, Default)]
pub(super) struct Document {
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    title: &'static str,
    key: &'static str,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Pairs(Vec<Pair>),
    Table(Sheet),
    Quote(String),
}

/// A name with its value: the name for people, the key for programs.
#[derive(Debug)]
pub(super) struct Pair {
    name: String,
    key: String,
    cell: Cell,
}

impl Pair {
    pub(super) fn new(name: impl Into<String>, key: impl Into<String>, cell: Cell) -> Self {
        Self {
            name: name.into(),
            key: key.into(),
            cell,
        }
    }
}

impl Document {
    /// Adds pairs.
    pub(super) fn pairs(&mut self, title: &'static str, key: &'static str, pairs: Vec<Pair>) {
        let body = Body::Pairs(pairs);
        self.sections.push(Section { title, key, body });
    }
    /// Adds a table; an empty one is left out of the text.
    pub(super) fn table(&mut self, title: &'static str, key: &'static str, sheet: Sheet) {
        let body = Body::Table(sheet);
        self.sections.push(Section { title, key, body });
    }
    /// Adds a text as it is.
    pub(super) fn quote(&mut self, title: &'static str, key: &'static str, text: &str) {
        let body = Body::Quote(text.to_owned());
        self.sections.push(Section { title, key, body });
    }

    /// For people: a title, then its lines indented.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            let body = section.body.text();
            if body.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("{}\n", section.title));
            for line in body.lines() {
                text.push_str(format!("  {line}").trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// For programs: an object with a key for each section.
    pub(super) fn json(&self) -> Value {
        let sections = self.sections.iter();
        let object: Map<String, Value> = sections
            .map(|section| (section.key.to_owned(), section.body.json()))
            .collect();
        Value::Object(object)
    }
}

impl Body {
    fn text(&self) -> String {
        match self {
            Self::Pairs(pairs) => {
                let widest = pairs.iter().map(|pair| pair.name.width()).max();
                let widest = widest.unwrap_or(0);
                let line = |pair: &Pair| {
                    let gap = " ".repeat(widest - pair.name.width());
                    format!("{}{gap}  {}\n", pair.name, pair.cell.shown)
                };
                pairs.iter().map(line).collect()
            }
            Self::Table(sheet) if sheet.rows.is_empty() => String::new(),
            Self::Table(sheet) => sheet.text(),
            Self::Quote(text) => text.clone(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Pairs(pairs) => {
                let pairs = pairs.iter();
                let object: Map<String, Value> = pairs
                    .map(|pair| (pair.key.clone(), pair.cell.value.clone()))
                    .collect();
                Value::Object(object)
            }
            Self::Table(sheet) => sheet.json(),
            Self::Quote(text) => Value::String(text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::Column;

    #[test]
    fn a_document_reads_the_same_as_text_and_as_json() {
        let mut document = Document::default();
        let pairs = vec![
            Pair::new("id", "id", Cell::text("x")),
            Pair::new("started", "started_unix_ns", Cell::new("today", 5)),
        ];
        document.pairs("Campaign", "campaign", pairs);
        document.table(
            "Flags",
            "flags",
            Sheet::new(&[Column::left("FLAG", "flag")]),
        );
        document.quote("Plan", "plan", "version = 1\n\nblocks = 2\n");
        let expected = "\
Campaign
  id       x
  started  today

Plan
  version = 1

  blocks = 2
";
        assert_eq!(document.text(), expected);
        let json = document.json();
        assert_eq!(json["campaign"]["started_unix_ns"], 5);
        assert_eq!(json["flags"], Value::Array(Vec::new()));
        assert_eq!(json["plan"], "version = 1\n\nblocks = 2\n");
    }
}
