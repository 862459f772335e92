//! Alarms of the plan in figures over time: a thick line for as long as one is raised.

use super::legend::Swatch;
use super::strip::Segment;
use crate::scene::{Colour, Mark, Point, Rect, Stroke};
use neph_analysis::data::ExperimentData;

const ALARM: Stroke = Stroke::solid(Colour::ALARM, 2.4);
/// Pixels below the top: losses are marked above.
const TOP_MARGIN: f64 = 10.0;

/// What the line means, where there is one.
pub(super) fn legend<'a>(
    mut experiments: impl Iterator<Item = &'a ExperimentData>,
) -> Option<(Swatch, String)> {
    let is_there = experiments.any(|experiment| !experiment.alarms().is_empty());
    is_there.then(|| (Swatch::Line(ALARM), "alarm, while raised".to_owned()))
}

/// Those of an experiment; those of several rules lie on each other.
pub(super) fn marks(segment: &Segment<'_>, area: Rect) -> impl Iterator<Item = Mark> {
    let y = area.y + TOP_MARGIN;
    let end = segment.x + segment.width;
    let pixels_of = |(from, until): (i64, Option<i64>)| {
        (
            segment.x_px(from),
            until.map_or(end, |until| segment.x_px(until)),
        )
    };
    let spans: Vec<(f64, f64)> = segment
        .experiment
        .alarms()
        .into_iter()
        .map(pixels_of)
        .collect();
    spans
        .into_iter()
        .map(move |(from, until)| Mark::line(Point::new(from, y), Point::new(until, y), ALARM))
}
