//! A mistake in a text file, with its place and the way out.
//!
//! Owns spans, lines and columns. Does not print: the caller knows the file's name.

use std::fmt;
use std::ops::Range;

/// Something wrong at a place of a text: what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedError {
    /// Bytes of the text that are meant.
    pub span: Range<usize>,
    /// What is wrong, one sentence without a full stop.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

impl PlacedError {
    pub(crate) fn new(
        span: Range<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            span,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Line and column of the error in `text`, the text it was found in.
    pub fn place_in(&self, text: &str) -> Place {
        let before = text.get(..self.span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |rest| rest.chars().count())
            + 1;
        Place { line, column }
    }
}

impl fmt::Display for PlacedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}

impl std::error::Error for PlacedError {}

/// A line and a column in characters, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// `12:7`, as editors read it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The name of `known` that `given` was probably meant to be, if one is near.
pub(crate) fn nearest<'k>(
    given: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), name))
        .filter(|&(distance, name)| distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// A remedy for a name that is not among `known`.
pub(crate) fn did_you_mean(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean '{name}'?"),
        None if known.is_empty() => "nothing is known here".to_owned(),
        None => format!("known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let text = "a = 1\nü = 2\n";
        let error = PlacedError::new(9..10, "x", "y");
        assert_eq!(error.place_in(text).to_string(), "2:3");
    }

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        assert_eq!(nearest("dealy", ["delay", "rate"]), Some("delay"));
        assert_eq!(nearest("colour", ["delay", "rate"]), None);
    }
}
