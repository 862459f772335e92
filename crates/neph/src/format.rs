//! The `--format` option: each command offers the formats that suit its result.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use neph_documents::Format;

/// All formats: for results that are rows, or a sequence of messages.
pub(crate) const ALL: &[Format] = &Format::ALL;
/// For one document without rows.
pub(crate) const DOCUMENT: &[Format] = &[Format::Text, Format::Json];
/// For a sequence of results with a summary at the end.
pub(crate) const STREAM: &[Format] = &[Format::Text, Format::Json, Format::Ndjson];
/// For an endless sequence of results.
pub(crate) const ENDLESS: &[Format] = &[Format::Text, Format::Ndjson];

/// Reads one of these formats.
pub(crate) fn one_of(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let possible_value = |format: &Format| PossibleValue::new(format.name()).help(format.purpose());
    PossibleValuesParser::new(formats.iter().map(possible_value)).map(move |name| {
        let mut formats = formats.iter().copied();
        formats
            .find(|format| format.name() == name)
            .expect("clap has refused other names")
    })
}
