//! Which HTTP statuses count as the expected reply.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of HTTP status codes from 100 to 599; the default is 2xx (RFC 9110, 15.3: successful).
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct ExpectedStatus {
    /// Bit `status - 100`, in words of 64 bits.
    bits: [u64; Self::WORDS],
}

impl ExpectedStatus {
    const MIN_STATUS: u16 = 100;
    const MAX_STATUS: u16 = 599;
    const WORDS: usize = 8;

    /// Whether this status is expected.
    pub const fn contains(&self, status: u16) -> bool {
        if status < Self::MIN_STATUS || status > Self::MAX_STATUS {
            return false;
        }
        let at = (status - Self::MIN_STATUS) as usize;
        self.bits[at / 64] >> (at % 64) & 1 == 1
    }

    fn add(&mut self, status: u16) {
        let at = usize::from(status - Self::MIN_STATUS);
        self.bits[at / 64] |= 1 << (at % 64);
    }

    const fn none() -> Self {
        Self {
            bits: [0; Self::WORDS],
        }
    }

    /// The statuses as runs of neighbours.
    fn runs(&self) -> Vec<(u16, u16)> {
        let mut runs: Vec<(u16, u16)> = Vec::new();
        for status in (Self::MIN_STATUS..=Self::MAX_STATUS).filter(|status| self.contains(*status))
        {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == status => *last = status,
                _ => runs.push((status, status)),
            }
        }
        runs
    }
}

impl Default for ExpectedStatus {
    fn default() -> Self {
        let mut statuses = Self::none();
        (200..=299).for_each(|status| statuses.add(status));
        statuses
    }
}

/// What was typed is no set of statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseStatusError(String);

impl fmt::Display for ParseStatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no HTTP status: write 200, a class as 2xx, a range as 200-204, several with \
             commas, or any",
            self.0
        )
    }
}

impl std::error::Error for ParseStatusError {}

impl FromStr for ExpectedStatus {
    type Err = ParseStatusError;

    /// Reads `200`, `2xx`, `200-204`, several of them with commas, or `any`.
    fn from_str(text: &str) -> Result<Self, ParseStatusError> {
        let mut statuses = Self::none();
        for part in text.split(',').map(str::trim) {
            let (first, last) = range(part).ok_or_else(|| ParseStatusError(part.to_owned()))?;
            (first..=last).for_each(|status| statuses.add(status));
        }
        Ok(statuses)
    }
}

fn range(part: &str) -> Option<(u16, u16)> {
    let status = |text: &str| {
        let status: u16 = text.parse().ok()?;
        (ExpectedStatus::MIN_STATUS..=ExpectedStatus::MAX_STATUS)
            .contains(&status)
            .then_some(status)
    };
    if part == "any" {
        return Some((ExpectedStatus::MIN_STATUS, ExpectedStatus::MAX_STATUS));
    }
    if let Some(class) = part.strip_suffix("xx") {
        let first = status(&format!("{class}00"))?;
        return Some((first, first + 99));
    }
    match part.split_once('-') {
        Some((first, last)) => {
            let (first, last) = (status(first.trim())?, status(last.trim())?);
            (first <= last).then_some((first, last))
        }
        None => status(part).map(|status| (status, status)),
    }
}

impl fmt::Display for ExpectedStatus {
    /// As it may be typed: whole classes as `2xx`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs() == [(Self::MIN_STATUS, Self::MAX_STATUS)] {
            return f.pad("any");
        }
        let part = |(first, last): (u16, u16)| match (first, last) {
            (first, last) if first == last => first.to_string(),
            (first, last) if first % 100 == 0 && last == first + 99 => format!("{}xx", first / 100),
            (first, last) => format!("{first}-{last}"),
        };
        let parts: Vec<String> = self.runs().into_iter().map(part).collect();
        f.pad(&parts.join(","))
    }
}

impl fmt::Debug for ExpectedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExpectedStatus({self})")
    }
}

impl From<ExpectedStatus> for String {
    fn from(expected: ExpectedStatus) -> Self {
        expected.to_string()
    }
}

impl TryFrom<String> for ExpectedStatus {
    type Error = ParseStatusError;

    fn try_from(text: String) -> Result<Self, ParseStatusError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_statuses_roundtrip_and_default_to_2xx() {
        let default = ExpectedStatus::default();
        assert!(default.contains(200) && default.contains(299));
        assert!(!default.contains(199) && !default.contains(300) && !default.contains(1000));
        for text in ["2xx", "200", "200-204,301", "2xx,404", "any", "100-150,599"] {
            let read: ExpectedStatus = text.parse().expect(text);
            assert_eq!(read.to_string(), text);
        }
        assert_eq!(
            "2xx , 3xx"
                .parse::<ExpectedStatus>()
                .map(|all| all.to_string()),
            Ok("200-399".to_owned())
        );
        for invalid in [
            "", "xx", "99", "600", "6xx", "204-200", "2x", "ok", "200;201",
        ] {
            let message = invalid
                .parse::<ExpectedStatus>()
                .expect_err(invalid)
                .to_string();
            assert!(message.contains("2xx"), "{message}");
        }
    }
}
