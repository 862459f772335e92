//! Persistence: how long flows stay on a class, all changes and each direction alone.

use neph_flows::Curve;

use super::clock::exact_text;
use super::curves::{
    CurveLine, ShownShare, any_ended, band_text, colours_text, draw as draw_curves, legend, lines,
    missing_lines_text, scale,
};
use super::percent_axis::LEFT;
use crate::axis::Style;
use crate::figure::sheet::{Note, Sheet};
use crate::figure::{Figure, flags};
use crate::scene::{Anchor, Mark, Point, Rect, Text};
use neph_analysis::fleet::{Pair, pairs, scenarios};
use neph_analysis::{CampaignData, PlotSettings};

const HEIGHT: f64 = 220.0;

/// The two directions with their words.
type DirectionCurve = (&'static str, for<'a> fn(&'a Pair<'a>) -> Option<&'a Curve>);
const DIRECTION_CURVES: [DirectionCurve; 2] = [
    ("Forward path only", |pair| {
        pair.pair_view.persistence_forward.as_ref()
    }),
    ("Reverse path only", |pair| {
        pair.pair_view.persistence_reverse.as_ref()
    }),
];

/// One figure over all pairs; the directions below, where any pair distinguishes them.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let pairs = pairs(data, settings);
    let all_lines = lines(&pairs, |pair| pair.pair_view.persistence.as_ref());
    let Some(first) = pairs.first().filter(|_| any_ended(&all_lines)) else {
        return Vec::new();
    };
    let soon = first.view.settings.soon;
    let subtitle =
        "Share of flows that are still in a latency class, by the time since they came into it";
    let mut sheet = Sheet::new("Persistence of flows".to_owned(), subtitle);
    sheet.legend(&legend(&all_lines, soon, "left"));
    let x = scale(&all_lines, soon);
    let frame = sheet.take(HEIGHT + 24.0 + Style::X_AXIS_HEIGHT);
    let area = Rect::new(
        frame.x + LEFT,
        frame.y + 18.0,
        frame.width - LEFT - 10.0,
        HEIGHT,
    );
    sheet.draw(draw_curves(&all_lines, ShownShare::Lasting, area, x, soon));
    let lines_by_direction: Vec<(&str, Vec<CurveLine>)> = DIRECTION_CURVES
        .iter()
        .map(|(name, curve_of)| {
            (
                *name,
                with_same_colours(lines(&pairs, *curve_of), &all_lines),
            )
        })
        .collect();
    let has_directions = lines_by_direction
        .iter()
        .any(|(_, lines)| !lines.is_empty());
    if has_directions {
        let frames = sheet.columns(2, 160.0 + 44.0 + Style::X_AXIS_HEIGHT);
        for ((name, lines), frame) in lines_by_direction.iter().zip(frames) {
            sheet.draw(panel(name, lines, frame, soon));
        }
    }
    let mut text = caption(soon);
    text.push_str(&band_text(&all_lines));
    text.push_str(colours_text(&all_lines));
    text.push_str(&missing_lines_text(&pairs, &all_lines, "changes of class"));
    if has_directions {
        text.push_str(DIRECTIONS_NOTE);
    }
    let mut notes = vec![Note::plain(text)];
    notes.extend(flags::notes(data, scenarios(&pairs), settings));
    vec![sheet.finish("flow-persistence", "flow-persistence".to_owned(), &notes)]
}

fn caption(soon: neph_model::Span) -> String {
    format!(
        "A line that falls early is a pair whose flows soon leave their class. A line that stays high means that a source port keeps its path. n is the number of arrivals. Flows that had not left at the end are censored (Kaplan-Meier). Dashed vertical line: {}.",
        exact_text(soon)
    )
}

const DIRECTIONS_NOTE: &str = " The lower panels count changes of one direction only, where the peer's timestamps show it; a change of both directions counts in neither. Each has its own time scale.";

/// The same pair has the same colour in every panel.
fn with_same_colours(mut lines: Vec<CurveLine>, reference_lines: &[CurveLine]) -> Vec<CurveLine> {
    for line in &mut lines {
        let reference_line = reference_lines
            .iter()
            .find(|reference_line| reference_line.label == line.label);
        if let Some(reference_line) = reference_line {
            (line.stroke, line.has_own_colour) =
                (reference_line.stroke, reference_line.has_own_colour);
        }
    }
    lines.sort_by_key(|line| line.has_own_colour);
    lines
}

fn panel(name: &str, lines: &[CurveLine], frame: Rect, soon: neph_model::Span) -> Vec<Mark> {
    let n: u64 = lines.iter().map(|line| line.curve.n).sum();
    let n = neph_analysis::numbers::count(usize::try_from(n).unwrap_or(usize::MAX));
    let at = Point::new(frame.x, frame.y + 16.0);
    let title = Text::new(at, Anchor::Start, Style::TITLE, name).semibold();
    let at = Point::new(frame.right(), frame.y + 16.0);
    let text = if lines.is_empty() {
        "no change of this direction is known".to_owned()
    } else if any_ended(lines) {
        format!("n {n}")
    } else {
        format!("n {n}, none moved again")
    };
    let count_text = Text::new(at, Anchor::End, Style::NOTE, text);
    let mut marks = vec![Mark::Text(title), Mark::Text(count_text)];
    if !lines.is_empty() {
        let area = Rect::new(
            frame.x + LEFT,
            frame.y + 38.0,
            frame.width - LEFT - 8.0,
            160.0,
        );
        marks.extend(draw_curves(
            lines,
            ShownShare::Lasting,
            area,
            scale(lines, soon),
            soon,
        ));
    }
    marks
}
