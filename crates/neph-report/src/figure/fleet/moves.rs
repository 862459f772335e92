//! Moves away from each class against its share of the flows: do low paths shed theirs sooner?

use super::selected_pairs::SelectedPairs;
use super::titles::{labels, title};
use crate::axis::{Plot, Scale, Style};
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::figure::{Figure, flags};
use crate::palette;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text};
use neph_analysis::fleet::{Pair, pairs};
use neph_analysis::numbers::millis;
use neph_analysis::text::{plural, to_f64};
use neph_analysis::{CampaignData, Equalization, PlotSettings};
use neph_flows::ClassMoves;

const ROW_HEIGHT: f64 = 19.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 56.0;
/// Classes of a pair that are drawn; the rarest are left out and counted.
const MAX_CLASSES: usize = 12;
const PER_PAGE: usize = 12;
/// The most pairs that are drawn.
const MAX_PAIRS: usize = 24;

/// Pages of panels, one for each pair of which any flow moved.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let mut pairs = pairs(data, settings);
    pairs.retain(|pair| drawn_classes(pair).len() > 1);
    let selection = SelectedPairs::of(pairs, (PER_PAGE, MAX_PAIRS));
    let pairs = &selection.pairs;
    let common_max = pairs.iter().map(max_share).fold(0.0, f64::max);
    let total = pairs.len().div_ceil(PER_PAGE);
    let labels = labels(pairs);
    let pages = pairs.chunks(PER_PAGE).enumerate().map(|(page, on_page)| {
        let title = page_title("Path changes against share of time, by class", page, total);
        let subtitle = "For each class: its share of the time of all flows, and its share of all path changes that leave a class";
        let mut sheet = Sheet::new(title, subtitle);
        sheet.legend(&[
            (Swatch::Dot(SHARE_COLOUR), "share of flows' time".to_owned()),
            (Swatch::Dot(MOVED_COLOUR), "share of moves away, 95 % confidence interval".to_owned()),
        ]);
        let columns = if on_page.len() == 1 { 1 } else { 2 };
        for row in on_page.chunks(columns) {
            let class_counts = row.iter().map(|pair| drawn_classes(pair).len());
            let height = to_f64(class_counts.max().unwrap_or(1)) * ROW_HEIGHT + 30.0 + Style::X_AXIS_HEIGHT;
            let frames =
                if columns == 1 { sheet.columns(1, height) } else { sheet.columns(2, height) };
            for (pair, frame) in row.iter().zip(frames) {
                let max = match settings.equalization {
                    Equalization::Shared => common_max,
                    Equalization::Separate => max_share(pair),
                };
                sheet.draw(draw_panel(pair, &labels, max, frame));
            }
        }
        let mut scenarios: Vec<usize> = on_page.iter().map(|pair| pair.scenario).collect();
        scenarios.dedup();
        let mut notes = vec![Note::plain(CAPTION.to_owned() + &selection.sentence())];
        notes.extend(flags::notes(data, scenarios, settings));
        sheet.finish("flow-moved", page_name("flow-moved", page, total), &notes)
    });
    pages.collect()
}

const CAPTION: &str = "Lowest latency at the top. If flows moved independently of their path, both dots would coincide. A blue dot right of the grey one: flows leave this class more often than its share. If the blue line reaches the grey dot, the difference is not significant. For the interval, moves in the same bin are one event. Right: ratio to its share. The study Path Persistence in the Cloud (2020) found that the number of moved flows is inversely proportional to the latency, as with constrained shortest-path routing.";
const SHARE_COLOUR: Colour = Colour::hex(0x0093_9ba8);
const MOVED_COLOUR: Colour = Colour::hex(0x0000_5a94);

/// The classes with moves or a share of the time, lowest latency first.
fn drawn_classes<'a>(pair: &Pair<'a>) -> Vec<&'a ClassMoves> {
    let mut moves: Vec<&ClassMoves> = pair
        .pair_view
        .moved
        .iter()
        .filter(|class_moves| {
            let has_hits = |share: neph_flows::Share| share.hits > 0 || class_moves.share > 0.0;
            class_moves.moved.is_some_and(has_hits)
        })
        .collect();
    moves.sort_by(|a, b| b.share.total_cmp(&a.share));
    moves.truncate(MAX_CLASSES);
    moves.sort_by_key(|class_moves| class_moves.class);
    moves
}

