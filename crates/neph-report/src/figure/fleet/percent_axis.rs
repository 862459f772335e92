//! The vertical axis of shares in percent that the figures of fleets have.

use crate::axis::{Plot, Style};
use crate::scene::{Anchor, Colour, Mark, Point, Stroke, Text};

/// Width of the labels and the title at the left of a plot.
pub(super) const LEFT: f64 = 56.0;

/// Grid lines and labels at each quarter of an axis from 0 to 1, and its title.
pub(super) fn percent_axis(marks: &mut Vec<Mark>, plot: &Plot, title: &str) {
    let area = plot.area;
    for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = plot.y_px(quarter);
        let (from, to) = (Point::new(area.x, y), Point::new(area.right(), y));
        marks.push(Mark::line(from, to, Stroke::solid(Colour::GRID, 1.0)));
        let at = Point::new(area.x - 6.0, y + 3.6);
        let text = format!("{:.0} %", quarter * 100.0);
        let text = Text::new(at, Anchor::End, Style::TICK, text);
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    let middle = Point::new(area.x - LEFT + 10.0, area.y + area.height / 2.0);
    let title = Text::new(middle, Anchor::Middle, Style::LABEL, title);
    marks.push(Mark::Text(title.vertical()));
}
