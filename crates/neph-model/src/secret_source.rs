//! Where a secret is: the value that plans, command lines and orders carry in its place.
//!
//! Owns how it is written. Reading the secret is neph-probe's.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a secret is, on the host that needs it: `file:PATH` or `env:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub enum SecretSource {
    /// The path of a file that only its owner can read.
    File(String),
    /// The name of an environment variable.
    Variable(String),
}

/// A text that names no place of a secret: perhaps the secret itself, which is therefore not
/// repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "others can read a secret on the command line or in a plan (ps shows arguments); write \
     file:PATH for a file that holds it, or env:NAME for an environment variable"
)]
pub struct BareSecret;

/// `file:PATH` or `env:NAME`
impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{path}"),
            Self::Variable(name) => write!(f, "env:{name}"),
        }
    }
}

impl FromStr for SecretSource {
    type Err = BareSecret;

    fn from_str(text: &str) -> Result<Self, BareSecret> {
        match text.split_once(':') {
            Some(("file", path)) => Ok(Self::File(path.to_owned())),
            Some(("env", name)) => Ok(Self::Variable(name.to_owned())),
            _ => Err(BareSecret),
        }
    }
}

impl From<SecretSource> for String {
    fn from(source: SecretSource) -> Self {
        source.to_string()
    }
}

impl TryFrom<String> for SecretSource {
    type Error = BareSecret;

    fn try_from(text: String) -> Result<Self, BareSecret> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_sources_roundtrip_and_a_literal_secret_is_none() {
        for text in ["file:/run/a:b", "file:", "env:NAME", "env:"] {
            let source: SecretSource = text.parse().expect(text);
            assert_eq!(source.to_string(), text);
        }
        for bare in ["hunter2", "", "/etc/key", "files:x"] {
            assert_eq!(bare.parse::<SecretSource>(), Err(BareSecret), "{bare}");
        }
    }
}
