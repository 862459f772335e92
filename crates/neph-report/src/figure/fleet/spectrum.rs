//! The spectrum: how many flows had which base latency when, with the classes at its right edge.

use neph_flows::Spectrum;

use super::cells::{CoarseCells, cell_size, offset};
use super::clock::{Clock, exact_text};
use super::colours::{CONGESTION, CountScale, class_colour};
use super::labels::{LINE_HEIGHT, Label, place_labels};
use super::periods::merged_bars;
use super::scale_bar::scale_bar;
use super::selected_pairs::SelectedPairs;
use super::shares::shares;
use crate::axis::{Plot, Scale, Style};
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::figure::{Figure, flags};
use crate::scene::{Anchor, Colour, Mark, Point, Rect, Stroke, Text, fit};
use neph_analysis::fleet::{Pair, pairs};
use neph_analysis::numbers::{TimeUnit, millis, percent};
use neph_analysis::text::to_f64;
use neph_analysis::{CampaignData, PlotSettings};

const LEFT: f64 = 54.0;
const RIGHT: f64 = 150.0;
const HEIGHT: f64 = 270.0;
/// Shares of the classes over time, below the spectrum.
const SHARES_HEIGHT: f64 = 54.0;
/// Path changes over time, below these.
const STRIP_HEIGHT: f64 = 42.0;
/// The most pages, and so pairs.
const MAX_PAGES: usize = 16;

/// A page for each pair in which something happens; of many, for those that stand out most.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let mut pairs = pairs(data, settings);
    pairs.retain(|pair| pair.spectrum().is_some());
    let selection = SelectedPairs::of(pairs, (1, MAX_PAGES));
    let total = selection.pairs.len();
    let pages = selection
        .pairs
        .iter()
        .enumerate()
        .filter_map(|(page, pair)| {
            let spectrum = pair.spectrum()?;
            let title = page_title("Base latency of all flows over time", page, total);
            let mut sheet = Sheet::new(title, &format!("{}: {}", pair.label, subtitle_of(pair)));
            draw_page(&mut sheet, pair, spectrum);
            let mut notes = vec![Note::plain(caption(pair, &selection))];
            notes.extend(flags::notes(data, [pair.scenario], settings));
            let name = page_name("flow-spectrum", page, total);
            Some(sheet.finish("flow-spectrum", name, &notes))
        });
    pages.collect()
}

fn subtitle_of(pair: &Pair<'_>) -> String {
    let classes = match pair.classes().len() {
        1 => "1 latency class".to_owned(),
        several => format!("{several} latency classes"),
    };
    let number =
        |count: u64| neph_analysis::numbers::count(usize::try_from(count).unwrap_or(usize::MAX));
    let (flows, changes) = (number(pair.pair_view.flows), number(pair.pair_view.changes));
    format!("{flows} flows, {classes}, {changes} path changes")
}

fn caption(pair: &Pair<'_>, shown: &SelectedPairs<'_>) -> String {
    let bin = exact_text(pair.view.bin());
    let mut text = format!(
        "Each column is a time, each row a base latency (RTT without congestion). The colour is the number of flows. A horizontal band is a latency class, which is probably a path. Right of it: its base latency and its share of the time of all flows. Where one band fades while another darkens, flows moved. Below: the share of flows in each class, the lowest latency at the bottom; then path changes in each {bin}."
    );
    if !pair.pair_view.congested.is_empty() {
        text.push_str(
            " An orange bar above is a queue that all flows share: paths are not evaluated in it.",
        );
    }
    text.push_str(&shown.sentence());
    text
}

