//! Regularity: how far gaps between sends, and between arrivals at the server's program, were
//! from the interval that was requested.

use neph_stats::{SendTime, Skew, Sorted, describe, skews};

use super::Figure;
use super::boxes::in_unit;
use super::boxplot::outside;
use super::flags;
use super::readings::line;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::strip::{TitleNotes, panel_title, segments, time_axis};
use crate::axis::{Limits, Plot, Scale, Spacing, Spread, Style, choose_scale};
use crate::palette;
use crate::scene::{Mark, Rect, Stroke};
use neph_analysis::data::{Exchange, FlowData};
use neph_analysis::numbers::{TimeUnit, millis};
use neph_analysis::{CampaignData, PlotSettings};

const LEFT: f64 = 52.0;
const HEIGHT: f64 = 84.0;
const PER_PAGE: usize = 14;
/// Every panel shows at least so many milliseconds on both sides of 0.
const MIN_RANGE: f64 = 1e-3;

/// The side whose timestamps are drawn.
#[derive(Clone, Copy)]
enum Side {
    Send,
    Server,
}

impl Side {
    fn timestamp(self, exchange: &Exchange) -> Option<i64> {
        match self {
            Self::Send => exchange.send_started.map(neph_model::Instant::nanos),
            Self::Server => exchange.peer_app_rx.map(neph_model::Instant::nanos),
        }
    }
    const fn name(self) -> &'static str {
        match self {
            Self::Send => "send-skew",
            Self::Server => "server-skew",
        }
    }
    const fn title(self) -> &'static str {
        match self {
            Self::Send => "Regularity of sends",
            Self::Server => "Regularity of arrivals at the server",
        }
    }
    const fn subtitle(self) -> &'static str {
        match self {
            Self::Send => "Time between two sends minus the planned interval. 0: as planned",
            Self::Server => {
                "Time between two requests at the server application minus the planned interval. 0: as planned"
            }
        }
    }
}

/// Of local sends.
pub(crate) fn draw_send(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    draw(data, settings, Side::Send)
}

/// Of the server's readings.
pub(crate) fn draw_server(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    draw(data, settings, Side::Server)
}

struct Panel {
    scenario: usize,
    /// All skews of all blocks in milliseconds, ascending.
    values: Vec<f64>,
    scale: Option<Scale>,
}

fn draw(data: &CampaignData, settings: &PlotSettings, side: Side) -> Vec<Figure> {
    let panels = panels(data, settings, side);
    let columns = if panels.len() == 1 { 1 } else { 2 };
    let total = panels.len().div_ceil(PER_PAGE);
    panels
        .chunks(PER_PAGE)
        .enumerate()
        .map(|(page, panels)| {
            let title = page_title(side.title(), page, total);
            let mut sheet = Sheet::new(title, side.subtitle());
            for row in panels.chunks(if columns == 1 { 1 } else { 2 }) {
                let frames = sheet.columns(columns, HEIGHT + Style::TICK_LABELS_HEIGHT + 28.0);
                for (panel, frame) in row.iter().zip(frames) {
                    sheet.draw(draw_panel(data, settings, panel, side, frame));
                }
            }
            let mut notes = vec![Note::plain("sd: standard deviation of the gaps. Each panel has its own scale, of at least 1 µs to both sides. What lies outside the axis is counted above the panel.")];
            notes.extend(flags::notes(data, panels.iter().map(|p| p.scenario), settings));
            sheet.finish(side.name(), page_name(side.name(), page, total), &notes)
        })
        .collect()
}

/// The scenarios of which there are skews.
fn panels(data: &CampaignData, settings: &PlotSettings, side: Side) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for scenario in data.measured(settings) {
        let mut values: Vec<f64> = data
            .main_flows(scenario, settings)
            .flat_map(|flow| flow_skews(data, scenario, flow, side))
            .map(|(_, value)| value)
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        if !values.is_empty() {
            panels.push(Panel {
                scenario,
                values,
                scale: None,
            });
        }
    }
    // Each panel its own scale: one congested scenario would crush the microseconds of the others.
    for panel in &mut panels {
        let spread = Sorted::check(&panel.values).ok().and_then(Spread::of);
        let scale = spread.and_then(|range| choose_scale(&[range], Limits::default()));
        panel.scale = scale.map(with_min_range);
    }
    panels
}

/// The scale with room for [`MIN_RANGE`]: less than that is the clock's noise, and not to be blown up to
/// the height of what matters.
fn with_min_range(scale: Scale) -> Scale {
    match scale.spacing {
        Spacing::Linear => Scale::linear(scale.low.min(-MIN_RANGE), scale.high.max(MIN_RANGE)),
        Spacing::Logarithmic => scale,
    }
}

/// Moments in nanoseconds since the start, and skews in milliseconds.
fn flow_skews(
    data: &CampaignData,
    scenario: usize,
    flow: &FlowData,
    side: Side,
) -> Vec<(i64, f64)> {
    let interval = data.scenarios[scenario].interval.nanos();
    let timestamped: Vec<(&Exchange, SendTime)> = flow
        .exchanges
        .iter()
        .filter_map(|exchange| {
            let nanos = side.timestamp(exchange)?;
            Some((
                exchange,
                SendTime {
                    sequence: exchange.seq.0,
                    nanos,
                },
            ))
        })
        .collect();
    let send_times: Vec<SendTime> = timestamped
        .iter()
        .map(|(_, timestamp)| *timestamp)
        .collect();
    let skews: Vec<Skew> = skews(&send_times, interval).unwrap_or_default();
    // Each skew belongs to the message that ends its gap.
    skews
        .iter()
        .zip(timestamped.iter().skip(1))
        .map(|(skew, (exchange, _))| {
            let value = neph_model::Span::from_nanos(skew.nanos).millis_f64();
            (exchange.intended.nanos(), value)
        })
        .collect()
}

fn draw_panel(
    data: &CampaignData,
    settings: &PlotSettings,
    panel: &Panel,
    side: Side,
    frame: Rect,
) -> Vec<Mark> {
    let Some(scale) = panel.scale else {
        return Vec::new();
    };
    let unit = TimeUnit::up_to(scale.high.abs().max(scale.low.abs()));
    let area = Rect::new(frame.x + LEFT, frame.y + 22.0, frame.width - LEFT, HEIGHT);
    let plot = Plot {
        area,
        x: Scale::linear(0.0, 1.0),
        y: in_unit(scale, unit),
    };
    let sample =
        Sorted::check(&panel.values).expect("differences of stamps are finite, and sorted");
    let sd = describe(sample).ok().and_then(|numbers| numbers.sd);
    let title_notes = TitleNotes {
        plain: sd.map_or_else(String::new, |sd| format!("sd {}", millis(sd))),
        outside: outside(&panel.values, &scale),
    };
    let mut marks = panel_title(data, settings, panel.scenario, frame, &title_notes);
    plot.y_axis(&mut marks, unit.name());
    let segments = segments(data.experiments_of(panel.scenario, settings), area);
    time_axis(&mut marks, &segments, area, settings);
    let stroke = Stroke::solid(palette::line_colour(0), 1.0);
    let mut lines = Vec::new();
    for segment in &segments {
        if let Some(flow) = segment.experiment.main() {
            let skews = flow_skews(data, panel.scenario, flow, side);
            let readings: Vec<_> = skews.into_iter().map(|(at, v)| (at, Some(v))).collect();
            lines.extend(line(&readings, segment, &plot, unit, stroke));
        }
    }
    marks.push(plot.clip(lines));
    marks
}
