//! Spectra of all pairs side by side, on scales that they share.

use neph_flows::Spectrum;

use super::cells::{CoarseCells, cell_size, offset};
use super::clock::Clock;
use super::colours::CountScale;
use super::scale_bar::scale_bar;
use super::selected_pairs::SelectedPairs;
use super::titles::{labels, title};
use crate::axis::{Plot, Scale, Style};
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::figure::{Figure, flags};
use crate::scene::{Anchor, Colour, Mark, Point, Rect, Text, Weight, text_width};
use neph_analysis::fleet::{Pair, flows_and_pairs_text, pairs};
use neph_analysis::numbers::{millis, percent};
use neph_analysis::text::plural;
use neph_analysis::{CampaignData, Equalization, PlotSettings};

/// Panels of a page.
const PER_PAGE: usize = 16;
/// The most pairs that are drawn.
const MAX_PAIRS: usize = 48;
const LEFT: f64 = 44.0;
/// The height of a panel's title, and of its numbers if these have a line of their own.
const TITLE_HEIGHT: f64 = 20.0;
const NUMBERS_HEIGHT: f64 = 12.0;

/// The size of a panel's name.
const NAME_SIZE: f64 = 10.5;

/// A pair's spectrum relative to its lowest base latency.
struct Panel<'a> {
    pair: &'a Pair<'a>,
    spectrum: &'a Spectrum,
    /// The lowest base latency, milliseconds.
    lowest: f64,
    /// The highest over the lowest, less one, in percent.
    highest: f64,
}

/// Pages of small panels; nothing for a single pair, which has a page of its own.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let mut pairs = pairs(data, settings);
    let subject = flows_and_pairs_text(data, &pairs);
    pairs.retain(|pair| panel(pair).is_some());
    let selection = SelectedPairs::of(pairs, (PER_PAGE, MAX_PAIRS));
    let pairs = &selection.pairs;
    let panels: Vec<Panel<'_>> = pairs.iter().filter_map(panel).collect();
    if panels.len() < 2 {
        return Vec::new();
    }
    let common_high = panels.iter().map(|panel| panel.highest).fold(0.0, f64::max);
    let total = panels.len().div_ceil(PER_PAGE);
    let labels = labels(pairs);
    let pages = panels
        .chunks(PER_PAGE)
        .enumerate()
        .map(|(page, page_panels)| {
            let title = page_title("Base latency of all flows, pair by pair", page, total);
            let subtitle = format!("{subject}; percent above each pair's lowest base latency");
            let mut sheet = Sheet::new(title, &subtitle);
            grid(&mut sheet, page_panels, &labels, common_high, settings);
            let mut notes = vec![Note::plain(caption(settings) + &selection.sentence())];
            notes.extend(flags::notes(data, scenarios(page_panels), settings));
            sheet.finish(
                "flow-spectra",
                page_name("flow-spectra", page, total),
                &notes,
            )
        });
    pages.collect()
}

