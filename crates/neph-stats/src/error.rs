//! What a calculation refuses, and why. Owns the one error type of this crate.
//!
//! Written by hand rather than with thiserror, because this crate depends on nothing.

use std::error::Error;
use std::fmt;

/// Why a result was refused. `what` names the calculation or the argument.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum StatsError {
    /// The sample is smaller than the result needs.
    TooFew {
        /// What was to be calculated.
        what: &'static str,
        /// The smallest sufficient number.
        need: usize,
        /// The number there is.
        have: usize,
    },
    /// A value is NaN or infinite.
    NotFinite {
        /// What the value belongs to.
        what: &'static str,
        /// Its place in the slice, counted from 0.
        index: usize,
    },
    /// A slice that must ascend does not.
    NotAscending {
        /// What the slice is.
        what: &'static str,
        /// The first place that is smaller than its predecessor, counted from 0.
        index: usize,
    },
    /// An argument lies outside its range.
    OutOfRange {
        /// Which argument.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What is accepted, in words.
        wanted: &'static str,
    },
    /// Two slices that belong together differ in length.
    UnequalLength {
        /// What the slices are.
        what: &'static str,
        /// Length of the first.
        first: usize,
        /// Length of the other.
        other: usize,
    },
    /// So many messages were lost that the result is decided by them, and has no number.
    Censored {
        /// What was to be calculated.
        what: &'static str,
    },
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { what, need, have } => {
                write!(f, "{what} needs at least {need} values, there are {have}")
            }
            Self::NotFinite { what, index } => {
                write!(f, "{what}: value {index} is not a finite number")
            }
            Self::NotAscending { what, index } => {
                write!(f, "{what}: value {index} is smaller than the one before it")
            }
            Self::OutOfRange {
                what,
                value,
                wanted,
            } => {
                write!(f, "{what} is {value}, it must be {wanted}")
            }
            Self::UnequalLength { what, first, other } => {
                write!(
                    f,
                    "{what} must be equally long, they have {first} and {other} values"
                )
            }
            Self::Censored { what } => {
                write!(
                    f,
                    "{what} has no number: messages without a reply decide it"
                )
            }
        }
    }
}

impl Error for StatsError {}
