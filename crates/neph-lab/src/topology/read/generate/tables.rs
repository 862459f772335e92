//! Tables of nodes and links as in a file, and the document that contains them.

use std::ops::Range;

use neph_model::Span;
use neph_text::{Entry, Node, Table, Value};

/// Additions to a document.
#[derive(Debug, Default)]
pub(super) struct GeneratedTables {
    pub(super) sites: Vec<Node>,
    pub(super) routers: Vec<Node>,
    pub(super) links: Vec<Node>,
    /// Whether there are links that routes must use.
    pub(super) is_mesh: bool,
}

impl GeneratedTables {
    /// `document` with these additions at the ends of its lists.
    pub(super) fn append_to(self, mut document: Table) -> Table {
        append(&mut document, "site", self.sites);
        append(&mut document, "router", self.routers);
        append(&mut document, "link", self.links);
        if self.is_mesh && document.get("routing").is_none() {
            document
                .entries
                .push(entry("routing", text_node("direct", &(0..0))));
        }
        document
    }
}

/// `document` without the entry of `key`.
pub(super) fn without_key(mut document: Table, key: &str) -> Table {
    document.entries.retain(|entry| entry.key != key);
    document
}

fn append(document: &mut Table, key: &str, nodes: Vec<Node>) {
    let Some(first) = nodes.first() else {
        return;
    };
    let span = first.span.clone();
    let entries = &mut document.entries;
    let Some(existing) = entries.iter_mut().find(|entry| entry.key == key) else {
        let value = Value::List(nodes);
        entries.push(entry(key, Node { value, span }));
        return;
    };
    match &mut existing.node.value {
        Value::List(list) => list.extend(nodes),
        // A single table counts as a list; other values stay a fault.
        Value::Table(_) => {
            let single = existing.node.clone();
            let list = std::iter::once(single).chain(nodes).collect();
            existing.node.value = Value::List(list);
        }
        _ => {}
    }
}

fn entry(key: &str, node: Node) -> Entry {
    Entry {
        key: key.to_owned(),
        key_span: node.span.clone(),
        node,
    }
}

fn text_node(text: &str, span: &Range<usize>) -> Node {
    let value = Value::Text(text.to_owned());
    let span = span.clone();
    Node { value, span }
}

/// A table that begins with `own_entries` and continues with those of `settings`.
fn merge_settings(own_entries: Vec<Entry>, settings: Option<&Node>, span: &Range<usize>) -> Node {
    let mut entries = own_entries;
    match settings {
        None => {}
        Some(Node {
            value: Value::Table(table),
            ..
        }) => entries.extend(table.entries.iter().cloned()),
        // Its reader reports that a table is expected here.
        Some(other) => return other.clone(),
    }
    Node {
        value: Value::Table(Table { entries }),
        span: span.clone(),
    }
}

/// A node called `name`, with the other settings from `settings`.
pub(super) fn node_table(name: &str, settings: Option<&Node>, span: &Range<usize>) -> Node {
    merge_settings(vec![entry("name", text_node(name, span))], settings, span)
}

/// A link between `ends`, with the other settings from `settings`.
pub(super) fn link_table(ends: [&str; 2], settings: Option<&Node>, span: &Range<usize>) -> Node {
    let [a, b] = ends.map(|end| text_node(end, span));
    merge_settings(vec![entry("a", a), entry("b", b)], settings, span)
}

/// Sets the delay of a link.
///
/// # Errors
/// The delay is set already, at this place.
pub(super) fn set_delay(
    link: &mut Node,
    delay: Span,
    span: &Range<usize>,
) -> Result<(), Range<usize>> {
    let Value::Table(table) = &mut link.value else {
        return Ok(());
    };
    if let Some(existing) = table.get("delay") {
        return Err(existing.key_span.clone());
    }
    let delay = text_node(&format!("{}ns", delay.nanos()), span);
    table.entries.push(entry("delay", delay));
    Ok(())
}

/// Adds labels to a node, before those that it has.
pub(super) fn add_labels(node: &mut Node, labels: &[(&str, &str)], span: &Range<usize>) {
    let Value::Table(table) = &mut node.value else {
        return;
    };
    if labels.is_empty() {
        return;
    }
    let own_labels = labels
        .iter()
        .map(|(key, value)| entry(key, text_node(value, span)));
    let existing = table.entries.iter_mut().find(|entry| entry.key == "labels");
    match existing.map(|entry| &mut entry.node.value) {
        None => {
            let entries = own_labels.collect();
            let value = Value::Table(Table { entries });
            let span = span.clone();
            table.entries.push(entry("labels", Node { value, span }));
        }
        Some(Value::Table(labels)) => {
            let missing_labels: Vec<Entry> = own_labels
                .filter(|entry| labels.get(&entry.key).is_none())
                .collect();
            labels.entries.extend(missing_labels);
        }
        Some(_) => {}
    }
}
