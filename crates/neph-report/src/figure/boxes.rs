//! Box plots from each point of view: within a panel one factor varies, between panels the others.

use super::Figure;
use super::boxplot::{self, BoxPosition};
use super::flags;
use super::grouped::{Panel, View, by_factor, scenarios};
use super::sheet::{Note, Sheet, page_name, page_title};
use crate::axis::{Plot, Scale, Style};
use crate::palette;
use crate::scene::{
    Anchor, Colour, Mark, Point, Rect, Stroke, Text, Weight, fit, fit_among, text_width,
};
use neph_analysis::latencies::Latencies;
use neph_analysis::latencies::removed_percentiles_note;
use neph_analysis::numbers::{TimeUnit, count, level, percent};
use neph_analysis::text::capital;
use neph_analysis::view::titles;
use neph_analysis::{CampaignData, Equalization, PlotSettings};

const ROW_HEIGHT: f64 = 21.0;
const TITLE_HEIGHT: f64 = 20.0;
const MAX_LABEL_WIDTH: f64 = 190.0;
const NUMBERS_WIDTH: f64 = 292.0;
/// Rows on one page, so that a page with its axis fits on A4.
const MAX_ROWS_PER_PAGE: usize = 36;

/// One figure for each factor that the plan varies.
pub(crate) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    by_factor(data, settings, |view| draw_view(data, settings, view))
}

/// One box with its label and numbers.
struct Row<'a> {
    latencies: &'a Latencies,
    scale: &'a Scale,
    scenario: usize,
    level: &'a str,
}

fn draw_view(data: &CampaignData, settings: &PlotSettings, view: &View) -> Vec<Figure> {
    let panels = &view.panels;
    let pages = paginate(panels);
    let total = pages.len();
    let max_level_width = view
        .levels
        .iter()
        .map(|level| text_width(level, Style::LABEL, Weight::Regular))
        .fold(0.0, f64::max);
    let label_width = (max_level_width + 26.0).min(MAX_LABEL_WIDTH);
    let painter = Painter {
        data,
        settings,
        levels: &view.levels,
        label_width,
    };
    let heading = format!("Latency by {}", view.factor.title());
    pages
        .into_iter()
        .enumerate()
        .map(|(page, panels)| {
            let name = page_name(&format!("boxes-by-{}", view.factor.name()), page, total);
            painter.page(page_title(&heading, page, total), name, panels)
        })
        .collect()
}

/// Whole panels onto pages of so many rows.
fn paginate(panels: &[Panel]) -> Vec<&[Panel]> {
    let mut pages = Vec::new();
    let (mut first_panel, mut rows) = (0, 0);
    for (index, panel) in panels.iter().enumerate() {
        let panel_rows = panel.latencies.len() + 1;
        if index > first_panel && rows + panel_rows > MAX_ROWS_PER_PAGE {
            pages.push(&panels[first_panel..index]);
            (first_panel, rows) = (index, 0);
        }
        rows += panel_rows;
    }
    if first_panel < panels.len() {
        pages.push(&panels[first_panel..]);
    }
    pages
}

struct Painter<'a> {
    data: &'a CampaignData,
    settings: &'a PlotSettings,
    /// The levels of all panels: the index of a level is the index of its colour.
    levels: &'a [String],
    /// How wide the column of labels is.
    label_width: f64,
}

