//! Unfairness: latency of the slower flows against the typical one, over time and as distribution.

use neph_flows::{FlowLatencyBin, FlowQuantile, Latency, OverBins};
use neph_model::Span;
use neph_stats::{Grid, Level, Reading, Sorted, ecdf, envelope};

use super::clock::{Clock, exact_text};
use super::percents::percents;
use super::standing_out::SelectedPairs;
use super::stretches::bars;
use super::titles::{labels, title};
use crate::axis::{Limits, Plot, Scale, Spread, Style, choose_scale};
use crate::figure::boxes::in_unit;
use crate::figure::boxplot::outside;
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::figure::{Figure, flags};
use crate::palette;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text};
use neph_analysis::fleet::{Pair, pairs};
use neph_analysis::numbers::{TimeUnit, percent};
use neph_analysis::text::plural;
use neph_analysis::{CampaignData, PlotSettings};

const LEFT: f64 = 50.0;
/// Between the two panels of a pair.
const GAP: f64 = 58.0;
const PER_PAGE: usize = 6;
/// The most pairs that are drawn.
const MAX_PAIRS: usize = 18;
/// A bin narrower than this is a point of a line, no step of its own.
const MIN_STEP_WIDTH: f64 = 3.0;
/// Above a panel, where any flow is lost.
const LOSS_ROW_HEIGHT: f64 = 13.0;

/// The quantiles that so many flows allow: of eight, p95 is nothing but the slowest.
fn quantiles_shown(bins: &[FlowLatencyBin]) -> Vec<FlowQuantile> {
    let has_enough = |quantile: &FlowQuantile| bins.iter().any(|bin| bin.has_enough(*quantile));
    FlowQuantile::PERCENTILES
        .into_iter()
        .filter(has_enough)
        .collect()
}

/// Pages of a row for each pair: over time at the left, distributions at the right.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let mut pairs = pairs(data, settings);
    pairs.retain(|pair| pair.latency_bins().iter().any(|bin| bin.flows > 1));
    let selection = SelectedPairs::of(pairs, (PER_PAGE, MAX_PAIRS));
    let pairs = &selection.pairs;
    let total = pairs.len().div_ceil(PER_PAGE);
    let labels = labels(pairs);
    let height = match pairs.len() {
        1 => 230.0,
        2 | 3 => 150.0,
        _ => 96.0,
    };
    let pages = pairs.chunks(PER_PAGE).enumerate().map(|(page, few)| {
        let bin = exact_text(few[0].view.bin());
        let title = page_title("Unfairness among flows", page, total);
        let subtitle =
            format!("Quantiles over flows of each flow's median round trip, in bins of {bin}");
        let mut sheet = Sheet::new(title, &subtitle);
        let lines = FlowQuantile::PERCENTILES
            .into_iter()
            .filter(|quantile| {
                few.iter()
                    .any(|pair| quantiles_shown(pair.latency_bins()).contains(quantile))
            })
            .map(|quantile| (Swatch::Line(ink(quantile)), quantile.name().to_owned()));
        let mut legend: Vec<(Swatch, String)> = lines.collect();
        legend.push((Swatch::Area(GREY), "lowest to highest flow".to_owned()));
        sheet.legend(&legend);
        for pair in few {
            let frame = sheet.take(height + 24.0 + slot(pair) + Style::BELOW);
            sheet.draw(draw_panel(pair, &labels, height, frame));
        }
        let mut scenarios: Vec<usize> = few.iter().map(|pair| pair.scenario).collect();
        scenarios.dedup();
        let mut notes = vec![Note::plain(caption(few) + &selection.sentence())];
        notes.extend(flags::notes(data, scenarios, settings));
        sheet.finish(
            "flow-fairness",
            page_name("flow-fairness", page, total),
            &notes,
        )
    });
    pages.collect()
}

