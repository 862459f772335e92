//! Tables for the terminal: alignment and headings.
//!
//! Nothing is cut: a line longer than the terminal wraps. There is no colour in it.

use neph_text::visible;
use unicode_width::UnicodeWidthStr;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The heading and the alignment of a column.
#[derive(Clone, Copy, Debug)]
pub struct Heading {
    /// The text above the column.
    pub text: &'static str,
    /// Alignment of the values.
    pub side: Side,
}

impl Heading {
    /// A column of words.
    pub const fn left(text: &'static str) -> Self {
        let side = Side::Left;
        Self { text, side }
    }

    /// A column of numbers.
    pub const fn right(text: &'static str) -> Self {
        let side = Side::Right;
        Self { text, side }
    }
}

/// A table of text.
#[derive(Clone, Debug)]
pub struct Table {
    headings: Vec<Heading>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(headings: impl Into<Vec<Heading>>) -> Self {
        Self {
            headings: headings.into(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: a cell for each heading. Control characters are escaped.
    pub fn push(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let cells = cells.into_iter();
        let cells = cells.map(|cell| visible(cell.as_ref()).into_owned());
        self.rows.push(cells.collect());
    }

    /// Whether there is no row.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Aligned, the headings first; each row is one line, for any content of its cells.
    pub fn text(&self) -> String {
        let headings = self.headings.iter().map(|heading| heading.text);
        let mut widths: Vec<usize> = headings.clone().map(UnicodeWidthStr::width).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let mut text = self.line(headings, &widths);
        for row in &self.rows {
            text.push_str(&self.line(row.iter().map(String::as_str), &widths));
        }
        text
    }

    fn line<'c>(&self, cells: impl Iterator<Item = &'c str>, widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), heading) in cells.zip(widths).zip(&self.headings) {
            let gap = " ".repeat(width - cell.width().min(*width));
            match heading.side {
                Side::Left => line.extend([cell, &gap, "  "]),
                Side::Right => line.extend([&gap, cell, "  "]),
            }
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_aligned_and_numbers_right_aligned() {
        let mut table = Table::new([Heading::left("NAME"), Heading::right("P50")]);
        table.push(["a · \"b\", c", "26.8 us"]);
        table.push(["d", "-"]);
        let expected = "\
NAME            P50
a · \"b\", c  26.8 us
d                 -
";
        assert_eq!(table.text(), expected);
    }

    #[test]
    fn control_characters_in_cells_are_escaped() {
        let mut table = Table::new([Heading::left("NAME"), Heading::right("N")]);
        table.push(["=1\n\x1b[2J", "-3.5"]);
        assert_eq!(
            table.text(),
            "NAME                  N\n=1\\u000a\\u001b[2J  -3.5\n"
        );
    }
}
