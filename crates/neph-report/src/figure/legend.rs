//! Legends: what colours and lines mean, in rows that never run out of the page.

use neph_model::StageSet;

use crate::axis::Style;
use crate::palette;
use crate::scene::{
    Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, Weight, fit_among, width,
};

/// How a thing looks in the figure.
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

const SAMPLE: f64 = 18.0;
const ROW: f64 = 17.0;

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
    let (mut x, mut y) = (from.x, from.y + ROW / 2.0);
    let labels: Vec<String> = entries.iter().map(|(_, label)| label.clone()).collect();
    for (swatch, label) in entries {
        let label = fit_among(label, &labels, Style::LABEL, right - from.x - SAMPLE - 5.0);
        let long = SAMPLE + 5.0 + width(&label, Style::LABEL, Weight::Regular);
        if x > from.x && x + long > right {
            x = from.x;
            y += ROW;
        }
        marks.extend(sample(*swatch, x, y));
        let at = Point::new(x + SAMPLE + 5.0, y + 4.0);
        marks.push(Mark::Text(Text::new(
            at,
            Anchor::Start,
            Style::LABEL,
            label,
        )));
        x += long + 16.0;
    }
    y + ROW / 2.0 + 6.0
}

fn sample(swatch: Swatch, x: f64, y: f64) -> Vec<Mark> {
    let block = Rect::new(x, y - 5.5, SAMPLE, 11.0);
    match swatch {
        Swatch::Line(stroke) => {
            let stroke = Stroke {
                width: stroke.width.max(1.8),
                ..stroke
            };
            vec![Mark::line(
                Point::new(x, y),
                Point::new(x + SAMPLE, y),
                stroke,
            )]
        }
        Swatch::Entry(set) => palette::entry_area(set, block.corners()),
        Swatch::Dot(colour) => vec![Mark::Disc {
            centre: Point::new(x + SAMPLE / 2.0, y),
            radius: 2.2,
            fill: Fill::solid(colour),
        }],
        Swatch::Cross(colour) => cross(Point::new(x + SAMPLE / 2.0, y), colour),
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
            let middle = x + SAMPLE / 2.0;
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
pub(crate) fn cross(at: Point, colour: Colour) -> Vec<Mark> {
    const ARM: f64 = 3.0;
    let stroke = Stroke::solid(colour, 1.5);
    let arm = |up: f64| {
        let ends = (
            Point::new(at.x - ARM, at.y + up),
            Point::new(at.x + ARM, at.y - up),
        );
        Mark::line(ends.0, ends.1, stroke)
    };
    vec![arm(ARM), arm(-ARM)]
}
