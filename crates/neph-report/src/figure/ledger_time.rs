//! The ledger stacked over time. Every panel has its own scale: a stack begins at 0, and a short
//! one would vanish next to a long one.

use neph_model::StageSet;
use neph_stats::Sorted;

use super::Figure;
use super::flags;
use super::ledger_bars::legend;
use super::sheet::{Note, Sheet, page_name, page_title};
use super::strip::{Segment, TitleNotes, panel_title, segments, time_axis};
use crate::axis::{Plot, Scale, Spread, Style};
use crate::palette;
use crate::scene::{Mark, Point, Rect};
use neph_analysis::data::{Exchange, FlowData};
use neph_analysis::means::{Means, order};
use neph_analysis::numbers::{TimeUnit, millis};
use neph_analysis::{CampaignData, PlotSettings};

const LEFT: f64 = 52.0;

/// A page for every few scenarios.
pub(crate) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let scenario_means: Vec<(usize, Means)> = data
        .measured(settings)
        .into_iter()
        .filter_map(|index| Some((index, Means::of(data.main_flows(index, settings))?)))
        .collect();
    let (height, per_page) = match scenario_means.len() {
        1 => (260.0, 1),
        2..=4 => (150.0, 4),
        _ => (92.0, 7),
    };
    let total = scenario_means.len().div_ceil(per_page);
    scenario_means
        .chunks(per_page)
        .enumerate()
        .map(|(page, panels)| {
            let title = page_title("Stages of the response time, over time", page, total);
            let subtitle = "Stages, stacked from first to last. Each step is the mean over the messages that were scheduled in it";
            let mut sheet = Sheet::new(title, subtitle);
            sheet.legend(&legend(panels.iter().map(|(_, means)| means)));
            for (scenario, means) in panels {
                let frame = sheet.take(height + Style::TICK_LABELS_HEIGHT + 26.0);
                sheet.draw(draw_panel(data, settings, *scenario, means, frame));
            }
            let mut notes = vec![Note::plain("Each panel has its own scale. Hatched: merged stages, because a timestamp between them is missing. White: no reply.")];
            notes.extend(flags::notes(data, panels.iter().map(|(s, _)| *s), settings));
            sheet.finish("ledger-time", page_name("ledger-time", page, total), &notes)
        })
        .collect()
}

/// The means of the messages due within a stretch of time.
#[derive(Clone, Debug)]
struct Bucket {
    from: f64,
    to: f64,
    /// One for each entry of the panel, in milliseconds; `None` without a reply.
    means: Option<Vec<f64>>,
}

impl Bucket {
    fn total(&self) -> Option<f64> {
        self.means.as_ref().map(|means| means.iter().sum())
    }
}

fn draw_panel(
    data: &CampaignData,
    settings: &PlotSettings,
    scenario: usize,
    means: &Means,
    frame: Rect,
) -> Vec<Mark> {
    let mut sets: Vec<StageSet> = means.entries.iter().map(|(set, _)| *set).collect();
    sets.sort_by_key(|set| order(*set));
    let area = Rect::new(
        frame.x + LEFT,
        frame.y + 22.0,
        frame.width - LEFT,
        frame.height - Style::TICK_LABELS_HEIGHT - 26.0,
    );
    let segments = segments(data.experiments_of(scenario, settings), area);
    let strips: Vec<Vec<Bucket>> = segments.iter().map(|s| buckets(s, &sets)).collect();
    let mut totals: Vec<f64> = strips.iter().flatten().filter_map(Bucket::total).collect();
    totals.sort_unstable_by(f64::total_cmp);
    let Some((scale, above_text)) = stack_scale(&totals) else {
        return Vec::new();
    };
    let unit = TimeUnit::up_to(scale.high);
    let plot = Plot {
        area,
        x: Scale::linear(0.0, 1.0),
        y: super::boxes::in_unit(scale, unit),
    };
    let mut marks = panel_title(
        data,
        settings,
        scenario,
        frame,
        &TitleNotes::outside(above_text),
    );
    plot.y_axis(&mut marks, unit.name());
    let mut inside = Vec::new();
    for strip in &strips {
        for run in strip.chunk_by(|a, b| a.means.is_some() == b.means.is_some()) {
            if run[0].means.is_some() {
                inside.extend(stack(run, &sets, &plot, unit));
            }
        }
    }
    marks.push(plot.clip(inside));
    time_axis(&mut marks, &segments, area, settings);
    marks
}

