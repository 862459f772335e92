//! Box plots block by block: one panel per scenario, its blocks from left to right.

use super::Figure;
use super::boxes::{axis_title, in_unit};
use super::boxplot::{self, BoxPosition};
use super::flags;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::strip::{TitleNotes, panel_title};
use crate::axis::{Plot, Scale, Spread, Style, group_scales};
use crate::palette;
use crate::scene::{Anchor, Colour, Mark, Point, Rect, Text, Weight, text_width};
use neph_analysis::clock_time::ClockTimes;
use neph_analysis::latencies::Latencies;
use neph_analysis::latencies::removed_percentiles_note;
use neph_analysis::numbers::TimeUnit;
use neph_analysis::text::capital;
use neph_analysis::{CampaignData, Equalization, PlotSettings};
use neph_model::Wall;

const HEIGHT: f64 = 108.0;
const PER_PAGE: usize = 10;
const LEFT: f64 = 52.0;
/// The row of times below the numbers of the blocks.
const TIMES_HEIGHT: f64 = 12.0;

/// One scenario's blocks.
struct Panel {
    scenario: usize,
    blocks: Vec<Block>,
    scale: Option<Scale>,
}

/// One block of a scenario.
struct Block {
    /// Its number, from 1.
    number: u32,
    started: Wall,
    latencies: Latencies,
}

/// Nothing if no scenario has two blocks.
pub(crate) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let panels = panels(data, settings);
    if panels.iter().all(|panel| panel.blocks.len() < 2) {
        return Vec::new();
    }
    let total = panels.len().div_ceil(PER_PAGE);
    panels
        .chunks(PER_PAGE)
        .enumerate()
        .map(|(page, panels)| {
            let title = page_title("Latency, block by block", page, total);
            let subtitle = format!("{}, one box per block", capital(settings.basis.name()));
            let mut sheet = Sheet::new(title, &subtitle);
            for row in panels.chunks(2) {
                let columns = sheet.columns(2, HEIGHT + Style::X_AXIS_HEIGHT + TIMES_HEIGHT + 26.0);
                for (panel, frame) in row.iter().zip(columns) {
                    sheet.draw(draw_panel(data, settings, panel, frame));
                }
            }
            let mut notes = vec![Note::plain(format!(
                "Box: first quartile, median and third quartile of the replies. Whiskers: {}. {} Values outside the axis are counted above the panel. Below each box: the block's number and when the experiment started ({}).{}",
                settings.whiskers_text(),
                scales(settings),
                settings.utc_offset,
                removed_percentiles_note(settings)
            ))];
            let scenarios = panels.iter().map(|panel| panel.scenario);
            notes.extend(flags::notes(data, scenarios, settings));
            sheet.finish("per-block", page_name("per-block", page, total), &notes)
        })
        .collect()
}

fn panels(data: &CampaignData, settings: &PlotSettings) -> Vec<Panel> {
    let by_scenario: Vec<(usize, Vec<Block>)> = data
        .scenarios_with_main_flow(settings)
        .into_iter()
        .map(|scenario| {
            let blocks = data.experiments_of(scenario, settings).map(|experiment| {
                let latencies = Latencies::of(experiment.main(), settings.basis);
                Block {
                    number: experiment.block(),
                    started: experiment.experiment.started,
                    latencies: latencies.trimmed(settings.percentiles_to_remove),
                }
            });
            (scenario, blocks.collect())
        })
        .collect();
    let spreads = |blocks: &Vec<Block>| -> Vec<Spread> {
        let spreads = blocks
            .iter()
            .filter_map(|block| Spread::of_latencies(&block.latencies));
        spreads.collect()
    };
    let groups: Vec<Vec<Spread>> = by_scenario
        .iter()
        .map(|(_, blocks)| spreads(blocks))
        .collect();
    let scales = group_scales(&groups, settings);
    by_scenario
        .into_iter()
        .zip(scales)
        .map(|((scenario, blocks), scale)| Panel {
            scenario,
            blocks,
            scale,
        })
        .collect()
}

fn draw_panel(
    data: &CampaignData,
    settings: &PlotSettings,
    panel: &Panel,
    frame: Rect,
) -> Vec<Mark> {
    let Some(scale) = panel.scale else {
        return Vec::new();
    };
    let unit = TimeUnit::up_to(scale.high);
    let area = Rect::new(frame.x + LEFT, frame.y + 22.0, frame.width - LEFT, HEIGHT);
    let plot = Plot {
        area,
        x: Scale::linear(0.0, 1.0),
        y: in_unit(scale, unit),
    };
    let title_notes = TitleNotes::outside(outside_text(panel, &scale));
    let mut marks = panel_title(data, settings, panel.scenario, frame, &title_notes);
    plot.y_axis(&mut marks, &axis_title(settings, unit));
    plot.base_line(&mut marks);
    #[expect(clippy::cast_precision_loss, reason = "a campaign has few blocks")]
    let slot = area.width / panel.blocks.len().max(1) as f64;
    let started = panel.blocks.iter().map(|block| block.started);
    let times = ClockTimes::over(started, settings.utc_offset);
    let labels = panel.blocks.iter();
    let labels: Vec<[String; 2]> = labels
        .map(|block| [block.number.to_string(), times.label(block.started)])
        .collect();
    let stride = label_stride(&labels, slot);
    let mut x = area.x + slot / 2.0;
    for (index, (block, label)) in panel.blocks.iter().zip(&labels).enumerate() {
        let position = BoxPosition {
            low: Point::new(x, area.bottom()),
            high: Point::new(x, area.y),
            half_thickness: (slot * 0.32).min(14.0),
        };
        marks.extend(boxplot::marks(
            &block.latencies,
            &scale,
            position,
            palette::line_colour(0),
            settings,
        ));
        if index.is_multiple_of(stride) {
            for (text, below) in label.iter().zip([14.0, 14.0 + TIMES_HEIGHT]) {
                let at = Point::new(x, area.bottom() + below);
                let text = Text::new(at, Anchor::Middle, Style::TICK, text.clone());
                marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
            }
        }
        x += slot;
    }
    let middle = Point::new(
        area.x + area.width / 2.0,
        area.bottom() + 28.0 + TIMES_HEIGHT,
    );
    marks.push(Mark::Text(Text::new(
        middle,
        Anchor::Middle,
        Style::LABEL,
        format!("block, experiment started at ({})", times.zone()),
    )));
    marks
}

/// What lies outside of the scale, over all blocks.
fn outside_text(panel: &Panel, scale: &Scale) -> String {
    let blocks = panel.blocks.iter();
    let mut values: Vec<f64> = blocks
        .flat_map(|block| block.latencies.sorted().values())
        .copied()
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    boxplot::outside(&values, scale)
}

/// Whose scale a panel has.
pub(super) fn scales(settings: &PlotSettings) -> &'static str {
    match settings.equalization {
        Equalization::Shared => "All panels share their scale.",
        Equalization::Separate => "Each panel has its own scale.",
    }
}

/// Every how many-th block has room for its number and time.
fn label_stride(labels: &[[String; 2]], slot: f64) -> usize {
    let widest = labels
        .iter()
        .flatten()
        .map(|text| text_width(text, Style::TICK, Weight::Regular))
        .fold(0.0, f64::max);
    [1, 2, 5, 10, 20, 50, 100]
        .into_iter()
        .find(|stride| slot * f64::from(*stride) >= widest + 6.0)
        .and_then(|stride| usize::try_from(stride).ok())
        .unwrap_or(200)
}
