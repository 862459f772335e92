//! The segments stacked over time, for the forward and the reverse path, with the losses in each.

use super::names::{direction_title, plus_minus};
use super::segment_series::{Clock, SegmentSeries, median_value, share};
use super::{DIRECTIONS, Direction, HopsDrawing, colours, millis};
use crate::axis::{Plot, Scale, Style};
use crate::figure::Figure;
use crate::figure::boxes::in_unit;
use crate::figure::ledger_time::{stack_scale, step};
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, fit};
use neph_analysis::numbers::{TimeUnit, count, duration_unit, percent};
use neph_analysis::text::plural;

const HEIGHT: f64 = 170.0;
const LEFT: f64 = 54.0;
/// What was lost is counted here, if anything was.
const RIGHT: f64 = 96.0;
/// A row of losses above a panel.
const ROW_HEIGHT: f64 = 12.0;
/// The line of the whole path.
const WHOLE_PATH: Stroke = Stroke::solid(Colour::INK, 1.1);

pub(super) fn draw(drawing: &HopsDrawing<'_>) -> Vec<Figure> {
    let Some(clock) = Clock::of(drawing) else {
        return Vec::new();
    };
    let panels: Vec<Panel> = DIRECTIONS
        .into_iter()
        .filter_map(|direction| Panel::of(drawing, direction, clock))
        .collect();
    let mut sheet = Sheet::new(
        "Latency by segment, over time".to_owned(),
        &format!(
            "{}; each step is the median over the packets that came within it",
            drawing.path_text()
        ),
    );
    sheet.legend(&legend(drawing, &panels));
    let mut totals: Vec<f64> = panels.iter().flat_map(Panel::totals).collect();
    totals.sort_unstable_by(f64::total_cmp);
    let scale = stack_scale(&totals).map_or_else(|| Scale::linear(0.0, 1.0), |(scale, _)| scale);
    let last = panels.len();
    let right = if has_losses(&panels) { RIGHT } else { 14.0 };
    for (index, panel) in panels.iter().enumerate() {
        let below = if index + 1 == last {
            Style::X_AXIS_HEIGHT
        } else {
            Style::TICK_LABELS_HEIGHT + 10.0
        };
        let room = sheet.take(20.0 + panel.loss_rows_height() + HEIGHT + below);
        let room = Rect {
            width: room.width - right,
            ..room
        };
        sheet.draw(panel.draw_panel(room, scale, index + 1 == last));
    }
    let notes = [Note::plain(caption(drawing, &panels))];
    vec![sheet.finish("hops-segments", "hops-segments".to_owned(), &notes)]
}

fn has_losses(panels: &[Panel]) -> bool {
    panels.iter().any(|panel| panel.losses().next().is_some())
}

fn legend(drawing: &HopsDrawing<'_>, panels: &[Panel]) -> Vec<(Swatch, String)> {
    let bounds = drawing.max_bounds();
    let mut entries: Vec<(Swatch, String)> = (0..drawing.segment_count())
        .map(|index| {
            let segment_name = drawing.segment_name(index);
            let label = if bounds[index] > 0.0 {
                format!("{segment_name}, {}", plus_minus(bounds[index]))
            } else {
                segment_name
            };
            (Swatch::Solid(colours::segment_colour(index)), label)
        })
        .collect();
    if drawing.segment_count() > 1 {
        entries.push((Swatch::Line(WHOLE_PATH), "the whole path".to_owned()));
    }
    if has_losses(panels) {
        entries.push((Swatch::Tick(Colour::ALARM), "lost".to_owned()));
    }
    entries
}

fn caption(drawing: &HopsDrawing<'_>, panels: &[Panel]) -> String {
    let mut text = "Packets of all protocols. The segments are stacked in the order of the capture points, in both directions. White: no packet.".to_owned();
    if drawing.segment_count() > 1 {
        text.push_str(" Medians need not add up: the dark line is the median of the whole path, of packets seen at every point.");
    }
    if has_losses(panels) {
        text.push_str(" Red above a panel: packets lost in the segment of that colour, as a share of those that came to it within the step; each row's worst step fills it.");
    }
    if panels
        .iter()
        .any(|panel| panel.series.iter().any(SegmentSeries::is_mostly_uncertain))
    {
        text.push_str(" Pale: for most packets the bound is larger than the delay, which may be next to nothing, or longer by as much.");
    }
    text + drawing.bound_text()
}

/// One direction.
struct Panel {
    direction: Direction,
    clock: Clock,
    packets: usize,
    series: Vec<SegmentSeries>,
    /// The median of the whole path in each step.
    total_medians: Vec<Option<f64>>,
}

