//! Legends: what colours and lines mean, in rows that never run out of the page.

use neph_model::StageSet;

use crate::axis::Style;
use crate::palette;
use crate::scene::{
    Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, Weight, fit_among, text_width,
};

/// The sample of an entry: how it looks in the figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Swatch {
    /// As a line.
    Line(Stroke),
    /// As an area in a ledger entry's colour and pattern.
    Entry(StageSet),
    /// As a short vertical tick.
    Tick(Colour),
    /// As a cross, as [`cross`] draws it.
    Cross(Colour),
    /// As a dot.
    Dot(Colour),
    /// As an area with the opacity that it has in the figure.
    Area(Fill),
    /// As the outline of an area.
    Outline(Stroke),
    /// As an area.
    Solid(Colour),
}

const SWATCH_WIDTH: f64 = 18.0;
const ROW_HEIGHT: f64 = 17.0;

/// Draws entries from `from` to the right, into as many rows as they need; returns where the next
/// thing may begin.
pub(crate) fn legend(
    marks: &mut Vec<Mark>,
    entries: &[(Swatch, String)],
    from: Point,
    right: f64,
) -> f64 {
    if entries.is_empty() {
        return from.y;
    }
    let (mut x, mut y) = (from.x, from.y + ROW_HEIGHT / 2.0);
    let labels: Vec<String> = entries.iter().map(|(_, label)| label.clone()).collect();
    for (swatch, label) in entries {
        let label = fit_among(
            label,
            &labels,
            Style::LABEL,
            right - from.x - SWATCH_WIDTH - 5.0,
        );
        let entry_width = SWATCH_WIDTH + 5.0 + text_width(&label, Style::LABEL, Weight::Regular);
        if x > from.x && x + entry_width > right {
            x = from.x;
            y += ROW_HEIGHT;
        }
        marks.extend(swatch_marks(*swatch, x, y));
        let position = Point::new(x + SWATCH_WIDTH + 5.0, y + 4.0);
        marks.push(Mark::Text(Text::new(
            position,
            Anchor::Start,
            Style::LABEL,
            label,
        )));
        x += entry_width + 16.0;
    }
    y + ROW_HEIGHT / 2.0 + 6.0
}

fn swatch_marks(swatch: Swatch, x: f64, y: f64) -> Vec<Mark> {
    let block = Rect::new(x, y - 5.5, SWATCH_WIDTH, 11.0);
    match swatch {
        Swatch::Line(stroke) => {
            let stroke = Stroke {
                width: stroke.width.max(1.8),
                ..stroke
            };
            vec![Mark::line(
                Point::new(x, y),
                Point::new(x + SWATCH_WIDTH, y),
                stroke,
            )]
        }
        Swatch::Entry(set) => palette::entry_area(set, block.corners()),
        Swatch::Dot(colour) => vec![Mark::Disc {
            centre: Point::new(x + SWATCH_WIDTH / 2.0, y),
            radius: 2.2,
            fill: Fill::solid(colour),
        }],
        Swatch::Cross(colour) => cross(Point::new(x + SWATCH_WIDTH / 2.0, y), colour),
        Swatch::Solid(colour) => vec![Mark::filled(block, colour)],
        Swatch::Area(fill) => vec![Mark::Rect {
            rect: block,
            fill: Some(fill),
            stroke: None,
        }],
        Swatch::Outline(stroke) => vec![Mark::Rect {
            rect: block,
            fill: None,
            stroke: Some(stroke),
        }],
        Swatch::Tick(colour) => {
            let middle = x + SWATCH_WIDTH / 2.0;
            let stroke = Stroke::solid(colour, 1.4);
            vec![Mark::line(
                Point::new(middle, y - 5.0),
                Point::new(middle, y + 5.0),
                stroke,
            )]
        }
    }
}

/// Two arms across each other: the end of what did not arrive.
pub(crate) fn cross(centre: Point, colour: Colour) -> Vec<Mark> {
    const ARM: f64 = 3.0;
    let stroke = Stroke::solid(colour, 1.5);
    let arm = |rise: f64| {
        let ends = (
            Point::new(centre.x - ARM, centre.y + rise),
            Point::new(centre.x + ARM, centre.y - rise),
        );
        Mark::line(ends.0, ends.1, stroke)
    };
    vec![arm(ARM), arm(-ARM)]
}
