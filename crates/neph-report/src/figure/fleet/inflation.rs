//! Latency inflation: how much longer the slowest path is than the fastest, over pairs.
use super::colours::curve_stroke;
use super::percent_axis::{LEFT, percent_axis};
use crate::axis::{Plot, Scale, Style};
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet};
use crate::figure::{Figure, flags};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, fit_among};
use neph_analysis::fleet::PooledPair;
use neph_analysis::fleet::{Pair, pairs};
use neph_analysis::fleet::{SOURCE_INFLATION, SettingInflation};
use neph_analysis::text::{plural, to_f64};
use neph_analysis::{CampaignData, PlotSettings};

/// Up to so many pairs are named at the axis.
const MAX_NAMED_PAIRS: usize = 24;
/// What the third source found, in percent, and the share of pairs with no more.
const SOURCE_RESULT: (f64, f64) = (SOURCE_INFLATION * 100.0, 0.95);
/// What the pairs' names and numbers take at the left of the plot.
const NAME_WIDTH: f64 = 190.0;
/// One figure over all pairs; a single pair has no distribution.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let all_pairs = pairs(data, settings);
    let pooled = PooledPair::pool(&all_pairs);
    let inflations = SettingInflation::by_setting(&pooled);
    let pairs_text = match inflations.as_slice() {
        [] => return Vec::new(),
        [setting_inflation] => plural(setting_inflation.pairs.len(), "pair"),
        several => format!("Pairs measured in {} ways", several.len()),
    };
    let mut subtitle =
        format!("{pairs_text}: highest base latency of a class over the lowest, less one.");
    if let [only] = inflations.as_slice() {
        subtitle.push_str(&format!(" {}.", only.headline()));
    }
    let mut sheet = Sheet::new("Latency inflation".to_owned(), &subtitle);
    if inflations.len() > 1 {
        let entries = inflations
            .iter()
            .enumerate()
            .map(|(index, setting_inflation)| {
                let pairs = plural(setting_inflation.pairs.len(), "pair");
                let text = format!(
                    "{}: {pairs}; {}",
                    setting_inflation.setting(),
                    setting_inflation.headline()
                );
                (Swatch::Line(curve_stroke(index, inflations.len())), text)
            });
        sheet.legend(&entries.collect::<Vec<_>>());
    }
    draw_distributions(&mut sheet, &inflations);
    let blocks = pooled.iter().map(|pair| pair.blocks).max().unwrap_or(0);
    let mut scenarios: Vec<usize> = all_pairs.iter().map(|pair| pair.scenario).collect();
    scenarios.dedup();
    let mut notes = vec![Note::plain(caption(&inflations, blocks))];
    notes.extend(flags::notes(data, scenarios, settings));
    vec![sheet.finish("flow-inflation", "flow-inflation".to_owned(), &notes)]
}