fn caption(pairs: &[Pair<'_>]) -> String {
    let mut text = "Left: where the lines diverge, or the grey area is high, some flows are slower than others at the same time. Where all lines rise together, the flows share a queue. Right: share of bins with at most the value on the axis. A line with two steps means that flows alternate between two paths. Grey: from the lowest flow to the highest. The reported difference is the median over bins. Each pair has its own scale; values outside are counted above it.".to_owned();
    if pairs.iter().any(|pair| slot(pair) > 0.0) {
        text.push_str(" A flow that lost half of its messages or more counts as slower than all others. Bins in which a percentile or the highest flow is such a flow are marked above the left panel; at the right its line ends below 100 %.");
    }
    let lacks = |pair: &Pair<'_>| {
        quantiles_shown(pair.latency_bins()).len() < FlowQuantile::PERCENTILES.len()
    };
    if pairs.iter().any(lacks) {
        let [p50, p95, p99] = FlowQuantile::PERCENTILES.map(FlowQuantile::needs);
        text.push_str(&format!(" p50 is drawn from {p50} flows on, p95 from {p95}, p99 from {p99}: of fewer they are nothing but single flows."));
    }
    text
}

const RANGE: Colour = Colour::hex(0x0093_9ba8);
const GREY: Fill = Fill::translucent(RANGE);

fn ink(quantile: FlowQuantile) -> Stroke {
    let colour = |number| Stroke::solid(palette::line_colour(number), 1.5);
    match quantile {
        FlowQuantile::P50 => colour(0),
        FlowQuantile::P95 => colour(4).dashed(5.0, 2.0),
        _ => colour(1),
    }
}

/// Of the bins that have flows enough.
fn latencies_of(bins: &[FlowLatencyBin], of: FlowQuantile) -> impl Iterator<Item = Latency> {
    let bins = bins.iter().filter(move |bin| bin.has_enough(of));
    bins.map(move |bin| bin.at(of))
}

/// In milliseconds, of what has a number.
fn values(latencies: impl Iterator<Item = Latency>) -> impl Iterator<Item = f64> {
    latencies.filter_map(Latency::took).map(Span::millis_f64)
}

/// The height of the text about lost flows.
fn slot(pair: &Pair<'_>) -> f64 {
    let is_lost = |bin: &FlowLatencyBin| bin.at(FlowQuantile::Highest) == Latency::Lost;
    if pair.latency_bins().iter().any(is_lost) {
        LOSS_ROW_HEIGHT
    } else {
        0.0
    }
}

/// In which bins the highest flow (the grey) and the quantiles are lost: above the panel, since they
/// are above everything that it shows.
fn lost_slot(pair: &Pair<'_>, plot: &Plot, clock: &Clock) -> Vec<Mark> {
    let (bins, wide) = (pair.latency_bins(), pair.view.settings.bin);
    if slot(pair) == 0.0 {
        return Vec::new();
    }
    let cells = |of: FlowQuantile, (top, height): (f64, f64), fill: Fill| {
        let is_lost = |bin: &&FlowLatencyBin| bin.has_enough(of) && bin.at(of) == Latency::Lost;
        let lost_bins = bins.iter().filter(is_lost);
        let stretches = lost_bins.map(|bin| (bin.from, bin.from + wide));
        let rects = bars(stretches, plot, clock, (plot.area.y - top, height));
        Mark::Cells { rects, fill }
    };
    let row_height = LOSS_ROW_HEIGHT - 1.0;
    let mut marks = vec![cells(FlowQuantile::Highest, (row_height, row_height), GREY)];
    // The slowest on top.
    for (from_below, quantile) in (1..).zip(quantiles_shown(bins)) {
        let top = 1.5 + 3.0 * f64::from(from_below);
        marks.push(cells(
            quantile,
            (top, 2.0),
            Fill::solid(ink(quantile).colour),
        ));
    }
    let at = Point::new(plot.area.x - 6.0, plot.area.y - 4.0);
    let label = Text::new(at, Anchor::End, Style::TICK, "lost");
    marks.push(Mark::Text(label.coloured(Colour::ALARM)));
    marks
}

