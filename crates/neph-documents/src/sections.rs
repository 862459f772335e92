//! A long text in sections: a title, then indented lines of a table, of pairs or of quoted text.

use unicode_width::UnicodeWidthStr;

use crate::rows::{self, Row};

/// Sections in order. Those without content are left out.
#[derive(Debug, Default)]
pub struct Sections {
    text: String,
}

/// A name and a value for each line.
#[derive(Clone, Debug, Default)]
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// The fields of one row below each other; a field with an empty cell is left out.
    pub fn of<R: Row>(row: &R) -> Self {
        let columns = R::columns().into_iter();
        let pairs = columns.map(|column| (column.heading.text.to_owned(), (column.cell)(row)));
        Self(pairs.filter(|(_, cell)| !cell.is_empty()).collect())
    }

    /// Adds a line.
    #[must_use]
    pub fn with_pair(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    fn text(&self) -> String {
        let max_width = self.0.iter().map(|(name, _)| name.width()).max();
        let max_width = max_width.unwrap_or(0);
        let line = |(name, value): &(String, String)| {
            format!("{name}{}  {value}\n", " ".repeat(max_width - name.width()))
        };
        self.0.iter().map(line).collect()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl Sections {
    /// Adds pairs.
    pub fn pairs(&mut self, title: &str, pairs: &Pairs) {
        self.quote(title, &pairs.text());
    }

    /// Adds a table of rows.
    pub fn table<R: Row>(&mut self, title: &str, rows: &[R]) {
        if !rows.is_empty() {
            self.quote(title, &rows::text(rows));
        }
    }

    /// Adds text as it is.
    pub fn quote(&mut self, title: &str, body: &str) {
        if body.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&format!("{title}\n"));
        for line in body.lines() {
            self.text.push_str(format!("  {line}").trim_end());
            self.text.push('\n');
        }
    }

    /// The whole text.
    pub fn text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::rows! {
        struct Flag {
            /// Its name.
            flag: String => left "FLAG",
            /// Why.
            why: String => left "WHY",
        }
    }

    #[test]
    fn sections_without_content_are_left_out() {
        let mut sections = Sections::default();
        let pairs = Pairs::default()
            .with_pair("id", "x")
            .with_pair("started", "today");
        sections.pairs("Campaign", &pairs);
        sections.table::<Flag>("Flags", &[]);
        sections.quote("Plan", "version = 1\n\nblocks = 2\n");
        let expected = "\
Campaign
  id       x
  started  today

Plan
  version = 1

  blocks = 2
";
        assert_eq!(sections.text(), expected);
    }

    #[test]
    fn a_row_is_shown_as_pairs() {
        let row = Flag {
            flag: "late".to_owned(),
            why: String::new(),
        };
        assert_eq!(Pairs::of(&row).text(), "FLAG  late\n");
    }
}