impl Painter<'_> {
    fn page(&self, title: String, name: String, panels: &[Panel]) -> Figure {
        let subtitle = format!(
            "{}, all blocks together",
            capital(self.settings.basis.name())
        );
        let mut sheet = Sheet::new(title, &subtitle);
        let titles = titles(panels.iter().map(|panel| &panel.group));
        for (index, panel) in panels.iter().enumerate() {
            let is_last = index + 1 == panels.len();
            let is_separate = self.settings.equalization == Equalization::Separate;
            self.panel(&mut sheet, panel, &titles, is_last || is_separate);
        }
        let mut notes = vec![Note::plain(format!(
            "Box: first quartile, median and third quartile of the replies. Whiskers: {}. Dots: the values farthest from the box. On the right: the number of values outside the axis, and the median with messages without an answer included.{}",
            self.settings.whiskers_text(),
            removed_percentiles_note(self.settings)
        ))];
        notes.extend(flags::notes(self.data, scenarios(panels), self.settings));
        sheet.finish("boxes", name, &notes)
    }

    fn panel(&self, sheet: &mut Sheet, panel: &Panel, titles: &[String], has_axis: bool) {
        let head = sheet.take(TITLE_HEIGHT);
        let at = Point::new(head.x, head.bottom() - 5.0);
        let title = fit_among(&panel.group.title, titles, Style::TITLE, head.width);
        let text = Text::new(at, Anchor::Start, Style::TITLE, title).semibold();
        sheet.draw([Mark::Text(text)]);
        #[expect(clippy::cast_precision_loss, reason = "a few rows")]
        let height = panel.latencies.len() as f64 * ROW_HEIGHT;
        let frame = sheet.take(height);
        let Some(scale) = panel.scale else { return };
        let unit = TimeUnit::up_to(scale.high);
        let area = Rect::new(
            frame.x + self.label_width,
            frame.y,
            frame.width - self.label_width - NUMBERS_WIDTH,
            height,
        );
        let plot = Plot {
            area,
            x: in_unit(scale, unit),
            y: Scale::linear(0.0, 1.0),
        };
        let mut marks = Vec::new();
        if has_axis {
            plot.x_axis(&mut marks, &axis_title(self.settings, unit));
            sheet.take(Style::X_AXIS_HEIGHT);
        } else {
            grid(&plot, &mut marks);
            sheet.take(6.0);
        }
        let mut y = frame.y + ROW_HEIGHT / 2.0;
        for (latencies, (index, level)) in panel.latencies.iter().zip(&panel.group.members) {
            let row = Row {
                latencies,
                scale: &scale,
                scenario: *index,
                level,
            };
            let cell = Rect::new(frame.x, y, area.width, 0.0);
            self.row(&mut marks, &row, cell);
            y += ROW_HEIGHT;
        }
        sheet.draw(marks);
    }

    /// `cell` begins at the row's left end, on its middle line, and has the plot's width.
    fn row(&self, marks: &mut Vec<Mark>, row: &Row<'_>, cell: Rect) {
        let Row {
            latencies,
            scale,
            scenario,
            level,
        } = *row;
        let y = cell.y;
        let x = cell.x + self.label_width;
        let name = fit_among(level, self.levels, Style::LABEL, self.label_width - 24.0);
        let at = Point::new(x - 10.0, y + 4.0);
        let label = Text::new(at, Anchor::End, Style::LABEL, name);
        if flags::has_flag(self.data, scenario, self.settings) {
            let marker_position = Point::new(at.x - label.width() - 12.0, y + 4.0);
            marks.push(flags::marker(marker_position));
        }
        marks.push(Mark::Text(label));
        let level_index = self
            .levels
            .iter()
            .position(|other_level| other_level == level)
            .unwrap_or(0);
        let position = BoxPosition {
            low: Point::new(x, y),
            high: Point::new(x + cell.width, y),
            half_thickness: ROW_HEIGHT * 0.3,
        };
        let colour = palette::line_colour(level_index);
        marks.extend(boxplot::marks(
            latencies,
            scale,
            position,
            colour,
            self.settings,
        ));
        let right = x + cell.width + 10.0;
        let (numbers, not_drawn) = row_numbers(latencies, scale);
        let text_position = Point::new(right, y + 4.0);
        let text = Text::new(text_position, Anchor::Start, Style::TICK, numbers);
        let note_x = right + text.width() + 6.0;
        marks.push(Mark::Text(text));
        let max_width = NUMBERS_WIDTH - (note_x - right) - 10.0;
        let not_drawn = fit(&not_drawn, Style::NOTE, max_width);
        let note = Text::new(
            Point::new(note_x, y + 4.0),
            Anchor::Start,
            Style::NOTE,
            not_drawn,
        );
        marks.push(Mark::Text(note.coloured(Colour::ALARM)));
    }
}

/// Median and n; then what the plot does not show: messages without an answer, and values outside
/// the axis.
fn row_numbers(latencies: &Latencies, scale: &Scale) -> (String, String) {
    let median = latencies.quantile(0.5);
    let median = median.map_or_else(
        || "–".to_owned(),
        |median| level(median, latencies.without_reply()),
    );
    let mut not_drawn = Vec::new();
    if latencies.errors > 0 {
        not_drawn.push(format!("{} errors", count(latencies.errors)));
    }
    if latencies.lost > 0 {
        not_drawn.push(format!("{} lost", percent(latencies.loss())));
    }
    if latencies.failed > 0 {
        not_drawn.push(format!("{} not sent", count(latencies.failed)));
    }
    let outside = boxplot::outside(latencies.sorted().values(), scale);
    not_drawn.extend(Some(outside).filter(|text| !text.is_empty()));
    let numbers = format!("{median}, n {}", count(latencies.count()));
    (numbers, not_drawn.join("; "))
}

/// The same scale, in another unit.
pub(crate) fn in_unit(scale: Scale, unit: TimeUnit) -> Scale {
    Scale {
        low: scale.low * unit.per_milli(),
        high: scale.high * unit.per_milli(),
        ..scale
    }
}

/// `response time, ms`.
pub(crate) fn axis_title(settings: &PlotSettings, unit: TimeUnit) -> String {
    format!("{}, {}", settings.basis.name(), unit.name())
}

/// Vertical grid lines and the base line, without labels.
fn grid(plot: &Plot, marks: &mut Vec<Mark>) {
    for tick in plot.x_ticks() {
        let x = plot.x_px(tick.value);
        let stroke = Stroke::solid(Colour::GRID, 1.0);
        let (top, base) = (plot.area.y, plot.area.bottom());
        marks.push(Mark::line(Point::new(x, top), Point::new(x, base), stroke));
    }
    plot.base_line(marks);
}