/// The greatest share of a pair, or end of an interval.
fn max_share(pair: &Pair<'_>) -> f64 {
    let ends = drawn_classes(pair).into_iter().map(|class_moves| {
        let moved = class_moves.moved.map_or(0.0, |share| share.high);
        moved.max(class_moves.share)
    });
    ends.fold(0.05, f64::max)
}

/// A pair's classes on a scale that ends at the share `max`.
fn draw_panel(pair: &Pair<'_>, labels: &[String], max: f64, frame: Rect) -> Vec<Mark> {
    let drawn_classes = drawn_classes(pair);
    let plot = Plot {
        area: Rect::new(
            frame.x + LEFT,
            frame.y + 24.0,
            frame.width - LEFT - RIGHT,
            to_f64(drawn_classes.len()) * ROW_HEIGHT,
        ),
        x: Scale::linear(0.0, (max * 105.0).min(102.0)),
        y: Scale::linear(0.0, 1.0),
    };
    let mut marks = heading(pair, labels, frame);
    plot.x_axis(&mut marks, "share, %");
    for (index, class_moves) in drawn_classes.iter().enumerate() {
        let y = plot.area.y + (to_f64(index) + 0.5) * ROW_HEIGHT;
        marks.extend(class_marks(pair, class_moves, &plot, y));
    }
    let left_out = pair
        .pair_view
        .moved
        .len()
        .saturating_sub(drawn_classes.len());
    if left_out > 0 {
        let at = Point::new(frame.right(), plot.area.bottom() + 30.0);
        let text = format!("{} not shown", plural(left_out, "rarer one"));
        let text = Text::new(at, Anchor::End, Style::NOTE, text);
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    marks
}

fn heading(pair: &Pair<'_>, labels: &[String], frame: Rect) -> Vec<Mark> {
    let moves = pair
        .pair_view
        .moved
        .iter()
        .find_map(|class_moves| class_moves.moved)
        .map_or(0, |share| share.n);
    let moves = neph_analysis::numbers::count(usize::try_from(moves).unwrap_or(usize::MAX));
    let y = frame.y + 13.0;
    let at = Point::new(frame.right(), y);
    let moves_text = Text::new(at, Anchor::End, Style::NOTE, format!("{moves} moves"));
    let room = frame.width - moves_text.width() - 12.0;
    let name = title(pair, labels, Point::new(frame.x, y), (Style::TITLE, room));
    vec![
        Mark::Text(name),
        Mark::Text(moves_text.coloured(Colour::FAINT_INK)),
    ]
}

fn class_marks(pair: &Pair<'_>, class_moves: &ClassMoves, plot: &Plot, y: f64) -> Vec<Mark> {
    let base = pair.classes().get(usize::from(class_moves.class));
    let base = base.map_or_else(String::new, |class| millis(class.base.millis_f64()));
    let at = Point::new(plot.area.x - 7.0, y + 3.6);
    let mut marks = vec![Mark::Text(Text::new(at, Anchor::End, Style::TICK, base))];
    let Some(share) = class_moves.moved else {
        return marks;
    };
    let x = |share: f64| plot.x_px(share * 100.0);
    let line = |from: f64, to: f64, stroke| {
        Mark::line(Point::new(x(from), y), Point::new(x(to), y), stroke)
    };
    let dot = |at: f64, radius: f64, colour: Colour| Mark::Disc {
        centre: Point::new(x(at), y),
        radius,
        fill: Fill::solid(colour),
    };
    marks.push(line(
        class_moves.share,
        share.share,
        Stroke::solid(Colour::GRID, 5.0),
    ));
    marks.push(line(
        share.low,
        share.high,
        Stroke::solid(palette::line_colour(0), 1.4),
    ));
    // Both dots stay visible where they overlap.
    marks.push(dot(class_moves.share, 4.6, SHARE_COLOUR));
    marks.push(dot(share.share, 3.0, MOVED_COLOUR));
    if class_moves.share > 0.0 {
        let at = Point::new(plot.area.right() + 8.0, y + 3.6);
        let times = format!("× {:.2}", share.share / class_moves.share);
        marks.push(Mark::Text(Text::new(at, Anchor::Start, Style::TICK, times)));
    }
    marks
}
