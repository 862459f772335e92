//! The timetable as it was carried out: a panel for each block, a row for each site. Each experiment has
//! a bar from its start to its end. Incomplete ones are outlined.

use std::collections::BTreeMap;

use neph_analysis::{CampaignData, PlotSettings};
use neph_model::{Experiment, Measure, Scenario, Wall};

use super::Figure;
use super::legend::Swatch;
use super::sheet::{Note, Sheet, page_name, page_title};
use crate::axis::{Plot, Scale, Style};
use crate::palette;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, Weight, text_width};
use crate::shorten::shorten_among;

const KIND: &str = "timetable";
const PER_PAGE: usize = 6;
/// Later blocks are not drawn: they repeat the rounds of the first ones.
const MAX_BLOCKS: usize = 24;
const ROW_HEIGHT: f64 = 14.0;
/// Between a name and the axis.
const NAME_MARGIN: f64 = 10.0;
/// Maximum width of a name.
const MAX_NAME_WIDTH: f64 = 150.0;
/// What is measured, each with a colour.
const KINDS: [&str; 4] = [
    "messages",
    "requests and replies in turn",
    "throughput",
    "media",
];

/// An experiment as a bar.
struct Bar {
    /// The site that measures, and the endpoint.
    rows: [String; 2],
    kind_index: usize,
    from: Wall,
    to: Wall,
    is_incomplete: bool,
}

/// Nothing of a campaign that is measured from one site.
pub(super) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let blocks = blocks(data, settings);
    let sites = data.scenarios.iter().filter_map(Scenario::site);
    let mut sites: Vec<&str> = sites.collect();
    sites.sort_unstable();
    sites.dedup();
    if sites.len() < 2 || blocks.is_empty() {
        return Vec::new();
    }
    let drawn_blocks: Vec<_> = blocks.iter().take(MAX_BLOCKS).collect();
    let total = drawn_blocks.len().div_ceil(PER_PAGE);
    let pages = drawn_blocks.chunks(PER_PAGE).enumerate().map(|(page, page_blocks)| {
        let title = page_title("Actual timetable", page, total);
        let mut sheet = Sheet::new(title, "Each experiment at the site that measures and at its endpoint");
        let legend = KINDS.iter().enumerate();
        let legend = legend.filter(|(kind_index, _)| blocks.values().flatten().any(|bar| bar.kind_index == *kind_index));
        let mut entries: Vec<(Swatch, String)> = legend
            .map(|(kind_index, name)| (Swatch::Area(bar_fill(kind_index)), (*name).to_owned()))
            .collect();
        if blocks.values().flatten().any(|bar| bar.is_incomplete) {
            entries.push((Swatch::Outline(INCOMPLETE_STROKE), "not complete".to_owned()));
        }
        sheet.legend(&entries);
        let rows_of_blocks: Vec<Vec<String>> = page_blocks.iter().map(|(_, bars)| row_names(bars)).collect();
        let widths = rows_of_blocks.iter().flatten().map(|name| name_width(name));
        // All panels of a page have their axis at the same place.
        let left = widths.fold(0.0, f64::max).min(MAX_NAME_WIDTH) + NAME_MARGIN;
        for ((block, bars), names) in page_blocks.iter().zip(&rows_of_blocks) {
            let height = 22.0 + ROW_HEIGHT * count(names.len()) + Style::X_AXIS_HEIGHT + 20.0;
            let frame = sheet.take(height);
            sheet.draw(draw_panel(**block, bars, names, frame, left));
        }
        let more = match blocks.len().saturating_sub(MAX_BLOCKS) {
            0 => String::new(),
            more => format!(" {more} more blocks are not drawn."),
        };
        let caption = format!(
            "Time 0 is the start of the block's first experiment. Two bars in one row at the same time share \
             that site or endpoint.{more}"
        );
        sheet.finish(KIND, page_name(KIND, page, total), &[Note::plain(caption)])
    });
    pages.collect()
}

/// How experiments that are not complete are drawn.
const INCOMPLETE_STROKE: Stroke = Stroke::solid(Colour::ALARM, 1.0);

/// The area of a bar; two bars at the same time in one row show as a darker part.
fn bar_fill(kind_index: usize) -> Fill {
    Fill {
        colour: palette::line_colour(kind_index),
        opacity: 0.75,
    }
}

