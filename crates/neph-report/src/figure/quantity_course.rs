//! Transfers block by block: a panel for each circuit and quantity with a line for each network, or for each
//! scenario where the plan names no circuits.

use neph_analysis::clock_time::ClockTimes;
use neph_analysis::{CampaignData, PlotSettings, circuits};
use neph_model::{Quantity, QuantityUnit, Wall};
use neph_stats::Level;

use super::legend::Swatch;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::{Figure, flags};
use crate::axis::{Plot, Scale, Style};
use crate::palette;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Text, Weight, text_width};

const KIND: &str = "transfers";
/// What has panels; the others are in the table.
const SHOWN_QUANTITIES: [Quantity; 5] = [
    Quantity::Transactions,
    Quantity::RttP50,
    Quantity::MediaRate,
    Quantity::UpGoodput,
    Quantity::DownGoodput,
];
const PER_PAGE: usize = 10;
const HEIGHT: f64 = 108.0;
const LEFT: f64 = 52.0;
const TIMES_HEIGHT: f64 = 12.0;

/// A line: what it is of, and its value in each block.
struct CourseLine {
    name: String,
    values: Vec<(u32, f64)>,
}

struct Panel {
    title: String,
    quantity: Quantity,
    /// Whether any experiment has a warning.
    is_flagged: bool,
    lines: Vec<CourseLine>,
}

/// Nothing where no transfer was measured in two blocks.
pub(super) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let blocks = blocks(data, settings);
    let panels = panels(data, settings);
    if blocks.len() < 2 || panels.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<String> = Vec::new();
    for line in panels.iter().flat_map(|panel| &panel.lines) {
        if !names.contains(&line.name) {
            names.push(line.name.clone());
        }
    }
    let total = panels.len().div_ceil(PER_PAGE);
    let pages = panels.chunks(PER_PAGE).enumerate().map(|(page, page_panels)| {
        let title = page_title("Transfers, block by block", page, total);
        let mut sheet = Sheet::new(title, "Result of each transfer, one point for each block");
        let legend = names.iter().enumerate();
        let legend = legend.map(|(index, name)| (Swatch::Line(palette::line(index)), name.clone()));
        sheet.legend(&legend.filter(|(_, name)| !name.is_empty()).collect::<Vec<_>>());
        for row in page_panels.chunks(2) {
            let columns = sheet.columns(2, HEIGHT + Style::X_AXIS_HEIGHT + TIMES_HEIGHT + 26.0);
            for (panel, frame) in row.iter().zip(columns) {
                sheet.draw(draw_panel(panel, &names, &blocks, settings, frame));
            }
        }
        let mut notes = vec![Note::plain(format!(
            "Each panel has its own scale, which begins at zero. Below: the block's number and when its \
             first experiment in this figure started ({}).",
            settings.utc_offset
        ))];
        notes.extend(flags::notes(data, data.transfers(settings), settings));
        sheet.finish(KIND, page_name(KIND, page, total), &notes)
    });
    pages.collect()
}

/// The blocks in which transfers were measured, from 1, each with its first start.
fn blocks(data: &CampaignData, settings: &PlotSettings) -> Vec<(u32, Wall)> {
    let mut starts: Vec<(u32, Wall)> = Vec::new();
    for experiment in data.shown(settings) {
        if experiment.experiment.quantities.is_some()
            && !starts.iter().any(|(block, _)| *block == experiment.block())
        {
            starts.push((experiment.block(), experiment.experiment.started));
        }
    }
    starts.sort_by_key(|(block, _)| *block);
    starts
}

fn panels(data: &CampaignData, settings: &PlotSettings) -> Vec<Panel> {
    let line = |name: &str, by_block: &std::collections::BTreeMap<u32, Level>| CourseLine {
        name: name.to_owned(),
        values: by_block
            .iter()
            .filter_map(|(block, level)| Some((*block, level.number()?)))
            .collect(),
    };
    let circuits = circuits::of(data, settings);
    if circuits.networks.is_empty() {
        let courses_shown = data.transfers(settings).into_iter().flat_map(|scenario| {
            let courses = data.courses(scenario, settings).into_iter();
            courses.map(move |course| (scenario, course))
        });
        let courses_shown =
            courses_shown.filter(|(_, course)| SHOWN_QUANTITIES.contains(&course.quantity));
        let panels = courses_shown.map(|(scenario, course)| Panel {
            title: format!(
                "{}: {}",
                data.label(scenario),
                course.quantity.properties().title
            ),
            quantity: course.quantity,
            is_flagged: course.is_flagged,
            lines: vec![line("", &course.by_block)],
        });
        return panels.collect();
    }
    let rows = circuits.rows.iter();
    let rows = rows.filter(|row| SHOWN_QUANTITIES.contains(&row.quantity));
    let panels = rows.map(|row| Panel {
        title: format!(
            "{} · {}: {}",
            row.circuit,
            row.measurement,
            row.quantity.properties().title
        ),
        quantity: row.quantity,
        is_flagged: row.cells.iter().flatten().any(|course| course.is_flagged),
        lines: row
            .cells
            .iter()
            .zip(&circuits.networks)
            .filter_map(|(cell, network)| Some(line(network, &cell.as_ref()?.by_block)))
            .collect(),
    });
    panels.collect()
}

