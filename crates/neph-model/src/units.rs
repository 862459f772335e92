//! Sizes and rates: bytes and bits per second, never mixed up.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes.
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
pub struct ByteSize(pub u64);

impl ByteSize {
    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
    /// The largest unit that it has one of.
    fn binary_unit(self) -> Option<(u64, &'static str)> {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        UNITS.into_iter().find(|(unit, _)| self.0 >= *unit)
    }
    /// As it prints, but never rounded: `1.5 KiB`, `100 kB`, `1472 B`. For labels, which must
    /// distinguish different values.
    pub fn exact(self) -> String {
        const DECIMAL: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
        // Below 1 KiB too: 1000 B are 1 kB.
        let unit = self.binary_unit().map_or(1 << 10, |(unit, _)| unit);
        if (u128::from(self.0) * 10).is_multiple_of(unit.into()) {
            return self.to_string();
        }
        match DECIMAL
            .iter()
            .find(|(unit, _)| self.0.is_multiple_of(*unit))
        {
            Some((unit, name)) => format!("{} {name}", self.0 / unit),
            None => format!("{} B", self.0),
        }
    }
}

/// `64 B`, `10 KiB`, `100 KiB`, `1.5 MiB`; a size that is no whole multiple keeps one decimal.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.binary_unit() {
            None => format!("{} B", self.0),
            Some((unit, name)) if self.0.is_multiple_of(unit) => {
                format!("{} {name}", self.0 / unit)
            }
            #[expect(clippy::cast_precision_loss, reason = "display")]
            Some((unit, name)) => format!("{:.1} {name}", self.0 as f64 / unit as f64),
        };
        f.pad(&text)
    }
}

/// A number of bits per second.
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
pub struct BitRate(pub u64);

impl BitRate {
    /// The units that a rate is written in, the largest first.
    const UNITS: [(u64, &'static str); 4] = [
        (1_000_000_000, "Gbit/s"),
        (1_000_000, "Mbit/s"),
        (1_000, "kbit/s"),
        (1, "bit/s"),
    ];

    /// The number of bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Every digit, in the largest unit of which it is a whole number: `1450kbit/s`.
    pub fn exact(self) -> String {
        let mut units = Self::UNITS.into_iter();
        let (unit, name) = units
            .find(|(unit, _)| self.0.is_multiple_of(*unit))
            .unwrap_or((1, "bit/s"));
        format!("{}{name}", self.0 / unit)
    }
}

/// A text that is no rate as [`BitRate::exact`] writes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no rate: write a whole number and bit/s, kbit/s, Mbit/s or Gbit/s")]
pub struct NoRate(String);

impl FromStr for BitRate {
    type Err = NoRate;

    /// As [`BitRate::exact`] writes it.
    fn from_str(text: &str) -> Result<Self, NoRate> {
        let rate = Self::UNITS.into_iter().find_map(|(unit, name)| {
            let count: u64 = text.strip_suffix(name)?.parse().ok()?;
            count.checked_mul(unit)
        });
        rate.map(Self).ok_or_else(|| NoRate(text.to_owned()))
    }
}

/// `3 Mbit/s`, `19.8 Mbit/s`: powers of ten, as network rates are written.
impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut large = Self::UNITS.iter().filter(|(unit, _)| *unit > 1);
        let text = match large.find(|(unit, _)| self.0 >= *unit) {
            None => format!("{} bit/s", self.0),
            Some((unit, name)) if self.0.is_multiple_of(*unit) => {
                format!("{} {name}", self.0 / unit)
            }
            #[expect(clippy::cast_precision_loss, reason = "display")]
            Some((unit, name)) => format!("{:.2} {name}", self.0 as f64 / *unit as f64),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_labels_of_sizes_are_not_rounded() {
        let exact = [64, 1400, 1450, 1472, 1536, 10_240, 100_000, (3 << 30) + 1];
        assert_eq!(
            exact.map(|bytes| ByteSize(bytes).exact()).join(", "),
            "64 B, 1400 B, 1450 B, 1472 B, 1.5 KiB, 10 KiB, 100 kB, 3221225473 B"
        );
    }

    #[test]
    fn sizes_and_rates_are_displayed_in_common_notation() {
        assert_eq!(ByteSize(64).to_string(), "64 B");
        assert_eq!(ByteSize(102_400).to_string(), "100 KiB");
        assert_eq!(ByteSize(100_000).to_string(), "97.7 KiB");
        assert_eq!(BitRate(3_000_000).to_string(), "3 Mbit/s");
        assert_eq!(BitRate(19_840_000).to_string(), "19.84 Mbit/s");
    }

    #[test]
    fn bit_rates_roundtrip_exactly() {
        for rate in [0, 1, 999, 1_450_000, 2_000_000, 3_000_000_001, u64::MAX] {
            let text = BitRate(rate).exact();
            assert_eq!(text.parse(), Ok(BitRate(rate)), "{text}");
        }
        for wrong in ["", "kbit/s", "1.5Mbit/s", "-1bit/s", "99999999999Gbit/s"] {
            assert!(wrong.parse::<BitRate>().is_err(), "{wrong}");
        }
    }
}