/// From 0 to the highest step; to twice the 95th percentile if some steps are far above it, with their
/// number as text.
pub(super) fn stack_scale(totals: &[f64]) -> Option<(Scale, String)> {
    let spread = Spread::of(Sorted::check(totals).ok()?)?;
    let p95 = totals[(totals.len() - 1) * 19 / 20];
    if spread.max <= p95 * 2.5 {
        return Some((Scale::linear(0.0, spread.max * 1.05), String::new()));
    }
    let scale = Scale::linear(0.0, p95 * 2.0);
    let above = totals.len() - totals.partition_point(|total| *total <= scale.high);
    let steps = if above == 1 { "step" } else { "steps" };
    let above_text = format!("{above} {steps} above, max {}", millis(spread.max));
    Some((scale, above_text))
}

/// Steps of at least four pixels and one message.
fn buckets(segment: &Segment<'_>, sets: &[StageSet]) -> Vec<Bucket> {
    let Some(flow) = segment.experiment.main() else {
        return Vec::new();
    };
    let messages = &flow.exchanges;
    let count = (segment.buckets() * 3 / 4).clamp(1, messages.len().max(1));
    let size = messages.len().div_ceil(count);
    let chunks: Vec<&[Exchange]> = messages.chunks(size.max(1)).collect();
    let start = |chunk: &[Exchange]| segment.x_px(chunk[0].intended.nanos());
    let end = segment.x + segment.width;
    chunks
        .iter()
        .enumerate()
        .map(|(index, chunk)| Bucket {
            from: start(chunk),
            to: chunks.get(index + 1).map_or(end, |next| start(next)),
            means: means(flow, chunk, sets),
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts in memory")]
fn means(flow: &FlowData, chunk: &[Exchange], sets: &[StageSet]) -> Option<Vec<f64>> {
    let mut sums = vec![0.0; sets.len()];
    let mut replies = 0_usize;
    for exchange in chunk.iter().filter(|exchange| exchange.response.is_some()) {
        replies += 1;
        for (set, time) in flow.ledger(exchange) {
            if let Some(index) = sets.iter().position(|known| *known == set) {
                sums[index] += time.millis_f64();
            }
        }
    }
    (replies > 0).then(|| sums.into_iter().map(|sum| sum / replies as f64).collect())
}

/// One area for each entry, from the sum of those below it to the sum with it, in steps.
fn stack(run: &[Bucket], sets: &[StageSet], plot: &Plot, unit: TimeUnit) -> Vec<Mark> {
    let mut lower = vec![0.0; run.len()];
    let mut marks = Vec::new();
    for (index, set) in sets.iter().enumerate() {
        let mut upper = lower.clone();
        for (bucket, top) in run.iter().zip(&mut upper) {
            *top += bucket
                .means
                .as_ref()
                .map_or(0.0, |means| means[index].max(0.0));
        }
        let y = |value: f64| plot.y_px(value * unit.per_milli());
        let mut points = Vec::new();
        for (bucket, top) in run.iter().zip(&upper) {
            step(&mut points, (bucket.from, bucket.to), y(*top));
        }
        let mut lower_edge = Vec::new();
        for (bucket, low) in run.iter().zip(&lower).rev() {
            step(&mut lower_edge, (bucket.to, bucket.from), y(*low));
        }
        points.append(&mut lower_edge);
        marks.extend(palette::entry_area(*set, points));
        lower = upper;
    }
    marks
}

/// Goes level from one x to another. A step that is not seen as one lengthens the last.
pub(super) fn step(points: &mut Vec<Point>, (from, to): (f64, f64), y: f64) {
    const MIN_STEP_HEIGHT: f64 = 0.08;
    if let [.., start, end] = points.as_mut_slice()
        && (start.y - y).abs() < MIN_STEP_HEIGHT
        && (start.y - end.y).abs() < 1e-9
    {
        end.x = to;
        return;
    }
    points.push(Point::new(from, y));
    points.push(Point::new(to, y));
}
