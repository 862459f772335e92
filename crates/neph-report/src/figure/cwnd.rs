//! The congestion window when each message's last byte left.

use super::Figure;
use super::flags;
use super::legend::Swatch;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::strip::{TitleNotes, panel_title, segments, time_axis};
use crate::axis::{Plot, Scale, Style};
use crate::palette::{self, RETRANSMISSION, SPURIOUS};
use crate::scene::{Mark, Point, Rect, Stroke};
use neph_analysis::data::FlowData;
use neph_analysis::{CampaignData, Equalization, PlotSettings};

const LEFT: f64 = 52.0;
const HEIGHT: f64 = 84.0;
const PER_PAGE: usize = 14;
/// A window that fills less than this part of the shared scale is drawn on its own.
const MAX_SCALE_RATIO: u32 = 20;

/// Nothing if no message reports its window.
pub(crate) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let highest = |scenario: usize| data.congestion_windows(scenario, settings).max();
    let windows: Vec<(usize, u32)> = data
        .measured(settings)
        .into_iter()
        .filter_map(|scenario| Some((scenario, highest(scenario)?)))
        .collect();
    let max = windows.iter().map(|(_, high)| *high).max().unwrap_or(0);
    let columns = if windows.len() == 1 { 1 } else { 2 };
    let total = windows.len().div_ceil(PER_PAGE);
    windows
        .chunks(PER_PAGE)
        .enumerate()
        .map(|(page, panels)| {
            let title = page_title("Congestion window", page, total);
            let subtitle = "Congestion window in segments, when the last byte of a message was sent";
            let mut sheet = Sheet::new(title, subtitle);
            let mut entries = vec![(Swatch::Line(line_of(0)), "congestion window".to_owned())];
            let has_retransmission = |(scenario, _): &(usize, u32)| {
                let mut flows = data.main_flows(*scenario, settings);
                flows.any(|flow| !flow.retransmissions().is_empty())
            };
            if panels.iter().any(has_retransmission) {
                entries.push((Swatch::Tick(RETRANSMISSION), "retransmission (at the bottom)".into()));
            }
            let has_spurious = |(scenario, _): &(usize, u32)| {
                let mut flows = data.main_flows(*scenario, settings);
                flows.any(|flow| !flow.spurious_retransmissions().is_empty())
            };
            if panels.iter().any(has_spurious) {
                entries.push((Swatch::Tick(SPURIOUS), "spurious retransmission (no loss)".into()));
            }
            sheet.legend(&entries);
            for row in panels.chunks(if columns == 1 { 1 } else { 2 }) {
                let frames = sheet.columns(columns, HEIGHT + Style::TICK_LABELS_HEIGHT + 28.0);
                for ((scenario, high), frame) in row.iter().zip(frames) {
                    sheet.draw(draw_panel(data, settings, *scenario, axis_end(*high, max, settings), frame));
                }
            }
            let mut notes = vec![Note::plain("A line breaks where a new connection begins. neph does not read the window between messages.")];
            notes.extend(flags::notes(data, panels.iter().map(|(s, _)| *s), settings));
            sheet.finish("cwnd", page_name("cwnd", page, total), &notes)
        })
        .collect()
}

/// The end of a panel's axis in segments.
#[derive(Clone, Copy)]
enum AxisEnd {
    /// As the settings have it for all panels.
    Usual(u32),
    /// Its own, because the shared one would leave a flat line at 0.
    Own(u32),
}

fn axis_end(high: u32, max: u32, settings: &PlotSettings) -> AxisEnd {
    match settings.equalization {
        Equalization::Separate => AxisEnd::Usual(high),
        Equalization::Shared if high < max / MAX_SCALE_RATIO => AxisEnd::Own(high),
        Equalization::Shared => AxisEnd::Usual(max),
    }
}

fn line_of(connection: u32) -> Stroke {
    Stroke::solid(
        palette::line_colour(if connection.is_multiple_of(2) { 0 } else { 2 }),
        1.3,
    )
}

fn draw_panel(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    axis_end: AxisEnd,
    frame: Rect,
) -> Vec<Mark> {
    let (high, scale_note) = match axis_end {
        AxisEnd::Usual(high) => (high, ""),
        AxisEnd::Own(high) => (high, "own scale"),
    };
    let title_notes = TitleNotes {
        plain: scale_note.to_owned(),
        outside: String::new(),
    };
    let area = Rect::new(frame.x + LEFT, frame.y + 22.0, frame.width - LEFT, HEIGHT);
    let plot = Plot {
        area,
        x: Scale::linear(0.0, 1.0),
        y: Scale::linear(0.0, f64::from(high).max(1.0) * 1.06),
    };
    let mut marks = panel_title(data, settings, scenario, frame, &title_notes);
    plot.y_axis(&mut marks, "segments");
    let segments = segments(data.experiments_of(scenario, settings), area);
    time_axis(&mut marks, &segments, area, settings);
    let mut inside = Vec::new();
    for segment in &segments {
        let Some(flow) = segment.experiment.main() else {
            continue;
        };
        inside.extend(steps(flow, &plot, &|nanos| segment.x_px(nanos)));
        for (moments, colour, height) in [
            (flow.spurious_retransmissions(), SPURIOUS, 5.0),
            (flow.retransmissions(), RETRANSMISSION, 9.0),
        ] {
            for (at, _) in moments {
                let x = segment.x_px(at.nanos());
                let foot = Point::new(x, area.bottom());
                let head = Point::new(x, area.bottom() - height);
                inside.push(Mark::line(foot, head, Stroke::solid(colour, 1.0)));
            }
        }
    }
    marks.push(plot.clip(inside));
    marks
}

/// One stepped line per connection. Only changes are drawn, so that long runs stay small.
fn steps(flow: &FlowData, plot: &Plot, x_px: &dyn Fn(i64) -> f64) -> Vec<Mark> {
    let mut lines: Vec<(u32, Vec<Point>)> = Vec::new();
    for exchange in &flow.exchanges {
        let Some(cwnd) = exchange.cwnd else { continue };
        let new_point = Point::new(x_px(exchange.intended.nanos()), plot.y_px(f64::from(cwnd)));
        match lines.last_mut() {
            Some((connection, points)) if *connection == exchange.connection => {
                extend(points, new_point);
            }
            _ => lines.push((exchange.connection, vec![new_point])),
        }
    }
    lines
        .into_iter()
        .map(|(connection, mut points)| {
            if let [only] = points.as_slice() {
                points.push(Point::new(only.x + 2.0, only.y));
            }
            Mark::Line {
                points,
                stroke: line_of(connection),
            }
        })
        .collect()
}

/// Goes level to the new place, then up or down. A level stretch keeps only its two ends; of
/// several changes within a third of a pixel the extremes stay, because each was a corner.
fn extend(points: &mut Vec<Point>, new_point: Point) {
    let is_level = |a: &Point, b: &Point| (a.y - b.y).abs() < 0.05;
    if let [.., second_last, last] = points.as_slice()
        && is_level(second_last, last)
        && is_level(last, &new_point)
    {
        points.pop();
        points.push(new_point);
        return;
    }
    let last = points[points.len() - 1];
    if !is_level(&last, &new_point) {
        points.push(Point::new(new_point.x, last.y));
    }
    points.push(new_point);
}
