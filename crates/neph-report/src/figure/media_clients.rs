//! Media streams by the number of clients: a panel for each quantity, a line for each network, or for each
//! endpoint where the plan names no networks.
//!
//! A dot is an experiment; a line joins the medians.

use std::collections::{BTreeMap, BTreeSet};

use neph_analysis::{CampaignData, PlotSettings};
use neph_model::{Measure, Quantity};

use super::legend::Swatch;
use super::quantity_course::unit;
use super::sheet::{Note, Sheet};
use super::{Figure, flags};
use crate::axis::{Plot, Scale, Style};
use crate::palette;
use crate::scene::{Anchor, Fill, Mark, Point, Rect, Text};

const KIND: &str = "media-clients";
const SHOWN_QUANTITIES: [Quantity; 6] = [
    Quantity::MediaRate,
    Quantity::MediaJitter,
    Quantity::MediaLoss,
    Quantity::MediaLate,
    Quantity::MediaStalls,
    Quantity::MediaQuality,
];
const HEIGHT: f64 = 132.0;
const LEFT: f64 = 52.0;
/// From the middle of a number of clients to the outermost line's dots, in its width.
const MAX_OFFSET: f64 = 0.16;

/// What was measured over one network: each number of clients with the values of its experiments.
type ValuesByClients = BTreeMap<u16, Vec<f64>>;

/// Nothing where streams were measured with one number of clients only.
pub(super) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let scenarios: Vec<(usize, u16)> = data
        .transfers(settings)
        .into_iter()
        .filter_map(|index| match data.scenarios[index].measure() {
            Measure::Media(media) => Some((index, media.clients)),
            _ => None,
        })
        .collect();
    let clients: BTreeSet<u16> = scenarios.iter().map(|(_, clients)| *clients).collect();
    if clients.len() < 2 {
        return Vec::new();
    }
    let clients: Vec<u16> = clients.into_iter().collect();
    let flagged_clients = scenarios.iter().copied();
    let flagged_clients =
        flagged_clients.filter(|(index, _)| flags::has_flag(data, *index, settings));
    let flagged_clients: BTreeSet<u16> = flagged_clients.map(|(_, clients)| clients).collect();
    let mut names: Vec<String> = Vec::new();
    for (index, _) in &scenarios {
        let name = name(data, *index);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let subtitle =
        "Each experiment, and the median of the experiments with the same number of clients";
    let mut sheet = Sheet::new("Media streams by clients".to_owned(), subtitle);
    let legend = names.iter().enumerate();
    let legend = legend.map(|(index, name)| (Swatch::Line(palette::line(index)), name.clone()));
    sheet.legend(&legend.collect::<Vec<_>>());
    for row in SHOWN_QUANTITIES.chunks(2) {
        let columns = sheet.columns(2, HEIGHT + Style::X_AXIS_HEIGHT + 30.0);
        for (quantity, frame) in row.iter().zip(columns) {
            let mut lines = vec![ValuesByClients::new(); names.len()];
            for (index, clients) in &scenarios {
                let name = name(data, *index);
                let line = names.iter().position(|known| *known == name).unwrap_or(0);
                let levels = data.by_block(*index, settings, *quantity);
                let values = lines[line].entry(*clients).or_default();
                values.extend(levels.values().filter_map(|level| level.number()));
            }
            let panel = Panel {
                quantity: *quantity,
                clients: &clients,
                flagged_clients: &flagged_clients,
                lines: &lines,
            };
            sheet.draw(panel.draw_panel(frame));
        }
    }
    let caption = "Each panel has its own scale, which begins at zero. The axis has the number of clients at each site.";
    let mut notes = vec![Note::plain(caption.to_owned())];
    let indices = scenarios.iter().map(|(index, _)| *index);
    notes.extend(flags::notes(data, indices, settings));
    vec![sheet.finish(KIND, KIND.to_owned(), &notes)]
}

/// The network of a scenario, or its endpoint.
fn name(data: &CampaignData, scenario: usize) -> String {
    let scenario = &data.scenarios[scenario];
    let network = scenario.parameters.network();
    network.unwrap_or(&scenario.endpoint).clone()
}

