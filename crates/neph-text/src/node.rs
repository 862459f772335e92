//! The tree of a parsed text, for every syntax.

use std::ops::Range;

/// A value and its position in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its byte range in the text.
    pub span: Range<usize>,
}

/// A value of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number; wider than every target type, so that range checks are in one place.
    Integer(i128),
    /// A number with a fraction or an exponent.
    Real(f64),
    /// True or false.
    Switch(bool),
    /// A date or time, as written; no type reads one.
    Moment(String),
    /// No value (YAML's null, or a key without a value).
    Nothing,
    /// A list.
    List(Vec<Node>),
    /// Keys and values.
    Table(Table),
}

impl Value {
    /// Its type, for messages: `a text`, `a whole number` ...
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Real(_) => "a number",
            Self::Switch(_) => "a switch, true or false",
            Self::Moment(_) => "a date or time",
            Self::Nothing => "nothing",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// A key, its position, and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The key's byte range in the text.
    pub key_span: Range<usize>,
    /// The value.
    pub node: Node,
}

/// Keys and values, in the order of the text. Keys are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// In the order of the text.
    pub entries: Vec<Entry>,
}

impl Table {
    /// The entry of this key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}
