//! Kaplan-Meier curves over a logarithmic time: shared by all figures of path changes.

use neph_flows::{Curve, CurvePoint};
use neph_model::Span;

use super::clock::exact_text;
use super::courses::{Course, Over};
use super::inks::{MAX_DISTINGUISHED, curve as stroke, distinguished};
use super::percents::percents;
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
    /// What the curve and its band are over.
    pub(super) over: Over,
    /// The curve's value of `soon` is valid up to here: half an interval between messages later.
    within: Span,
    /// How it is drawn.
    pub(super) stroke: Stroke,
    /// Whether it has a colour of its own.
    pub(super) has_own_colour: bool,
}

/// What of a curve is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The share that had ended.
    Ended,
    /// The share that lasted.
    Lasting,
}

impl Shown {
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
    pick: fn(&'a Pair<'a>) -> Option<&'a Curve>,
) -> Vec<CurveLine> {
    let courses = Course::all(pairs);
    let is_crowded = courses.len() > MAX_DISTINGUISHED;
    let drawn = courses.iter().enumerate().filter_map(|(index, course)| {
        let (curve, over) = course.curve(pick)?;
        Some(CurveLine {
            label: course.label.clone(),
            curve,
            over,
            within: course.pairs[0][0].view.soon(),
            stroke: stroke(index, courses.len()),
            has_own_colour: !is_crowded,
        })
    });
    let mut lines: Vec<CurveLine> = drawn.collect();
    if !is_crowded {
        return lines;
    }
    lines.sort_by(|a, b| area(&a.curve).total_cmp(&area(&b.curve)));
    if let Some(last) = lines.len().checked_sub(1) {
        let mut chosen = vec![0, lines.len() / 2, last];
        chosen.dedup();
        for (colour_index, index) in chosen.into_iter().enumerate() {
            (lines[index].stroke, lines[index].has_own_colour) =
                (distinguished(colour_index), true);
        }
    }
    // What has a colour lies above what has none.
    lines.sort_by_key(|line| line.has_own_colour);
    lines
}

/// A sentence for the caption about pairs and seasons without a curve: they have too few of `events`.
pub(super) fn without_line_text(pairs: &[Pair<'_>], lines: &[CurveLine], events: &str) -> String {
    let courses = Course::all(pairs);
    let is_missing = |course: &&Course<'_>| !lines.iter().any(|line| line.label == course.label);
    let missing: Vec<&str> = courses
        .iter()
        .filter(is_missing)
        .map(|course| course.label.as_str())
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
pub(super) fn chosen(lines: &[CurveLine]) -> &'static str {
    if lines.iter().all(|line| line.has_own_colour) {
        return "";
    }
    " In colour: the pairs with the shortest, the median and the longest time until a path change."
}

/// The logarithm of time that passes below a curve: sooner is smaller.
fn area(curve: &Curve) -> f64 {
    let pairs = curve.points.windows(2);
    pairs
        .map(|pair| {
            let long = seconds(pair[1].at).ln() - seconds(pair[0].at).ln();
            long * pair[0].surviving
        })
        .sum::<f64>()
        + seconds(curve.points[0].at).ln()
}

fn seconds(span: Span) -> f64 {
    span.secs_f64().max(1e-3)
}

/// The pairs with what their curves say of `soon`; of many, how many are faint.
pub(super) fn legend(lines: &[CurveLine], soon: Span, ended: &str) -> Vec<(Swatch, String)> {
    let coloured = lines.iter().filter(|line| line.has_own_colour);
    let mut entries: Vec<(Swatch, String)> = coloured
        .map(|line| {
            let first = line.curve.points.first();
            let within = line.within;
            let missing_text = match first.filter(|first| first.at > within) {
                Some(_) => format!("none {ended} within {}, ", exact_text(soon)),
                None => String::new(),
            };
            let share = line.curve.at(within).map_or(missing_text, |point| {
                format!(
                    "{} {ended} within {} ({} to {}), ",
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
                format!("{}: {share}n {n}{}", line.label, line.over.counted()),
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
    shown: Shown,
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
fn axes(marks: &mut Vec<Mark>, plot: &Plot, shown: Shown) {
    plot.x_axis(marks, "time, s");
    percents(marks, plot, shown.title());
}

fn steps(
    curve: &Curve,
    plot: &Plot,
    share: impl Fn(&CurvePoint) -> f64,
    shown: Shown,
) -> Vec<Point> {
    let mut before = match shown {
        Shown::Ended => 0.0,
        Shown::Lasting => 1.0,
    };
    let mut path = vec![Point::new(plot.area.x, plot.y_px(before))];
    for point in &curve.points {
        let x = plot.x_px(seconds(point.at));
        path.push(Point::new(x, plot.y_px(before)));
        before = share(point);
        path.push(Point::new(x, plot.y_px(before)));
    }
    path
}

/// An interval wider than this share has little information, and would fill the panel.
const MAX_INTERVAL_WIDTH: f64 = 0.6;

/// Whether a step's interval is worth its shade.
fn is_shown(point: &CurvePoint) -> bool {
    point.high - point.low <= MAX_INTERVAL_WIDTH
}

/// Sentences for the caption about lines, brackets and shades.
pub(super) fn shades(lines: &[CurveLine]) -> String {
    let over = lines
        .iter()
        .filter(|line| line.has_own_colour)
        .map(|line| line.over);
    let explanation = Over::explanation(over);
    if !explanation.is_empty() {
        return format!("{explanation} In brackets the same band.");
    }
    let mut coloured = lines.iter().filter(|line| line.has_own_colour);
    let brackets = " In brackets and shaded: 95 % confidence interval";
    if coloured.any(|line| !line.curve.points.iter().all(is_shown)) {
        format!("{brackets}; not shaded where it is wider than 60 points.")
    } else {
        format!("{brackets}.")
    }
}

/// The band: an area for each run of steps; of a 95 % confidence interval only where it is narrow enough.
fn bands(line: &CurveLine, shown: Shown, plot: &Plot) -> Vec<Mark> {
    let points = &line.curve.points;
    let ends = |point: &CurvePoint| match shown {
        Shown::Ended => (1.0 - point.high, 1.0 - point.low),
        Shown::Lasting => (point.low, point.high),
    };
    // A step lasts until the next one; nothing is known beyond the last.
    let steps: Vec<(&CurvePoint, &CurvePoint)> = points.iter().zip(points.iter().skip(1)).collect();
    let is_shown = |point: &CurvePoint| line.over != Over::One || is_shown(point);
    let runs = steps.chunk_by(|step, next| is_shown(step.0) == is_shown(next.0));
    let runs = runs.filter(|run| is_shown(run[0].0));
    let edge = |run: &[(&CurvePoint, &CurvePoint)], of: &dyn Fn(&CurvePoint) -> f64| {
        let step = |(point, next): &(&CurvePoint, &CurvePoint)| {
            [point.at, next.at].map(|at| Point::new(plot.x_px(seconds(at)), plot.y_px(of(point))))
        };
        run.iter().flat_map(step).collect::<Vec<Point>>()
    };
    let fill = Fill {
        colour: line.stroke.colour,
        opacity: 0.15,
    };
    let area = |run: &[(&CurvePoint, &CurvePoint)]| {
        let mut points = edge(run, &|point| ends(point).1);
        points.extend(edge(run, &|point| ends(point).0).into_iter().rev());
        Mark::Area { points, fill }
    };
    runs.map(area).collect()
}
