//! The name of an agent.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length in characters: that of a DNS label.
const MAX_LEN: usize = 63;

/// The name of an agent: a DNS label (RFC 1123) of 1 to 63 lower-case letters, digits and hyphens.
/// The first and the last character are a letter or a digit. Certificates, subjects of a bus and
/// file names can contain it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

/// A text that cannot be an agent's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' cannot be an agent's name: use 1 to 63 lower-case letters, digits and hyphens, a letter or digit first and last"
)]
pub struct AgentNameError(String);

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = AgentNameError;

    fn from_str(text: &str) -> Result<Self, AgentNameError> {
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=MAX_LEN).contains(&text.len())
            && text.bytes().all(is_allowed)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if is_name {
            Ok(Self(text.to_owned()))
        } else {
            Err(AgentNameError(text.chars().take(MAX_LEN + 1).collect()))
        }
    }
}

impl TryFrom<String> for AgentName {
    type Error = AgentNameError;

    fn try_from(text: String) -> Result<Self, AgentNameError> {
        text.parse()
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_label_of_dns() {
        for valid in ["a", "ams-1", "0", "x".repeat(63).as_str()] {
            assert_eq!(
                valid.parse::<AgentName>().map(String::from).as_deref(),
                Ok(valid)
            );
        }
        for invalid in [
            "",
            "-a",
            "a-",
            "A",
            "a.b",
            "a/b",
            "ä",
            "x".repeat(64).as_str(),
        ] {
            assert!(invalid.parse::<AgentName>().is_err(), "{invalid}");
        }
    }
}