fn scenarios(panels: &[Panel<'_>]) -> Vec<usize> {
    let mut scenarios: Vec<usize> = panels.iter().map(|panel| panel.pair.scenario).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    scenarios
}

fn caption(settings: &PlotSettings) -> String {
    let scales = match settings.equalization {
        Equalization::Shared => "All panels share their scales, so that heights can be compared",
        Equalization::Separate => "Each panel has its own vertical scale",
    };
    format!(
        "Each panel is a pair in one experiment. The vertical axis is the base latency, in percent above the lowest of the pair. The colour is the number of flows. The title has the lowest base latency, and how far above it the highest class is. A high panel with stripes has paths that differ much. Where colours change from left to right, flows moved. {scales}."
    )
}

fn panel<'a>(pair: &'a Pair<'a>) -> Option<Panel<'a>> {
    let spectrum = pair.spectrum()?;
    let rows = || spectrum.bins.iter().map(|bin| bin.row);
    let base = |row: u32| (spectrum.lowest + offset(row, spectrum.row)).millis_f64();
    let lowest = base(rows().min()?);
    let half = spectrum.row.millis_f64() / 2.0;
    let lowest = pair
        .pair_view
        .inflation
        .map_or(lowest + half, |inflation| inflation.lowest.millis_f64());
    let highest = base(rows().max()?) + 2.0 * half;
    (lowest > 0.0).then_some(Panel {
        pair,
        spectrum,
        lowest,
        highest: ((highest / lowest - 1.0) * 100.0).max(0.1),
    })
}

fn grid(
    sheet: &mut Sheet,
    panels: &[Panel<'_>],
    labels: &[String],
    common_high: f64,
    settings: &PlotSettings,
) {
    let (columns, height) = match panels.len() {
        2..=4 => (2, 170.0),
        5..=9 => (3, 130.0),
        _ => (4, 110.0),
    };
    let width = {
        let inner = sheet.inner().width;
        let columns = f64::from(columns);
        (inner - 18.0 * (columns - 1.0)) / columns - LEFT
    };
    let plots: Vec<(Plot, Clock, CoarseCells)> = panels
        .iter()
        .map(|panel| coarse_cells(panel, common_high, settings, (width, height)))
        .collect();
    let max = plots.iter().map(|(_, _, coarse)| coarse.max_flows()).max();
    let counts = CountScale::up_to(max.unwrap_or(1));
    scale_bar(sheet, &counts);
    let rows = panels
        .chunks(columns as usize)
        .zip(plots.chunks(columns as usize));
    let has_one_line_titles = panels
        .iter()
        .all(|panel| fits_one_line(panel, width + LEFT));
    let title_height = if has_one_line_titles {
        TITLE_HEIGHT
    } else {
        TITLE_HEIGHT + NUMBERS_HEIGHT
    };
    for (panels, plots) in rows {
        let frames = sheet.columns(columns, height + title_height + 4.0 + Style::X_AXIS_HEIGHT);
        for ((panel, (plot, clock, coarse)), frame) in panels.iter().zip(plots).zip(frames) {
            let area = Rect::new(frame.x + LEFT, frame.y + title_height, width, height);
            let plot = Plot { area, ..*plot };
            sheet.draw(heading(panel, labels, frame, has_one_line_titles));
            sheet.draw(draw_panel(panel, &plot, clock, coarse, &counts));
        }
    }
}

/// Whether a panel's numbers are on the line of its name.
fn fits_one_line(panel: &Panel<'_>, room: f64) -> bool {
    let name = text_width(&panel.pair.label, NAME_SIZE, Weight::SemiBold);
    name + text_width(&numbers(panel), Style::NOTE, Weight::Regular) + 8.0 <= room
}

/// Its flows, the lowest base latency, and how far the highest lies above it.
fn numbers(panel: &Panel<'_>) -> String {
    let inflation = panel.pair.pair_view.inflation;
    let max = inflation.map_or(0.0, |inflation| inflation.ratio - 1.0);
    let flows = usize::try_from(panel.pair.pair_view.flows).unwrap_or(usize::MAX);
    let (flows, lowest) = (plural(flows, "flow"), millis(panel.lowest));
    format!("{flows}, {lowest}, +{}", percent(max))
}

/// The name, and the numbers at the right of it or below.
fn heading(
    panel: &Panel<'_>,
    labels: &[String],
    frame: Rect,
    has_one_line_titles: bool,
) -> [Mark; 2] {
    let top = frame.y + 12.0;
    let at = if has_one_line_titles {
        Point::new(frame.right(), top)
    } else {
        Point::new(frame.x, top + NUMBERS_HEIGHT)
    };
    let anchor = if has_one_line_titles {
        Anchor::End
    } else {
        Anchor::Start
    };
    let numbers = Text::new(at, anchor, Style::NOTE, numbers(panel)).coloured(Colour::FAINT_INK);
    let name = title(
        panel.pair,
        labels,
        Point::new(frame.x, top),
        (NAME_SIZE, frame.width),
    );
    [numbers, name].map(Mark::Text)
}

fn coarse_cells(
    panel: &Panel<'_>,
    common_high: f64,
    settings: &PlotSettings,
    (width, height): (f64, f64),
) -> (Plot, Clock, CoarseCells) {
    let clock = Clock::of(panel.pair);
    let high = match settings.equalization {
        Equalization::Shared => common_high,
        Equalization::Separate => panel.highest,
    };
    let plot = Plot {
        area: Rect::new(0.0, 0.0, width, height),
        x: clock.scale,
        y: Scale::linear(-0.05 * high, high * 1.05),
    };
    let spectrum = panel.spectrum;
    let step = clock.at(spectrum.from + spectrum.step) - clock.at(spectrum.from);
    let row = spectrum.row.millis_f64() / panel.lowest * 100.0;
    let coarse = CoarseCells::of(spectrum, cell_size(&plot, step, row));
    (plot, clock, coarse)
}

fn draw_panel(
    panel: &Panel<'_>,
    plot: &Plot,
    clock: &Clock,
    coarse: &CoarseCells,
    counts: &CountScale,
) -> Vec<Mark> {
    let mut marks = Vec::new();
    plot.y_axis(&mut marks, "above lowest, %");
    plot.x_axis(&mut marks, &format!("time, {}", clock.unit_name));
    let spectrum = panel.spectrum;
    let x = |column: u32| plot.x_px(clock.at(spectrum.from + offset(column, spectrum.step)));
    let y = |row: u32| {
        let base = spectrum.lowest + offset(row, spectrum.row);
        plot.y_px((base.millis_f64() / panel.lowest - 1.0) * 100.0)
    };
    marks.push(plot.clip(coarse.marks(counts, &x, &y)));
    marks
}
