//! Parses TOML to a tree with positions.

use std::ops::Range;

use toml::de::{DeInteger, DeTable, DeValue};

use crate::{Entry, Fault, Node, Problems, Table, Value};

/// Reads the source of `problems` as TOML. Adds syntax errors, and returns everything that could be
/// read.
pub fn parse_toml(problems: &Problems<'_>) -> Table {
    let (document, errors) = DeTable::parse_recoverable(problems.source().text());
    for error in errors {
        let message = error.message().replace('\n', ", ");
        let span = error.span().unwrap_or(0..0);
        problems.add(
            span,
            Fault::new(message, "see https://toml.io for the syntax"),
        );
    }
    table_of(document.get_ref())
}

/// The tree of a table of the `toml` crate. Entries are in the order of the text.
pub fn table_of(table: &DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            node: node(value.get_ref(), value.span()),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    Table { entries }
}

/// Recursive; the `toml` crate refuses nesting beyond 80.
fn node(value: &DeValue<'_>, span: Range<usize>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(digits) => integer(digits),
        DeValue::Float(digits) => Value::Real(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(on) => Value::Switch(*on),
        DeValue::Datetime(moment) => Value::Moment(moment.to_string()),
        DeValue::Array(values) => Value::List(
            values
                .iter()
                .map(|value| node(value.get_ref(), value.span()))
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(table_of(table)),
    };
    Node { value, span }
}

/// A number beyond `i128` becomes its minimum or maximum, which every range check refuses.
fn integer(digits: &DeInteger<'_>) -> Value {
    let text = digits.as_str();
    Value::Integer(match i128::from_str_radix(text, digits.radix()) {
        Ok(n) => n,
        Err(_) if text.starts_with('-') => i128::MIN,
        Err(_) => i128::MAX,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Source;

    #[test]
    fn keys_and_values_have_their_byte_spans() {
        let source = Source::new("x", "b = 0x1F\na = [true, 1.5]\n");
        let problems = Problems::new(&source);
        let table = parse_toml(&problems);
        let keys: Vec<&str> = table.entries.iter().map(|e| e.key.as_str()).collect();
        assert_eq!(keys, ["b", "a"], "the order of the text");
        assert_eq!(table.entries[0].node.value, Value::Integer(31));
        let Value::List(list) = &table.entries[1].node.value else {
            panic!("a list")
        };
        assert_eq!(&source.text()[list[1].span.clone()], "1.5");
    }

    #[test]
    fn all_syntax_errors_are_reported() {
        let source = Source::new("x", "a = \nb = 1\nc = [1,\nb = 2\n");
        let problems = Problems::new(&source);
        parse_toml(&problems);
        let mistakes = problems.verdict(Some(())).expect_err("three mistakes");
        assert!(mistakes.len() >= 2, "{mistakes:?}");
        assert_eq!(mistakes[0].position.line, 1);
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[a-c\\[\\]{}=,.\"'\\n 0-9_#-]{0,80}") {
            let source = Source::new("x", text);
            parse_toml(&Problems::new(&source));
        }
    }
}
