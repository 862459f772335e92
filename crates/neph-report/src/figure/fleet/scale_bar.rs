//! What the colours of a spectrum stand for.

use super::colours::CountScale;
use crate::axis::Style;
use crate::figure::sheet::Sheet;
use crate::scene::{Anchor, Colour, Mark, Point, Rect, Text};
use neph_analysis::numbers::count;

const BLOCK_WIDTH: f64 = 42.0;
const BLOCK_HEIGHT: f64 = 9.0;

/// A row of blocks, each with the least number of flows that it stands for.
pub(super) fn scale_bar(sheet: &mut Sheet, counts: &CountScale) {
    let row = sheet.take(30.0);
    let text = Text::new(
        Point::new(row.x, row.y + 13.0),
        Anchor::Start,
        Style::LABEL,
        "Flows in a cell",
    );
    let mut x = row.x + text.width() + 10.0;
    let mut marks = vec![Mark::Text(text)];
    for (class, from) in counts.from.iter().enumerate() {
        let block = Rect::new(x, row.y + 4.0, BLOCK_WIDTH, BLOCK_HEIGHT);
        marks.push(Mark::filled(block, counts.colour(class)));
        marks.push(label(x, row.y, &number(*from)));
        x += BLOCK_WIDTH;
    }
    let last = counts.from.last().copied().unwrap_or(1);
    if last < counts.max {
        marks.push(label(x, row.y, &number(counts.max)));
    }
    sheet.draw(marks);
}

fn label(x: f64, top: f64, text: &str) -> Mark {
    let at = Point::new(x, top + 24.0);
    Mark::Text(Text::new(at, Anchor::Middle, Style::NOTE, text).coloured(Colour::FAINT_INK))
}

fn number(flows: u32) -> String {
    count(flows as usize)
}
