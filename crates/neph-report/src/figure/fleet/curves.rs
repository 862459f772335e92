//! Kaplan-Meier curves over a logarithmic time: shared by all figures of path changes.

use neph_flows::{Curve, CurvePoint};
use neph_model::Span;

use super::clock::exact_text;
use super::colours::{MAX_DISTINGUISHED, curve_stroke, distinguished_stroke};
use super::pair_groups::{PairGroup, Pooling};
use super::percent_axis::percent_axis;
use crate::axis::{Plot, Scale, Style};
use crate::figure::legend::Swatch;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text};
use neph_analysis::fleet::Pair;
use neph_analysis::numbers::percent;

/// The curve of a pair over its blocks, or of a season over its pairs.
#[derive(Clone, Debug)]
pub(super) struct CurveLine {
    /// What it is called.
    pub(super) label: String,
    pub(super) curve: Curve,
    /// What the curve and its band are pooled from.
    pub(super) pooling: Pooling,
    /// The curve's value of `soon` is valid up to here: half an interval between messages later.
    soon_end: Span,
    /// How it is drawn.
    pub(super) stroke: Stroke,
    /// Whether it has a colour of its own.
    pub(super) has_own_colour: bool,
}

/// What of a curve is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownShare {
    /// The share that had ended.
    Ended,
    /// The share that lasted.
    Lasting,
}

impl ShownShare {
    /// What the vertical axis counts.
    fn title(self) -> &'static str {
        match self {
            Self::Ended => "moved again",
            Self::Lasting => "still there",
        }
    }

    fn share(self, point: &CurvePoint) -> f64 {
        match self {
            Self::Ended => 1.0 - point.surviving,
            Self::Lasting => point.surviving,
        }
    }
}

/// A line for each pair that has a curve, also where nothing ended: a pair whose flows all stayed is the
/// best one. Where they are too many for a colour each, three have one: the pair whose flows move soonest,
/// the one in the middle, and the last.
pub(super) fn lines<'a>(
    pairs: &'a [Pair<'a>],
    curve_of: fn(&'a Pair<'a>) -> Option<&'a Curve>,
) -> Vec<CurveLine> {
    let groups = PairGroup::of_pairs(pairs);
    let exceeds_colours = groups.len() > MAX_DISTINGUISHED;
    let drawn = groups.iter().enumerate().filter_map(|(index, group)| {
        let (curve, pooling) = group.curve(curve_of)?;
        Some(CurveLine {
            label: group.label.clone(),
            curve,
            pooling,
            soon_end: group.blocks_by_pair[0][0].view.soon(),
            stroke: curve_stroke(index, groups.len()),
            has_own_colour: !exceeds_colours,
        })
    });
    let mut lines: Vec<CurveLine> = drawn.collect();
    if !exceeds_colours {
        return lines;
    }
    lines.sort_by(|a, b| log_time_area(&a.curve).total_cmp(&log_time_area(&b.curve)));
    if let Some(last) = lines.len().checked_sub(1) {
        let mut coloured_indices = vec![0, lines.len() / 2, last];
        coloured_indices.dedup();
        for (colour_index, index) in coloured_indices.into_iter().enumerate() {
            (lines[index].stroke, lines[index].has_own_colour) =
                (distinguished_stroke(colour_index), true);
        }
    }
    // What has a colour lies above what has none.
    lines.sort_by_key(|line| line.has_own_colour);
    lines
}

/// A sentence for the caption about pairs and seasons without a curve: they have too few of `events`.
pub(super) fn missing_lines_text(pairs: &[Pair<'_>], lines: &[CurveLine], events: &str) -> String {
    let groups = PairGroup::of_pairs(pairs);
    let is_missing = |group: &&PairGroup<'_>| !lines.iter().any(|line| line.label == group.label);
    let missing: Vec<&str> = groups
        .iter()
        .filter(is_missing)
        .map(|group| group.label.as_str())
        .collect();
    match missing.as_slice() {
        [] => String::new(),
        missing if missing.len() <= 3 => {
            format!(" Too few {events} for a line: {}.", missing.join(", "))
        }
        many => format!(" Too few {events} for a line: {} pairs.", many.len()),
    }
}

/// Whether anything ended in any of the curves.
pub(super) fn any_ended(lines: &[CurveLine]) -> bool {
    lines.iter().any(|line| line.curve.ended > 0)
}

/// A sentence for the caption, where not every pair has a colour.
pub(super) fn colours_text(lines: &[CurveLine]) -> &'static str {
    if lines.iter().all(|line| line.has_own_colour) {
        return "";
    }
    " In colour: the pairs with the shortest, the median and the longest time until a path change."
}

