//! Unfairness: latency of the slower flows against the typical one, over time and as distribution.

use neph_flows::{FlowLatencyBin, FlowQuantile, Latency, OverBins};
use neph_model::Span;
use neph_stats::{Grid, Level, Reading, Sorted, ecdf, envelope};

use super::clock::{Clock, exact_text};
use super::percent_axis::percent_axis;
use super::periods::merged_bars;
use super::selected_pairs::SelectedPairs;
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

/// The quantiles that the number of flows allows: of eight flows, p95 is the slowest flow.
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
    let pages = pairs.chunks(PER_PAGE).enumerate().map(|(page, on_page)| {
        let bin = exact_text(on_page[0].view.bin());
        let title = page_title("Unfairness among flows", page, total);
        let subtitle =
            format!("Quantiles over flows of each flow's median round trip, in bins of {bin}");
        let mut sheet = Sheet::new(title, &subtitle);
        let lines = FlowQuantile::PERCENTILES
            .into_iter()
            .filter(|quantile| {
                on_page
                    .iter()
                    .any(|pair| quantiles_shown(pair.latency_bins()).contains(quantile))
            })
            .map(|quantile| {
                (
                    Swatch::Line(quantile_stroke(quantile)),
                    quantile.name().to_owned(),
                )
            });
        let mut legend: Vec<(Swatch, String)> = lines.collect();
        legend.push((Swatch::Area(GREY), "lowest to highest flow".to_owned()));
        sheet.legend(&legend);
        for pair in on_page {
            let frame = sheet.take(height + 24.0 + loss_row_height(pair) + Style::X_AXIS_HEIGHT);
            sheet.draw(draw_panel(pair, &labels, height, frame));
        }
        let mut scenarios: Vec<usize> = on_page.iter().map(|pair| pair.scenario).collect();
        scenarios.dedup();
        let mut notes = vec![Note::plain(caption(on_page) + &selection.sentence())];
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
    if pairs.iter().any(|pair| loss_row_height(pair) > 0.0) {
        text.push_str(" A flow that lost half of its messages or more counts as slower than all others. Bins in which a percentile or the highest flow is such a flow are marked above the left panel; at the right its line ends below 100 %.");
    }
    let lacks_quantile = |pair: &Pair<'_>| {
        quantiles_shown(pair.latency_bins()).len() < FlowQuantile::PERCENTILES.len()
    };
    if pairs.iter().any(lacks_quantile) {
        let [p50, p95, p99] = FlowQuantile::PERCENTILES.map(FlowQuantile::needs);
        text.push_str(&format!(" A percentile needs enough flows: p50 {p50}, p95 {p95}, p99 {p99}. With fewer, it is not drawn."));
    }
    text
}

const RANGE: Colour = Colour::hex(0x0093_9ba8);
const GREY: Fill = Fill::translucent(RANGE);

fn quantile_stroke(quantile: FlowQuantile) -> Stroke {
    let colour = |number| Stroke::solid(palette::line_colour(number), 1.5);
    match quantile {
        FlowQuantile::P50 => colour(0),
        FlowQuantile::P95 => colour(4).dashed(5.0, 2.0),
        _ => colour(1),
    }
}

/// Latencies of the bins with enough flows.
fn latencies_of(bins: &[FlowLatencyBin], quantile: FlowQuantile) -> impl Iterator<Item = Latency> {
    let bins = bins.iter().filter(move |bin| bin.has_enough(quantile));
    bins.map(move |bin| bin.at(quantile))
}

/// The latencies that are known, in milliseconds.
fn values(latencies: impl Iterator<Item = Latency>) -> impl Iterator<Item = f64> {
    latencies.filter_map(Latency::took).map(Span::millis_f64)
}

/// The height of the text about lost flows.
fn loss_row_height(pair: &Pair<'_>) -> f64 {
    let is_lost = |bin: &FlowLatencyBin| bin.at(FlowQuantile::Highest) == Latency::Lost;
    if pair.latency_bins().iter().any(is_lost) {
        LOSS_ROW_HEIGHT
    } else {
        0.0
    }
}

