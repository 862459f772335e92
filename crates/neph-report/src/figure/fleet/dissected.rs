//! A flow's messages, its base latency, and the path changes and congestion that neph finds in them.

mod caption;

use neph_flows::{Dissected, DissectedOutcome, DissectedSample, FlowHistory, PathChange, Segment};
use neph_model::{Instant, Local, Span};

use self::caption::{Content, caption};
use super::clock::Clock;
use super::colours::{BASE, CONGESTION, REORDERED, SAMPLE};
use crate::axis::{Limits, Plot, Scale, Spread, Style, choose_scale};
use crate::figure::boxes::in_unit;
use crate::figure::boxplot::outside;
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::figure::{Figure, flags};
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, Weight, text_width};
use neph_analysis::fleet::{Pair, pairs};
use neph_analysis::numbers::{TimeUnit, millis};
use neph_analysis::text::plural;
use neph_analysis::{CampaignData, PlotSettings};

const NAME: &str = "flow-dissected";
const SUBTITLE: &str =
    "Round trips of single flows, with base latency, path changes and congestion";
const LEFT: f64 = 54.0;
const HEIGHT: f64 = 190.0;
const PER_PAGE: usize = 3;
/// The most flows that are drawn.
const MAX_FLOWS: usize = 12;
/// A path change.
const CHANGE: Stroke = Stroke::solid(Colour::INK, 0.9).dashed(3.0, 2.5);

/// A panel for each flow.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let pairs = pairs(data, settings);
    let mut flows: Vec<Flow<'_>> = pairs.iter().flat_map(flows).collect();
    let total_flows: usize = pairs.iter().map(flow_count).sum();
    if flows.iter().any(Flow::is_eventful) {
        flows.retain(Flow::is_eventful);
    } else {
        flows.truncate(PER_PAGE);
    }
    if flows.len() > MAX_FLOWS {
        flows.sort_by_key(|flow| std::cmp::Reverse(flow.changes.len()));
        flows.truncate(MAX_FLOWS);
    }
    let shown_flows = flows.len();
    let total = flows.len().div_ceil(PER_PAGE);
    let pages = flows.chunks(PER_PAGE).enumerate().map(|(page, flows)| {
        let title = page_title("Flows, message by message", page, total);
        let mut sheet = Sheet::new(title, SUBTITLE);
        sheet.legend(&legend(flows));
        for flow in flows {
            let frame = sheet.take(HEIGHT + 40.0 + Style::X_AXIS_HEIGHT);
            sheet.draw(draw_panel(flow, frame));
        }
        let mut notes = vec![Note::plain(caption(Content {
            has_congestion: flows.iter().any(|flow| !flow.congested_runs().is_empty()),
            has_changes: flows.iter().any(|flow| !flow.changes.is_empty()),
            shown_flows,
            total_flows,
        }))];
        let mut scenarios: Vec<usize> = flows.iter().map(|flow| flow.pair.scenario).collect();
        scenarios.dedup();
        notes.extend(flags::notes(data, scenarios, settings));
        sheet.finish(NAME, page_name(NAME, page, total), &notes)
    });
    pages.collect()
}

/// Flows of a pair, also those whose messages were not kept.
fn flow_count(pair: &Pair<'_>) -> usize {
    let flows = pair.view.flows.iter();
    let is_of_pair = |flow: &&FlowHistory| pair.view.fleet.endpoint_of(flow.slot) == pair.endpoint;
    flows.filter(is_of_pair).count()
}

/// One flow with what is known of it.
struct Flow<'a> {
    pair: &'a Pair<'a>,
    port: u16,
    dissected: &'a Dissected,
    /// Its base latency in the time shown.
    segments: Vec<&'a Segment>,
    changes: Vec<&'a PathChange>,
}

