//! A distance on the Earth.

use std::fmt;
use std::str::FromStr;

/// A distance on the Earth in kilometres, from 0 to half its circumference.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Kilometres(f64);

/// It is a number.
impl Eq for Kilometres {}

impl Kilometres {
    /// Half of the Earth's circumference.
    pub const MAXIMUM: f64 = 20_040.0;

    /// This distance; `None` if it is no distance on the Earth.
    pub fn new(kilometres: f64) -> Option<Self> {
        let is_one = (0.0..=Self::MAXIMUM).contains(&kilometres);
        is_one.then_some(Self(kilometres))
    }

    /// In kilometres.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The number alone.
impl fmt::Display for Kilometres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is no distance on the Earth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no distance on the Earth: write kilometres from 0 to 20040")]
pub struct ParseDistanceError(String);

impl FromStr for Kilometres {
    type Err = ParseDistanceError;

    fn from_str(text: &str) -> Result<Self, ParseDistanceError> {
        let kilometres = text.parse().ok().and_then(Self::new);
        kilometres.ok_or_else(|| ParseDistanceError(text.to_owned()))
    }
}