/// Area below a curve over the logarithm of time: the sooner it falls, the smaller.
fn log_time_area(curve: &Curve) -> f64 {
    let steps = curve.points.windows(2);
    steps
        .map(|step| {
            let log_duration = seconds(step[1].at).ln() - seconds(step[0].at).ln();
            log_duration * step[0].surviving
        })
        .sum::<f64>()
        + seconds(curve.points[0].at).ln()
}

fn seconds(span: Span) -> f64 {
    span.secs_f64().max(1e-3)
}

/// The coloured pairs with the value of their curves at `soon`; the number of faint pairs.
pub(super) fn legend(lines: &[CurveLine], soon: Span, ended_verb: &str) -> Vec<(Swatch, String)> {
    let coloured = lines.iter().filter(|line| line.has_own_colour);
    let mut entries: Vec<(Swatch, String)> = coloured
        .map(|line| {
            let first = line.curve.points.first();
            let soon_end = line.soon_end;
            let none_text = match first.filter(|first| first.at > soon_end) {
                Some(_) => format!("none {ended_verb} within {}, ", exact_text(soon)),
                None => String::new(),
            };
            let share = line.curve.at(soon_end).map_or(none_text, |point| {
                format!(
                    "{} {ended_verb} within {} ({} to {}), ",
                    percent(1.0 - point.surviving),
                    exact_text(soon),
                    percent(1.0 - point.high),
                    percent(1.0 - point.low)
                )
            });
            let n =
                neph_analysis::numbers::count(usize::try_from(line.curve.n).unwrap_or(usize::MAX));
            (
                Swatch::Line(line.stroke),
                format!("{}: {share}n {n}{}", line.label, line.pooling.count_text()),
            )
        })
        .collect();
    let faint = lines.iter().find(|line| !line.has_own_colour);
    if let Some(line) = faint {
        let other_lines = lines.iter().filter(|line| !line.has_own_colour).count();
        entries.push((
            Swatch::Line(line.stroke),
            format!("{other_lines} other pairs"),
        ));
    }
    entries
}

/// From the soonest end of all curves to the last moment that was watched; `soon`, which the legend
/// speaks of, is always within.
pub(super) fn scale(lines: &[CurveLine], soon: Span) -> Scale {
    let points = || lines.iter().flat_map(|line| &line.curve.points);
    let ended = points().filter(|point| point.surviving < 1.0);
    let low = ended
        .map(|point| seconds(point.at))
        .fold(f64::INFINITY, f64::min);
    let high = points().map(|point| seconds(point.at)).fold(1.0, f64::max);
    let (low, high) = (low.min(soon.secs_f64()), high.max(soon.secs_f64()));
    Scale::logarithmic((low / 1.3).min(high / 10.0), high * 1.1)
}

/// The curves with their bands in an area, and `soon` marked.
pub(super) fn draw(
    lines: &[CurveLine],
    shown: ShownShare,
    area: Rect,
    x: Scale,
    soon: Span,
) -> Vec<Mark> {
    let plot = Plot {
        area,
        x,
        y: Scale::linear(0.0, 1.0),
    };
    let mut marks = Vec::new();
    axes(&mut marks, &plot, shown);
    let mut inside = Vec::new();
    if lines.iter().filter(|line| line.has_own_colour).count() <= MAX_DISTINGUISHED {
        let coloured = lines.iter().filter(|line| line.has_own_colour);
        inside.extend(coloured.flat_map(|line| bands(line, shown, &plot)));
    }
    inside.extend(lines.iter().map(|line| Mark::Line {
        points: steps(&line.curve, &plot, |point| shown.share(point), shown),
        stroke: line.stroke,
    }));
    let at = plot.x_px(soon.secs_f64());
    if (area.x..area.right()).contains(&at) {
        let dashed = Stroke::solid(Colour::INK, 0.9).dashed(3.0, 2.5);
        let (top, base) = (Point::new(at, area.y), Point::new(at, area.bottom()));
        marks.push(Mark::line(top, base, dashed));
        let label = Point::new(at, area.y - 4.0);
        let label = Text::new(label, Anchor::Middle, Style::NOTE, exact_text(soon));
        marks.push(Mark::Text(label));
    }
    marks.push(plot.clip(inside));
    marks
}

