//! A version of TLS.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of TLS.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum TlsVersion {
    /// RFC 5246.
    #[serde(rename = "1.2")]
    V12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V13,
}

/// `1.2` or `1.3`.
impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V12 => "1.2",
            Self::V13 => "1.3",
        })
    }
}

/// A text that is neither `1.2` nor `1.3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no version of TLS that can be chosen: write 1.2 or 1.3")]
pub struct NoTlsVersion(String);

impl FromStr for TlsVersion {
    type Err = NoTlsVersion;

    fn from_str(text: &str) -> Result<Self, NoTlsVersion> {
        match text {
            "1.2" => Ok(Self::V12),
            "1.3" => Ok(Self::V13),
            _ => Err(NoTlsVersion(text.to_owned())),
        }
    }
}