impl Panel {
    fn of(drawing: &HopsDrawing<'_>, direction: Direction, clock: Clock) -> Option<Self> {
        let packets = drawing.packets_in(direction).count();
        if packets == 0 {
            return None;
        }
        let series_of = |index| SegmentSeries::of(drawing.packets_in(direction), index, clock);
        let mut total_medians = vec![Vec::new(); clock.steps];
        for packet in drawing.packets_in(direction) {
            if let Some(delay) = packet.total() {
                total_medians[clock.step(packet.first_seen)].push(millis(delay));
            }
        }
        Some(Self {
            direction,
            clock,
            packets,
            series: (0..drawing.segment_count()).map(series_of).collect(),
            total_medians: total_medians
                .iter_mut()
                .map(|step| median_value(step))
                .collect(),
        })
    }

    /// Of a step the median of each segment: nothing where none is known, and what lies below 0 is
    /// nothing to stack.
    fn segment_heights(&self, step: usize) -> Option<Vec<f64>> {
        let median_of = |series: &SegmentSeries| series.medians[step];
        self.series
            .iter()
            .any(|series| median_of(series).is_some())
            .then(|| {
                let heights = self
                    .series
                    .iter()
                    .map(|series| median_of(series).unwrap_or(0.0).max(0.0));
                heights.collect()
            })
    }

    /// The heights of all stacks and of the line of the whole path.
    fn totals(&self) -> Vec<f64> {
        let stacks = (0..self.clock.steps).filter_map(|step| self.segment_heights(step));
        let stacks = stacks.map(|stack| stack.iter().sum::<f64>());
        let total_medians = self.total_medians.iter().flatten().copied();
        stacks.chain(total_medians).collect()
    }

    /// Segments that lost packets, in the order in which they are passed.
    fn losses(&self) -> impl Iterator<Item = (usize, &SegmentSeries)> {
        let lossy =
            |(_, series): &(usize, &SegmentSeries)| series.lost.iter().any(|lost| *lost > 0);
        self.series.iter().enumerate().filter(lossy)
    }

    #[expect(clippy::cast_precision_loss, reason = "seven rows at most")]
    fn loss_rows_height(&self) -> f64 {
        ROW_HEIGHT * self.losses().count() as f64 + 4.0
    }

    fn draw_panel(&self, frame: Rect, scale: Scale, is_last: bool) -> Vec<Mark> {
        let top = frame.y + 20.0 + self.loss_rows_height();
        let area = Rect::new(frame.x + LEFT, top, frame.width - LEFT, HEIGHT);
        let unit = TimeUnit::up_to(scale.high);
        let (unit_seconds, unit_name) = duration_unit(self.clock.seconds());
        let plot = Plot {
            area,
            x: Scale::linear(0.0, self.clock.seconds() / unit_seconds),
            y: in_unit(scale, unit),
        };
        let mut marks = self.heading(frame, scale);
        plot.y_axis(&mut marks, &format!("latency, {}", unit.name()));
        let title = if is_last {
            format!("time since the first packet, {unit_name}")
        } else {
            String::new()
        };
        plot.x_axis(&mut marks, &title);
        let mut inside = self.stack(&plot, unit);
        inside.extend(self.whole_path_line(&plot, unit));
        marks.push(plot.clip(inside));
        marks.extend(self.loss_rows(Rect::new(area.x, frame.y + 20.0, area.width, ROW_HEIGHT)));
        marks
    }

    /// The direction, the number of packets, and the number of values outside.
    fn heading(&self, frame: Rect, scale: Scale) -> Vec<Mark> {
        let y = frame.y + 11.0;
        let at = Point::new(frame.x, y);
        let name = Text::new(
            at,
            Anchor::Start,
            Style::TITLE,
            direction_title(self.direction),
        )
        .semibold();
        let note =
            |x: f64, text: String| Text::new(Point::new(x, y), Anchor::End, Style::NOTE, text);
        let packets =
            note(frame.right(), plural(self.packets, "packet")).coloured(Colour::FAINT_INK);
        let totals = self.totals();
        let above = totals.iter().filter(|total| **total > scale.high).count();
        let max = totals.iter().copied().fold(0.0, f64::max);
        let above = (above > 0)
            .then(|| format!("{above} above, max {}", neph_analysis::numbers::millis(max)));
        let parts: Vec<String> = self.uncertainty_text().into_iter().chain(above).collect();
        let right = frame.right() - packets.width() - 10.0;
        let room = right - frame.x - name.width() - 10.0;
        let outside = fit(&parts.join(", "), Style::NOTE, room);
        let outside = note(right, outside).coloured(Colour::ALARM);
        [name, packets, outside]
            .into_iter()
            .filter(|text| !text.text.is_empty())
            .map(Mark::Text)
            .collect()
    }

    /// That delays are not known, where for most packets they are shorter than the bound.
    fn uncertainty_text(&self) -> Option<String> {
        let pale = self
            .series
            .iter()
            .filter(|series| series.is_mostly_uncertain());
        let bounds: Vec<f64> = pale.map(|series| series.bound).collect();
        let max = bounds.iter().copied().fold(0.0, f64::max);
        (!bounds.is_empty()).then(|| format!("pale: known to {} only", plus_minus(max)))
    }

