//! A named text, and the positions of its lines.

use std::ops::Range;

use crate::Position;

/// A text and its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    /// The byte offset of each line; the first is 0.
    lines: Vec<usize>,
}

impl Source {
    /// A text called `name`, usually a file's path.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0)
            .chain(breaks.map(|(at, _)| at + 1))
            .collect();
        Self {
            name: name.into(),
            text,
            lines,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The position of `span`. A span beyond the text or within a character is shortened.
    pub fn position(&self, span: Range<usize>) -> Position {
        let start = self.boundary(span.start);
        let end = self.boundary(span.end.max(start));
        let line = self.lines.partition_point(|begin| *begin <= start);
        let begin = self.lines[line - 1];
        Position {
            line,
            column: self.text[begin..start].chars().count() + 1,
            span: start..end,
        }
    }

    fn boundary(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let source = Source::new("x", "a = 1\nü = 2\n");
        let at = |byte| source.position(byte..byte + 1).to_string();
        assert_eq!(
            (at(0), at(6), at(9), at(11)),
            ("1:1".into(), "2:1".into(), "2:3".into(), "2:5".into())
        );
    }

    #[test]
    fn a_span_outside_the_text_or_inside_a_character_is_clamped() {
        let source = Source::new("x", "ü\nb");
        assert_eq!(source.position(1..1).span, 0..0);
        assert_eq!(source.position(90..99).to_string(), "2:2");
    }
}
