//! A plot: an area with two scales, and its axes as marks.

use super::{Scale, Spacing, Tick, ticks};
use crate::scene::{Anchor, Colour, Mark, Point, Rect, Stroke, Text, Weight, text_width};

/// The sizes of an axis's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style;

impl Style {
    /// Tick labels.
    pub(crate) const TICK: f64 = 10.0;
    /// Axis titles and legends.
    pub(crate) const LABEL: f64 = 11.0;
    /// Panel titles.
    pub(crate) const TITLE: f64 = 12.0;
    /// Notes in margins.
    pub(crate) const NOTE: f64 = 9.5;
    /// What an x axis needs below the area: ticks and title.
    pub(crate) const X_AXIS_HEIGHT: f64 = 36.0;
    /// What tick labels alone need below the area.
    pub(crate) const TICK_LABELS_HEIGHT: f64 = 18.0;
}

/// An axis's title; on a logarithmic axis it states that equal steps are equal ratios.
fn axis_title(title: &str, scale: Scale) -> String {
    match scale.spacing {
        Spacing::Linear => title.to_owned(),
        Spacing::Logarithmic => format!("{title}, log"),
    }
}

/// An area with its two scales.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) area: Rect,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl Plot {
    /// Where an x value lies, in CSS pixels.
    pub(crate) fn x_px(&self, value: f64) -> f64 {
        self.area.x + self.x.share(value) * self.area.width
    }
    /// Where a y value lies, in CSS pixels.
    pub(crate) fn y_px(&self, value: f64) -> f64 {
        self.area.bottom() - self.y.share(value) * self.area.height
    }

    /// The ticks that fit below the area.
    pub(crate) fn x_ticks(&self) -> Vec<Tick> {
        let label_width = |label: &str| text_width(label, Style::TICK, Weight::Regular);
        ticks(&self.x, self.area.width, &label_width)
    }
    /// The ticks that fit at the side of the area.
    pub(crate) fn y_ticks(&self) -> Vec<Tick> {
        ticks(&self.y, self.area.height, &|_| Style::TICK)
    }

    /// How much room the y axis needs to the left of the area: labels and, if any, its title.
    pub(crate) fn y_axis_width(ticks: &[Tick], title: &str) -> f64 {
        let max_label_width = ticks
            .iter()
            .map(|tick| text_width(&tick.label, Style::TICK, Weight::Regular))
            .fold(0.0, f64::max);
        max_label_width
            + 8.0
            + if title.is_empty() {
                0.0
            } else {
                Style::LABEL + 8.0
            }
    }

    /// Vertical grid lines, the base line and, below it, labels and title.
    pub(crate) fn x_axis(&self, marks: &mut Vec<Mark>, title: &str) {
        let (top, base) = (self.area.y, self.area.bottom());
        for tick in self.x_ticks() {
            let x = self.x_px(tick.value);
            let grid = Stroke::solid(Colour::GRID, 1.0);
            marks.push(Mark::line(Point::new(x, top), Point::new(x, base), grid));
            let tick_stroke = Stroke::solid(Colour::AXIS, 1.0);
            marks.push(Mark::line(
                Point::new(x, base),
                Point::new(x, base + 4.0),
                tick_stroke,
            ));
            let position = Point::new(x, base + 14.0);
            marks.push(Mark::Text(tick_label(position, Anchor::Middle, tick.label)));
        }
        self.base_line(marks);
        if !title.is_empty() {
            let middle = Point::new(self.area.x + self.area.width / 2.0, base + 30.0);
            marks.push(Mark::Text(Text::new(
                middle,
                Anchor::Middle,
                Style::LABEL,
                axis_title(title, self.x),
            )));
        }
    }

    /// The line below the area.
    pub(crate) fn base_line(&self, marks: &mut Vec<Mark>) {
        let base = self.area.bottom();
        let stroke = Stroke::solid(Colour::AXIS, 1.0);
        let (left, right) = (
            Point::new(self.area.x, base),
            Point::new(self.area.right(), base),
        );
        marks.push(Mark::line(left, right, stroke));
    }

    /// Horizontal grid lines and, left of them, labels and title.
    pub(crate) fn y_axis(&self, marks: &mut Vec<Mark>, title: &str) {
        let ticks = self.y_ticks();
        for tick in &ticks {
            let y = self.y_px(tick.value);
            let grid = Stroke::solid(Colour::GRID, 1.0);
            let left = Point::new(self.area.x, y);
            marks.push(Mark::line(left, Point::new(self.area.right(), y), grid));
            let position = Point::new(self.area.x - 6.0, y + 3.6);
            let label = tick.label.clone();
            marks.push(Mark::Text(tick_label(position, Anchor::End, label)));
        }
        if !title.is_empty() {
            let x = self.area.x - Self::y_axis_width(&ticks, title) + Style::LABEL;
            let middle = Point::new(x, self.area.y + self.area.height / 2.0);
            let title = axis_title(title, self.y);
            let text = Text::new(middle, Anchor::Middle, Style::LABEL, title).vertical();
            marks.push(Mark::Text(text));
        }
    }

    /// Marks that are cut off at the area's edges.
    pub(crate) fn clip(&self, marks: Vec<Mark>) -> Mark {
        Mark::Clip {
            within: self.area.corners(),
            marks,
        }
    }
}

fn tick_label(position: Point, anchor: Anchor, text: String) -> Text {
    Text::new(position, anchor, Style::TICK, text).coloured(Colour::FAINT_INK)
}