    /// From the left edge of a step to its right edge.
    fn edges(&self, area: Rect, step: usize) -> (f64, f64) {
        let x = |step| area.x + self.clock.start_share(step) * area.width;
        (x(step), x(step + 1))
    }

    /// One area for each segment and run of steps.
    fn stack(&self, plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
        let steps: Vec<Option<Vec<f64>>> = (0..self.clock.steps)
            .map(|s| self.segment_heights(s))
            .collect();
        let y = |value: f64| plot.y_px(value * unit.per_milli());
        let mut marks = Vec::new();
        let indices: Vec<usize> = (0..steps.len()).collect();
        for run in indices.chunk_by(|a, b| steps[*a].is_some() == steps[*b].is_some()) {
            let stacks: Vec<(usize, &Vec<f64>)> = run
                .iter()
                .filter_map(|step| Some((*step, steps[*step].as_ref()?)))
                .collect();
            if stacks.is_empty() {
                continue;
            }
            for (segment, series) in self.series.iter().enumerate() {
                let mut points = Vec::new();
                for (at, stack) in &stacks {
                    let top = stack[..=segment].iter().sum();
                    step(&mut points, self.edges(plot.area, *at), y(top));
                }
                let mut lower_edge = Vec::new();
                for (at, stack) in stacks.iter().rev() {
                    let (left, right) = self.edges(plot.area, *at);
                    step(
                        &mut lower_edge,
                        (right, left),
                        y(stack[..segment].iter().sum()),
                    );
                }
                points.append(&mut lower_edge);
                let fill = if series.is_mostly_uncertain() {
                    colours::pale_fill(segment)
                } else {
                    Fill::solid(colours::segment_colour(segment))
                };
                marks.push(Mark::Area { points, fill });
            }
        }
        marks
    }

    /// The whole path over time, where it has more than one segment.
    fn whole_path_line(&self, plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        let indices: Vec<usize> = (0..self.total_medians.len()).collect();
        let runs = indices
            .chunk_by(|a, b| self.total_medians[*a].is_some() == self.total_medians[*b].is_some());
        let drawn = runs.filter_map(|run| {
            let mut points = Vec::new();
            for at in run {
                let y = plot.y_px(self.total_medians[*at]? * unit.per_milli());
                step(&mut points, self.edges(plot.area, *at), y);
            }
            let stroke = WHOLE_PATH;
            Some(Mark::Line { points, stroke })
        });
        drawn.collect()
    }

    /// Losses: a row for each segment that lost anything.
    fn loss_rows(&self, first: Rect) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut y = first.y;
        for (segment, series) in self.losses() {
            let base = y + ROW_HEIGHT - 3.0;
            let swatch = Rect::new(first.x - 14.0, y + 1.0, 8.0, ROW_HEIGHT - 4.0);
            marks.push(Mark::filled(swatch, colours::segment_colour(segment)));
            let ends = (Point::new(first.x, base), Point::new(first.right(), base));
            marks.push(Mark::line(ends.0, ends.1, Stroke::solid(Colour::GRID, 1.0)));
            let fill = Fill::solid(Colour::ALARM);
            let rects =
                self.loss_bars(series, Rect::new(first.x, y, first.width, ROW_HEIGHT - 3.0));
            marks.push(Mark::Cells { rects, fill });
            let at = Point::new(first.right() + 6.0, base);
            let text = fit(&loss_text(series), Style::NOTE, RIGHT - 6.0);
            let text = Text::new(at, Anchor::Start, Style::NOTE, text).coloured(Colour::ALARM);
            marks.push(Mark::Text(text));
            y += ROW_HEIGHT;
        }
        marks
    }

    /// The share lost in each step, relative to the row's highest; no bar is too small to see.
    fn loss_bars(&self, series: &SegmentSeries, row: Rect) -> Vec<Rect> {
        let share = |step: usize| share(series.lost[step], series.packets_entered[step]);
        let max = (0..self.clock.steps)
            .map(share)
            .fold(f64::MIN_POSITIVE, f64::max);
        let lossy = (0..self.clock.steps).filter(|step| series.lost[*step] > 0);
        let bar = |step: usize| {
            let (left, right) = self.edges(row, step);
            let height = (row.height * share(step) / max).max(1.5);
            let width = (right - left).max(1.5);
            Rect::new(left, row.bottom() - height, width, height)
        };
        lossy.map(bar).collect()
    }
}

/// `12 lost (0.3 %)`.
fn loss_text(series: &SegmentSeries) -> String {
    let (lost, packets_entered) = (
        series.lost.iter().sum(),
        series.packets_entered.iter().sum(),
    );
    format!(
        "{} lost ({})",
        count(lost),
        percent(share(lost, packets_entered))
    )
}
