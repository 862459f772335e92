//! Converts between SQLite's values and the model's. The error for an invalid value names the
//! value.

use std::fmt::Display;
use std::str::FromStr;

use neph_model::PathHash;
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A stored value that the model does not have.
#[derive(Debug, thiserror::Error)]
#[error("'{value}' is no {noun}")]
struct InvalidValue {
    noun: &'static str,
    value: String,
}

fn invalid_value(column: &str, noun: &'static str, value: impl Display) -> Error {
    let value = format!("{value} (column {column})");
    Error::FromSqlConversionFailure(0, Type::Text, Box::new(InvalidValue { noun, value }))
}

/// An unsigned 64-bit value, stored bit for bit. No count reaches the sign bit.
pub(super) const fn u64_bits(value: u64) -> i64 {
    value.cast_signed()
}

pub(super) fn get_u64(row: &Row<'_>, column: &str) -> Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

/// A value that is stored as its `Display` text.
pub(super) fn get_parsed<T: FromStr>(row: &Row<'_>, column: &str, noun: &'static str) -> Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| invalid_value(column, noun, text))
}

/// An index in a list.
pub(super) fn index(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn get_index(row: &Row<'_>, column: &str) -> Result<usize> {
    let stored_index: i64 = row.get(column)?;
    usize::try_from(stored_index)
        .map_err(|_| invalid_value(column, "place in a list", stored_index))
}

/// The hash of a path.
pub(super) fn get_hash(row: &Row<'_>, column: &str) -> Result<PathHash> {
    from_digits(column, row.get(column)?)
}

/// The hash of a path, or NULL.
pub(super) fn get_hash_if_any(row: &Row<'_>, column: &str) -> Result<Option<PathHash>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| from_digits(column, text)).transpose()
}

fn from_digits(column: &str, hash_digits: String) -> Result<PathHash> {
    PathHash::try_from(hash_digits.clone())
        .map_err(|_| invalid_value(column, "fingerprint", hash_digits))
}

/// A value that is stored as its name.
pub(super) fn get_named<T>(
    row: &Row<'_>,
    column: &str,
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Result<T> {
    let name: String = row.get(column)?;
    from_name(&name).ok_or_else(|| invalid_value(column, "known name", name))
}

/// A nested value as JSON.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain values with text keys have a JSON form")
}

pub(super) fn get_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T> {
    from_json(column, &row.get::<_, String>(column)?)
}

/// A nested value, or NULL.
pub(super) fn get_json_if_any<T: DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| from_json(column, &text)).transpose()
}

fn from_json<T: DeserializeOwned>(column: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| invalid_value(column, "JSON of ours", error))
}