/// The bars of each block, counted from 1.
fn blocks(data: &CampaignData, settings: &PlotSettings) -> BTreeMap<u32, Vec<Bar>> {
    let mut bars: BTreeMap<u32, Vec<Bar>> = BTreeMap::new();
    let experiments_shown = data
        .shown(settings)
        .map(|experiment| &experiment.experiment);
    let left_out = data.left_out.iter();
    let left_out = left_out.filter(|experiment| settings.shows_block(experiment.block));
    for experiment in experiments_shown.chain(left_out) {
        let scenario = data
            .scenarios
            .iter()
            .find(|candidate| candidate.id == experiment.scenario);
        let bar = scenario.and_then(|scenario| bar(experiment, scenario));
        if let Some(bar) = bar {
            bars.entry(experiment.block + 1).or_default().push(bar);
        }
    }
    bars
}

fn bar(experiment: &Experiment, scenario: &Scenario) -> Option<Bar> {
    let kind_index = match scenario.measure() {
        Measure::Messages => 0,
        Measure::Transactions(_) => 1,
        Measure::Throughput(_) => 2,
        Measure::Media(_) => 3,
    };
    Some(Bar {
        rows: [scenario.site()?.to_owned(), scenario.endpoint.clone()],
        kind_index,
        from: experiment.started,
        to: experiment.ended?,
        is_incomplete: experiment.status != neph_model::ExperimentStatus::Complete,
    })
}

/// The rows: sites first, then endpoints.
fn row_names(bars: &[Bar]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row_kind in [0, 1] {
        let mut sorted_names: Vec<&String> = bars.iter().map(|bar| &bar.rows[row_kind]).collect();
        sorted_names.sort_unstable();
        sorted_names.dedup();
        let new_names = sorted_names
            .into_iter()
            .filter(|name| !names.contains(name));
        let new_names: Vec<String> = new_names.cloned().collect();
        names.extend(new_names);
    }
    names
}

#[expect(clippy::cast_precision_loss, reason = "a few rows")]
const fn count(rows: usize) -> f64 {
    rows as f64
}

fn draw_panel(block: u32, bars: &[Bar], names: &[String], frame: Rect, left: f64) -> Vec<Mark> {
    let block_start = bars.iter().map(|bar| bar.from.unix_nanos()).min();
    let block_start = block_start.unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "seconds of a block")]
    let seconds = |wall: Wall| (wall.unix_nanos() - block_start) as f64 / 1e9;
    let duration = bars.iter().map(|bar| seconds(bar.to)).fold(1e-3, f64::max);
    let area = Rect::new(
        frame.x + left,
        frame.y + 22.0,
        frame.width - left,
        ROW_HEIGHT * count(names.len()),
    );
    let plot = Plot {
        area,
        x: Scale::linear(0.0, duration),
        y: Scale::linear(0.0, 1.0),
    };
    let heading = Point::new(frame.x, frame.y + 12.0);
    let heading = Text::new(
        heading,
        Anchor::Start,
        Style::LABEL,
        format!("Block {block}"),
    );
    let mut marks = vec![Mark::Text(heading.semibold())];
    plot.x_axis(&mut marks, "seconds");
    for (row, name) in names.iter().enumerate() {
        let name = shorten_among(name, names, |short| name_width(short) <= MAX_NAME_WIDTH);
        let at = Point::new(area.x - 6.0, area.y + ROW_HEIGHT * (count(row) + 0.5) + 3.5);
        marks.push(Mark::Text(Text::new(at, Anchor::End, Style::TICK, name)));
    }
    for bar in bars {
        for name in &bar.rows {
            let Some(row) = names.iter().position(|name_of_row| name_of_row == name) else {
                continue;
            };
            let (left, right) = (plot.x_px(seconds(bar.from)), plot.x_px(seconds(bar.to)));
            let top = area.y + ROW_HEIGHT * count(row) + 2.0;
            let rect = Rect::new(left, top, (right - left).max(1.0), ROW_HEIGHT - 4.0);
            marks.push(Mark::Rect {
                rect,
                fill: (!bar.is_incomplete).then(|| bar_fill(bar.kind_index)),
                stroke: bar.is_incomplete.then_some(INCOMPLETE_STROKE),
            });
        }
    }
    marks
}

fn name_width(name: &str) -> f64 {
    text_width(name, Style::TICK, Weight::Regular)
}
