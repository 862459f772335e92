//! Parses YAML to a tree with positions: the part of YAML that settings files use.
//!
//! Built on the events of `saphyr-parser`, without recursion, so that nesting needs no stack.
//! Refuses aliases (a few bytes can expand to gigabytes) and more than one document. Plain scalars
//! follow the YAML 1.2 core schema.

use std::collections::HashSet;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::{Entry, Fault, Node, Problems, Table, Value};

/// Maximum nesting, beyond that of any settings file.
const DEEPEST: usize = 32;

/// Reads the source of `problems` as YAML and adds mistakes; an empty text has no value.
pub fn parse_yaml(problems: &Problems<'_>) -> Node {
    let text = problems.source().text();
    let mut tree = Tree {
        bytes: char_starts(text),
        problems,
        open: Vec::new(),
        root: None,
    };
    for event in Parser::new_from_str(text) {
        let event = match event {
            Ok((event, span)) => tree.take(event, span),
            Err(error) => {
                let at = tree.byte(error.marker().index());
                let fault = Fault::new(error.info(), "see https://yaml.org for the syntax");
                Err((at..at, fault))
            }
        };
        if let Err((span, fault)) = event {
            problems.add(span, fault);
            break;
        }
    }
    tree.root.unwrap_or(Node {
        value: Value::Nothing,
        span: 0..0,
    })
}

/// The byte offset of each character, and of the end: the parser counts characters.
fn char_starts(text: &str) -> Vec<usize> {
    text.char_indices()
        .map(|(byte, _)| byte)
        .chain([text.len()])
        .collect()
}

/// An incomplete list or table.
struct Open {
    span: Range<usize>,
    value: Value,
    /// The key of the next value.
    key: Option<(String, Range<usize>)>,
    /// The keys so far: searching the entries would take quadratic time.
    keys: HashSet<String>,
}

struct Tree<'p, 's> {
    bytes: Vec<usize>,
    problems: &'p Problems<'s>,
    open: Vec<Open>,
    root: Option<Node>,
}

type Step = Result<(), (Range<usize>, Fault)>;

impl Tree<'_, '_> {
    fn byte(&self, character: usize) -> usize {
        let end = *self.bytes.last().expect("the end is always there");
        self.bytes.get(character).copied().unwrap_or(end)
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Step {
        let span = self.byte(span.start.index())..self.byte(span.end.index());
        match event {
            Event::Scalar(text, style, _, _) => {
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => Value::Text(text.into_owned()),
                };
                self.add(Node { value, span })
            }
            Event::SequenceStart(..) => self.begin(Value::List(Vec::new()), span),
            Event::MappingStart(..) => self.begin(Value::Table(Table::default()), span),
            Event::SequenceEnd | Event::MappingEnd => self.end(&span),
            Event::Alias(_) => {
                let fault = Fault::new("aliases are not taken", "write the value out");
                Err((span, fault))
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                let fault = Fault::new("a second document begins", "keep one document per file");
                Err((span, fault))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, value: Value, span: Range<usize>) -> Step {
        if self.open.len() >= DEEPEST {
            let message = format!("this is nested deeper than {DEEPEST}");
            return Err((span, Fault::new(message, "write it flatter")));
        }
        self.open.push(Open {
            span,
            value,
            key: None,
            keys: HashSet::new(),
        });
        Ok(())
    }

    fn end(&mut self, span: &Range<usize>) -> Step {
        match self.open.pop() {
            None => Ok(()),
            Some(open) => self.add(Node {
                value: open.value,
                span: open.span.start..span.end.max(open.span.end),
            }),
        }
    }

    /// Adds a finished node: to the open list, as the value of the waiting key, or as a key.
    fn add(&mut self, node: Node) -> Step {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.value, open.key.take()) {
            (Value::List(nodes), _) => nodes.push(node),
            (Value::Table(table), Some((key, key_span))) => {
                if !open.keys.insert(key.clone()) {
                    let message = format!("'{key}' is given twice");
                    self.problems
                        .add(key_span, Fault::new(message, "remove one of them"));
                    return Ok(());
                }
                table.entries.push(Entry {
                    key,
                    key_span,
                    node,
                });
            }
            (_, _) => open.key = Some((key_text(&node)?, node.span)),
        }
        Ok(())
    }
}

fn key_text(node: &Node) -> Result<String, (Range<usize>, Fault)> {
    match &node.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(n) => Ok(n.to_string()),
        other => {
            let message = format!("this key is {}", other.noun());
            Err((node.span.clone(), Fault::new(message, "write a name")))
        }
    }
}

/// A scalar without quotes, by the core schema (YAML 1.2.2, section 10.3.2). Also YAML 1.1's `yes`
/// and `no`, which the Go library of the Latency Tester reads as booleans.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Nothing,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return Value::Switch(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Value::Switch(false);
        }
        _ => {}
    }
    let radix = |prefix, radix| {
        text.strip_prefix(prefix)
            .and_then(|digits| i128::from_str_radix(digits, radix).ok())
    };
    if let Some(n) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Value::Integer(n);
    }
    if let Ok(n) = text.parse::<i128>() {
        return Value::Integer(n);
    }
    // Rust also parses "inf" and "nan", which YAML spells differently and no setting uses.
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    match text.parse::<f64>() {
        Ok(x) if digits => Value::Real(x),
        _ => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
