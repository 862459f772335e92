//! Reading a TOML table key by key, gathering every mistake with its place.
//!
//! Owns types, missing keys and unknown keys. A key is known because somebody asked for it, so
//! the list of known keys cannot fall behind the code.

use std::cell::RefCell;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::place::{PlacedError, did_you_mean};

/// A value with its place.
pub(crate) type Value<'t, 'i> = &'t Spanned<DeValue<'i>>;

/// A table being read.
pub(crate) struct Reader<'t, 'i> {
    table: &'t DeTable<'i>,
    span: Range<usize>,
    asked: RefCell<Vec<&'static str>>,
}

/// The mistakes found so far.
pub(crate) type Mistakes = Vec<PlacedError>;

impl<'t, 'i> Reader<'t, 'i> {
    /// Begins to read `table`, which stands at `span`.
    pub(crate) fn new(table: &'t DeTable<'i>, span: Range<usize>) -> Self {
        Self {
            table,
            span,
            asked: RefCell::default(),
        }
    }

    /// Begins to read the table that `value` should be.
    pub(crate) fn of(value: Value<'t, 'i>, mistakes: &mut Mistakes) -> Option<Self> {
        let found = value.get_ref().as_table();
        if found.is_none() {
            mistakes.push(wrong_type(value, "a table"));
        }
        found.map(|table| Self::new(table, value.span()))
    }

    /// Where the table stands.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The value of `key`, if it is there.
    pub(crate) fn get(&self, key: &'static str) -> Option<Value<'t, 'i>> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    /// The text of `key`, if it is there.
    pub(crate) fn text(
        &self,
        key: &'static str,
        mistakes: &mut Mistakes,
    ) -> Option<(&'t str, Range<usize>)> {
        let value = self.get(key)?;
        let found = value.get_ref().as_str();
        if found.is_none() {
            mistakes.push(wrong_type(value, "a text in quotes"));
        }
        found.map(|text| (text, value.span()))
    }

    /// The text of `key`, whose absence is a mistake.
    pub(crate) fn needed_text(
        &self,
        key: &'static str,
        mistakes: &mut Mistakes,
    ) -> Option<(&'t str, Range<usize>)> {
        if !self.table.contains_key(key) {
            let what = format!("'{key}' is missing");
            mistakes.push(PlacedError::new(
                self.span(),
                what,
                format!("add {key} = \"...\""),
            ));
        }
        self.text(key, mistakes)
    }

    /// The elements of the array of tables `key`; none when it is absent.
    pub(crate) fn tables(&self, key: &'static str, mistakes: &mut Mistakes) -> Vec<Self> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let Some(array) = value.get_ref().as_array() else {
            mistakes.push(wrong_type(
                value,
                &format!("an array of tables ([[{key}]])"),
            ));
            return Vec::new();
        };
        array
            .iter()
            .filter_map(|element| Self::of(element, mistakes))
            .collect()
    }

    /// The pairs of the table `key` as texts; numbers and truth values are taken as written.
    pub(crate) fn pairs(
        &self,
        key: &'static str,
        mistakes: &mut Mistakes,
    ) -> Vec<(String, String)> {
        let Some(table) = self.get(key).and_then(|value| Self::of(value, mistakes)) else {
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, value) in table.table {
            match plain_text(value.get_ref()) {
                Some(text) => pairs.push((name.get_ref().to_string(), text)),
                None => mistakes.push(wrong_type(value, "a text or a number")),
            }
        }
        pairs
    }

    /// Ends the reading: every key that nobody asked for is a mistake.
    pub(crate) fn finish(self, mistakes: &mut Mistakes) {
        let asked = self.asked.into_inner();
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !asked.contains(&name) {
                let what = format!("unknown key '{name}'");
                mistakes.push(PlacedError::new(
                    key.span(),
                    what,
                    did_you_mean(name, &asked),
                ));
            }
        }
    }
}

fn plain_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Some(u8::from(*truth).to_string()),
        _ => None,
    }
}

fn wrong_type(value: Value<'_, '_>, wanted: &str) -> PlacedError {
    let found = value.get_ref().type_str();
    PlacedError::new(
        value.span(),
        format!("found {found}"),
        format!("write {wanted}"),
    )
}
