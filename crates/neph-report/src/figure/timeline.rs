//! Round trips over time: end-to-end, TCP acknowledgement and ICMP, one panel per scenario, with
//! retransmissions, losses and reconnects where they happened.

use neph_model::{FlowRole, Instant, Local, Outcome, Span};
use neph_stats::Sorted;

use super::boxes::{axis_title, in_unit};
use super::boxplot::outside;
use super::legend::Swatch;
use super::per_block::scales;
use super::readings::line;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::strip::{Segment, TitleNotes, panel_title, segments, time_axis, time_note};
use super::{Figure, alarms, flags};
use crate::axis::{Plot, Scale, Spread, Style, group_scales};
use crate::palette::{self, RETRANSMISSION, SPURIOUS};
use crate::scene::{Colour, Mark, Point, Rect, Stroke};
use neph_analysis::data::{ExperimentData, FlowData};
use neph_analysis::numbers::TimeUnit;
use neph_analysis::text::capital;
use neph_analysis::{Basis, CampaignData, PlotSettings};

const LEFT: f64 = 52.0;
/// Pale, so that the narrower lines on it are seen.
const END_TO_END: Colour = Colour::hex(0x0066_b2e0);

/// The lines of a panel, in the order of drawing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Series {
    EndToEnd,
    Acknowledgement,
    Icmp,
    PingDestination,
}

impl Series {
    const ALL: [Self; 4] = [
        Self::PingDestination,
        Self::EndToEnd,
        Self::Acknowledgement,
        Self::Icmp,
    ];

    fn stroke(self) -> Stroke {
        match self {
            // The acknowledgement often lies on it: it is seen at both sides of the narrower line.
            Self::EndToEnd => Stroke::solid(END_TO_END, 3.2),
            Self::Acknowledgement => Stroke::solid(palette::line_colour(4), 1.1),
            Self::Icmp => Stroke::solid(palette::line_colour(6), 1.1).dashed(3.0, 2.0),
            Self::PingDestination => Stroke::solid(palette::line_colour(3), 1.0).dashed(1.5, 2.0),
        }
    }

    fn name(self, basis: Basis) -> String {
        match self {
            Self::EndToEnd => format!("end to end ({})", basis.name()),
            Self::Acknowledgement => "TCP acknowledgement".to_owned(),
            Self::Icmp => "ICMP echo to the endpoint's host".to_owned(),
            Self::PingDestination => "ICMP echo to ping destinations".to_owned(),
        }
    }

    /// The flows that the series is read from.
    fn flows(self, experiment: &ExperimentData) -> impl Iterator<Item = &FlowData> {
        let role = match self {
            Self::EndToEnd | Self::Acknowledgement => FlowRole::Main,
            Self::Icmp => FlowRole::Companion,
            Self::PingDestination => FlowRole::PingDestination,
        };
        experiment.of_role(role)
    }

    /// Milliseconds over nanoseconds since the start; a message without the value is a gap.
    fn readings(self, flow: &FlowData, basis: Basis) -> Vec<(i64, Option<f64>)> {
        let value = |exchange: &neph_analysis::Exchange| match (self, basis) {
            (Self::EndToEnd, Basis::Response) => exchange.response,
            (Self::EndToEnd, Basis::Service) => exchange.service,
            (Self::Acknowledgement, _) => exchange.ack,
            (Self::Icmp | Self::PingDestination, _) => flow.round_trip(exchange),
        };
        flow.exchanges
            .iter()
            .map(|exchange| {
                (
                    exchange.intended.nanos(),
                    value(exchange).map(Span::millis_f64),
                )
            })
            .collect()
    }
}

/// A page for every few scenarios.
pub(crate) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let indices = data.scenarios_with_messages(settings);
    let values_by_scenario: Vec<Vec<f64>> =
        indices.iter().map(|s| values(data, settings, *s)).collect();
    let spreads = values_by_scenario.iter().map(|values| {
        let spread = Sorted::check(values).ok().and_then(Spread::of);
        spread.into_iter().collect()
    });
    let scales = group_scales(&spreads.collect::<Vec<Vec<Spread>>>(), settings);
    let (height, per_page) = match indices.len() {
        1 => (260.0, 1),
        2..=4 => (150.0, 4),
        _ => (92.0, 7),
    };
    let total = indices.len().div_ceil(per_page);
    let panels: Vec<Panel<'_>> = indices
        .iter()
        .zip(scales)
        .zip(&values_by_scenario)
        .map(|((scenario, scale), values)| Panel {
            scenario: *scenario,
            scale,
            values,
        })
        .collect();
    panels
        .chunks(per_page)
        .enumerate()
        .map(|(page, panels)| {
            let title = page_title("Round trips over time", page, total);
            let entries = legend(data, settings, panels);
            let mut sheet = Sheet::new(title, subtitle(&entries, settings));
            sheet.legend(&entries);
            for panel in panels {
                let frame = sheet.take(height + Style::TICK_LABELS_HEIGHT + 26.0);
                sheet.draw(draw_panel(data, settings, panel, frame));
            }
            let mut notes = vec![Note::plain(caption(&entries, settings))];
            notes.extend(flags::notes(
                data,
                panels.iter().map(|p| p.scenario),
                settings,
            ));
            sheet.finish("timeline", page_name("timeline", page, total), &notes)
        })
        .collect()
}