/// In which bins the highest flow (the grey) and the quantiles are lost: above the panel, since they
/// are above everything that it shows.
fn loss_row(pair: &Pair<'_>, plot: &Plot, clock: &Clock) -> Vec<Mark> {
    let (bins, bin_width) = (pair.latency_bins(), pair.view.settings.bin);
    if loss_row_height(pair) == 0.0 {
        return Vec::new();
    }
    let cells = |quantile: FlowQuantile, (top, height): (f64, f64), fill: Fill| {
        let is_lost =
            |bin: &&FlowLatencyBin| bin.has_enough(quantile) && bin.at(quantile) == Latency::Lost;
        let lost_bins = bins.iter().filter(is_lost);
        let periods = lost_bins.map(|bin| (bin.from, bin.from + bin_width));
        let rects = merged_bars(periods, plot, clock, (plot.area.y - top, height));
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
            Fill::solid(quantile_stroke(quantile).colour),
        ));
    }
    let at = Point::new(plot.area.x - 6.0, plot.area.y - 4.0);
    let label = Text::new(at, Anchor::End, Style::TICK, "lost");
    marks.push(Mark::Text(label.coloured(Colour::ALARM)));
    marks
}

fn draw_panel(pair: &Pair<'_>, labels: &[String], height: f64, frame: Rect) -> Vec<Mark> {
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
    let width = 210.0;
    let clock = Clock::of(pair);
    let time_plot = Plot {
        area: Rect::new(
            frame.x + LEFT,
            frame.y + 22.0 + loss_row_height(pair),
            frame.width - LEFT - GAP - width,
            height,
        ),
        x: clock.scale,
        y: scale,
    };
    let mut marks = heading(
        pair,
        labels,
        &outside(&latencies, &to_millis(scale, unit)),
        frame,
    );
    time_plot.y_axis(&mut marks, &format!("round trip, {}", unit.name()));
    time_plot.x_axis(&mut marks, &clock.title(pair));
    marks.push(time_plot.clip(time_marks(pair, &time_plot, &clock, unit)));
    marks.extend(loss_row(pair, &time_plot, &clock));
    let share_plot = Plot {
        area: Rect::new(frame.right() - width, time_plot.area.y, width - 8.0, height),
        x: scale,
        y: Scale::linear(0.0, 1.0),
    };
    share_plot.x_axis(&mut marks, &format!("round trip, {}", unit.name()));
    percent_axis(&mut marks, &share_plot, "share of bins");
    marks.push(share_plot.clip(distribution_marks(bins, &share_plot, unit)));
    marks
}

/// The distributions over bins: of the lowest and the highest flow as the edges of an area, of the
/// quantiles as lines.
fn distribution_marks(bins: &[FlowLatencyBin], plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
    let distribution = |quantile: FlowQuantile| {
        let lost = latencies_of(bins, quantile).filter(|latency| *latency == Latency::Lost);
        let values = values(latencies_of(bins, quantile)).collect();
        steps(values, lost.count(), plot, unit)
    };
    let mut marks = Vec::new();
    let ends = (
        distribution(FlowQuantile::Lowest),
        distribution(FlowQuantile::Highest),
    );
    if let (Some(mut points), Some(highest)) = ends {
        points.extend(highest.into_iter().rev());
        marks.push(range_area(points));
    }
    marks.extend(quantiles_shown(bins).into_iter().filter_map(|quantile| {
        let (points, stroke) = (distribution(quantile)?, quantile_stroke(quantile));
        Some(Mark::Line { points, stroke })
    }));
    marks
}

/// The area from the lowest flow to the highest.
fn range_area(points: Vec<Point>) -> Mark {
    Mark::Area { points, fill: GREY }
}

/// The scale in milliseconds.
fn to_millis(scale: Scale, unit: TimeUnit) -> Scale {
    Scale {
        low: scale.low / unit.per_milli(),
        high: scale.high / unit.per_milli(),
        ..scale
    }
}