fn draw_page(sheet: &mut Sheet, pair: &Pair<'_>, spectrum: &Spectrum) {
    let clock = Clock::of(pair);
    let (range, outside_text) = row_range(spectrum);
    let unit = TimeUnit::up_to(range.high);
    let y_scale = Scale::linear(range.low * unit.per_milli(), range.high * unit.per_milli());
    let width = sheet.inner().width - LEFT - RIGHT;
    let unplaced_plot = Plot {
        area: Rect::new(0.0, 0.0, width, HEIGHT),
        x: clock.scale,
        y: y_scale,
    };
    let step = clock.at(spectrum.from + spectrum.step) - clock.at(spectrum.from);
    let row = spectrum.row.millis_f64() * unit.per_milli();
    let coarse = CoarseCells::of(spectrum, cell_size(&unplaced_plot, step, row));
    let counts = CountScale::up_to(coarse.max_flows());
    scale_bar(sheet, &counts);
    let frame = sheet.take(HEIGHT + SHARES_HEIGHT + STRIP_HEIGHT + 34.0 + Style::X_AXIS_HEIGHT);
    let area = Rect::new(frame.x + LEFT, frame.y + 10.0, width, HEIGHT);
    let plot = Plot {
        area,
        ..unplaced_plot
    };
    let mut marks = Vec::new();
    plot.y_axis(&mut marks, &format!("base latency, {}", unit.name()));
    plot.base_line(&mut marks);
    let x = |column: u32| plot.x_px(clock.at(spectrum.from + offset(column, spectrum.step)));
    let y = |row: u32| {
        let base = spectrum.lowest + offset(row, spectrum.row);
        plot.y_px(base.millis_f64() * unit.per_milli())
    };
    marks.push(plot.clip(coarse.marks(&counts, &x, &y)));
    marks.extend(congestion(pair, &plot, &clock));
    if !outside_text.is_empty() {
        let at = Point::new(area.right() + 4.0, area.y - 2.0);
        let text = Text::new(at, Anchor::Start, Style::NOTE, outside_text).coloured(Colour::ALARM);
        marks.push(Mark::Text(text));
    }
    marks.extend(class_labels(pair, &plot, unit));
    let band = Rect::new(area.x, area.bottom() + 12.0, width, SHARES_HEIGHT);
    marks.extend(shares(pair, &clock, band));
    let strip = Rect::new(area.x, band.bottom() + 12.0, width, STRIP_HEIGHT);
    changes(&mut marks, pair, &clock, strip);
    sheet.draw(marks);
}

/// The rows that contain all but the rarest values, in milliseconds, and what lies outside.
/// One outlier must not compress the rest.
fn row_range(spectrum: &Spectrum) -> (Scale, String) {
    let mut rows: Vec<(u32, u64)> = spectrum
        .bins
        .iter()
        .map(|bin| (bin.row, u64::from(bin.flows)))
        .collect();
    rows.sort_unstable();
    let total: u64 = rows.iter().map(|(_, flows)| flows).sum();
    let row_at = |flow_index: u64| {
        let mut flows_so_far = 0;
        let row_entry = rows.iter().find(|(_, flows)| {
            flows_so_far += flows;
            flows_so_far > flow_index
        });
        row_entry.or_else(|| rows.last()).map_or(0, |(row, _)| *row)
    };
    let (first, last) = (row_at(0), row_at(total.saturating_sub(1)));
    let (low, high) = (row_at(total / 1000), row_at(total - total / 1000 - 1));
    let reach = (high - low).max(4);
    let is_far = |end: u32, bulk: u32| end.abs_diff(bulk) > reach;
    let bottom = if is_far(first, low) { low } else { first };
    let top = if is_far(last, high) { high } else { last };
    let outside: u64 = rows
        .iter()
        .filter(|(row, _)| *row < bottom || *row > top)
        .map(|(_, flows)| flows)
        .sum();
    let base = |row: f64| spectrum.lowest.millis_f64() + row * spectrum.row.millis_f64();
    let margin = (f64::from(top - bottom) * 0.06).max(3.0);
    let scale = Scale::linear(
        base(f64::from(bottom) - margin).max(0.0),
        base(f64::from(top) + 1.0 + margin),
    );
    #[expect(clippy::cast_precision_loss, reason = "a share for the eye")]
    let outside_text = match outside {
        0 => String::new(),
        flows_outside => format!(
            "{} outside, to {}",
            percent(flows_outside as f64 / total as f64),
            {
                let farthest = if is_far(last, high) { last } else { first };
                millis(base(f64::from(farthest)))
            }
        ),
    };
    (scale, outside_text)
}

/// A bar along the top where a queue that all flows shared hid the base latencies.
fn congestion(pair: &Pair<'_>, plot: &Plot, clock: &Clock) -> Vec<Mark> {
    let queues = pair.pair_view.congested.iter().copied();
    let rects = merged_bars(queues, plot, clock, (plot.area.y - 5.0, 4.0));
    if rects.is_empty() {
        return Vec::new();
    }
    let fill = crate::scene::Fill::solid(CONGESTION);
    let (x, y) = (plot.area.right() + 4.0, plot.area.y + 1.0);
    let at = Point::new(x + 26.0, y);
    let text = Text::new(at, Anchor::Start, Style::NOTE, "queue of all flows");
    let chip = Rect::new(x + 14.0, y - 5.0, 8.0, 4.0);
    vec![
        Mark::filled(chip, CONGESTION),
        Mark::Cells { rects, fill },
        Mark::Text(text.coloured(Colour::FAINT_INK)),
    ]
}

