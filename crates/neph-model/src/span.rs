//! A duration: its arithmetic, and its text form.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A signed duration in nanoseconds, up to 292 years.
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
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }
    /// From microseconds; saturates.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }
    /// From milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }
    /// From seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }
    /// In nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
    /// In milliseconds, for statistics and display only.
    #[expect(
        clippy::cast_precision_loss,
        reason = "display and statistics; exact to 104 days"
    )]
    pub fn millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In seconds, for statistics and display only.
    #[expect(
        clippy::cast_precision_loss,
        reason = "display and statistics; exact to 104 days"
    )]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Without its sign.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
    /// `self` times `n`; saturates.
    #[must_use]
    pub const fn times(self, n: i64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// Every digit and no trailing zero: `25 ms`, `2.5 ms`, `33.333333 ms`. For labels, which must
    /// distinguish different values.
    pub fn exact(self) -> String {
        let (unit, digits, name) = match self.0.unsigned_abs() {
            1_000_000_000.. => (1_000_000_000, 9, "s"),
            1_000_000.. => (1_000_000, 6, "ms"),
            1_000.. => (1_000, 3, "us"),
            _ => (1, 0, "ns"),
        };
        let (units, remainder) = (self.0 / unit, (self.0 % unit).unsigned_abs());
        if remainder == 0 {
            return format!("{units} {name}");
        }
        let fraction = format!("{remainder:0digits$}");
        format!("{units}.{} {name}", fraction.trim_end_matches('0'))
    }
    /// As [`Self::exact`], without a space: `25ms`, `2.5ms`. The form of options.
    pub fn compact(self) -> String {
        self.exact().replace(' ', "")
    }
    /// Reads `25ms`, `1.5s`, `2min`, `1h`, and `0`; no digit may be finer than a nanosecond.
    pub fn from_compact(text: &str) -> Option<Self> {
        if text == "0" {
            return Some(Self::ZERO);
        }
        let split = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, unit) = text.split_at(split);
        let (unit, factor) = match unit {
            "min" => ("s", 60),
            "h" => ("s", 3_600),
            other => (other, 1),
        };
        let nanos = nanos_of(&format!("{number} {unit}"))?;
        nanos.checked_mul(factor).map(Self)
    }
    /// As it is displayed where that rounds nothing away, else with every digit. Scenarios of older
    /// versions are known by this text.
    pub fn unrounded(self) -> String {
        let shown = self.to_string();
        if shown.parse() == Ok(self) {
            shown
        } else {
            self.exact()
        }
    }
    /// As a standard duration; a negative span becomes zero.
    pub fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
impl std::iter::Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

/// Shows the unit that reads best: `812 ns`, `26.8 us`, `40.12 ms`, `1.500 s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "display")]
        let nanos = self.0 as f64;
        let text = match self.0.unsigned_abs() {
            0..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => format!("{:.1} us", nanos / 1e3),
            1_000_000..1_000_000_000 => format!("{:.2} ms", nanos / 1e6),
            _ => format!("{:.3} s", nanos / 1e9),
        };
        f.pad(&text)
    }
}

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no length of time: write a number and ns, us, ms or s")]
pub struct ParseSpanError(String);

/// As [`Span`] is displayed, or as [`Span::exact`] writes it; no digit may be finer than a
/// nanosecond.
impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, ParseSpanError> {
        nanos_of(text)
            .map(Self)
            .ok_or_else(|| ParseSpanError(text.to_owned()))
    }
}

fn nanos_of(text: &str) -> Option<i64> {
    let (number, unit) = text.split_once(' ')?;
    let digits = match unit {
        "s" => 9,
        "ms" => 6,
        "us" => 3,
        "ns" => 0,
        _ => return None,
    };
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number),
    };
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_exact = fraction.len() <= digits && is_number(fraction);
    if integer.is_empty() || !is_number(integer) || !is_exact {
        return None;
    }
    let nanos: i128 = format!("{integer}{fraction:0<digits$}").parse().ok()?;
    i64::try_from(sign * nanos).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_displayed_in_the_best_readable_unit() {
        assert_eq!(Span::from_nanos(812).to_string(), "812 ns");
        assert_eq!(Span::from_nanos(-26_830).to_string(), "-26.8 us");
        assert_eq!(Span::from_micros(40_123).to_string(), "40.12 ms");
        assert_eq!(Span::from_millis(1_500).to_string(), "1.500 s");
    }

    #[test]
    fn exact_labels_of_times_are_not_rounded() {
        assert_eq!(Span::from_millis(25).exact(), "25 ms");
        assert_eq!(Span::from_micros(2_500).exact(), "2.5 ms");
        assert_eq!(Span::from_secs(1).exact(), "1 s");
        assert_eq!(Span::from_millis(1_500).exact(), "1.5 s");
        assert_eq!(Span::from_nanos(1_000_100).exact(), "1.0001 ms");
        assert_eq!(Span::from_nanos(33_333_333).exact(), "33.333333 ms");
        assert_eq!(Span::ZERO.exact(), "0 ns");
    }

    #[test]
    fn compact_times_roundtrip() {
        for (text, nanos) in [
            ("25ms", 25_000_000),
            ("1.5s", 1_500_000_000),
            ("0ns", 0),
            ("-7us", -7_000),
        ] {
            assert_eq!(Span::from_compact(text), Some(Span::from_nanos(nanos)));
            assert_eq!(Span::from_nanos(nanos).compact(), text);
        }
        assert_eq!(Span::from_compact("2min"), Some(Span::from_secs(120)));
        assert_eq!(Span::from_compact("1.5h"), Some(Span::from_secs(5_400)));
        for wrong in ["", "5", "ms", "1d", "1 s", "9999999h"] {
            assert_eq!(Span::from_compact(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn time_spans_roundtrip_exactly() {
        for nanos in [
            0,
            7,
            -7,
            1_500,
            33_333_333,
            1_000_000_001,
            i64::MAX,
            i64::MIN,
        ] {
            let text = Span::from_nanos(nanos).exact();
            assert_eq!(text.parse(), Ok(Span::from_nanos(nanos)), "{text}");
        }
        assert_eq!("5.000 s".parse(), Ok(Span::from_secs(5)));
        assert_eq!("60.0 us".parse(), Ok(Span::from_micros(60)));
        for wrong in [
            "",
            "5",
            "5s",
            "5 min",
            ". s",
            "1.5 ns",
            "1e3 s",
            "+1 s",
            "9999999999999 s",
        ] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
    }
}
