//! The segments stacked over time, for the forward and the reverse path, with the losses in each.

use super::column::{Clock, Column, middle, share};
use super::names::{title, within};
use super::{DIRECTIONS, Direction, HopsDrawing, inks, millis};
use crate::axis::{Plot, Scale, Style};
use crate::figure::Figure;
use crate::figure::boxes::in_unit;
use crate::figure::ledger_time::{stack_scale, step};
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, fit};
use neph_analysis::numbers::{TimeUnit, count, elapsed, percent};
use neph_analysis::text::plural;

const HEIGHT: f64 = 170.0;
const LEFT: f64 = 54.0;
/// What was lost is counted here, if anything was.
const RIGHT: f64 = 96.0;
/// A row of losses above a panel.
const ROW_HEIGHT: f64 = 12.0;
/// The whole way.
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
            drawing.path()
        ),
    );
    sheet.legend(&legend(drawing, &panels));
    let mut totals: Vec<f64> = panels.iter().flat_map(Panel::totals).collect();
    totals.sort_unstable_by(f64::total_cmp);
    let scale = stack_scale(&totals).map_or_else(|| Scale::linear(0.0, 1.0), |(scale, _)| scale);
    let last = panels.len();
    let right = if is_lossy(&panels) { RIGHT } else { 14.0 };
    for (index, panel) in panels.iter().enumerate() {
        let below = if index + 1 == last {
            Style::BELOW
        } else {
            Style::BELOW_TICKS + 10.0
        };
        let room = sheet.take(20.0 + panel.above() + HEIGHT + below);
        let room = Rect {
            width: room.width - right,
            ..room
        };
        sheet.draw(panel.draw_panel(room, scale, index + 1 == last));
    }
    let notes = [Note::plain(caption(drawing, &panels))];
    vec![sheet.finish("hops-segments", "hops-segments".to_owned(), &notes)]
}

fn is_lossy(panels: &[Panel]) -> bool {
    panels.iter().any(|panel| panel.losses().next().is_some())
}

fn legend(drawing: &HopsDrawing<'_>, panels: &[Panel]) -> Vec<(Swatch, String)> {
    let bounds = drawing.bounds();
    let mut entries: Vec<(Swatch, String)> = (0..drawing.count())
        .map(|index| {
            let segment_name = drawing.segment(index);
            let label = if bounds[index] > 0.0 {
                format!("{segment_name}, {}", within(bounds[index]))
            } else {
                segment_name
            };
            (Swatch::Solid(inks::colour(index)), label)
        })
        .collect();
    if drawing.count() > 1 {
        entries.push((Swatch::Line(WHOLE_PATH), "the whole path".to_owned()));
    }
    if is_lossy(panels) {
        entries.push((Swatch::Tick(Colour::ALARM), "lost".to_owned()));
    }
    entries
}

fn caption(drawing: &HopsDrawing<'_>, panels: &[Panel]) -> String {
    let mut text = "Packets of all protocols. The segments are stacked in the order of the capture points, in both directions. White: no packet.".to_owned();
    if drawing.count() > 1 {
        text.push_str(" Medians need not add up: the dark line is the median of the whole path, of packets seen at every point.");
    }
    if is_lossy(panels) {
        text.push_str(" Red above a panel: packets lost in the segment of that colour, as a share of those that came to it within the step; each row's worst step fills it.");
    }
    if panels
        .iter()
        .any(|panel| panel.columns.iter().any(Column::is_pale))
    {
        text.push_str(" Pale: for most packets the bound is larger than the delay, which may be next to nothing, or longer by as much.");
    }
    text + drawing.bound_text()
}

/// One way.
struct Panel {
    direction: Direction,
    clock: Clock,
    packets: usize,
    columns: Vec<Column>,
    /// The median of the whole way in each step.
    totals_of_steps: Vec<Option<f64>>,
}

impl Panel {
    fn of(drawing: &HopsDrawing<'_>, direction: Direction, clock: Clock) -> Option<Self> {
        let packets = drawing.of(direction).count();
        if packets == 0 {
            return None;
        }
        let column = |index| Column::of(drawing.of(direction), index, clock);
        let mut totals_of_steps = vec![Vec::new(); clock.steps];
        for packet in drawing.of(direction) {
            if let Some(delay) = packet.total() {
                totals_of_steps[clock.step(packet.since)].push(millis(delay));
            }
        }
        Some(Self {
            direction,
            clock,
            packets,
            columns: (0..drawing.count()).map(column).collect(),
            totals_of_steps: totals_of_steps
                .iter_mut()
                .map(|step| middle(step))
                .collect(),
        })
    }

    /// Of a step the median of each segment: nothing where none is known, and what lies below 0 is
    /// nothing to stack.
    fn stacked(&self, step: usize) -> Option<Vec<f64>> {
        let median_of = |column: &Column| column.medians[step];
        self.columns
            .iter()
            .any(|column| median_of(column).is_some())
            .then(|| {
                let heights = self
                    .columns
                    .iter()
                    .map(|c| median_of(c).unwrap_or(0.0).max(0.0));
                heights.collect()
            })
    }

    /// How high each step is.
    fn totals(&self) -> Vec<f64> {
        let stacks = (0..self.clock.steps).filter_map(|step| self.stacked(step));
        let stacks = stacks.map(|stack| stack.iter().sum::<f64>());
        let totals_of_steps = self.totals_of_steps.iter().flatten().copied();
        stacks.chain(totals_of_steps).collect()
    }

