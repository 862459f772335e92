//! The slowest packets one by one: a row each, its segments side by side from its first point on.

use super::names::arrow;
use super::rows::{PacketEnd, Row, Rows};
use super::{HopsDrawing, colours, millis};
use crate::axis::{Plot, Scale, Style};
use crate::figure::Figure;
use crate::figure::boxes::in_unit;
use crate::figure::ledger_time::stack_scale;
use crate::figure::legend::{Swatch, cross};
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, fit_among};
use neph_analysis::numbers::TimeUnit;
use neph_analysis::text::plural;

const PER_PAGE: usize = 50;
const ROW_HEIGHT: f64 = 13.0;
const BAR_HEIGHT: f64 = 8.0;
/// Room for the time, the packet and its direction.
const LEFT: f64 = 150.0;
/// Room for the total delay.
const RIGHT: f64 = 58.0;
/// The rest of a round trip.
const REMAINDER: Colour = Colour::AXIS;
/// How far the end of a row may be off.
const BOUNDS: Stroke = Stroke::solid(Colour::INK, 0.9);

pub(super) fn draw(drawing: &HopsDrawing<'_>) -> Vec<Figure> {
    let rows = Rows::of(drawing);
    let Some(scale) = scale(&rows.selected) else {
        return Vec::new();
    };
    let total = rows.selected.len().div_ceil(PER_PAGE);
    let pages = rows
        .selected
        .chunks(PER_PAGE)
        .enumerate()
        .map(|(page, shown)| {
            let title = page_title("The slowest packets, one by one", page, total);
            let mut sheet = Sheet::new(title, &subtitle(drawing, &rows));
            sheet.legend(&legend(drawing, shown));
            let room = sheet.take(height(shown) + 16.0 + Style::X_AXIS_HEIGHT);
            let panel = Panel {
                drawing,
                start: rows.start,
                shown,
                scale,
            };
            sheet.draw(panel.draw_panel(room));
            let notes = [Note::plain(caption(drawing, &rows, shown, scale))];
            let name = page_name("hops-waterfall", page, total);
            sheet.finish("hops-waterfall", name, &notes)
        });
    pages.collect()
}

