//! One clock against another over time: the offset with its error bound as a band, and the same
//! without its drift. Wall clocks and raw clocks have panels of their own. Not part of a campaign:
//! commands that compare two clocks draw it.

mod captured;

use neph_model::Span;

pub use captured::{clocks_of_captures, clocks_on_a_connection};

use super::Figure;
use super::legend::Swatch;
use super::sheet::{Note, Sheet};
use crate::axis::{Plot, Scale, Style};
use crate::palette;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text};
use neph_analysis::numbers::{TimeUnit, duration_unit, signed};

const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const DOT_COLOUR: Colour = Colour::hex(0x0093_9ba8);
/// When a clock was set, where that is known as exactly as a line is wide.
const CLOCK_STEP_STROKE: Stroke = Stroke::solid(Colour::ALARM, 1.2);

/// What is known of the offset at one moment; all in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMoment {
    /// When, by the first clock.
    pub at: i64,
    /// The second clock minus the first.
    pub offset: i64,
    /// Its error bound, in both directions.
    pub bound: i64,
}

/// A clock was set: not before one moment and not after another, by the first clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStepPeriod {
    /// In nanoseconds, as the next.
    pub after: i64,
    /// Not before `after`.
    pub before: i64,
}

impl ClockStepPeriod {
    /// Whether a line shows as much as a band, for this time and width.
    fn is_line(&self, period: (i64, i64), width: f64) -> bool {
        span(self.before, self.after) / span(period.1, period.0) * width < CLOCK_STEP_STROKE.width
    }
}

/// A clock of one machine against the same clock of another.
#[derive(Clone, Copy, Debug)]
pub struct ClockLine<'a> {
    /// Which clocks, above its panels; empty where there is no other.
    pub name: &'a str,
    /// Ascending in time.
    pub moments: &'a [ClockMoment],
    /// Offsets by the formula, exchange by exchange: moment and offset in nanoseconds; may be empty.
    pub dots: &'a [(i64, i64)],
    /// When a clock was set.
    pub steps: &'a [ClockStepPeriod],
    /// How much faster the second clock runs, as a fraction; 0 where that is not known.
    pub rate: f64,
}

/// What there is to draw of two machines' clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockDrawing<'a> {
    /// Whose clocks, in a few words.
    pub subject: &'a str,
    /// From top to bottom, all over the time of the first.
    pub lines: &'a [ClockLine<'a>],
}

/// Draws it; `None` without two moments.
pub fn clock_course(drawing: &ClockDrawing<'_>) -> Option<Figure> {
    let panels: Vec<Panel<'_>> = drawing.lines.iter().flat_map(panels).collect();
    let (first, last) = (panels.first()?, panels.last()?);
    let ends = first.line.moments;
    let (from, until) = (ends.first()?.at, ends.last()?.at);
    if from >= until {
        return None;
    }
    let mut sheet = Sheet::new(
        "Offset of two clocks over time".to_owned(),
        &format!("{}; above 0 the second is ahead", drawing.subject),
    );
    let width = sheet.inner().width - LEFT;
    sheet.legend(&legend(drawing.lines, |step| {
        step.is_line((from, until), width)
    }));
    for panel in &panels {
        let is_last = std::ptr::eq(panel, last);
        let below = if is_last {
            Style::X_AXIS_HEIGHT
        } else {
            Style::TICK_LABELS_HEIGHT + 14.0
        };
        let above = if panel.heading.is_empty() { 0.0 } else { 12.0 };
        let mut frame = sheet.take(HEIGHT + below + 8.0 + above);
        if above > 0.0 {
            let at = Point::new(frame.x + LEFT, frame.y + 12.0);
            let name = Text::new(at, Anchor::Start, Style::LABEL, panel.heading).semibold();
            sheet.draw([Mark::Text(name)]);
        }
        frame.y += above;
        let title = if is_last { "time, " } else { "" };
        sheet.draw(panel.draw_panel(frame, (from, until), title));
    }
    let note = "The band around the line contains the true offset for any delays that are not negative. One exchange, or a mean of exchanges, is wrong by half of the difference between the delays of the two directions.";
    Some(sheet.finish("clock", "clock".to_owned(), &[Note::plain(note)]))
}