    /// Segments that lost packets, in the order in which they are passed.
    fn losses(&self) -> impl Iterator<Item = (usize, &Column)> {
        let lossy = |(_, column): &(usize, &Column)| column.lost.iter().any(|lost| *lost > 0);
        self.columns.iter().enumerate().filter(lossy)
    }

    #[expect(clippy::cast_precision_loss, reason = "seven rows at most")]
    fn above(&self) -> f64 {
        ROW_HEIGHT * self.losses().count() as f64 + 4.0
    }

    fn draw_panel(&self, frame: Rect, scale: Scale, is_last: bool) -> Vec<Mark> {
        let top = frame.y + 20.0 + self.above();
        let area = Rect::new(frame.x + LEFT, top, frame.width - LEFT, HEIGHT);
        let unit = TimeUnit::up_to(scale.high);
        let (per, name) = elapsed(self.clock.seconds());
        let plot = Plot {
            area,
            x: Scale::linear(0.0, self.clock.seconds() / per),
            y: in_unit(scale, unit),
        };
        let mut marks = self.heading(frame, scale);
        plot.y_axis(&mut marks, &format!("latency, {}", unit.name()));
        let title = if is_last {
            format!("time since the first packet, {name}")
        } else {
            String::new()
        };
        plot.x_axis(&mut marks, &title);
        let mut inside = self.stack(&plot, unit);
        inside.extend(self.line(&plot, unit));
        marks.push(plot.clip(inside));
        marks.extend(self.rows(Rect::new(area.x, frame.y + 20.0, area.width, ROW_HEIGHT)));
        marks
    }

    /// The direction, the number of packets, and the number of values outside.
    fn heading(&self, frame: Rect, scale: Scale) -> Vec<Mark> {
        let y = frame.y + 11.0;
        let at = Point::new(frame.x, y);
        let name = Text::new(at, Anchor::Start, Style::TITLE, title(self.direction)).semibold();
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
        let pale = self.columns.iter().filter(|column| column.is_pale());
        let bounds: Vec<f64> = pale.map(|column| column.bound).collect();
        let max = bounds.iter().copied().fold(0.0, f64::max);
        (!bounds.is_empty()).then(|| format!("pale: known to {} only", within(max)))
    }

    /// From the left edge of a step to its right edge.
    fn edges(&self, area: Rect, step: usize) -> (f64, f64) {
        let x = |step| area.x + self.clock.begins(step) * area.width;
        (x(step), x(step + 1))
    }

    /// One area for each segment and run of steps.
    fn stack(&self, plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
        let steps: Vec<Option<Vec<f64>>> = (0..self.clock.steps).map(|s| self.stacked(s)).collect();
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
            for (segment, column) in self.columns.iter().enumerate() {
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
                let fill = if column.is_pale() {
                    inks::pale(segment)
                } else {
                    Fill::solid(inks::colour(segment))
                };
                marks.push(Mark::Area { points, fill });
            }
        }
        marks
    }

    /// The whole way over time, where it has more than one segment.
    fn line(&self, plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
        if self.columns.len() < 2 {
            return Vec::new();
        }
        let indices: Vec<usize> = (0..self.totals_of_steps.len()).collect();
        let runs = indices.chunk_by(|a, b| {
            self.totals_of_steps[*a].is_some() == self.totals_of_steps[*b].is_some()
        });
        let drawn = runs.filter_map(|run| {
            let mut points = Vec::new();
            for at in run {
                let y = plot.y_px(self.totals_of_steps[*at]? * unit.per_milli());
                step(&mut points, self.edges(plot.area, *at), y);
            }
            let stroke = WHOLE_PATH;
            Some(Mark::Line { points, stroke })
        });
        drawn.collect()
    }

    /// What was lost: a row for each segment that lost anything.
    fn rows(&self, first: Rect) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut y = first.y;
        for (segment, column) in self.losses() {
            let base = y + ROW_HEIGHT - 3.0;
            let swatch = Rect::new(first.x - 14.0, y + 1.0, 8.0, ROW_HEIGHT - 4.0);
            marks.push(Mark::filled(swatch, inks::colour(segment)));
            let ends = (Point::new(first.x, base), Point::new(first.right(), base));
            marks.push(Mark::line(ends.0, ends.1, Stroke::solid(Colour::GRID, 1.0)));
            let fill = Fill::solid(Colour::ALARM);
            let rects = self.bars(column, Rect::new(first.x, y, first.width, ROW_HEIGHT - 3.0));
            marks.push(Mark::Cells { rects, fill });
            let at = Point::new(first.right() + 6.0, base);
            let text = fit(&text_of_column(column), Style::NOTE, RIGHT - 6.0);
            let text = Text::new(at, Anchor::Start, Style::NOTE, text).coloured(Colour::ALARM);
            marks.push(Mark::Text(text));
            y += ROW_HEIGHT;
        }
        marks
    }

    /// The share lost in each step, of the row's highest; what is there is seen.
    fn bars(&self, column: &Column, row: Rect) -> Vec<Rect> {
        let share = |step: usize| share(column.lost[step], column.packets_came[step]);
        let max = (0..self.clock.steps)
            .map(share)
            .fold(f64::MIN_POSITIVE, f64::max);
        let lossy = (0..self.clock.steps).filter(|step| column.lost[*step] > 0);
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
fn text_of_column(column: &Column) -> String {
    let (lost, packets_came) = (column.lost.iter().sum(), column.packets_came.iter().sum());
    format!(
        "{} lost ({})",
        count(lost),
        percent(share(lost, packets_came))
    )
}