/// For bars and the lines of their bounds; but bounds far beyond all bars would leave nothing of these.
/// A millisecond where everything was lost in its first segment.
fn scale(shown: &[Row]) -> Option<Scale> {
    let longest = shown.iter().map(Row::bar_and_round_trip_end).max()?;
    let max = if longest > 0 {
        longest.saturating_mul(3)
    } else {
        i64::MAX
    };
    let ends = shown.iter().map(|row| millis(row.extent().min(max)));
    let mut ends: Vec<f64> = ends.collect();
    ends.sort_unstable_by(f64::total_cmp);
    match stack_scale(&ends)? {
        (scale, _) if ends.iter().any(|end| *end > 0.0) => Some(scale),
        _ => Some(Scale::linear(0.0, 1.0)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "some fifty rows")]
fn height(shown: &[Row]) -> f64 {
    shown.len() as f64 * ROW_HEIGHT
}

/// The path, and which packets are shown.
fn subtitle(drawing: &HopsDrawing<'_>, rows: &Rows) -> String {
    let mut text = format!("{}; ", drawing.path_text());
    let arrived = rows
        .selected
        .iter()
        .filter(|row| row.end == PacketEnd::Arrived)
        .count();
    if arrived == rows.arrived {
        text.push_str(&format!(
            "all {} seen at every point",
            plural(arrived, "packet")
        ));
    } else {
        let packets = plural(rows.arrived, "packet");
        text.push_str(&format!(
            "the slowest {arrived} of {packets} seen at every point"
        ));
    }
    let lost = rows.selected.len() - arrived;
    if rows.lost > 0 {
        let total_lost = neph_analysis::numbers::count(rows.lost);
        let lost_text = if lost == rows.lost {
            format!(", and {total_lost} lost")
        } else {
            format!(", and {lost} of {total_lost} lost, spread over the time")
        };
        text.push_str(&lost_text);
    }
    text
}

fn legend(drawing: &HopsDrawing<'_>, shown: &[Row]) -> Vec<(Swatch, String)> {
    let segments = (0..drawing.segment_count()).map(|segment| {
        (
            Swatch::Solid(colours::segment_colour(segment)),
            drawing.segment_name(segment),
        )
    });
    let mut entries: Vec<(Swatch, String)> = segments.collect();
    if shown
        .iter()
        .any(|row| row.bound > 0 && row.end == PacketEnd::Arrived)
    {
        entries.push((Swatch::Line(BOUNDS), "where the row may end".to_owned()));
    }
    if shown.iter().any(|row| row.round_trip.is_some()) {
        let remainder = Stroke::solid(REMAINDER, 2.5);
        entries.push((Swatch::Line(remainder), "rest of the round trip".to_owned()));
    }
    if shown.iter().any(|row| row.end != PacketEnd::Arrived) {
        entries.push((Swatch::Cross(Colour::ALARM), "lost".to_owned()));
    }
    entries
}

fn caption(drawing: &HopsDrawing<'_>, rows: &Rows, shown: &[Row], scale: Scale) -> String {
    let mut text = "Each row is a packet. Left: its time at the first capture point, since the first packet; its protocol; → forward, ← reverse. Right: its segments, in the order in which it passed them.".to_owned();
    if shown.iter().any(|row| row.end != PacketEnd::Arrived) {
        text.push_str(" A lost packet ends at the last point that saw it.");
    }
    let is_beyond = |row: &Row| millis(row.bar_and_round_trip_end()) > scale.high;
    let is_line_alone = |row: &Row| !is_beyond(row) && millis(row.extent()) > scale.high;
    let beyond = (shown.iter().any(is_beyond), shown.iter().any(is_line_alone));
    text.push_str(match beyond {
        (false, false) => "",
        (true, false) => " Triangle: the row continues beyond the axis.",
        (false, true) => " Triangle: the row's thin line continues beyond the axis.",
        (true, true) => " Triangle: the row or its thin line continues beyond the axis.",
    });
    if shown
        .iter()
        .any(|row| row.segments.iter().any(|(_, delay)| *delay < 0))
    {
        text.push_str(" A delay below 0 (the error bound allows it) has no bar.");
    }
    if rows.partly_seen > 0 {
        let partly_seen = plural(rows.partly_seen, "packet");
        text.push_str(&format!(
            " {partly_seen} were not seen at every point and are excluded."
        ));
    }
    if shown.iter().any(|row| row.bound > 0) {
        text.push_str(
            " The thin line at a row's end is as long as the bounds of its segments allow.",
        );
    }
    text + drawing.bound_text()
}

struct Panel<'a> {
    drawing: &'a HopsDrawing<'a>,
    start: i64,
    shown: &'a [Row],
    scale: Scale,
}