/// The classes with the largest shares; as many as there is room for.
fn class_labels(pair: &Pair<'_>, plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a height in pixels"
    )]
    let room = (plot.area.height / LINE_HEIGHT) as usize - 1;
    let mut classes: Vec<_> = pair.classes().iter().enumerate().collect();
    let is_on_axis = |base: f64| (0.0..=1.0).contains(&plot.y.share(base * unit.per_milli()));
    classes.retain(|(_, class)| class.share > 0.0 && is_on_axis(class.base.millis_f64()));
    classes.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share));
    let more = classes.len().saturating_sub(room);
    let mut labels: Vec<Label> = classes
        .into_iter()
        .take(room)
        .map(|(index, class)| Label {
            colour: class_colour(index),
            y: plot.y_px(class.base.millis_f64() * unit.per_milli()),
            text: format!(
                "{} · {}",
                millis(class.base.millis_f64()),
                percent(class.share)
            ),
        })
        .collect();
    let ends = (plot.area.y + 14.0, plot.area.bottom() - 2.0);
    let mut marks = place_labels(&mut labels, plot.area.right(), ends);
    if more > 0 {
        let at = Point::new(plot.area.right() + 19.0, plot.area.bottom() + 14.0);
        let text = fit(&format!("and {more} rarer ones"), Style::NOTE, RIGHT - 19.0);
        marks.push(Mark::Text(Text::new(at, Anchor::Start, Style::NOTE, text)));
    }
    marks
}

/// Path changes over time as bars.
fn changes(marks: &mut Vec<Mark>, pair: &Pair<'_>, clock: &Clock, strip: Rect) {
    let bins = pair.latency_bins();
    let bin_width = clock.at(pair.view.from + pair.view.settings.bin) - clock.at(pair.view.from);
    let bin_pixels = bin_width / (clock.scale.high - clock.scale.low) * strip.width;
    // Bars that cannot be seen are joined, the greatest of them counts.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1, at most the number of bins"
    )]
    let bins_per_bar = (1.5 / bin_pixels.max(1e-6)).ceil().clamp(1.0, 1e6) as usize;
    let max = bins.iter().filter_map(|bin| bin.changes).max().unwrap_or(0);
    let plot = Plot {
        area: strip,
        x: clock.scale,
        y: Scale::linear(0.0, f64::from(max.max(1)) * 1.08),
    };
    plot.x_axis(marks, &clock.title(pair));
    for value in [0.0, f64::from(max)]
        .into_iter()
        .take(if max > 0 { 2 } else { 1 })
    {
        let at = Point::new(strip.x - 6.0, plot.y_px(value) + 3.4);
        let text = neph_analysis::numbers::count(if value > 0.0 { max as usize } else { 0 });
        let text = Text::new(at, Anchor::End, Style::TICK, text);
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    let grid = Stroke::solid(Colour::GRID, 1.0);
    let top = Point::new(strip.x, strip.y);
    marks.push(Mark::line(top, Point::new(strip.right(), strip.y), grid));
    let bars = bins.chunks(bins_per_bar).filter_map(|bar_bins| {
        let highest = bar_bins
            .iter()
            .filter_map(|bin| bin.changes)
            .max()
            .filter(|max| *max > 0)?;
        let left = plot.x_px(clock.at(bar_bins[0].from));
        let top = plot.y_px(f64::from(highest));
        let width = (bin_pixels * to_f64(bar_bins.len())).min(strip.right() - left);
        Some(Rect::new(left, top, width.max(0.5), strip.bottom() - top))
    });
    marks.push(Mark::Cells {
        rects: bars.collect(),
        fill: crate::scene::Fill::solid(Colour::FAINT_INK),
    });
    if max == 0 {
        let at = Point::new(strip.x + 8.0, strip.y + strip.height / 2.0 + 3.4);
        let text = Text::new(at, Anchor::Start, Style::NOTE, "none");
        marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
    }
    let bin = exact_text(pair.view.bin());
    let at = Point::new(strip.right() + 8.0, strip.y + 14.0);
    marks.push(Mark::Text(Text::new(
        at,
        Anchor::Start,
        Style::NOTE,
        "path changes",
    )));
    let at = Point::new(strip.right() + 8.0, strip.y + 26.0);
    let text = Text::new(at, Anchor::Start, Style::NOTE, format!("in every {bin}"));
    marks.push(Mark::Text(text));
}
