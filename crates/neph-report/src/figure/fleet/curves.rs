//! Kaplan-Meier curves over a logarithmic time: shared by what is told of path changes.

use neph_flows::{Curve, CurvePoint};
use neph_model::Span;

use super::clock::whole;
use super::inks::{TOLD_APART, curve as stroke, told_apart};
use super::pair::Pair;
use crate::axis::{Plot, Scale, Style, percent};
use crate::figure::legend::Swatch;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text};

/// What the vertical axis takes at the left of a plot: percents and title.
pub(super) const LEFT: f64 = 56.0;

/// A pair's curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) pair: &'a Pair<'a>,
    pub(super) curve: &'a Curve,
    /// How it is drawn.
    pub(super) stroke: Stroke,
    /// Whether it is told apart from the others.
    pub(super) told: bool,
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

/// The curves of all pairs that have one. Where they are too many to be told apart by colour, three
/// are: the pair whose flows move soonest, the one in the middle, and the last.
pub(super) fn lines<'a>(
    pairs: &'a [Pair<'a>],
    pick: fn(&'a Pair<'a>) -> Option<&'a Curve>,
) -> Vec<Line<'a>> {
    let drawn: Vec<(usize, &Pair<'_>, &Curve)> = pairs
        .iter()
        .enumerate()
        .filter_map(|(index, pair)| Some((index, pair, pick(pair)?)))
        .filter(|(_, _, curve)| curve.ended > 0 && !curve.points.is_empty())
        .collect();
    let many = pairs.len() > TOLD_APART;
    let mut order: Vec<usize> = (0..drawn.len()).collect();
    order.sort_by(|a, b| area(drawn[*a].2).total_cmp(&area(drawn[*b].2)));
    let chosen = match order.len() {
        0 => Vec::new(),
        all => vec![order[0], order[all / 2], order[all - 1]],
    };
    let mut lines: Vec<(Option<usize>, Line<'_>)> = drawn
        .iter()
        .enumerate()
        .map(|(place, (index, pair, curve))| {
            let chosen = chosen.iter().position(|one| *one == place).filter(|_| many);
            let stroke = chosen.map_or_else(|| stroke(*index, pairs.len()), told_apart);
            let told = !many || chosen.is_some();
            let line = Line {
                pair,
                curve,
                stroke,
                told,
            };
            (chosen, line)
        })
        .collect();
    // What is told apart lies above what is not, and the soonest is named first.
    lines.sort_by_key(|(chosen, line)| (line.told, *chosen));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// A sentence for the caption, where not every pair has a colour.
pub(super) fn chosen(lines: &[Line<'_>]) -> &'static str {
    if lines.iter().all(|line| line.told) {
        return "";
    }
    " In colour: the pair whose flows move soonest, the one in the middle, and the last."
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
pub(super) fn legend(lines: &[Line<'_>], soon: Span, ended: &str) -> Vec<(Swatch, String)> {
    let told = lines.iter().filter(|line| line.told);
    let mut entries: Vec<(Swatch, String)> = told
        .map(|line| {
            let first = line.curve.points.first();
            let none = match first.filter(|first| first.at > soon) {
                Some(_) => format!("none {ended} within {}, ", whole(soon)),
                None => String::new(),
            };
            let share = line.curve.at(soon).map_or(none, |point| {
                format!(
                    "{} {ended} within {} ({} to {}), ",
                    percent(1.0 - point.surviving),
                    whole(soon),
                    percent(1.0 - point.high),
                    percent(1.0 - point.low)
                )
            });
            let n = crate::axis::count(usize::try_from(line.curve.n).unwrap_or(usize::MAX));
            (
                Swatch::Line(line.stroke),
                format!("{}: {share}n {n}", line.pair.label),
            )
        })
        .collect();
    let faint = lines.iter().find(|line| !line.told);
    if let Some(line) = faint {
        let others = lines.iter().filter(|line| !line.told).count();
        entries.push((Swatch::Line(line.stroke), format!("{others} other pairs")));
    }
    entries
}

/// From the soonest end of all curves to the last moment that was watched; `soon`, which the legend
/// speaks of, is always within.
pub(super) fn scale(lines: &[Line<'_>], soon: Span) -> Scale {
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
    lines: &[Line<'_>],
    shown: Shown,
    (area, x): (Rect, Scale),
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
    if lines.iter().filter(|line| line.told).count() <= TOLD_APART {
        let told = lines.iter().filter(|line| line.told);
        inside.extend(told.map(|line| band(line, shown, &plot)));
    }
    inside.extend(lines.iter().map(|line| Mark::Line {
        points: steps(line.curve, &plot, |point| shown.share(point), shown),
        stroke: line.stroke,
    }));
    let at = plot.px(soon.secs_f64());
    if (area.x..area.right()).contains(&at) {
        let dashed = Stroke::solid(Colour::INK, 0.9).dashed(3.0, 2.5);
        let (top, base) = (Point::new(at, area.y), Point::new(at, area.bottom()));
        marks.push(Mark::line(top, base, dashed));
        let label = Point::new(at, area.y - 4.0);
        let label = Text::new(label, Anchor::Middle, Style::NOTE, whole(soon));
        marks.push(Mark::Text(label));
    }
    marks.push(plot.clipped(inside));
    marks
}

/// Seconds below, percent at the left.
fn axes(marks: &mut Vec<Mark>, plot: &Plot, shown: Shown) {
    plot.x_axis(marks, "time, s (log)");
    let area = plot.area;
    for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = plot.py(quarter);
        let (from, to) = (Point::new(area.x, y), Point::new(area.right(), y));
        marks.push(Mark::line(from, to, Stroke::solid(Colour::GRID, 1.0)));
        let at = Point::new(area.x - 6.0, y + 3.6);
        let text = format!("{:.0} %", quarter * 100.0);
        let text = Text::new(at, Anchor::End, Style::TICK, text);
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    let middle = Point::new(area.x - LEFT + 10.0, area.y + area.height / 2.0);
    let title = Text::new(middle, Anchor::Middle, Style::LABEL, shown.title());
    marks.push(Mark::Text(title.upright()));
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
    let mut path = vec![Point::new(plot.area.x, plot.py(before))];
    for point in &curve.points {
        let x = plot.px(seconds(point.at));
        path.push(Point::new(x, plot.py(before)));
        before = share(point);
        path.push(Point::new(x, plot.py(before)));
    }
    path
}

/// The 95 % interval.
fn band(line: &Line<'_>, shown: Shown, plot: &Plot) -> Mark {
    let ends = |point: &CurvePoint| match shown {
        Shown::Ended => (1.0 - point.high, 1.0 - point.low),
        Shown::Lasting => (point.low, point.high),
    };
    let mut points = steps(line.curve, plot, |point| ends(point).1, shown);
    let mut below = steps(line.curve, plot, |point| ends(point).0, shown);
    below.reverse();
    points.extend(below);
    Mark::Area {
        points,
        fill: Fill {
            colour: line.stroke.colour,
            opacity: 0.15,
        },
    }
}