fn has_entry(entries: &[(Swatch, String)], series: Series, settings: &PlotSettings) -> bool {
    let wanted = capital(&series.name(settings.basis));
    entries.iter().any(|(_, name)| *name == wanted)
}

fn subtitle(entries: &[(Swatch, String)], settings: &PlotSettings) -> &'static str {
    if has_entry(entries, Series::EndToEnd, settings) {
        "Each message at its scheduled time. In long runs, only the extreme values within a few pixels are drawn"
    } else {
        "ICMP echoes at their scheduled times. The messages of many flows are in the figures of flows"
    }
}

fn caption(entries: &[(Swatch, String)], settings: &PlotSettings) -> String {
    let overlap_text = if has_entry(entries, Series::Acknowledgement, settings) {
        " Where the TCP acknowledgement lies on end to end, the wide line is seen at both sides of the narrow one."
    } else {
        ""
    };
    format!(
        "{} It is logarithmic where the axis shows log. Gaps in a line are messages without the value.{overlap_text} Values outside the axis are counted above the panel.{}",
        scales(settings),
        time_note(settings)
    )
}

struct Panel<'a> {
    scenario: usize,
    scale: Option<Scale>,
    /// All values of all series, ascending.
    values: &'a [f64],
}

fn values(data: &CampaignData, settings: &PlotSettings, scenario: usize) -> Vec<f64> {
    let mut values: Vec<f64> = Vec::new();
    for experiment in data.experiments_of(scenario, settings) {
        for series in Series::ALL {
            for flow in series.flows(experiment) {
                let readings = series.readings(flow, settings.basis);
                values.extend(readings.iter().filter_map(|(_, value)| *value));
            }
        }
    }
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn legend(
    data: &CampaignData,
    settings: &PlotSettings,
    panels: &[Panel<'_>],
) -> Vec<(Swatch, String)> {
    let experiments = || {
        panels
            .iter()
            .flat_map(|panel| data.experiments_of(panel.scenario, settings))
    };
    let mut entries: Vec<(Swatch, String)> = [
        Series::EndToEnd,
        Series::Acknowledgement,
        Series::Icmp,
        Series::PingDestination,
    ]
    .into_iter()
    .filter(|series| {
        experiments().any(|experiment| {
            series.flows(experiment).any(|flow| {
                series
                    .readings(flow, settings.basis)
                    .iter()
                    .any(|(_, value)| value.is_some())
            })
        })
    })
    .map(|series| {
        (
            Swatch::Line(series.stroke()),
            capital(&series.name(settings.basis)),
        )
    })
    .collect();
    if experiments().any(|e| !e.retransmissions().is_empty()) {
        entries.push((
            Swatch::Tick(RETRANSMISSION),
            "retransmission (at the bottom)".to_owned(),
        ));
    }
    if experiments().any(|e| !spurious_retransmissions(e).is_empty()) {
        entries.push((
            Swatch::Tick(SPURIOUS),
            "spurious retransmission (no loss)".to_owned(),
        ));
    }
    entries.extend(outcome_entries(experiments));
    if experiments().any(|e| e.reconnects().next().is_some()) {
        entries.push((Swatch::Line(RECONNECT), "reconnect".to_owned()));
    }
    entries.extend(alarms::legend(experiments()));
    entries
}

/// The marks of messages without a valid reply, as far as some ended so.
fn outcome_entries<'a, I: Iterator<Item = &'a ExperimentData>>(
    experiments: impl Fn() -> I,
) -> impl Iterator<Item = (Swatch, String)> {
    type Count = fn(&FlowData) -> usize;
    let kinds: [(Count, Colour, &str); 3] = [
        (FlowData::lost, Colour::ALARM, "lost message"),
        (FlowData::errors, ERROR, "error: not answered as expected"),
        (FlowData::failed, NOT_SENT, "message not sent"),
    ];
    let occurs = move |count: Count| experiments().any(|e| e.main().is_some_and(|f| count(f) > 0));
    let occurring = kinds.into_iter().filter(move |(count, ..)| occurs(*count));
    occurring.map(|(_, colour, name)| (Swatch::Tick(colour), format!("{name} (at the top)")))
}

/// The mark of a message that could not be sent.
const NOT_SENT: Colour = Colour::FAINT_INK;
/// The mark of a message that was answered, but not as expected.
const ERROR: Colour = Colour::INK;
const RECONNECT: Stroke = Stroke::solid(Colour::ALARM, 1.0).dashed(4.0, 2.0);

fn draw_panel(
    data: &CampaignData,
    settings: &PlotSettings,
    panel: &Panel<'_>,
    frame: Rect,
) -> Vec<Mark> {
    let Some(scale) = panel.scale else {
        return panel_title(
            data,
            settings,
            panel.scenario,
            frame,
            &TitleNotes::outside("no replies".to_owned()),
        );
    };
    let unit = TimeUnit::up_to(scale.high);
    let area = Rect::new(
        frame.x + LEFT,
        frame.y + 22.0,
        frame.width - LEFT,
        frame.height - Style::TICK_LABELS_HEIGHT - 26.0,
    );
    let plot = Plot {
        area,
        x: Scale::linear(0.0, 1.0),
        y: in_unit(scale, unit),
    };
    let outside_text = outside(panel.values, &scale);
    let mut marks = panel_title(
        data,
        settings,
        panel.scenario,
        frame,
        &TitleNotes::outside(outside_text),
    );
    let title = if frame.height > 130.0 {
        axis_title(settings, unit).replace(settings.basis.name(), "round trip")
    } else {
        unit.name().to_owned()
    };
    plot.y_axis(&mut marks, &title);
    let segments = segments(data.experiments_of(panel.scenario, settings), area);
    time_axis(&mut marks, &segments, area, settings);
    let mut inside = Vec::new();
    for segment in &segments {
        for series in Series::ALL {
            for flow in series.flows(segment.experiment) {
                let readings = series.readings(flow, settings.basis);
                inside.extend(line(&readings, segment, &plot, unit, series.stroke()));
            }
        }
        inside.extend(incidents(segment, area));
        inside.extend(alarms::marks(segment, area));
    }
    marks.push(plot.clip(inside));
    marks
}

/// Retransmissions at the bottom, losses at the top, reconnects from top to bottom.
fn incidents(segment: &Segment<'_>, area: Rect) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut tick = |nanos: i64, (from, to): (f64, f64), stroke: Stroke| {
        let x = segment.x_px(nanos);
        marks.push(Mark::line(Point::new(x, from), Point::new(x, to), stroke));
    };
    for at in segment.experiment.reconnects() {
        tick(at, (area.y, area.bottom()), RECONNECT);
    }
    let experiment = segment.experiment;
    for (moments, colour, height) in [
        (spurious_retransmissions(experiment), SPURIOUS, 5.0),
        (experiment.retransmissions(), RETRANSMISSION, 10.0),
    ] {
        for (at, _) in thinned(moments, segment) {
            let span = (area.bottom() - height, area.bottom());
            tick(at.nanos(), span, Stroke::solid(colour, 1.0));
        }
    }
    let Some(main) = segment.experiment.main() else {
        return marks;
    };
    for (outcome, colour) in [
        (Outcome::Failed, NOT_SENT),
        (Outcome::Error, ERROR),
        (Outcome::Lost, Colour::ALARM),
    ] {
        let ended = main.exchanges.iter().filter(|e| e.outcome == outcome);
        let ended = ended.map(|exchange| (exchange.intended, 1)).collect();
        for (at, _) in thinned(ended, segment) {
            tick(
                at.nanos(),
                (area.y, area.y + 7.0),
                Stroke::solid(colour, 1.2),
            );
        }
    }
    marks
}

/// When the main flow retransmitted what the peer had received already.
fn spurious_retransmissions(experiment: &ExperimentData) -> Vec<(Instant<Local>, u32)> {
    let main = experiment.main();
    main.map_or_else(Vec::new, FlowData::spurious_retransmissions)
}

/// At most one tick a pixel.
fn thinned(
    moments: Vec<(Instant<Local>, u32)>,
    segment: &Segment<'_>,
) -> Vec<(Instant<Local>, u32)> {
    let mut last_x = f64::NEG_INFINITY;
    moments
        .into_iter()
        .filter(|(at, _)| {
            let x = segment.x_px(at.nanos());
            let is_separate = x - last_x >= 1.0;
            if is_separate {
                last_x = x;
            }
            is_separate
        })
        .collect()
}
