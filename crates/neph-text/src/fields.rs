//! A cursor over a table: reads typed values by key, and reports every key that was not read.

use std::ops::Range;

use crate::{Entry, Fault, FromNode, Node, Problems, Table, Value, did_you_mean};

/// Longest list: values and tables are compared pairwise, which takes quadratic time.
const LONGEST_LIST: usize = 4096;

/// A value and its byte range in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its byte range in the text.
    pub span: Range<usize>,
}

/// A table that is read. Mistakes are added to its [`Problems`]; a value with a mistake is `None`.
#[derive(Debug)]
pub struct Fields<'a> {
    table: &'a Table,
    span: Range<usize>,
    problems: &'a Problems<'a>,
    requested: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    /// Reads `table`, which is at `span`.
    pub const fn new(table: &'a Table, span: Range<usize>, problems: &'a Problems<'a>) -> Self {
        Self {
            table,
            span,
            problems,
            requested: Vec::new(),
        }
    }

    /// Reads `node` if it is a table; otherwise adds a mistake.
    pub fn of(node: &'a Node, problems: &'a Problems<'a>) -> Option<Self> {
        if let Value::Table(table) = &node.value {
            return Some(Self::new(table, node.span.clone(), problems));
        }
        let message = format!("this is {}", node.value.noun());
        problems.add(node.span.clone(), Fault::new(message, "write a table here"));
        None
    }

    /// The position of the table.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
    /// The collected mistakes.
    pub const fn problems(&self) -> &'a Problems<'a> {
        self.problems
    }
    /// Adds a mistake at `span`.
    pub fn fault(&self, span: Range<usize>, message: impl Into<String>, remedy: impl Into<String>) {
        self.problems.add(span, Fault::new(message, remedy));
    }

    /// The entry of `key`, which is a known key from now on. A key without a value counts as
    /// absent.
    pub fn entry(&mut self, key: &'a str) -> Option<&'a Entry> {
        self.requested.push(key);
        let entry = self.table.get(key)?;
        (entry.node.value != Value::Nothing).then_some(entry)
    }
    /// The entry of `key`, which is required.
    pub fn needed(&mut self, key: &'a str) -> Option<&'a Entry> {
        let entry = self.entry(key);
        if entry.is_none() {
            let message = format!("'{key}' is missing");
            self.fault(self.span(), message, "add it");
        }
        entry
    }

    /// The value of `key`, if present.
    pub fn optional<T: FromNode>(&mut self, key: &'a str) -> Option<Spanned<T>> {
        self.optional_with(key, T::from_node)
    }
    /// The value of `key`, which is required.
    pub fn required<T: FromNode>(&mut self, key: &'a str) -> Option<Spanned<T>> {
        self.required_with(key, T::from_node)
    }
    /// Like [`Self::optional`], with the function `read`.
    pub fn optional_with<T>(
        &mut self,
        key: &'a str,
        read: impl Fn(&Node) -> Result<T, Fault>,
    ) -> Option<Spanned<T>> {
        let entry = self.entry(key)?;
        self.read(&entry.node, &read)
    }
    /// Like [`Self::required`], with the function `read`.
    pub fn required_with<T>(
        &mut self,
        key: &'a str,
        read: impl Fn(&Node) -> Result<T, Fault>,
    ) -> Option<Spanned<T>> {
        let entry = self.needed(key)?;
        self.read(&entry.node, &read)
    }

    /// The values of `key`, a single one or a list. `None` if it is absent or no value can be read,
    /// so a returned list is never empty. An empty list and a repeated value are mistakes.
    pub fn one_or_list<T: FromNode + PartialEq>(
        &mut self,
        key: &'a str,
    ) -> Option<Vec<Spanned<T>>> {
        self.one_or_list_with(key, T::from_node)
    }
    /// Like [`Self::one_or_list`], with the function `read`.
    pub fn one_or_list_with<T: PartialEq>(
        &mut self,
        key: &'a str,
        read: impl Fn(&Node) -> Result<T, Fault>,
    ) -> Option<Vec<Spanned<T>>> {
        let entry = self.entry(key)?;
        let Value::List(nodes) = &entry.node.value else {
            return self.read(&entry.node, &read).map(|value| vec![value]);
        };
        if nodes.is_empty() {
            let message = format!("'{key}' is an empty list");
            self.fault(entry.node.span.clone(), message, "write at least one value");
            return None;
        }
        if nodes.len() > LONGEST_LIST {
            let message = format!("'{key}' holds {} values", nodes.len());
            let remedy = format!("write at most {LONGEST_LIST}");
            self.fault(entry.node.span.clone(), message, remedy);
            return None;
        }
        let mut values: Vec<Spanned<T>> = Vec::new();
        for node in nodes {
            let Some(value) = self.read(node, &read) else {
                continue;
            };
            if values.iter().any(|other| other.value == value.value) {
                let message = format!("'{key}' holds this value twice");
                self.fault(node.span.clone(), message, "remove one of them");
                continue;
            }
            values.push(value);
        }
        (!values.is_empty()).then_some(values)
    }

    /// The table at `key`, if present.
    pub fn table(&mut self, key: &'a str) -> Option<Fields<'a>> {
        let entry = self.entry(key)?;
        Fields::of(&entry.node, self.problems)
    }
    /// The tables at `key`; none if it is absent. A single table counts as a list of one.
    pub fn tables(&mut self, key: &'a str) -> Vec<Fields<'a>> {
        let Some(entry) = self.entry(key) else {
            return Vec::new();
        };
        match &entry.node.value {
            Value::List(nodes) if nodes.len() > LONGEST_LIST => {
                let message = format!("'{key}' is given {} times", nodes.len());
                let remedy = format!("write at most {LONGEST_LIST} of them");
                self.fault(entry.key_span.clone(), message, remedy);
                Vec::new()
            }
            Value::List(nodes) => nodes
                .iter()
                .filter_map(|node| Fields::of(node, self.problems))
                .collect(),
            _ => Fields::of(&entry.node, self.problems).into_iter().collect(),
        }
    }

    /// Reports every key that is not known, with the nearest known name.
    pub fn finish(self) {
        for entry in &self.table.entries {
            if self.requested.contains(&entry.key.as_str()) {
                continue;
            }
            // Finding the nearest name takes longer than all of the rest.
            if self.problems.is_full() {
                self.problems.count();
                continue;
            }
            let message = format!("'{}' is not known here", entry.key);
            let remedy = did_you_mean(&entry.key, &self.requested);
            self.fault(entry.key_span.clone(), message, remedy);
        }
    }

    fn read<T>(
        &self,
        node: &Node,
        read: &impl Fn(&Node) -> Result<T, Fault>,
    ) -> Option<Spanned<T>> {
        match read(node) {
            Ok(value) => Some(Spanned {
                value,
                span: node.span.clone(),
            }),
            Err(fault) => {
                self.problems.add(node.span.clone(), fault);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
