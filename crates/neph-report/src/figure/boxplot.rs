//! One box plot as marks, lying or standing.

use crate::axis::Scale;
use crate::scene::{Colour, Fill, Mark, Point, Stroke};
use neph_analysis::PlotSettings;
use neph_analysis::latencies::Latencies;
use neph_analysis::numbers::millis;
use neph_stats::{BoxPlot, boxplot};

/// Maximum number of outliers that are drawn on each side; all are counted.
const MAX_OUTLIERS: usize = 60;

/// Where a box plot stands: the line it is drawn along, from the scale's low end to its high end,
/// and half of the box's thickness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoxPosition {
    pub(crate) low: Point,
    pub(crate) high: Point,
    pub(crate) half_thickness: f64,
}

impl BoxPosition {
    /// The point of a value, `offset` pixels off the line.
    fn at(&self, scale: &Scale, value: f64, offset: f64) -> Point {
        let share = scale.clamped_share(value);
        let (dx, dy) = (self.high.x - self.low.x, self.high.y - self.low.y);
        let length = dx.hypot(dy).max(1e-9);
        Point::new(
            self.low.x + dx * share - dy / length * offset,
            self.low.y + dy * share + dx / length * offset,
        )
    }
}

/// The box plot of latencies; each value as a dot where there are too few for a box.
pub(crate) fn marks(
    latencies: &Latencies,
    scale: &Scale,
    position: BoxPosition,
    colour: Colour,
    settings: &PlotSettings,
) -> Vec<Mark> {
    match boxplot(latencies.sorted(), settings.whiskers(), MAX_OUTLIERS) {
        Ok(box_plot) => box_marks(&box_plot, scale, position, colour),
        Err(_) => latencies
            .sorted()
            .values()
            .iter()
            .map(|value| dot(position.at(scale, *value, 0.0), colour))
            .collect(),
    }
}

fn box_marks(
    box_plot: &BoxPlot,
    scale: &Scale,
    position: BoxPosition,
    colour: Colour,
) -> Vec<Mark> {
    let stroke = Stroke::solid(colour, 1.1);
    let at = |value: f64, offset: f64| position.at(scale, value, offset);
    let mut marks = Vec::new();
    for (end, edge) in [
        (box_plot.whisker_low, box_plot.q1),
        (box_plot.whisker_high, box_plot.q3),
    ] {
        marks.push(Mark::line(at(end, 0.0), at(edge, 0.0), stroke));
        let half_width = position.half_thickness * 0.5;
        marks.push(Mark::line(
            at(end, -half_width),
            at(end, half_width),
            stroke,
        ));
    }
    let corners = vec![
        at(box_plot.q1, -position.half_thickness),
        at(box_plot.q3, -position.half_thickness),
        at(box_plot.q3, position.half_thickness),
        at(box_plot.q1, position.half_thickness),
    ];
    let fill = Fill {
        colour,
        opacity: 0.25,
    };
    marks.push(Mark::Area {
        points: corners.clone(),
        fill,
    });
    let mut outline = corners;
    outline.push(outline[0]);
    marks.push(Mark::Line {
        points: outline,
        stroke,
    });
    let median_stroke = Stroke::solid(Colour::INK, 2.0);
    let ends = (
        at(box_plot.median, -position.half_thickness),
        at(box_plot.median, position.half_thickness),
    );
    marks.push(Mark::line(ends.0, ends.1, median_stroke));
    let outliers = box_plot
        .below
        .farthest
        .iter()
        .chain(&box_plot.above.farthest);
    for value in outliers.filter(|value| (0.0..=1.0).contains(&scale.share(**value))) {
        marks.push(dot(at(*value, 0.0), colour));
    }
    marks
}

fn dot(centre: Point, colour: Colour) -> Mark {
    Mark::Disc {
        centre,
        radius: 1.3,
        fill: Fill {
            colour,
            opacity: 0.7,
        },
    }
}

/// What lies outside of a scale, in words: `12 above, max 1.80 s`. Empty if nothing does.
pub(crate) fn outside(values: &[f64], scale: &Scale) -> String {
    let above = values.len() - values.partition_point(|value| scale.share(*value) <= 1.0);
    let below = values.partition_point(|value| scale.share(*value) < 0.0);
    let mut parts = Vec::new();
    if let (1.., Some(max)) = (above, values.last()) {
        parts.push(format!("{above} above, max {}", millis(*max)));
    }
    if let (1.., Some(min)) = (below, values.first()) {
        parts.push(format!("{below} below, min {}", millis(*min)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_the_axis_are_counted() {
        let scale = Scale::linear(10.0, 20.0);
        assert_eq!(
            outside(&[9.0, 12.0, 19.0, 25.0, 1800.0], &scale),
            "2 above, max 1.80 s, 1 below, min 9.00 ms"
        );
        assert_eq!(outside(&[12.0], &scale), "");
    }

    #[test]
    fn a_vertical_box_plot_has_its_high_values_at_the_top() {
        let position = BoxPosition {
            low: Point::new(50.0, 100.0),
            high: Point::new(50.0, 0.0),
            half_thickness: 5.0,
        };
        let at = position.at(&Scale::linear(0.0, 10.0), 5.0, 3.0);
        assert!(
            (at.y - 50.0).abs() < 1e-9 && (at.x - 53.0).abs() < 1e-9,
            "{at:?}"
        );
    }
}
