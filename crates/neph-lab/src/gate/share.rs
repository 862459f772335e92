//! A part of a whole, exact.

/// A share between none and all, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Everything.
    pub const ALL: Self = Self(1_000_000_000);

    /// From billionths; more than all is all.
    pub const fn from_billionths(billionths: u32) -> Self {
        Self(if billionths > Self::ALL.0 {
            Self::ALL.0
        } else {
            billionths
        })
    }

    /// Between 0 and 1, for statistics and display.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 1e9
    }
}
