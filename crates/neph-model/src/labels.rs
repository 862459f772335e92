//! Labels of an agent: its site, as the operator describes it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Labels of one agent, at most.
const MAX_LABELS: usize = 16;
/// Characters of a key and of a value, at most.
const MAX_LABEL_CHARS: usize = 63;

/// One label: `region=eu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    key: String,
    value: String,
}

/// The labels of an agent, by key: at most 16.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct Labels(BTreeMap<String, String>);

/// Labels that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// No key and value.
    #[error(
        "'{0}' is no label: write KEY=VALUE. A key has 1 to 63 lower-case letters, digits and underscores, a letter \
         first. A value has 1 to 63 letters, digits and any of . _ - / :"
    )]
    NoKeyAndValue(String),
    /// A key that exists already.
    #[error("label '{0}' is given twice: give it once")]
    DuplicateKey(String),
    /// More labels than allowed.
    #[error("{0} labels: an agent has at most {MAX_LABELS}")]
    TooMany(usize),
}

fn is_key(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=MAX_LABEL_CHARS).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(is_allowed)
}

fn is_value(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:".contains(&byte);
    (1..=MAX_LABEL_CHARS).contains(&text.len()) && text.bytes().all(is_allowed)
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        match text.split_once('=') {
            Some((key, value)) if is_key(key) && is_value(value) => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(LabelError::NoKeyAndValue(
                text.chars().take(2 * MAX_LABEL_CHARS).collect(),
            )),
        }
    }
}

impl Labels {
    /// All these labels.
    ///
    /// # Errors
    /// There are too many, or one key occurs twice.
    pub fn new(pairs: impl IntoIterator<Item = Label>) -> Result<Self, LabelError> {
        let mut labels = BTreeMap::new();
        for Label { key, value } in pairs {
            if labels.insert(key.clone(), value).is_some() {
                return Err(LabelError::DuplicateKey(key));
            }
        }
        Self::bounded(labels)
    }

    fn bounded(labels: BTreeMap<String, String>) -> Result<Self, LabelError> {
        match labels.len() {
            0..=MAX_LABELS => Ok(Self(labels)),
            more => Err(LabelError::TooMany(more)),
        }
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Key and value of each, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl TryFrom<BTreeMap<String, String>> for Labels {
    type Error = LabelError;

    fn try_from(labels: BTreeMap<String, String>) -> Result<Self, LabelError> {
        let wrong = labels
            .iter()
            .find(|(key, value)| !is_key(key) || !is_value(value));
        if let Some((key, value)) = wrong {
            let text = format!("{key}={value}");
            return Err(LabelError::NoKeyAndValue(
                text.chars().take(2 * MAX_LABEL_CHARS).collect(),
            ));
        }
        Self::bounded(labels)
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_key_and_a_value() {
        for valid in ["region=eu", "cloud=aws", "rack_2=A-7/b:c.d", "k=V"] {
            let label: Label = valid
                .parse()
                .unwrap_or_else(|error| panic!("{valid}: {error}"));
            assert_eq!(Labels::new([label]).expect("one").to_string(), valid);
        }
        let long = format!("k={}", "v".repeat(64));
        for invalid in [
            "",
            "region",
            "=eu",
            "region=",
            "Region=eu",
            "1a=b",
            "a b=c",
            "a=b c",
            "a=b=c",
            "a=\u{e4}",
            "a=\n",
            &long,
        ] {
            assert!(invalid.parse::<Label>().is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn labels_from_outside_are_bounded() {
        let labels = |text: &str| serde_json::from_str::<Labels>(text);
        let read = labels(r#"{"region":"eu","cloud":"aws"}"#).expect("labels");
        assert_eq!(read.to_string(), "cloud=aws, region=eu");
        let written = serde_json::to_string(&read).expect("JSON");
        assert_eq!(written, r#"{"cloud":"aws","region":"eu"}"#);
        for invalid in [r#"{"A":"b"}"#, r#"{"a":"\u001b[31m"}"#, r#"{"a":""}"#, "[]"] {
            assert!(labels(invalid).is_err(), "{invalid}");
        }
        let too_many: BTreeMap<_, _> = (0..17).map(|n| (format!("k{n}"), "v".to_owned())).collect();
        assert_eq!(Labels::try_from(too_many), Err(LabelError::TooMany(17)));
        let duplicate_labels = ["a=b", "a=c"].map(|text| text.parse().expect("a label"));
        assert_eq!(
            Labels::new(duplicate_labels),
            Err(LabelError::DuplicateKey("a".to_owned()))
        );
    }
}
