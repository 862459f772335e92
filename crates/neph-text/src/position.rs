//! A position in a text: line and column for editors, and the byte range.

use std::fmt;
use std::ops::Range;

/// A line and a column, both from 1, and the byte range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The character within the line, from 1.
    pub column: usize,
    /// The byte range; both ends are character boundaries within the text.
    pub span: Range<usize>,
}

/// `12:7`, the form that editors read.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