impl Panel<'_> {
    fn draw_panel(&self, frame: Rect) -> Vec<Mark> {
        let area = Rect::new(
            frame.x + LEFT,
            frame.y + 14.0,
            frame.width - LEFT - RIGHT,
            height(self.shown),
        );
        let unit = TimeUnit::up_to(self.scale.high);
        let plot = Plot {
            area,
            x: in_unit(self.scale, unit),
            y: Scale::linear(0.0, 1.0),
        };
        let mut marks = Vec::new();
        let column_title = |x: f64, anchor, text: &str| {
            let at = Point::new(x, frame.y + 10.0);
            Mark::Text(Text::new(at, anchor, Style::NOTE, text).coloured(Colour::FAINT_INK))
        };
        marks.push(column_title(frame.x + 82.0, Anchor::End, "at"));
        marks.push(column_title(frame.right(), Anchor::End, "in all"));
        plot.x_axis(
            &mut marks,
            &format!("time since the packet's first point, {}", unit.name()),
        );
        let mut y = area.y;
        for row in self.shown {
            let strip = Rect::new(frame.x, y, frame.width, ROW_HEIGHT);
            let (bars, end) = self.bars(row, y + ROW_HEIGHT / 2.0, &plot, unit);
            marks.extend(self.row_texts(row, strip, (end, area.right())));
            marks.push(plot.clip(bars));
            y += ROW_HEIGHT;
        }
        marks
    }

    /// Time, packet, direction and duration; for a lost packet, where it was lost.
    fn row_texts(&self, row: &Row, strip: Rect, (end, right): (f64, f64)) -> Vec<Mark> {
        let text_at = |x: f64, anchor, text: String| {
            let position = Point::new(x, strip.y + ROW_HEIGHT - 3.2);
            Text::new(position, anchor, Style::NOTE, text)
        };
        let seconds = millis(row.first_seen.saturating_sub(self.start)) / 1e3;
        let mut texts = vec![
            text_at(strip.x + 82.0, Anchor::End, format!("{seconds:.6} s")),
            text_at(
                strip.x + 90.0,
                Anchor::Start,
                row.protocol.name().to_owned(),
            ),
            text_at(
                strip.x + 128.0,
                Anchor::Middle,
                arrow(row.direction).to_owned(),
            ),
        ];
        let PacketEnd::Lost(segment) = row.end else {
            let total = neph_analysis::numbers::millis(millis(row.total));
            texts.push(text_at(strip.right(), Anchor::End, total));
            return texts.into_iter().map(Mark::Text).collect();
        };
        let room = right - end - 12.0;
        if room > 60.0 {
            let lost_text = |segment| {
                format!(
                    "lost, {}",
                    self.drawing.passage_name(row.direction, segment)
                )
            };
            let names: Vec<String> = (0..self.drawing.segment_count()).map(lost_text).collect();
            let name = fit_among(&names[segment], &names, Style::NOTE, room);
            let text = text_at(end + 11.0, Anchor::Start, name);
            texts.push(text.coloured(Colour::ALARM));
        }
        let text = text_at(strip.right(), Anchor::End, "lost".to_owned());
        texts.push(text.coloured(Colour::ALARM));
        texts.into_iter().map(Mark::Text).collect()
    }

    /// Its segments and how they end; and where they end.
    fn bars(&self, row: &Row, y: f64, plot: &Plot, unit: TimeUnit) -> (Vec<Mark>, f64) {
        let x = |nanos: i64| plot.x_px(millis(nanos) * unit.per_milli());
        let mut bars = Vec::new();
        let mut bar_end = 0_i64;
        for (segment, delay) in &row.segments {
            let until = bar_end.saturating_add((*delay).max(0));
            let width = x(until) - x(bar_end);
            let bar = Rect::new(x(bar_end), y - BAR_HEIGHT / 2.0, width, BAR_HEIGHT);
            bars.push(Mark::filled(bar, colours::segment_colour(*segment)));
            bar_end = until;
        }
        if let Some(round_trip) = row.round_trip.filter(|total| *total > bar_end) {
            let remainder = Rect::new(x(bar_end), y - 1.25, x(round_trip) - x(bar_end), 2.5);
            bars.push(Mark::filled(remainder, REMAINDER));
        }
        match row.end {
            PacketEnd::Lost(_) => {
                bars.extend(cross(Point::new(x(bar_end) + 4.0, y), Colour::ALARM));
            }
            PacketEnd::Arrived if row.bound > 0 => {
                let low = x(bar_end.saturating_sub(row.bound).max(0));
                bars.extend(whisker((low, x(bar_end.saturating_add(row.bound))), y));
            }
            PacketEnd::Arrived => {}
        }
        if millis(row.extent()) > self.scale.high {
            bars.push(beyond_marker(plot.area.right(), y));
        }
        (bars, x(bar_end))
    }
}

/// A thin line from the earliest to the latest end, with feet.
fn whisker((low, high): (f64, f64), y: f64) -> Vec<Mark> {
    let foot = |x: f64| Mark::line(Point::new(x, y - 2.0), Point::new(x, y + 2.0), BOUNDS);
    let along = Mark::line(Point::new(low, y), Point::new(high, y), BOUNDS);
    vec![along, foot(low), foot(high)]
}

/// A triangle at the right edge.
fn beyond_marker(right: f64, y: f64) -> Mark {
    let points = vec![
        Point::new(right - 7.0, y - 4.5),
        Point::new(right, y),
        Point::new(right - 7.0, y + 4.5),
    ];
    Mark::Area {
        points,
        fill: Fill::solid(Colour::INK),
    }
}
