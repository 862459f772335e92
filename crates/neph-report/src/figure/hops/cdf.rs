//! Delays of packets in each segment, forward and reverse path, as distributions with error bounds.

use neph_stats::{EcdfPoint, Sorted, ecdf};

use super::names::{direction_title, plus_minus};
use super::{DIRECTIONS, Direction, HopsDelay, HopsDrawing, colours, is_bound_larger, millis};
use crate::axis::{Limits, Plot, Scale, Spacing, Spread, Style, choose_scale};
use crate::figure::Figure;
use crate::figure::boxes::in_unit;
use crate::figure::sheet::{Note, Sheet};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, fit, fit_among};
use neph_analysis::numbers::{TimeUnit, count};

/// More would not be seen in a panel.
const MAX_POINTS: usize = 300;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 50.0;
/// The names of the curves stand here.
const NAMES_WIDTH: f64 = 222.0;
/// A name and what it rests on.
const ENTRY_HEIGHT: f64 = 29.0;
/// The start of a logarithmic axis in milliseconds: the resolution of the clocks of captures.
const MIN_MILLIS: f64 = 1e-4;

pub(super) fn draw(drawing: &HopsDrawing<'_>) -> Vec<Figure> {
    let panels: Vec<Panel<'_>> = DIRECTIONS
        .into_iter()
        .map(|direction| Panel::of(drawing, direction))
        .filter(|panel| !panel.curves.is_empty())
        .collect();
    let curves = panels.iter().flat_map(|panel| &panel.curves);
    // No delay is negative: negative values are counted, not drawn.
    let spreads: Vec<Spread> = curves
        .map(|curve| raised_spread(curve.spread, 0.0))
        .collect();
    let Some(scale) = scale(&spreads) else {
        return Vec::new();
    };
    let subtitle = format!("{}; packets of all protocols", drawing.path_text());
    let mut sheet = Sheet::new("Distribution of latency by segment".to_owned(), &subtitle);
    let last = panels.len();
    for (index, panel) in panels.iter().enumerate() {
        let is_last = index + 1 == last;
        let below = if is_last {
            Style::X_AXIS_HEIGHT
        } else {
            Style::TICK_LABELS_HEIGHT + 10.0
        };
        let room = sheet.take(28.0 + panel.height() + below);
        sheet.draw(panel.draw_panel(room, scale, is_last));
    }
    let notes = [Note::plain(caption(drawing, &panels, scale))];
    vec![sheet.finish("hops-cdf", "hops-cdf".to_owned(), &notes)]
}

/// On a logarithmic axis, delays of zero or less count as its low end.
fn scale(spreads: &[Spread]) -> Option<Scale> {
    let raised_spreads: Vec<Spread> = spreads
        .iter()
        .map(|spread| raised_spread(*spread, MIN_MILLIS))
        .collect();
    match choose_scale(&raised_spreads, Limits::default())? {
        log if log.spacing == Spacing::Logarithmic => Some(log),
        _ => choose_scale(spreads, Limits::default()),
    }
}

const fn raised_spread(spread: Spread, min: f64) -> Spread {
    Spread {
        min: spread.min.max(min),
        low: spread.low.max(min),
        median: spread.median.max(min),
        high: spread.high.max(min),
        max: spread.max.max(min),
    }
}

fn caption(drawing: &HopsDrawing<'_>, panels: &[Panel<'_>], scale: Scale) -> String {
    let curves = || panels.iter().flat_map(|panel| &panel.curves);
    let mut text = "Each line shows the share of packets that passed the segment within the time on the axis. n is the number of packets that entered the segment, lost packets included.".to_owned();
    if curves().any(|curve| curve.lost > 0) {
        text.push_str(" A line ends below 100 % if packets were lost.");
    }
    if curves().any(|curve| curve.bound > 0.0) {
        text.push_str(
            " The shaded area shows where the line may be, given the error bound of each delay.",
        );
    }
    if curves().any(|curve| curve.is_mostly_uncertain) {
        text.push_str(" Shaded without a line: for most packets the bound is larger than the delay, so that the line may lie anywhere within.");
    }
    let off_axis_counts = || panels.iter().map(|panel| panel.off_axis_counts(scale));
    if off_axis_counts().any(|counts| counts.below > counts.surely_positive) {
        text.push_str(" Values below are left of the axis: not above zero within the error bound");
        if off_axis_counts().any(|counts| counts.surely_positive > 0) {
            text.push_str(", or above that and shorter than where the axis begins");
        }
        text.push('.');
    } else if off_axis_counts().any(|counts| counts.below > 0) {
        text.push_str(" Values below are left of the axis.");
    }
    text + drawing.bound_text()
}

type Steps = Vec<EcdfPoint>;

