//! A version of the internet protocol.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of the internet protocol.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum IpVersion {
    /// RFC 791.
    #[serde(rename = "4")]
    V4,
    /// RFC 8200.
    #[serde(rename = "6")]
    V6,
}

/// `4` or `6`.
impl fmt::Display for IpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V4 => "4",
            Self::V6 => "6",
        })
    }
}

/// A text that is neither `4` nor `6`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no version of IP: write 4 or 6")]
pub struct NoIpVersion(String);

impl FromStr for IpVersion {
    type Err = NoIpVersion;

    fn from_str(text: &str) -> Result<Self, NoIpVersion> {
        match text {
            "4" => Ok(Self::V4),
            "6" => Ok(Self::V6),
            _ => Err(NoIpVersion(text.to_owned())),
        }
    }
}
