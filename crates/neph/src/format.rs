//! The `--format` option: each command offers the formats that its result has.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use neph_documents::Format;

/// All formats: results that are rows, or messages one after the other.
pub(crate) const ALL: &[Format] = &Format::ALL;
/// One document that has no rows of its own.
pub(crate) const DOCUMENT: &[Format] = &[Format::Text, Format::Json];
/// Results that come in one after the other and end with a summary.
pub(crate) const STREAM: &[Format] = &[Format::Text, Format::Json, Format::Ndjson];
/// Results that come in one after the other without an end.
pub(crate) const ENDLESS: &[Format] = &[Format::Text, Format::Ndjson];

/// Reads one of these formats.
pub(crate) fn one_of(offered: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let value = |format: &Format| PossibleValue::new(format.name()).help(format.purpose());
    PossibleValuesParser::new(offered.iter().map(value)).map(move |name| {
        let mut offered = offered.iter().copied();
        offered
            .find(|format| format.name() == name)
            .expect("clap has refused other names")
    })
}
