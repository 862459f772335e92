//! What files of another program may leave open.

use std::fmt;
use std::str::FromStr;

/// The word for it.
const UNKNOWN: &str = "unknown";

/// It is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(UNKNOWN)
    }
}

impl FromStr for Unknown {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        (text == UNKNOWN).then_some(Self).ok_or(())
    }
}

/// A value, or that it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// The value.
    Known(T),
    /// The imported files do not contain it.
    Unknown,
}

impl<T> Known<T> {
    /// The value, if it is known.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown => None,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown => Unknown.fmt(f),
        }
    }
}

impl<T: FromStr> FromStr for Known<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == UNKNOWN {
            return Ok(Self::Unknown);
        }
        text.parse().map(Self::Known)
    }
}