/// Seconds below, percent at the left.
fn axes(marks: &mut Vec<Mark>, plot: &Plot, shown: ShownShare) {
    plot.x_axis(marks, "time, s");
    percent_axis(marks, plot, shown.title());
}

fn steps(
    curve: &Curve,
    plot: &Plot,
    share: impl Fn(&CurvePoint) -> f64,
    shown: ShownShare,
) -> Vec<Point> {
    let mut previous_share = match shown {
        ShownShare::Ended => 0.0,
        ShownShare::Lasting => 1.0,
    };
    let mut path = vec![Point::new(plot.area.x, plot.y_px(previous_share))];
    for point in &curve.points {
        let x = plot.x_px(seconds(point.at));
        path.push(Point::new(x, plot.y_px(previous_share)));
        previous_share = share(point);
        path.push(Point::new(x, plot.y_px(previous_share)));
    }
    path
}

/// An interval wider than this share has little information, and would fill the panel.
const MAX_INTERVAL_WIDTH: f64 = 0.6;

/// Whether a step's interval is narrow enough to be shaded.
fn has_narrow_interval(point: &CurvePoint) -> bool {
    point.high - point.low <= MAX_INTERVAL_WIDTH
}

/// Sentences for the caption about lines, brackets and shades.
pub(super) fn band_text(lines: &[CurveLine]) -> String {
    let poolings = lines
        .iter()
        .filter(|line| line.has_own_colour)
        .map(|line| line.pooling);
    let explanation = Pooling::explanation(poolings);
    if !explanation.is_empty() {
        return format!("{explanation} In brackets the same band.");
    }
    let mut coloured = lines.iter().filter(|line| line.has_own_colour);
    let brackets = " In brackets and shaded: 95 % confidence interval";
    if coloured.any(|line| !line.curve.points.iter().all(has_narrow_interval)) {
        format!("{brackets}; not shaded where it is wider than 60 points.")
    } else {
        format!("{brackets}.")
    }
}

/// The band: an area for each run of steps; of a 95 % confidence interval only where it is narrow enough.
fn bands(line: &CurveLine, shown: ShownShare, plot: &Plot) -> Vec<Mark> {
    let points = &line.curve.points;
    let limits = |point: &CurvePoint| match shown {
        ShownShare::Ended => (1.0 - point.high, 1.0 - point.low),
        ShownShare::Lasting => (point.low, point.high),
    };
    // A step lasts until the next one; nothing is known beyond the last.
    let steps: Vec<(&CurvePoint, &CurvePoint)> = points.iter().zip(points.iter().skip(1)).collect();
    let is_drawn =
        |point: &CurvePoint| line.pooling != Pooling::OneExperiment || has_narrow_interval(point);
    let runs = steps.chunk_by(|step, next| is_drawn(step.0) == is_drawn(next.0));
    let runs = runs.filter(|run| is_drawn(run[0].0));
    let edge = |run: &[(&CurvePoint, &CurvePoint)], height_of: &dyn Fn(&CurvePoint) -> f64| {
        let step = |(point, next): &(&CurvePoint, &CurvePoint)| {
            [point.at, next.at]
                .map(|at| Point::new(plot.x_px(seconds(at)), plot.y_px(height_of(point))))
        };
        run.iter().flat_map(step).collect::<Vec<Point>>()
    };
    let fill = Fill {
        colour: line.stroke.colour,
        opacity: 0.15,
    };
    let area = |run: &[(&CurvePoint, &CurvePoint)]| {
        let mut points = edge(run, &|point| limits(point).1);
        points.extend(edge(run, &|point| limits(point).0).into_iter().rev());
        Mark::Area { points, fill }
    };
    runs.map(area).collect()
}
