//! A sheet: one page of a figure being laid out from top to bottom.

use super::Figure;
use super::legend::{Swatch, legend};
use crate::axis::Style;
use crate::scene::{Anchor, Colour, Mark, Point, Rect, Scene, Text, Weight, text_width};

/// The width of every figure: a column of A4 paper at 96 pixels per inch with 2 cm margins.
pub(crate) const WIDTH: f64 = 760.0;
const MARGIN: f64 = 10.0;
const LINE_HEIGHT: f64 = 14.0;

/// One page being laid out.
#[derive(Debug)]
pub(crate) struct Sheet {
    marks: Vec<Mark>,
    y: f64,
    title: String,
}

impl Sheet {
    /// Begins with a title and a line below it.
    pub(crate) fn new(title: String, subtitle: &str) -> Self {
        let mut sheet = Self {
            marks: Vec::new(),
            y: MARGIN + 14.0,
            title,
        };
        let at = Point::new(MARGIN, sheet.y);
        let heading = Text::new(at, Anchor::Start, 14.0, sheet.title.clone()).semibold();
        sheet.marks.push(Mark::Text(heading));
        sheet.y += 4.0;
        sheet.paragraph(subtitle, Style::LABEL);
        sheet.y += 6.0;
        sheet
    }

    /// Text over the whole width, as many lines as it needs.
    fn paragraph(&mut self, text: &str, size: f64) {
        for line in wrap(text, size, WIDTH - 2.0 * MARGIN) {
            self.y += LINE_HEIGHT;
            let at = Point::new(MARGIN, self.y);
            let text = Text::new(at, Anchor::Start, size, line).coloured(Colour::FAINT_INK);
            self.marks.push(Mark::Text(text));
        }
    }

    /// What colours and lines mean.
    pub(crate) fn legend(&mut self, entries: &[(Swatch, String)]) {
        self.y = legend(
            &mut self.marks,
            entries,
            Point::new(MARGIN, self.y),
            WIDTH - MARGIN,
        );
    }

    /// Where the next thing may stand: the whole width, without height.
    pub(crate) const fn inner(&self) -> Rect {
        Rect::new(MARGIN, self.y, WIDTH - 2.0 * MARGIN, 0.0)
    }

    /// Takes the next `height` pixels over the whole width.
    pub(crate) fn take(&mut self, height: f64) -> Rect {
        let rect = Rect::new(MARGIN, self.y, WIDTH - 2.0 * MARGIN, height);
        self.y += height;
        rect
    }

    /// Takes the next `height` pixels as columns of equal width with a gap between them.
    pub(crate) fn columns(&mut self, count: u32, height: f64) -> Vec<Rect> {
        const GAP: f64 = 18.0;
        let row = self.take(height);
        let column_width = (row.width - GAP * f64::from(count - 1)) / f64::from(count);
        (0..count)
            .map(|column| {
                Rect::new(
                    row.x + f64::from(column) * (column_width + GAP),
                    row.y,
                    column_width,
                    height,
                )
            })
            .collect()
    }

    /// Adds marks.
    pub(crate) fn draw(&mut self, marks: impl IntoIterator<Item = Mark>) {
        self.marks.extend(marks);
    }

    /// Ends with notes, such as warnings, and gives the page its number if there are several.
    pub(crate) fn finish(mut self, kind: &'static str, name: String, notes: &[Note]) -> Figure {
        self.y += 4.0;
        for note in notes {
            let top = self.y;
            self.paragraph(&note.text, Style::NOTE);
            if note.is_flag {
                // The text begins with room for the marker.
                let at = Point::new(MARGIN, top + LINE_HEIGHT);
                self.marks.push(super::flags::marker(at));
            }
        }
        let mut scene = Scene::new(WIDTH, (self.y + MARGIN).ceil());
        scene.marks = self.marks;
        let caption = notes
            .iter()
            .filter(|note| !note.is_flag)
            .map(|note| note.text.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        Figure {
            name,
            kind,
            title: self.title,
            caption,
            scene,
        }
    }
}

/// A line below a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) text: String,
    /// It is a warning and carries the flag's marker.
    pub(crate) is_flag: bool,
}

impl Note {
    /// How to read the figure.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_flag: false,
        }
    }
}

/// `title`, or `title (2 of 5)`.
pub(crate) fn page_title(title: &str, page: usize, pages: usize) -> String {
    if pages > 1 {
        format!("{title} ({} of {pages})", page + 1)
    } else {
        title.to_owned()
    }
}

/// `name`, or `name-2`.
pub(crate) fn page_name(name: &str, page: usize, pages: usize) -> String {
    if pages > 1 {
        format!("{name}-{}", page + 1)
    } else {
        name.to_owned()
    }
}

/// Breaks a text into lines that fit.
pub(crate) fn wrap(text: &str, size: f64, max_width: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let extended_line = if line.is_empty() {
            word.to_owned()
        } else {
            format!("{line} {word}")
        };
        if !line.is_empty() && text_width(&extended_line, size, Weight::Regular) > max_width {
            lines.push(std::mem::replace(&mut line, word.to_owned()));
        } else {
            line = extended_line;
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_breaks_between_words() {
        let text = "the quick brown fox jumps over the lazy dog";
        let lines = wrap(text, 10.0, 80.0);
        assert!(lines.len() > 2);
        assert!(
            lines
                .iter()
                .all(|line| text_width(line, 10.0, Weight::Regular) <= 80.0)
        );
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn pages_are_numbered_only_if_there_are_several() {
        assert_eq!(page_title("Boxes", 0, 1), "Boxes");
        assert_eq!(
            (page_title("Boxes", 1, 3), page_name("boxes", 1, 3)),
            ("Boxes (2 of 3)".into(), "boxes-2".into())
        );
    }
}