/// A unit in which values up to `high` read well: its name, and how much of the quantity's unit makes one.
pub(super) fn unit(quantity: Quantity, high: f64) -> (&'static str, f64) {
    let first = |units: &[(&'static str, f64)]| {
        let fits = units.iter().find(|(_, per)| high >= *per);
        fits.or_else(|| units.last()).copied().unwrap_or(("", 1.0))
    };
    match quantity.properties().unit {
        QuantityUnit::BitsPerSecond => first(&[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)]),
        QuantityUnit::Nanoseconds => first(&[("s", 1e9), ("ms", 1e6), ("µs", 1e3)]),
        QuantityUnit::PerSecond => first(&[("million/s", 1e6), ("1000/s", 1e3), ("1/s", 1.0)]),
        QuantityUnit::Percent => ("%", 1.0),
        QuantityUnit::Count | QuantityUnit::Score => ("", 1.0),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a campaign has few blocks")]
const fn count(blocks: usize) -> f64 {
    blocks as f64
}

fn draw_panel(
    panel: &Panel,
    names: &[String],
    blocks: &[(u32, Wall)],
    settings: &PlotSettings,
    frame: Rect,
) -> Vec<Mark> {
    let values = panel.lines.iter().flat_map(|line| &line.values);
    let high = values.map(|(_, value)| *value).fold(0.0, f64::max);
    let (unit, per) = unit(panel.quantity, high);
    let area = Rect::new(frame.x + LEFT, frame.y + 22.0, frame.width - LEFT, HEIGHT);
    let plot = Plot {
        area,
        x: Scale::linear(0.0, count(blocks.len())),
        y: Scale::linear(0.0, (high / per).max(f64::MIN_POSITIVE) * 1.08),
    };
    let heading = Point::new(frame.x, frame.y + 12.0);
    let heading = Text::new(heading, Anchor::Start, Style::LABEL, panel.title.clone()).semibold();
    let mut marks = Vec::new();
    if panel.is_flagged {
        let foot = Point::new(
            heading.position.x + heading.width() + 6.0,
            heading.position.y,
        );
        marks.push(flags::marker(foot));
    }
    marks.push(Mark::Text(heading));
    plot.y_axis(&mut marks, unit);
    plot.base_line(&mut marks);
    for line in &panel.lines {
        let colour_index = names.iter().position(|name| *name == line.name);
        let colour_index = colour_index.unwrap_or(0);
        let points = line.values.iter().filter_map(|(block, value)| {
            let index = blocks.iter().position(|(number, _)| number == block)?;
            Some(Point::new(
                plot.x_px(count(index) + 0.5),
                plot.y_px(value / per),
            ))
        });
        let points: Vec<Point> = points.collect();
        marks.extend(points.iter().map(|centre| Mark::Disc {
            centre: *centre,
            radius: 2.2,
            fill: Fill::solid(palette::line_colour(colour_index)),
        }));
        if points.len() > 1 {
            marks.push(Mark::Line {
                points,
                stroke: palette::line(colour_index),
            });
        }
    }
    marks.extend(times(&plot, blocks, settings));
    marks
}

/// The numbers of the blocks, and when they started.
fn times(plot: &Plot, blocks: &[(u32, Wall)], settings: &PlotSettings) -> Vec<Mark> {
    let area = plot.area;
    let started = blocks.iter().map(|(_, started)| *started);
    let times = ClockTimes::over(started, settings.utc_offset);
    let slot = area.width / count(blocks.len().max(1));
    let labels = blocks.iter();
    let labels: Vec<[String; 2]> = labels
        .map(|(block, started)| [block.to_string(), times.label(*started)])
        .collect();
    let widest = labels
        .iter()
        .flatten()
        .map(|text| text_width(text, Style::TICK, Weight::Regular))
        .fold(0.0, f64::max);
    let fits = (1..=labels.len()).find(|stride| slot * count(*stride) >= widest + 6.0);
    let stride = fits.unwrap_or_else(|| labels.len().max(1));
    let mut marks = Vec::new();
    for (index, label) in labels.iter().enumerate().step_by(stride) {
        for (text, below) in label.iter().zip([14.0, 14.0 + TIMES_HEIGHT]) {
            let at = Point::new(plot.x_px(count(index) + 0.5), area.bottom() + below);
            let text = Text::new(at, Anchor::Middle, Style::TICK, text.clone());
            marks.push(Mark::Text(text.coloured(Colour::FAINT_INK)));
        }
    }
    let middle = Point::new(
        area.x + area.width / 2.0,
        area.bottom() + 28.0 + TIMES_HEIGHT,
    );
    let zone = format!("block, first experiment at ({})", times.zone());
    marks.push(Mark::Text(Text::new(
        middle,
        Anchor::Middle,
        Style::LABEL,
        zone,
    )));
    marks
}
