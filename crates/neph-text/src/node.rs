//! The tree that a text becomes, whatever its syntax.

use std::ops::Range;

/// A value and the bytes it is written in.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

/// What a text can say.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number; wider than any type it will become, so that range checks are one place.
    Integer(i128),
    /// A number with a fraction or an exponent.
    Real(f64),
    /// True or false.
    Switch(bool),
    /// A moment; kept as written, nothing here takes one.
    Moment(String),
    /// Nothing (YAML's null, or a key without a value).
    Nothing,
    /// A list.
    List(Vec<Node>),
    /// Keys and values.
    Table(Table),
}

impl Value {
    /// What it is, for sentences: `a text`, `a whole number` ...
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

/// A key, its bytes, and what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The key's bytes in the text.
    pub key_span: Range<usize>,
    /// The value.
    pub node: Node,
}

/// Keys and values, in the order of the text. A key occurs once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// In the order of the text.
    pub entries: Vec<Entry>,
}

impl Table {
    /// The entry of that key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}