/// A segment's distribution.
struct Curve {
    segment: usize,
    name: String,
    /// Packets that came to it, the lost ones included.
    entered: usize,
    lost: usize,
    /// The largest bound, in milliseconds.
    bound: f64,
    /// For most packets the bound is larger than the delay: where the line lies is not known.
    is_mostly_uncertain: bool,
    /// Spread of the delays; for a mostly uncertain segment, of the longest possible delays.
    spread: Spread,
    steps: Steps,
    /// The same with every delay as short and as long as it may be; none where the bound is 0.
    bound_steps: Option<(Steps, Steps)>,
}

impl Curve {
    fn of(drawing: &HopsDrawing<'_>, direction: Direction, index: usize) -> Option<Self> {
        let (mut delays, mut shortest, mut longest) = (Vec::new(), Vec::new(), Vec::new());
        let (mut lost, mut max_bound, mut uncertain) = (0, 0, 0);
        for packet in drawing.packets_in(direction) {
            match packet.segments[index] {
                HopsDelay::Known { delay, bound } => {
                    delays.push(millis(delay));
                    shortest.push(millis(delay.saturating_sub(bound)));
                    longest.push(millis(delay.saturating_add(bound)));
                    max_bound = max_bound.max(bound);
                    uncertain += usize::from(is_bound_larger(delay, bound));
                }
                HopsDelay::Lost => lost += 1,
                HopsDelay::Unknown => {}
            }
        }
        let is_mostly_uncertain = uncertain * 2 > delays.len();
        let steps = |values: &mut Vec<f64>| ecdf(Sorted::sort(values).ok()?, lost, MAX_POINTS).ok();
        let bound_steps = if max_bound > 0 {
            Some((steps(&mut shortest)?, steps(&mut longest)?))
        } else {
            None
        };
        Some(Self {
            segment: index,
            name: drawing.passage_name(direction, index),
            entered: delays.len() + lost,
            lost,
            bound: millis(max_bound),
            steps: steps(&mut delays)?,
            spread: Spread::of(
                Sorted::check(if is_mostly_uncertain {
                    &longest
                } else {
                    &delays
                })
                .ok()?,
            )?,
            is_mostly_uncertain,
            bound_steps,
        })
    }

    /// `n 12 345 · 3 lost · ± 8.0 µs`, of what is not known `only ± 17.34 ms`.
    fn counts_text(&self) -> String {
        let mut text = format!("n {}", count(self.entered));
        if self.lost > 0 {
            text.push_str(&format!(" · {} lost", count(self.lost)));
        }
        if self.bound > 0.0 {
            let prefix = if self.is_mostly_uncertain {
                "only "
            } else {
                ""
            };
            text.push_str(&format!(" · {prefix}{}", plus_minus(self.bound)));
        }
        text
    }
}

/// A distribution as steps; as a slope from point to point where some of its steps are omitted.
fn step_path(steps: &[EcdfPoint], plot: &Plot, unit: TimeUnit) -> Vec<Point> {
    let is_thinned = steps.len() * 5 > MAX_POINTS * 4;
    let mut previous_share = 0.0;
    let mut path = Vec::with_capacity(steps.len() * 2 + 1);
    for (index, point) in steps.iter().enumerate() {
        let x = plot.x_px(point.value * unit.per_milli());
        if index == 0 || !is_thinned {
            path.push(Point::new(x, plot.y_px(previous_share)));
        }
        path.push(Point::new(x, plot.y_px(point.share)));
        previous_share = point.share;
    }
    // Lost packets never arrive: the line ends below 100 %.
    path.push(Point::new(plot.area.right(), plot.y_px(previous_share)));
    path
}

/// Where a line may lie.
fn band(segment: usize) -> Fill {
    Fill {
        colour: colours::segment_colour(segment),
        opacity: 0.18,
    }
}

/// Values that the axis does not show.
#[derive(Default)]
struct OffAxisCounts {
    above: usize,
    below: usize,
    /// Those of `below` that are above zero in spite of the error bound.
    surely_positive: usize,
    max: f64,
    min: f64,
}

/// One direction.
struct Panel<'a> {
    drawing: &'a HopsDrawing<'a>,
    direction: Direction,
    /// In the order in which packets pass the segments.
    curves: Vec<Curve>,
}

impl<'a> Panel<'a> {
    fn of(drawing: &'a HopsDrawing<'a>, direction: Direction) -> Self {
        let drawn =
            (0..drawing.segment_count()).filter_map(|index| Curve::of(drawing, direction, index));
        let mut curves: Vec<Curve> = drawn.collect();
        if direction == Direction::Reverse {
            curves.reverse();
        }
        Self {
            drawing,
            direction,
            curves,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "seven curves at most")]
    fn height(&self) -> f64 {
        HEIGHT.max(self.curves.len() as f64 * ENTRY_HEIGHT)
    }