fn flows<'a>(pair: &'a Pair<'a>) -> Vec<Flow<'a>> {
    let is_of_pair = |dissected: &&Dissected| {
        pair.view.fleet.endpoint_of(dissected.slot) == pair.endpoint
            && !dissected.samples.is_empty()
    };
    let flow_of = |dissected: &'a Dissected| {
        let (first, last) = (
            dissected.samples[0].sent,
            dissected.samples[dissected.samples.len() - 1].sent,
        );
        let key = (dissected.slot, dissected.source_port);
        let is_same_flow = |flow: &&FlowHistory| (flow.slot, flow.source_port) == key;
        let history = pair.view.flows.iter().find(is_same_flow);
        let segments = history.into_iter().flat_map(|flow| &flow.segments);
        let changes = pair.view.changes.iter().filter(|change| {
            (change.slot, change.source_port) == key && change.at >= first && change.at <= last
        });
        Flow {
            pair,
            port: dissected.source_port,
            dissected,
            segments: segments
                .filter(|segment| segment.until > first && segment.from < last)
                .collect(),
            changes: changes.collect(),
        }
    };
    pair.view
        .dissected
        .iter()
        .filter(is_of_pair)
        .map(flow_of)
        .collect()
}

impl Flow<'_> {
    fn replies(&self) -> impl Iterator<Item = (Instant<Local>, Span, bool)> + '_ {
        self.dissected
            .samples
            .iter()
            .filter_map(|sample| match sample.outcome {
                DissectedOutcome::Reply {
                    round_trip,
                    reordered,
                } => Some((sample.sent, round_trip, reordered.is_some())),
                DissectedOutcome::Lost | DissectedOutcome::NotSent => None,
            })
    }

    fn base(&self, at: Instant<Local>) -> Option<Span> {
        let next = self.segments.partition_point(|segment| segment.from <= at);
        next.checked_sub(1).map(|index| self.segments[index].base)
    }

    /// Whether it moved or met a queue.
    fn is_eventful(&self) -> bool {
        !self.changes.is_empty() || !self.congested_runs().is_empty()
    }

    /// Runs of three or more consecutive messages above the base latency by more than the
    /// tolerance: send time, RTT and base latency of each message.
    fn congested_runs(&self) -> Vec<Vec<(Instant<Local>, Span, Span)>> {
        let tolerance = self.pair.view.settings.detection.tolerance;
        let mut runs = Vec::new();
        let mut run = Vec::new();
        for (at, round_trip, _) in self.replies() {
            match self.base(at) {
                Some(base) if round_trip - base > tolerance => run.push((at, round_trip, base)),
                _ => runs.push(std::mem::take(&mut run)),
            }
        }
        runs.push(run);
        runs.retain(|run| run.len() >= 3);
        runs
    }
}

