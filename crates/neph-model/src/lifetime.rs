//! How long a flow of a fleet lives before another source port takes its place.

use std::fmt;
use std::str::FromStr;

use crate::{ParseSpanError, Span};

/// How long a flow of a fleet lives; displayed with every digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifetime(pub Span);

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.exact())
    }
}

impl FromStr for Lifetime {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, ParseSpanError> {
        text.parse().map(Self)
    }
}
