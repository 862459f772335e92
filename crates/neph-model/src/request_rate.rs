//! A rate of requests, and its text form.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests per second, in thousandths: 0.5/s is 500.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct RequestRate(u64);

impl RequestRate {
    /// The largest rate: ten million requests per second.
    pub const MAX: Self = Self(10_000_000_000);

    /// From thousandths of a request per second; at most [`Self::MAX`].
    pub const fn from_milli(milli: u64) -> Self {
        if milli > Self::MAX.0 {
            return Self::MAX;
        }
        Self(milli)
    }

    /// In thousandths of a request per second.
    pub const fn milli(self) -> u64 {
        self.0
    }

    /// In requests per second.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub fn per_second(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

/// `500/s`, `0.5/s`: every digit.
impl fmt::Display for RequestRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, milli) = (self.0 / 1_000, self.0 % 1_000);
        let text = format!("{units}.{milli:03}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.pad(&format!("{text}/s"))
    }
}

/// A text that is no rate of requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no rate of requests: write for example 500/s, 0.5/s or 30/min, up to 10000000/s")]
pub struct NoRequestRate(String);

impl FromStr for RequestRate {
    type Err = NoRequestRate;

    /// A number and `/s` or `/min`. No digit may be finer than a thousandth of a request per second.
    fn from_str(text: &str) -> Result<Self, NoRequestRate> {
        milli_of(text)
            .filter(|milli| *milli <= Self::MAX.0)
            .map(Self)
            .ok_or_else(|| NoRequestRate(text.to_owned()))
    }
}

fn milli_of(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once('/')?;
    let seconds = match unit {
        "s" => 1,
        "min" => 60,
        _ => return None,
    };
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if integer.is_empty() || !is_number(integer) || !is_number(fraction) || fraction.len() > 3 {
        return None;
    }
    let milli: u64 = format!("{integer}{fraction:0<3}").parse().ok()?;
    milli.is_multiple_of(seconds).then_some(milli / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_requests_roundtrip_and_wrong_ones_are_refused() {
        for (text, milli) in [
            ("500/s", 500_000),
            ("0.5/s", 500),
            ("1.25/s", 1_250),
            ("0/s", 0),
        ] {
            assert_eq!(text.parse(), Ok(RequestRate(milli)));
            assert_eq!(RequestRate(milli).to_string(), text);
        }
        assert_eq!("30/min".parse(), Ok(RequestRate(500)));
        for wrong in [
            "",
            "500",
            "500/h",
            "-1/s",
            "1e3/s",
            "0.0001/s",
            "10000001/s",
            "1/min",
        ] {
            assert!(wrong.parse::<RequestRate>().is_err(), "{wrong}");
        }
    }
}