fn legend(flows: &[Flow<'_>]) -> Vec<(Swatch, String)> {
    let any_flow = |test: fn(&Flow<'_>) -> bool| flows.iter().any(test);
    let has_lost_message = |flow: &Flow<'_>| {
        let mut samples = flow.dissected.samples.iter();
        samples.any(|sample| !matches!(sample.outcome, DissectedOutcome::Reply { .. }))
    };
    let entries = [
        (true, Swatch::Dot(SAMPLE), "round trip of a message"),
        (
            any_flow(|flow| !flow.segments.is_empty()),
            Swatch::Line(Stroke::solid(BASE, 2.0)),
            "base latency",
        ),
        (
            any_flow(|flow| !flow.changes.is_empty()),
            Swatch::Line(CHANGE),
            "path change",
        ),
        (
            any_flow(|flow| !flow.congested_runs().is_empty()),
            Swatch::Area(Fill::translucent(CONGESTION)),
            "taken for congestion",
        ),
        (
            any_flow(|flow| flow.replies().any(|(_, _, is_reordered)| is_reordered)),
            Swatch::Dot(REORDERED),
            "reordered message",
        ),
        (
            any_flow(has_lost_message),
            Swatch::Tick(Colour::ALARM),
            "lost or unsent message (at the top)",
        ),
    ];
    let shown = entries.into_iter().filter(|(is_drawn, _, _)| *is_drawn);
    shown
        .map(|(_, swatch, label)| (swatch, label.to_owned()))
        .collect()
}

fn draw_panel(flow: &Flow<'_>, frame: Rect) -> Vec<Mark> {
    let mut values: Vec<f64> = flow.replies().map(|(_, rtt, _)| rtt.millis_f64()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let name = format!("{}, source port {}", flow.pair.label, flow.port);
    let Some(scale) = scale(flow, &values) else {
        return heading(&name, "", "no replies", frame);
    };
    let unit = TimeUnit::up_to(scale.high);
    let samples = &flow.dissected.samples;
    let ends = (samples[0].sent, samples[samples.len() - 1].sent);
    let clock = Clock::between(flow.pair.view.from, ends.0, ends.1);
    let plot = Plot {
        area: Rect::new(
            frame.x + LEFT,
            frame.y + 34.0,
            frame.width - LEFT - 6.0,
            HEIGHT,
        ),
        x: clock.scale,
        y: in_unit(scale, unit),
    };
    let counted = format!(
        "{}, {}",
        plural(samples.len(), "message"),
        plural(flow.changes.len(), "path change")
    );
    let mut marks = heading(&name, &counted, &outside(&values, &scale), frame);
    plot.y_axis(&mut marks, &format!("round trip, {}", unit.name()));
    plot.x_axis(&mut marks, &clock.title(flow.pair));
    let x = |at: Instant<Local>| plot.x_px(clock.at(at));
    let y = |span: Span| plot.y_px(span.millis_f64() * unit.per_milli());
    let mut inside: Vec<Mark> = flow
        .congested_runs()
        .iter()
        .map(|run| congestion_area(run, &x, &y))
        .collect();
    let radius = if samples.len() > 1500 { 1.0 } else { 1.5 };
    inside.extend(flow.replies().map(|(at, round_trip, _)| Mark::Disc {
        centre: Point::new(x(at), y(round_trip)),
        radius,
        fill: Fill::solid(SAMPLE),
    }));
    inside.extend(base_line(flow, ends, &x, &y));
    let reordered = flow.replies().filter(|(_, _, reordered)| *reordered);
    inside.extend(reordered.map(|(at, round_trip, _)| Mark::Disc {
        centre: Point::new(x(at), y(round_trip)),
        radius: 2.8,
        fill: Fill::solid(REORDERED),
    }));
    inside.extend(loss_ticks(flow, &plot, &x));
    marks.push(plot.clip(inside));
    marks.extend(changes(flow, &plot, &x));
    marks
}

/// The bulk of the messages and every base latency.
fn scale(flow: &Flow<'_>, values: &[f64]) -> Option<Scale> {
    let sorted = neph_stats::Sorted::check(values).ok()?;
    let spread = Spread::of(sorted)?;
    let segments = flow.segments.iter();
    let bases = segments.map(|segment| segment.base.millis_f64());
    let spread = bases.fold(spread, |spread, base| Spread {
        low: spread.low.min(base),
        min: spread.min.min(base),
        high: spread.high.max(base),
        max: spread.max.max(base),
        ..spread
    });
    choose_scale(&[spread], Limits::default())
}

/// The flow's name, and at the right what was counted of it and what lies outside.
fn heading(name: &str, counted: &str, outside: &str, frame: Rect) -> Vec<Mark> {
    let y = frame.y + 12.0;
    let name = Text::new(Point::new(frame.x, y), Anchor::Start, Style::TITLE, name).semibold();
    let note = |x: f64, text: &str| Text::new(Point::new(x, y), Anchor::End, Style::NOTE, text);
    let counted = note(frame.right(), counted).coloured(Colour::FAINT_INK);
    let outside = note(frame.right() - counted.width() - 10.0, outside).coloured(Colour::ALARM);
    let shown = [name, counted, outside]
        .into_iter()
        .filter(|text| !text.text.is_empty());
    shown.map(Mark::Text).collect()
}

type ToX<'a> = dyn Fn(Instant<Local>) -> f64 + 'a;
type ToY<'a> = dyn Fn(Span) -> f64 + 'a;

/// From the base latency up to the messages.
fn congestion_area(run: &[(Instant<Local>, Span, Span)], x: &ToX<'_>, y: &ToY<'_>) -> Mark {
    let above = run.iter().map(|(at, rtt, _)| Point::new(x(*at), y(*rtt)));
    let below = run
        .iter()
        .rev()
        .map(|(at, _, base)| Point::new(x(*at), y(*base)));
    Mark::Area {
        points: above.chain(below).collect(),
        fill: Fill::translucent(CONGESTION),
    }
}

/// The base latency while messages are shown.
fn base_line(
    flow: &Flow<'_>,
    (first, last): (Instant<Local>, Instant<Local>),
    x: &ToX<'_>,
    y: &ToY<'_>,
) -> Option<Mark> {
    let ends = |segment: &Segment| [segment.from.max(first), segment.until.min(last)];
    let points: Vec<Point> = flow
        .segments
        .iter()
        .flat_map(|segment| ends(segment).map(|at| Point::new(x(at), y(segment.base))))
        .collect();
    (points.len() > 1).then(|| Mark::Line {
        points,
        stroke: Stroke::solid(BASE, 1.8),
    })
}

fn loss_ticks(flow: &Flow<'_>, plot: &Plot, x: &ToX<'_>) -> Vec<Mark> {
    let (top, end) = (plot.area.y, plot.area.y + 7.0);
    let tick = |sample: &DissectedSample| {
        let colour = match sample.outcome {
            DissectedOutcome::Reply { .. } => return None,
            DissectedOutcome::Lost => Colour::ALARM,
            DissectedOutcome::NotSent => Colour::FAINT_INK,
        };
        let at = x(sample.sent);
        let ends = (Point::new(at, top), Point::new(at, end));
        Some(Mark::line(ends.0, ends.1, Stroke::solid(colour, 1.3)))
    };
    flow.dissected.samples.iter().filter_map(tick).collect()
}

/// A dashed line for each change with a head above the panel, and its size where there is room.
fn changes(flow: &Flow<'_>, plot: &Plot, x: &ToX<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut min_left = plot.area.x - 40.0;
    for change in &flow.changes {
        let at = x(change.at);
        let (top, bottom) = (plot.area.y, plot.area.bottom());
        marks.push(Mark::line(
            Point::new(at, top),
            Point::new(at, bottom),
            CHANGE,
        ));
        marks.extend(change_marker(at, top, change));
        let delta = change.after - change.before;
        let sign = if delta > Span::from_nanos(0) { "+" } else { "" };
        let text = format!("{sign}{}", millis(delta.millis_f64()));
        let half_width = text_width(&text, 9.0, Weight::Regular) / 2.0;
        if at - half_width >= min_left && at + half_width <= plot.area.right() + 6.0 {
            min_left = at + half_width + 5.0;
            let position = Point::new(at, top - 9.0);
            marks.push(Mark::Text(Text::new(position, Anchor::Middle, 9.0, text)));
        }
    }
    marks
}

/// A triangle that points down at the change: filled where more than the latency speaks for it.
fn change_marker(at: f64, top: f64, change: &PathChange) -> Vec<Mark> {
    let evidence = change.evidence;
    let has_more_evidence = evidence.reordered || evidence.ttl || evidence.trace == Some(true);
    let points = vec![
        Point::new(at - 3.5, top - 6.5),
        Point::new(at + 3.5, top - 6.5),
        Point::new(at, top - 0.5),
    ];
    let colour = if has_more_evidence {
        Colour::INK
    } else {
        Colour::WHITE
    };
    let mut outline = points.clone();
    outline.push(points[0]);
    vec![
        Mark::Area {
            points,
            fill: Fill::solid(colour),
        },
        Mark::Line {
            points: outline,
            stroke: Stroke::solid(Colour::INK, 0.9),
        },
    ]
}