struct Panel<'a> {
    quantity: Quantity,
    /// The numbers of clients, from left to right.
    clients: &'a [u16],
    /// The numbers of clients with a warning in any experiment.
    flagged_clients: &'a BTreeSet<u16>,
    /// In the order of the legend.
    lines: &'a [ValuesByClients],
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a few lines and numbers of clients"
)]
const fn count(number: usize) -> f64 {
    number as f64
}

impl Panel<'_> {
    fn draw_panel(&self, frame: Rect) -> Vec<Mark> {
        let values = self.lines.iter().flat_map(BTreeMap::values).flatten();
        let high = values.copied().fold(0.0, f64::max);
        let (unit, per_unit) = unit(self.quantity, high);
        let area = Rect::new(frame.x + LEFT, frame.y + 22.0, frame.width - LEFT, HEIGHT);
        let top = if high > 0.0 { high / per_unit } else { 1.0 };
        let plot = Plot {
            area,
            x: Scale::linear(0.0, count(self.clients.len())),
            y: Scale::linear(0.0, top * 1.08),
        };
        let heading = Point::new(frame.x, frame.y + 12.0);
        let title = self.quantity.properties().title.to_owned();
        let heading = Text::new(heading, Anchor::Start, Style::LABEL, title);
        let mut marks = vec![Mark::Text(heading.semibold())];
        plot.y_axis(&mut marks, unit);
        plot.base_line(&mut marks);
        for (line, values) in self.lines.iter().enumerate() {
            marks.extend(self.line(&plot, line, values, per_unit));
        }
        marks.extend(self.axis(&plot));
        marks
    }

    /// The dots of a line, and what joins their medians.
    fn line(&self, plot: &Plot, line: usize, values: &ValuesByClients, per_unit: f64) -> Vec<Mark> {
        let middle = (count(self.lines.len()) - 1.0) / 2.0;
        let x_offset = MAX_OFFSET * (count(line) - middle) / middle.max(1.0);
        let (mut marks, mut medians) = (Vec::new(), Vec::new());
        for (index, clients) in self.clients.iter().enumerate() {
            let Some(values) = values.get(clients) else {
                continue;
            };
            let x = plot.x_px(count(index) + 0.5 + x_offset);
            marks.extend(values.iter().map(|value| Mark::Disc {
                centre: Point::new(x, plot.y_px(value / per_unit)),
                radius: 2.2,
                fill: Fill::solid(palette::line_colour(line)),
            }));
            let mut values = values.clone();
            let sorted = neph_stats::Sorted::sort(&mut values).ok();
            let median = sorted.and_then(|sorted| neph_stats::median(sorted, 0).ok()?.number());
            medians.extend(median.map(|median| Point::new(x, plot.y_px(median / per_unit))));
        }
        if medians.len() > 1 {
            marks.push(Mark::Line {
                points: medians,
                stroke: palette::line(line),
            });
        }
        marks
    }

    /// The numbers of clients.
    fn axis(&self, plot: &Plot) -> Vec<Mark> {
        let label = |x: f64, below: f64, size: f64, text: String| {
            let at = Point::new(x, plot.area.bottom() + below);
            Mark::Text(Text::new(at, Anchor::Middle, size, text))
        };
        let numbers = self.clients.iter().enumerate();
        let numbers = numbers.flat_map(|(index, clients)| {
            let x = plot.x_px(count(index) + 0.5);
            let foot = Point::new(x + 8.0, plot.area.bottom() + 14.0);
            let flag = self
                .flagged_clients
                .contains(clients)
                .then(|| flags::marker(foot));
            let number = label(x, 14.0, Style::TICK, clients.to_string());
            [Some(number), flag].into_iter().flatten()
        });
        let middle = plot.area.x + plot.area.width / 2.0;
        let title = label(
            middle,
            29.0,
            Style::LABEL,
            "clients at each site".to_owned(),
        );
        numbers.chain([title]).collect()
    }
}