fn heading(pair: &Pair<'_>, labels: &[String], outside: &str, frame: Rect) -> Vec<Mark> {
    let bins = pair.latency_bins();
    // The highest quantile that the number of flows allows, else the slowest flow. With too few
    // flows for a median, the slowest is compared with the fastest.
    let (upper, lower) = match quantiles_shown(bins).last() {
        Some(FlowQuantile::P50) => (FlowQuantile::Highest, FlowQuantile::P50),
        Some(quantile) => (*quantile, FlowQuantile::P50),
        None => (FlowQuantile::Highest, FlowQuantile::Lowest),
    };
    let upper_name = match upper {
        FlowQuantile::Highest => "slowest flow",
        upper => upper.name(),
    };
    let lower_name = match lower {
        FlowQuantile::Lowest => "the fastest",
        lower => lower.name(),
    };
    let gap = OverBins::gap(bins, upper, lower);
    let median = match gap.map(|gap| gap.level) {
        Some(Level::At(median)) => format!("{} above {lower_name}", percent(median)),
        _ => "lost".to_owned(),
    };
    let bin_count = gap.map_or(0, |gap| gap.bins);
    let flows = bins.iter().map(|bin| bin.flows).max().unwrap_or(0) as usize;
    let summary = format!(
        "{upper_name} {median}; {}, {}",
        plural(flows, "flow"),
        plural(bin_count, "bin")
    );
    let y = frame.y + 13.0;
    let note = |x: f64, text: &str| Text::new(Point::new(x, y), Anchor::End, Style::NOTE, text);
    let summary = note(frame.right(), &summary).coloured(Colour::FAINT_INK);
    let outside = note(frame.right() - summary.width() - 10.0, outside).coloured(Colour::ALARM);
    let room = frame.width - summary.width() - outside.width() - 24.0;
    let name = title(pair, labels, Point::new(frame.x, y), (Style::TITLE, room));
    let texts = [name, summary, outside].into_iter();
    texts
        .filter(|text| !text.text.is_empty())
        .map(Mark::Text)
        .collect()
}

/// The value of lost flows in milliseconds: above everything that a panel shows.
fn lost_value(bins: &[FlowLatencyBin]) -> f64 {
    let latencies = bins.iter().flat_map(|bin| bin.latency);
    values(latencies).fold(1.0, f64::max) * 10.0
}

/// A value of the bins over time: steps as long as a bin where these can be seen, else a line.
fn quantile_runs(
    pair: &Pair<'_>,
    quantile: FlowQuantile,
    lost_value: f64,
    plot: &Plot,
    clock: &Clock,
) -> Vec<Vec<neph_stats::Point>> {
    let (bins, bin_width) = (pair.latency_bins(), pair.view.settings.bin);
    let Some(first) = bins.first() else {
        return Vec::new();
    };
    let value = |bin: &FlowLatencyBin| bin.at(quantile).took().map_or(lost_value, Span::millis_f64);
    let pixels = plot.x_px(clock.at(first.from + bin_width)) - plot.x_px(clock.at(first.from));
    if pixels >= MIN_STEP_WIDTH {
        let filled = bins.iter().filter(|bin| bin.has_enough(quantile));
        let filled: Vec<&FlowLatencyBin> = filled.collect();
        let runs = filled.chunk_by(|bin, next| next.from - bin.from <= bin_width);
        let step = |bin: &&FlowLatencyBin| {
            let ends = [bin.from, (bin.from + bin_width).min(pair.view.until)];
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

fn time_marks(pair: &Pair<'_>, plot: &Plot, clock: &Clock, unit: TimeUnit) -> Vec<Mark> {
    let at = |point: &neph_stats::Point| {
        Point::new(plot.x_px(point.t), plot.y_px(point.v * unit.per_milli()))
    };
    let lost_value = lost_value(pair.latency_bins());
    let line_of = |quantile: FlowQuantile| quantile_runs(pair, quantile, lost_value, plot, clock);
    let mut marks = Vec::new();
    let ends = (
        line_of(FlowQuantile::Lowest),
        line_of(FlowQuantile::Highest),
    );
    for (low, high) in ends.0.iter().zip(&ends.1) {
        let mut points: Vec<Point> = high.iter().map(at).collect();
        points.extend(low.iter().rev().map(at));
        marks.push(range_area(points));
    }
    for quantile in quantiles_shown(pair.latency_bins()).into_iter().rev() {
        marks.extend(line_of(quantile).iter().map(|run| Mark::Line {
            points: run.iter().map(at).collect(),
            stroke: quantile_stroke(quantile),
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
    let mut previous_share = 0.0;
    for point in points {
        let x = plot.x_px(point.value * unit.per_milli());
        path.push(Point::new(x, plot.y_px(previous_share)));
        path.push(Point::new(x, plot.y_px(point.share)));
        previous_share = point.share;
    }
    path.push(Point::new(plot.area.right(), plot.y_px(previous_share)));
    Some(path)
}
