//! How far a time zone's clock is ahead of UTC.

use std::fmt;
use std::str::FromStr;

/// No zone is farther from UTC than so many minutes: they go from -12 to +14 hours.
const FARTHEST: i32 = 18 * 60;

/// How far local time is ahead of UTC, in whole minutes; negative if it is behind. The default is
/// UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcOffset(i32);

/// A text that is no offset from UTC.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no offset from UTC: write +02:00, -05:30 or UTC")]
pub struct NoOffset(String);

impl UtcOffset {
    /// UTC itself.
    pub const UTC: Self = Self(0);

    /// In seconds.
    pub const fn seconds(self) -> i32 {
        self.0 * 60
    }
}

impl fmt::Display for UtcOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("UTC");
        }
        let sign = if self.0 < 0 { '-' } else { '+' };
        let minutes = self.0.abs();
        write!(f, "UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl FromStr for UtcOffset {
    type Err = NoOffset;

    /// `UTC`, `Z`, `+2`, `+02:00`, `-0530` or any of these behind `UTC`.
    fn from_str(text: &str) -> Result<Self, NoOffset> {
        let wrong = || NoOffset(text.to_owned());
        let remaining = text.strip_prefix("UTC").unwrap_or(text);
        if remaining.is_empty() && !text.is_empty() || remaining == "Z" {
            return Ok(Self::UTC);
        }
        let (sign, digits) = match remaining.as_bytes().first() {
            Some(b'+') => (1, &remaining[1..]),
            Some(b'-') => (-1, &remaining[1..]),
            _ => return Err(wrong()),
        };
        let (hours, minutes) = match digits.split_once(':') {
            Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
            Some(_) => return Err(wrong()),
            None if digits.len() == 4 => digits.split_at(2),
            None => (digits, "00"),
        };
        let number = |digits: &str| -> Option<i32> {
            let is_number =
                (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()
        };
        let (hours, minutes) = number(hours).zip(number(minutes)).ok_or_else(wrong)?;
        let offset = hours * 60 + minutes;
        if minutes >= 60 || offset > FARTHEST {
            return Err(wrong());
        }
        Ok(Self(sign * offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_offsets_are_parsed_in_common_notations() {
        let seconds = |text: &str| text.parse().map(UtcOffset::seconds);
        for (text, hours) in [
            ("UTC", 0.0),
            ("Z", 0.0),
            ("+00:00", 0.0),
            ("+2", 2.0),
            ("+02:00", 2.0),
            ("UTC+2", 2.0),
            ("-0530", -5.5),
            ("-05:30", -5.5),
            ("+14:00", 14.0),
        ] {
            assert_eq!(seconds(text).map(f64::from), Ok(hours * 3600.0), "{text}");
        }
        for wrong in [
            "", "2", "02:00", "+", "+2:3", "+02:60", "+99", "+-2", "CET", "+٢", "+1:00:00", "+é",
        ] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_utc_offset_is_parsed_from_its_own_text() {
        for text in ["UTC", "UTC+02:00", "UTC-05:30"] {
            let offset: UtcOffset = text.parse().expect(text);
            assert_eq!(offset.to_string(), text);
        }
    }
}