fn caption(inflations: &[SettingInflation<'_>], blocks: usize) -> String {
    let mut text = "Each dot is a pair; its height is the share of pairs with at most that inflation. At 20 %, a flow on the slowest path of the pair takes 20 % longer than one on the fastest, independent of load.".to_owned();
    if inflations.iter().any(SettingInflation::has_tail) {
        text.push_str(" The cross is the result of the study Path Persistence in the Cloud (2020) between regions of AWS: more than 32 % for 5 % of 120 pairs.");
    }
    if blocks > 1 {
        text.push_str(&format!(
            " The value of a pair is the median over its blocks (at most {blocks})."
        ));
    }
    text
}

fn draw_distributions(sheet: &mut Sheet, inflations: &[SettingInflation<'_>]) {
    let most_pairs = inflations
        .iter()
        .map(|setting_inflation| setting_inflation.pairs.len())
        .max()
        .unwrap_or(0);
    let has_names = inflations.len() == 1 && most_pairs <= MAX_NAMED_PAIRS;
    let height = if has_names {
        (to_f64(most_pairs) * 15.0).max(90.0)
    } else {
        260.0
    };
    let (left, right) = if has_names {
        (NAME_WIDTH, 58.0)
    } else {
        (LEFT, 10.0)
    };
    let frame = sheet.take(height + 16.0 + Style::X_AXIS_HEIGHT);
    let shows_source = inflations.iter().any(SettingInflation::has_tail);
    let largest_by_setting = inflations
        .iter()
        .filter_map(|setting_inflation| setting_inflation.pairs.last());
    let min_axis_end = if shows_source { SOURCE_RESULT.0 } else { 0.5 };
    let max = largest_by_setting.fold(min_axis_end, |max, (inflation, _)| {
        max.max(inflation * 100.0)
    });
    let plot = Plot {
        area: Rect::new(
            frame.x + left,
            frame.y + 12.0,
            frame.width - left - right,
            height,
        ),
        x: Scale::linear(0.0, max * 1.06),
        y: Scale::linear(0.0, 1.0),
    };
    let mut marks = Vec::new();
    plot.x_axis(&mut marks, "inflation, %");
    if has_names {
        marks.extend(names(&inflations[0].pairs, &plot));
    } else {
        percent_axis(&mut marks, &plot, "share of pairs");
    }
    for (index, setting_inflation) in inflations.iter().enumerate() {
        let (width, radius) = if has_names { (1.0, 3.2) } else { (1.8, 1.8) };
        let stroke = Stroke {
            width,
            ..curve_stroke(index, inflations.len())
        };
        marks.extend(distribution(setting_inflation, &plot, stroke, radius));
    }
    if shows_source {
        let is_below = inflations.iter().all(|setting_inflation| {
            setting_inflation.pairs_above(SOURCE_INFLATION) * 20 <= setting_inflation.pairs.len()
        });
        marks.extend(source_cross(&plot, is_below));
    }
    sheet.draw(marks);
}

/// Steps with a dot at each pair.
fn distribution(
    setting_inflation: &SettingInflation<'_>,
    plot: &Plot,
    stroke: Stroke,
    radius: f64,
) -> Vec<Mark> {
    let mut points = vec![Point::new(plot.area.x, plot.area.bottom())];
    let mut dots = Vec::new();
    for (index, (inflation, _)) in setting_inflation.pairs.iter().enumerate() {
        let (x, last) = (plot.x_px(inflation * 100.0), points[points.len() - 1].y);
        let centre = Point::new(x, plot.y_px(setting_inflation.share(index)));
        points.extend([Point::new(x, last), centre]);
        dots.push(Mark::Disc {
            centre,
            radius,
            fill: Fill::solid(stroke.colour),
        });
    }
    points.push(Point::new(plot.area.right(), plot.y_px(1.0)));
    let mut marks = vec![Mark::Line { points, stroke }];
    marks.extend(dots);
    marks
}

/// The pairs' names at the left, each at its dot's height, and the shares at the right.
fn names(inflated_pairs: &[(f64, &Pair<'_>)], plot: &Plot) -> Vec<Mark> {
    let mut marks = Vec::new();
    let names: Vec<String> = inflated_pairs
        .iter()
        .map(|(_, pair)| pair.name.clone())
        .collect();
    for (index, (inflation, pair)) in inflated_pairs.iter().enumerate() {
        let y = plot.y_px(to_f64(index + 1) / to_f64(inflated_pairs.len()));
        let grid = Stroke::solid(Colour::GRID, 1.0);
        let (from, to) = (Point::new(plot.area.x, y), Point::new(plot.area.right(), y));
        marks.push(Mark::line(from, to, grid));
        let number = format!("{:.1} %", inflation * 100.0);
        let at = Point::new(plot.area.x - 6.0, y + 3.6);
        let number = Text::new(at, Anchor::End, Style::TICK, number).coloured(Colour::FAINT_INK);
        let name = fit_among(&pair.name, &names, Style::TICK, NAME_WIDTH - 50.0);
        let at = Point::new(plot.area.x - NAME_WIDTH, y + 3.6);
        marks.push(Mark::Text(Text::new(at, Anchor::Start, Style::TICK, name)));
        marks.push(Mark::Text(number));
    }
    for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = Point::new(plot.area.right() + 6.0, plot.y_px(quarter) + 3.6);
        let text = format!("{:.0} %", quarter * 100.0);
        let text = Text::new(at, Anchor::Start, Style::TICK, text);
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    let middle = plot.area.y + plot.area.height / 2.0;
    let at = Point::new(plot.area.right() + 54.0, middle);
    let title = Text::new(at, Anchor::Middle, Style::LABEL, "share of pairs");
    marks.push(Mark::Text(title.vertical()));
    marks
}

/// A small cross where the source's pairs were, and its words where no curve passes: right below it where
/// curves pass above it, else left above.
fn source_cross(plot: &Plot, is_below: bool) -> Vec<Mark> {
    let (percent, share) = SOURCE_RESULT;
    let (x, y) = (plot.x_px(percent), plot.y_px(share));
    let faint = Stroke::solid(Colour::FAINT_INK, 1.2);
    let arm = |dx: f64, dy: f64| {
        Mark::line(
            Point::new(x - dx, y - dy),
            Point::new(x + dx, y + dy),
            faint,
        )
    };
    let label = |dx: f64, dy: f64, anchor: Anchor| {
        let at = Point::new(x + dx, y + dy);
        Text::new(at, anchor, Style::NOTE, "the source, over AWS")
    };
    let mut text = if is_below {
        label(7.0, 15.0, Anchor::Start)
    } else {
        label(-8.0, 3.0, Anchor::End)
    };
    if is_below && text.position.x + text.width() > plot.area.right() {
        text = label(-7.0, 15.0, Anchor::End);
    }
    vec![
        arm(4.0, 4.0),
        arm(4.0, -4.0),
        Mark::Text(text.coloured(Colour::FAINT_INK)),
    ]
}