fn draw_panel(pair: &Pair<'_>, among: &[String], height: f64, frame: Rect) -> Vec<Mark> {
    let bins = pair.latency_bins();
    let mut latencies: Vec<f64> = FlowQuantile::ALL
        .into_iter()
        .flat_map(|quantile| values(latencies_of(bins, quantile)))
        .collect();
    latencies.sort_unstable_by(f64::total_cmp);
    let spread = Sorted::check(&latencies).ok().and_then(Spread::of);
    let Some(scale) = spread.and_then(|spread| choose_scale(&[spread], Limits::default())) else {
        return Vec::new();
    };
    let unit = TimeUnit::up_to(scale.high);
    let scale = in_unit(scale, unit);
    let right = 210.0;
    let clock = Clock::of(pair);
    let time = Plot {
        area: Rect::new(
            frame.x + LEFT,
            frame.y + 22.0 + slot(pair),
            frame.width - LEFT - GAP - right,
            height,
        ),
        x: clock.scale,
        y: scale,
    };
    let mut marks = heading(
        pair,
        among,
        &outside(&latencies, &unreported(scale, unit)),
        frame,
    );
    time.y_axis(&mut marks, &format!("round trip, {}", unit.name()));
    time.x_axis(&mut marks, &clock.title(pair));
    marks.push(time.clip(over_time(pair, &time, &clock, unit)));
    marks.extend(lost_slot(pair, &time, &clock));
    let shares = Plot {
        area: Rect::new(frame.right() - right, time.area.y, right - 8.0, height),
        x: scale,
        y: Scale::linear(0.0, 1.0),
    };
    shares.x_axis(&mut marks, &format!("round trip, {}", unit.name()));
    percents(&mut marks, &shares, "share of bins");
    marks.push(shares.clip(over_bins(bins, &shares, unit)));
    marks
}

/// The distributions over bins: of the lowest and the highest flow as the edges of an area, of the
/// quantiles as lines.
fn over_bins(bins: &[FlowLatencyBin], plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
    let of = |quantile: FlowQuantile| {
        let lost = latencies_of(bins, quantile).filter(|latency| *latency == Latency::Lost);
        let values = values(latencies_of(bins, quantile)).collect();
        steps(values, lost.count(), plot, unit)
    };
    let mut marks = Vec::new();
    let ends = (of(FlowQuantile::Lowest), of(FlowQuantile::Highest));
    if let (Some(mut points), Some(highest)) = ends {
        points.extend(highest.into_iter().rev());
        marks.push(range(points));
    }
    marks.extend(quantiles_shown(bins).into_iter().filter_map(|quantile| {
        let (points, stroke) = (of(quantile)?, ink(quantile));
        Some(Mark::Line { points, stroke })
    }));
    marks
}

/// The area from the lowest flow to the highest.
fn range(points: Vec<Point>) -> Mark {
    Mark::Area { points, fill: GREY }
}

/// The scale in milliseconds again.
fn unreported(scale: Scale, unit: TimeUnit) -> Scale {
    Scale {
        low: scale.low / unit.per_milli(),
        high: scale.high / unit.per_milli(),
        ..scale
    }
}

fn heading(pair: &Pair<'_>, among: &[String], outside: &str, frame: Rect) -> Vec<Mark> {
    let bins = pair.latency_bins();
    // The farthest quantile that so many flows allow; of a few, the slowest flow, and of fewer it
    // has no median to be held against.
    let (upper, lower) = match quantiles_shown(bins).last() {
        Some(FlowQuantile::P50) => (FlowQuantile::Highest, FlowQuantile::P50),
        Some(quantile) => (*quantile, FlowQuantile::P50),
        None => (FlowQuantile::Highest, FlowQuantile::Lowest),
    };
    let slow = match upper {
        FlowQuantile::Highest => "slowest flow",
        upper => upper.name(),
    };
    let usual = match lower {
        FlowQuantile::Lowest => "the fastest",
        lower => lower.name(),
    };
    let gap = OverBins::gap(bins, upper, lower);
    let median = match gap.map(|gap| gap.level) {
        Some(Level::At(median)) => format!("{} above {usual}", percent(median)),
        _ => "lost".to_owned(),
    };
    let compared = gap.map_or(0, |gap| gap.bins);
    let flows = bins.iter().map(|bin| bin.flows).max().unwrap_or(0) as usize;
    let plain = format!(
        "{slow} {median}; {}, {}",
        plural(flows, "flow"),
        plural(compared, "bin")
    );
    let y = frame.y + 13.0;
    let note = |x: f64, text: &str| Text::new(Point::new(x, y), Anchor::End, Style::NOTE, text);
    let plain = note(frame.right(), &plain).coloured(Colour::FAINT_INK);
    let outside = note(frame.right() - plain.width() - 10.0, outside).coloured(Colour::ALARM);
    let room = frame.width - plain.width() - outside.width() - 24.0;
    let name = title(pair, among, Point::new(frame.x, y), (Style::TITLE, room));
    let texts = [name, plain, outside].into_iter();
    texts
        .filter(|text| !text.text.is_empty())
        .map(Mark::Text)
        .collect()
}

