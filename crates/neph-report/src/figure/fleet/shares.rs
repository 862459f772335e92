//! How many flows were in which class when, as bands on top of each other.

use neph_flows::ShareBin;

use super::clock::Clock;
use super::colours::class_colour;
use crate::axis::{Plot, Scale, Style};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text};
use neph_analysis::fleet::Pair;

/// The bands in the order of the classes, the lowest latency at the bottom; nothing where no share
/// is known.
pub(super) fn shares(pair: &Pair<'_>, clock: &Clock, area: Rect) -> Vec<Mark> {
    let bins = columns(&pair.pair_view.shares, area.width);
    let classes = pair.classes().len();
    if bins.is_empty() || classes < 2 {
        return Vec::new();
    }
    let plot = Plot {
        area,
        x: clock.scale,
        y: Scale::linear(0.0, 1.0),
    };
    let bin_count = bins.len();
    let until = bins
        .windows(2)
        .last()
        .map_or(pair.view.until, |last| last[1].0 + (last[1].0 - last[0].0));
    let ends: Vec<f64> = bins
        .iter()
        .map(|(from, _)| *from)
        .chain([until.min(pair.view.until)])
        .map(|at| plot.x_px(clock.at(at)).clamp(area.x, area.right()))
        .collect();
    let mut marks = Vec::new();
    let mut below = vec![0.0; bin_count];
    let mut seams = Vec::new();
    for class in 0..classes {
        let above: Vec<f64> = bins
            .iter()
            .zip(&below)
            .map(|((_, flows), below)| below + share(flows, class))
            .collect();
        let edge = |heights: &[f64]| -> Vec<Point> {
            let steps = heights.iter().enumerate().flat_map(|(bin, height)| {
                [ends[bin], ends[bin + 1]].map(|x| Point::new(x, plot.y_px(*height)))
            });
            steps.collect()
        };
        let mut points = edge(&above);
        let mut lower = edge(&below);
        lower.reverse();
        // A line separates neighbours in grey print too.
        let seam = Mark::Line {
            points: edge(&above),
            stroke: Stroke::solid(Colour::WHITE, 0.8),
        };
        points.extend(lower);
        let fill = Fill {
            colour: class_colour(class),
            opacity: 0.8,
        };
        marks.push(Mark::Area { points, fill });
        if class + 1 < classes {
            seams.push(seam);
        }
        below = above;
    }
    marks.append(&mut seams);
    axis(&mut marks, &plot);
    marks
}

fn axis(marks: &mut Vec<Mark>, plot: &Plot) {
    for (value, text) in [(0.0, "0 %"), (1.0, "100 %")] {
        let at = Point::new(plot.area.x - 6.0, plot.y_px(value) + 3.4);
        let text = Text::new(at, Anchor::End, Style::TICK, text);
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    plot.base_line(marks);
}

fn share(flows: &[u64], class: usize) -> f64 {
    let total: u64 = flows.iter().sum();
    let class_flows = flows.get(class).copied().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "a share for the eye")]
    let share = class_flows as f64 / total.max(1) as f64;
    share
}

/// Neighbouring bins joined where they are narrower than two pixels.
fn columns(
    bins: &[ShareBin],
    width: f64,
) -> Vec<(neph_model::Instant<neph_model::Local>, Vec<u64>)> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width in pixels"
    )]
    let bins_per_column = bins.len().div_ceil((width / 2.0) as usize).max(1);
    let joined = bins.chunks(bins_per_column).map(|column_bins| {
        let classes = column_bins
            .iter()
            .map(|bin| bin.flows.len())
            .max()
            .unwrap_or(0);
        let sum = |class: usize| {
            let flows = column_bins.iter().filter_map(|bin| bin.flows.get(class));
            flows.map(|flows| u64::from(*flows)).sum()
        };
        (column_bins[0].from, (0..classes).map(sum).collect())
    });
    joined.collect()
}
