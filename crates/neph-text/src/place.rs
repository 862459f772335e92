//! A place in a text: what an editor jumps to, and the bytes that are meant.

use std::fmt;
use std::ops::Range;

/// A line and a column, both from 1, and the bytes that are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The character within the line, from 1.
    pub column: usize,
    /// The bytes of the text that are meant; both ends lie on character boundaries within it.
    pub span: Range<usize>,
}

/// `12:7`, as editors read it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
