//! Cumulative distributions from each point of view.

use super::Figure;
use super::boxes::{axis_title, in_unit};
use super::boxplot::outside;
use super::flags;
use super::grouped::{Panel, View, by_factor, scenarios};
use super::legend::Swatch;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::strip::{PanelState, TitleNotes, title_marks};
use crate::axis::{Plot, Scale, Style};
use crate::palette;
use crate::scene::{Mark, Point, Rect};
use neph_analysis::latencies::Latencies;
use neph_analysis::latencies::removed_percentiles_note;
use neph_analysis::numbers::TimeUnit;
use neph_analysis::settings::Tail;
use neph_analysis::text::capital;
use neph_analysis::view::titles;
use neph_analysis::{CampaignData, PlotSettings};
use neph_stats::ecdf;

/// More would not be seen in a panel; the slowest hundred messages are always among them.
const MAX_POINTS: usize = 260;
const LEFT: f64 = 50.0;

/// One figure for each factor that the plan varies.
pub(crate) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    by_factor(data, settings, |view| draw_view(data, settings, view))
}

/// The labels that stand in one figure: of the lines, and above the panels.
#[derive(Clone, Copy)]
struct FigureLabels<'a> {
    levels: &'a [String],
    titles: &'a [String],
}

fn draw_view(data: &CampaignData, settings: &PlotSettings, view: &View) -> Vec<Figure> {
    let panels = &view.panels;
    let levels = &view.levels;
    let (columns, height, per_page) = if panels.len() == 1 {
        (1, 260.0, 1)
    } else {
        (2, 150.0, 10)
    };
    let total = panels.len().div_ceil(per_page);
    let titles = titles(panels.iter().map(|panel| &panel.group));
    let legend: Vec<(Swatch, String)> = levels
        .iter()
        .enumerate()
        .map(|(index, level)| (Swatch::Line(palette::line(index)), level.clone()))
        .collect();
    let labels = FigureLabels {
        levels,
        titles: &titles,
    };
    let heading = format!("Distribution of latency by {}", view.factor.title());
    panels
        .chunks(per_page)
        .enumerate()
        .map(|(page, panels)| {
            let subtitle = format!("{}, all blocks together", capital(settings.basis.name()));
            let mut sheet = Sheet::new(page_title(&heading, page, total), &subtitle);
            sheet.legend(&legend);
            for row in panels.chunks(if columns == 1 { 1 } else { 2 }) {
                let frames = sheet.columns(columns, height + Style::X_AXIS_HEIGHT + 30.0);
                for (panel, frame) in row.iter().zip(frames) {
                    sheet.draw(draw_panel(data, settings, panel, labels, frame));
                }
            }
            let mut notes = vec![Note::plain(caption(settings))];
            notes.extend(flags::notes(data, scenarios(panels), settings));
            let name = page_name(&format!("cdf-by-{}", view.factor.name()), page, total);
            sheet.finish("cdf", name, &notes)
        })
        .collect()
}

fn caption(settings: &PlotSettings) -> String {
    let explanation = match settings.tail {
        Tail::Linear => {
            "Each line shows the share of messages that had a reply within the time on the axis."
        }
        Tail::Logarithmic => {
            "Each line shows the share of messages that took longer than the time on the axis. Each step of the vertical axis is ten times rarer."
        }
    };
    format!(
        "{explanation} Messages that were lost or could not be sent count as slower than every reply. What lies outside the axis is counted above the panel.{}",
        removed_percentiles_note(settings)
    )
}

fn draw_panel(
    data: &CampaignData,
    settings: &PlotSettings,
    panel: &Panel,
    labels: FigureLabels<'_>,
    frame: Rect,
) -> Vec<Mark> {
    let Some(scale) = panel.scale else {
        return Vec::new();
    };
    let unit = TimeUnit::up_to(scale.high);
    let area = Rect::new(
        frame.x + LEFT,
        frame.y + 24.0,
        frame.width - LEFT - 8.0,
        frame.height - Style::X_AXIS_HEIGHT - 30.0,
    );
    let (y, y_title) = match settings.tail {
        Tail::Linear => (Scale::linear(0.0, 1.0), "share of messages"),
        Tail::Logarithmic => (
            Scale::logarithmic(min_share(&panel.latencies), 1.0),
            "share that took longer",
        ),
    };
    let plot = Plot {
        area,
        x: in_unit(scale, unit),
        y,
    };
    let mut marks = title_marks(
        &panel.group.title,
        labels.titles,
        PanelState::of_group(data, settings, &panel.group),
        frame,
        &TitleNotes::outside(outside_text(panel, &scale)),
    );
    plot.x_axis(&mut marks, &axis_title(settings, unit));
    plot.y_axis(&mut marks, y_title);
    let mut lines = Vec::new();
    for (latencies, (_, level)) in panel.latencies.iter().zip(&panel.group.members) {
        let index = labels
            .levels
            .iter()
            .position(|other_level| other_level == level)
            .unwrap_or(0);
        let points = steps(latencies, &plot, unit, settings.tail);
        if points.len() > 1 {
            lines.push(Mark::Line {
                points,
                stroke: palette::line(index),
            });
        }
    }
    marks.push(plot.clip(lines));
    marks
}

fn outside_text(panel: &Panel, scale: &Scale) -> String {
    let mut values: Vec<f64> = panel
        .latencies
        .iter()
        .flat_map(|latencies| latencies.sorted().values())
        .copied()
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    outside(&values, scale)
}

/// The rarest share that a logarithmic axis shows: one message of the largest scenario.
#[expect(clippy::cast_precision_loss, reason = "counts in memory")]
fn min_share(lines: &[Latencies]) -> f64 {
    let max = lines.iter().map(Latencies::count).max().unwrap_or(1);
    (0.7 / max.max(10) as f64).min(0.05)
}

/// The distribution as steps. On a logarithmic axis the last step, to a share of nothing, leaves
/// through the bottom.
fn steps(latencies: &Latencies, plot: &Plot, unit: TimeUnit, tail: Tail) -> Vec<Point> {
    let Ok(points) = ecdf(latencies.sorted(), latencies.unanswered(), MAX_POINTS) else {
        return Vec::new();
    };
    let y = |share: f64| match tail {
        Tail::Linear => plot.y_px(share),
        Tail::Logarithmic => plot.y_px((1.0 - share).max(plot.y.low * 0.5)),
    };
    let mut previous_share = 0.0;
    let mut path = Vec::with_capacity(points.len() * 2);
    for point in points {
        let x = plot.x_px(point.value * unit.per_milli());
        path.push(Point::new(x, y(previous_share)));
        path.push(Point::new(x, y(point.share)));
        previous_share = point.share;
    }
    // What was never answered never arrives: the line goes on to the right below the top.
    path.push(Point::new(plot.area.right(), y(previous_share)));
    path
}
