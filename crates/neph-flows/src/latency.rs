//! How long something took that may never have come back. What is lost is slower than everything
//! that came: it has a place in the order, and no number that could be mistaken for one.

use neph_model::Span;
use serde::Serialize;

/// See the module. Lost is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency<T = Span> {
    /// It came after this long.
    Took(T),
    /// It did not come, or what decides about it did not.
    Lost,
}

impl<T> Latency<T> {
    /// How long it took; `None` of what was lost.
    pub fn took(self) -> Option<T> {
        match self {
            Self::Took(time) => Some(time),
            Self::Lost => None,
        }
    }

    /// The same in another unit.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Latency<U> {
        match self {
            Self::Took(time) => Latency::Took(convert(time)),
            Self::Lost => Latency::Lost,
        }
    }
}