    fn off_axis_counts(&self, scale: Scale) -> OffAxisCounts {
        let mut counts = OffAxisCounts::default();
        for packet in self.drawing.packets_in(self.direction) {
            for delay in packet.segments {
                let HopsDelay::Known { delay, bound } = delay else {
                    continue;
                };
                let value = millis(*delay);
                if value > scale.high {
                    counts.above += 1;
                    counts.max = counts.max.max(value);
                } else if value < scale.low {
                    counts.below += 1;
                    counts.surely_positive += usize::from(delay > bound);
                    counts.min = if counts.below == 1 {
                        value
                    } else {
                        counts.min.min(value)
                    };
                }
            }
        }
        counts
    }

    fn draw_panel(&self, frame: Rect, scale: Scale, is_last: bool) -> Vec<Mark> {
        let area = Rect::new(
            frame.x + LEFT,
            frame.y + 24.0,
            frame.width - LEFT - NAMES_WIDTH,
            self.height(),
        );
        let unit = TimeUnit::up_to(scale.high);
        let plot = Plot {
            area,
            x: in_unit(scale, unit),
            y: Scale::linear(0.0, 1.0),
        };
        let mut marks = self.heading(frame, area.right(), scale);
        plot.y_axis(&mut marks, "share of packets");
        let title = if is_last {
            format!("time from one point to the next, {}", unit.name())
        } else {
            String::new()
        };
        plot.x_axis(&mut marks, &title);
        let bands = self.curves.iter().filter_map(|curve| {
            let (shortest, longest) = curve.bound_steps.as_ref()?;
            let mut points = step_path(shortest, &plot, unit);
            points.extend(step_path(longest, &plot, unit).into_iter().rev());
            let fill = band(curve.segment);
            Some(Mark::Area { points, fill })
        });
        let certain = self
            .curves
            .iter()
            .filter(|curve| !curve.is_mostly_uncertain);
        let lines = certain.map(|curve| Mark::Line {
            points: step_path(&curve.steps, &plot, unit),
            stroke: colours::segment_stroke(curve.segment),
        });
        marks.push(plot.clip(bands.chain(lines).collect()));
        marks.extend(self.legend_entries(area));
        marks
    }

    /// The direction, and the number of values outside.
    fn heading(&self, frame: Rect, right: f64, scale: Scale) -> Vec<Mark> {
        let y = frame.y + 12.0;
        let at = Point::new(frame.x, y);
        let name = Text::new(
            at,
            Anchor::Start,
            Style::TITLE,
            direction_title(self.direction),
        )
        .semibold();
        let counts = self.off_axis_counts(scale);
        let outside = [
            (counts.above, "above, max", counts.max),
            (counts.below, "below, min", counts.min),
        ];
        let parts = outside.into_iter().filter(|(packets, _, _)| *packets > 0);
        let parts = parts.map(|(packets, word, end)| {
            format!(
                "{} {word} {}",
                count(packets),
                neph_analysis::numbers::millis(end)
            )
        });
        let text = parts.collect::<Vec<_>>().join(", ");
        let mut marks = vec![Mark::Text(name)];
        if !text.is_empty() {
            let text = Text::new(Point::new(right, y), Anchor::End, Style::NOTE, text);
            marks.push(Mark::Text(text.coloured(Colour::ALARM)));
        }
        marks
    }

    /// The curves' names at the right, with what they rest on.
    fn legend_entries(&self, area: Rect) -> Vec<Mark> {
        const SAMPLE_WIDTH: f64 = 20.0;
        let left = area.right() + 14.0;
        let room = NAMES_WIDTH - 14.0 - SAMPLE_WIDTH - 6.0;
        let mut marks = Vec::new();
        let names: Vec<String> = self.curves.iter().map(|curve| curve.name.clone()).collect();
        let mut y = area.y + 10.0;
        for curve in &self.curves {
            let stroke = Stroke {
                width: 2.0,
                ..colours::segment_stroke(curve.segment)
            };
            let ends = (
                Point::new(left, y - 4.0),
                Point::new(left + SAMPLE_WIDTH, y - 4.0),
            );
            marks.push(if curve.is_mostly_uncertain {
                let sample = Rect::new(left, y - 9.0, SAMPLE_WIDTH, 10.0);
                Mark::Rect {
                    rect: sample,
                    fill: Some(band(curve.segment)),
                    stroke: None,
                }
            } else {
                Mark::line(ends.0, ends.1, stroke)
            });
            let text = |y: f64, size: f64, text: String| {
                Text::new(
                    Point::new(left + SAMPLE_WIDTH + 6.0, y),
                    Anchor::Start,
                    size,
                    text,
                )
            };
            let name = fit_among(&curve.name, &names, Style::LABEL, room);
            marks.push(Mark::Text(text(y, Style::LABEL, name)));
            let counts = fit(&curve.counts_text(), Style::NOTE, room);
            let counts = text(y + 12.5, Style::NOTE, counts).coloured(Colour::FAINT_INK);
            marks.push(Mark::Text(counts));
            y += ENTRY_HEIGHT;
        }
        marks
    }
}