/// Above everything that a panel shows, in milliseconds: where what is lost is drawn.
fn beyond(bins: &[FlowLatencyBin]) -> f64 {
    let latencies = bins.iter().flat_map(|bin| bin.latency);
    values(latencies).fold(1.0, f64::max) * 10.0
}

/// A value of the bins over time: steps as long as a bin where these can be seen, else a line.
fn line(
    pair: &Pair<'_>,
    quantile: FlowQuantile,
    beyond: f64,
    plot: &Plot,
    clock: &Clock,
) -> Vec<Vec<neph_stats::Point>> {
    let (bins, wide) = (pair.latency_bins(), pair.view.settings.bin);
    let Some(first) = bins.first() else {
        return Vec::new();
    };
    let value = |bin: &FlowLatencyBin| bin.at(quantile).took().map_or(beyond, Span::millis_f64);
    let pixels = plot.x_px(clock.at(first.from + wide)) - plot.x_px(clock.at(first.from));
    if pixels >= MIN_STEP_WIDTH {
        let filled = bins.iter().filter(|bin| bin.has_enough(quantile));
        let filled: Vec<&FlowLatencyBin> = filled.collect();
        let runs = filled.chunk_by(|bin, next| next.from - bin.from <= wide);
        let step = |bin: &&FlowLatencyBin| {
            let ends = [bin.from, (bin.from + wide).min(pair.view.until)];
            let v = value(bin);
            ends.map(|at| neph_stats::Point { t: clock.at(at), v })
        };
        return runs
            .map(|run| run.iter().flat_map(step).collect())
            .collect();
    }
    let reading = |bin: &FlowLatencyBin| Reading {
        t: clock.at(bin.from),
        v: bin.has_enough(quantile).then(|| value(bin)),
    };
    let readings: Vec<Reading> = bins.iter().map(reading).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width in pixels"
    )]
    let grid = Grid {
        buckets: (plot.area.width / 2.0) as usize,
        longest_gap: f64::INFINITY,
    };
    envelope(&readings, grid).map_or_else(|_| Vec::new(), |envelope| envelope.runs)
}

fn over_time(pair: &Pair<'_>, plot: &Plot, clock: &Clock, unit: TimeUnit) -> Vec<Mark> {
    let at = |point: &neph_stats::Point| {
        Point::new(plot.x_px(point.t), plot.y_px(point.v * unit.per_milli()))
    };
    let beyond = beyond(pair.latency_bins());
    let line_of = |quantile: FlowQuantile| line(pair, quantile, beyond, plot, clock);
    let mut marks = Vec::new();
    let ends = (
        line_of(FlowQuantile::Lowest),
        line_of(FlowQuantile::Highest),
    );
    for (low, high) in ends.0.iter().zip(&ends.1) {
        let mut points: Vec<Point> = high.iter().map(at).collect();
        points.extend(low.iter().rev().map(at));
        marks.push(range(points));
    }
    for quantile in quantiles_shown(pair.latency_bins()).into_iter().rev() {
        marks.extend(line_of(quantile).iter().map(|run| Mark::Line {
            points: run.iter().map(at).collect(),
            stroke: ink(quantile),
        }));
    }
    marks
}

/// A distribution as steps; where all is lost, no value has any share.
fn steps(mut values: Vec<f64>, lost: usize, plot: &Plot, unit: TimeUnit) -> Option<Vec<Point>> {
    let points = if values.is_empty() && lost > 0 {
        Vec::new()
    } else {
        ecdf(Sorted::sort(&mut values).ok()?, lost, 200).ok()?
    };
    let mut path = vec![Point::new(plot.area.x, plot.area.bottom())];
    let mut before = 0.0;
    for point in points {
        let x = plot.x_px(point.value * unit.per_milli());
        path.push(Point::new(x, plot.y_px(before)));
        path.push(Point::new(x, plot.y_px(point.share)));
        before = point.share;
    }
    path.push(Point::new(plot.area.right(), plot.y_px(before)));
    Some(path)
}