/// The offset, and where it drifts by far more than its band is wide the same without the drift.
fn panels<'a>(line: &'a ClockLine<'a>) -> Vec<Panel<'a>> {
    let Some((first, last)) = line.moments.first().zip(line.moments.last()) else {
        return Vec::new();
    };
    let with_drift = Panel {
        line,
        heading: line.name,
        base: base(line.moments),
        from: first.at,
        rate: 0.0,
    };
    let without_drift = Panel {
        heading: "",
        base: first.offset,
        rate: line.rate,
        ..with_drift
    };
    let total_drift = line.rate.abs() * span(last.at, first.at);
    if total_drift > 4.0 * span(first.bound, 0) {
        vec![with_drift, without_drift]
    } else {
        vec![with_drift]
    }
}

fn legend(
    lines: &[ClockLine<'_>],
    is_line: impl Fn(&ClockStepPeriod) -> bool,
) -> Vec<(Swatch, String)> {
    let mut entries = vec![
        (
            Swatch::Line(middle_stroke()),
            "middle of the possible range".to_owned(),
        ),
        (
            Swatch::Area(Fill::translucent(palette::line_colour(0))),
            "possible range".to_owned(),
        ),
    ];
    if lines.iter().any(|line| !line.dots.is_empty()) {
        entries.push((
            Swatch::Dot(DOT_COLOUR),
            "from four timestamps of each exchange".to_owned(),
        ));
    }
    let mut steps = lines.iter().flat_map(|line| line.steps);
    if steps.clone().any(&is_line) {
        entries.push((Swatch::Tick(Colour::ALARM), "a clock was set".to_owned()));
    }
    if steps.any(|step| !is_line(step)) {
        entries.push((
            Swatch::Area(Fill::translucent(Colour::ALARM)),
            "in this time a clock was set".to_owned(),
        ));
    }
    entries
}

fn middle_stroke() -> Stroke {
    Stroke::solid(palette::line_colour(0), 1.4)
}

/// 0, unless the offset is so far from it that its changes would not be seen.
fn base(moments: &[ClockMoment]) -> i64 {
    let lows = moments.iter().map(|m| m.offset.saturating_sub(m.bound));
    let highs = moments.iter().map(|m| m.offset.saturating_add(m.bound));
    let (low, high) = (lows.min().unwrap_or(0), highs.max().unwrap_or(0));
    let min_distance = if low <= 0 && high >= 0 {
        0
    } else {
        low.saturating_abs().min(high.saturating_abs())
    };
    if min_distance > high.saturating_sub(low).saturating_mul(5) {
        moments.first().map_or(0, |first| first.offset)
    } else {
        0
    }
}

/// From one reading to another, in nanoseconds.
fn span(to: i64, from: i64) -> f64 {
    Span::from_nanos(to.saturating_sub(from)).secs_f64() * 1e9
}

/// Shows the offset from a straight one.
#[derive(Clone, Copy)]
struct Panel<'a> {
    line: &'a ClockLine<'a>,
    /// Above it; may be empty.
    heading: &'a str,
    base: i64,
    from: i64,
    rate: f64,
}

