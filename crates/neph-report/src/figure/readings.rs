//! Readings over time as a line on a strip.

use neph_stats::{Grid, Reading, envelope};

use super::strip::Segment;
use crate::axis::Plot;
use crate::scene::{Fill, Mark, Point, Stroke};
use neph_analysis::numbers::TimeUnit;

/// Messages that are so many pixels apart are marked one by one: a line alone would hide how few
/// they are.
const MIN_MARKED_DISTANCE: f64 = 10.0;

/// Readings as lines, decimated without hiding an extreme; a run of one message is a dot.
pub(crate) fn line(
    readings: &[(i64, Option<f64>)],
    segment: &Segment<'_>,
    plot: &Plot,
    unit: TimeUnit,
    stroke: Stroke,
) -> Vec<Mark> {
    let series: Vec<Reading> = readings
        .iter()
        .map(|(at, value)| Reading {
            t: super::strip::seconds(*at),
            v: *value,
        })
        .collect();
    let grid = Grid {
        buckets: segment.buckets(),
        longest_gap: f64::INFINITY,
    };
    let Ok(envelope) = envelope(&series, grid) else {
        return Vec::new();
    };
    let point_at = |point: &neph_stats::Point| {
        let x = segment.x + (point.t / segment.seconds).clamp(0.0, 1.0) * segment.width;
        Point::new(x, plot.y_px(point.v * unit.per_milli()))
    };
    let dot = |centre: Point, radius: f64| Mark::Disc {
        centre,
        radius,
        fill: Fill::solid(stroke.colour),
    };
    let points = envelope.runs.iter().map(Vec::len).sum();
    let is_marked = segment.width >= MIN_MARKED_DISTANCE * neph_analysis::text::to_f64(points);
    let radius = if is_marked {
        // A dot is wider than its line.
        1.4 + stroke.width * 0.55
    } else {
        (stroke.width * 0.6).max(1.0)
    };
    let mut marks = Vec::new();
    for run in &envelope.runs {
        let points: Vec<Point> = run.iter().map(point_at).collect();
        if points.len() == 1 || is_marked {
            marks.extend(points.iter().map(|at| dot(*at, radius)));
        }
        if points.len() > 1 {
            marks.push(Mark::Line { points, stroke });
        }
    }
    marks
}
