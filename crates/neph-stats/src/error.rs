//! What a calculation refuses, and why. Owns the one error type of this crate.
//!
//! Written by hand rather than with thiserror, because this crate depends on nothing.

use std::error::Error;
use std::fmt;

/// Why a result was refused. `subject` names the calculation or the argument.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum StatsError {
    /// The sample is smaller than the result needs.
    TooFew {
        /// What was to be calculated.
        subject: &'static str,
        /// The smallest sufficient number.
        need: usize,
        /// The number there is.
        have: usize,
    },
    /// A value is NaN or infinite.
    NotFinite {
        /// What the value belongs to.
        subject: &'static str,
        /// Its place in the slice, counted from 0.
        index: usize,
    },
    /// A slice that must ascend does not.
    NotAscending {
        /// What the slice is.
        subject: &'static str,
        /// The first place that is smaller than its predecessor, counted from 0.
        index: usize,
    },
    /// An argument lies outside its range.
    OutOfRange {
        /// Which argument.
        subject: &'static str,
        /// What was given.
        value: f64,
        /// What is accepted, in words.
        wanted: &'static str,
    },
    /// Two slices that belong together differ in length.
    UnequalLength {
        /// What the slices are.
        subject: &'static str,
        /// Length of the first.
        first: usize,
        /// Length of the other.
        other: usize,
    },
    /// So many messages were lost that the result is decided by them, and has no number.
    Censored {
        /// What was to be calculated.
        subject: &'static str,
    },
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew {
                subject,
                need,
                have,
            } => {
                write!(
                    f,
                    "{subject} needs at least {need} values, there are {have}"
                )
            }
            Self::NotFinite { subject, index } => {
                write!(f, "{subject}: value {index} is not a finite number")
            }
            Self::NotAscending { subject, index } => {
                write!(
                    f,
                    "{subject}: value {index} is smaller than the one before it"
                )
            }
            Self::OutOfRange {
                subject,
                value,
                wanted,
            } => {
                write!(f, "{subject} is {value}, it must be {wanted}")
            }
            Self::UnequalLength {
                subject,
                first,
                other,
            } => {
                write!(
                    f,
                    "{subject} must be equally long, they have {first} and {other} values"
                )
            }
            Self::Censored { subject } => {
                write!(
                    f,
                    "{subject} has no number: messages without a reply decide it"
                )
            }
        }
    }
}

impl Error for StatsError {}