impl Panel<'_> {
    /// An offset from the line, in milliseconds.
    fn offset_above_line(&self, at: i64, offset: i64) -> f64 {
        (span(offset, self.base) - self.rate * span(at, self.from)) / 1e6
    }

    /// The band and nearly all dots.
    fn scale(&self) -> Scale {
        let above_base =
            |m: &ClockMoment, by: i64| self.offset_above_line(m.at, m.offset.saturating_add(by));
        let moments = self.line.moments;
        let mut low = moments
            .iter()
            .map(|m| above_base(m, -m.bound))
            .fold(f64::INFINITY, f64::min);
        let mut high = moments
            .iter()
            .map(|m| above_base(m, m.bound))
            .fold(f64::NEG_INFINITY, f64::max);
        let mut dots: Vec<f64> = self
            .line
            .dots
            .iter()
            .map(|(at, y)| self.offset_above_line(*at, *y))
            .collect();
        dots.sort_unstable_by(f64::total_cmp);
        let dots_outside = dots.len() / 50;
        let bulk_end = dots.iter().rev().nth(dots_outside);
        if let Some((lowest, highest)) = dots.get(dots_outside).zip(bulk_end) {
            low = low.min(*lowest);
            high = high.max(*highest);
        }
        let margin = (high - low) * 0.05;
        Scale::linear(low - margin, high + margin)
    }

    fn draw_panel(&self, frame: Rect, period: (i64, i64), time: &str) -> Vec<Mark> {
        let area = Rect::new(frame.x + LEFT, frame.y + 8.0, frame.width - LEFT, HEIGHT);
        let scale = self.scale();
        let unit = TimeUnit::up_to(scale.high.abs().max(scale.low.abs()));
        let factor = unit.per_milli();
        let (last, (per, name)) = time_unit(period);
        let plot = Plot {
            area,
            x: Scale::linear(0.0, last / per),
            y: Scale::linear(scale.low * factor, scale.high * factor),
        };
        let mut marks = Vec::new();
        plot.y_axis(&mut marks, &self.title(unit));
        let title = if time.is_empty() {
            String::new()
        } else {
            format!("{time}{name}")
        };
        plot.x_axis(&mut marks, &title);
        let point_at = |at: i64, offset: i64| {
            let x = plot.x_px(span(at, period.0) / 1e9 / per);
            Point::new(x, plot.y_px(self.offset_above_line(at, offset) * factor))
        };
        let steps = self.line.steps.iter().map(|step| {
            let ends = [step.after, step.before].map(|at| point_at(at, self.base).x);
            clock_step_mark(area, ends, step.is_line(period, area.width))
        });
        let mut inside: Vec<Mark> = steps.collect();
        inside.extend(self.inside(point_at));
        marks.push(plot.clip(inside));
        marks
    }

    /// The band, the dots and the line, each over those before.
    fn inside(&self, point_at: impl Fn(i64, i64) -> Point) -> Vec<Mark> {
        let edge = |m: &ClockMoment, by: i64| point_at(m.at, m.offset.saturating_add(by));
        let bands = self.runs().into_iter().map(|run| {
            let mut points: Vec<Point> = run.iter().map(|m| edge(m, m.bound)).collect();
            points.extend(run.iter().rev().map(|m| edge(m, -m.bound)));
            let fill = Fill::translucent(palette::line_colour(0));
            Mark::Area { points, fill }
        });
        let dots = self.line.dots.iter().map(|(at, offset)| Mark::Disc {
            centre: point_at(*at, *offset),
            radius: 1.3,
            fill: Fill::solid(DOT_COLOUR),
        });
        let lines = self.runs().into_iter().filter(|run| run.len() > 1);
        let lines = lines.map(|run| Mark::Line {
            points: run.iter().map(|m| edge(m, 0)).collect(),
            stroke: middle_stroke(),
        });
        bands.chain(dots).chain(lines).collect()
    }

    /// Moments between which no clock was set.
    fn runs(&self) -> Vec<&[ClockMoment]> {
        let is_set_between = |first: &ClockMoment, second: &ClockMoment| {
            self.line
                .steps
                .iter()
                .any(|step| first.at < step.before && step.before <= second.at)
        };
        let moments = self.line.moments;
        moments
            .chunk_by(|first, second| !is_set_between(first, second))
            .collect()
    }

    fn title(&self, unit: TimeUnit) -> String {
        let name = unit.name();
        if self.rate.abs() > 0.0 {
            let rate = signed(&format!("{:+.3}", self.rate * 1e6));
            return format!("from the line of {rate} ppm, {name}");
        }
        if self.base == 0 {
            return format!("offset, {name}");
        }
        let base = Span::from_nanos(self.base).secs_f64();
        let base = signed(&format!("{base:+.6}"));
        format!("offset less {base} s, {name}")
    }
}

/// The time in which a clock was set, from top to bottom.
fn clock_step_mark(area: Rect, [from, until]: [f64; 2], is_line: bool) -> Mark {
    if is_line {
        let x = from.midpoint(until);
        return Mark::line(
            Point::new(x, area.y),
            Point::new(x, area.bottom()),
            CLOCK_STEP_STROKE,
        );
    }
    Mark::Rect {
        rect: Rect::new(from, area.y, until - from, area.height),
        fill: Some(Fill::translucent(Colour::ALARM)),
        stroke: None,
    }
}

/// How long it is, in seconds, and the unit that reads best.
fn time_unit((from, until): (i64, i64)) -> (f64, (f64, &'static str)) {
    let seconds = span(until, from) / 1e9;
    (seconds, duration_unit(seconds))
}

#[cfg(test)]
mod tests;
