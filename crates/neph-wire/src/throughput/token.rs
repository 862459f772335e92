//! The token that assigns a stream to a test.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Chosen at random by the server for one test: only hosts on the control connection know it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub u64);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// As 16 hexadecimal digits: many programs limit JSON numbers to 53 bits.
impl Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_token = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(&text, 16).ok().filter(|_| is_token);
        let number = number.ok_or_else(|| serde::de::Error::custom("a token has 16 hex digits"))?;
        Ok(Self(number))
    }
}
