//! Unfairness: what the slower flows get beside the typical one, over time and as distribution.

use neph_flows::Fairness;
use neph_model::Span;
use neph_stats::{Grid, Reading, Sorted, ecdf, envelope};

use super::clock::{Clock, whole};
use super::pair::{Pair, pairs};
use crate::axis::{Limits, Plot, Scale, Spread, Style, TimeUnit, choose, percent};
use crate::figure::boxes::in_unit;
use crate::figure::boxplot::outside;
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet, page_name, page_title};
use crate::figure::{Figure, flags};
use crate::palette;
use crate::scene::{Anchor, Colour, Fill, Mark, Point, Rect, Stroke, Text, fit};
use crate::{CampaignData, PlotSettings};

const LEFT: f64 = 50.0;
/// Between the two panels of a pair.
const GAP: f64 = 58.0;
const PER_PAGE: usize = 6;
/// Where p50, p95 and p99 stand in [`Fairness::latency`], with their names.
const QUANTILES: [(usize, &str); 3] = [(1, "p50"), (2, "p95"), (3, "p99")];

/// Pages of a row for each pair: over time at the left, distributions at the right.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let mut found = pairs(data, settings);
    found.retain(|pair| pair.fairness().iter().any(|bin| bin.flows > 1));
    let total = found.len().div_ceil(PER_PAGE);
    let height = match found.len() {
        1 => 230.0,
        2 | 3 => 150.0,
        _ => 96.0,
    };
    let pages = found.chunks(PER_PAGE).enumerate().map(|(page, few)| {
        let bin = whole(few[0].view.settings.bin);
        let title = page_title("Unfairness among flows", page, total);
        let subtitle =
            format!("Quantiles over flows of each flow's median round trip, in bins of {bin}");
        let mut sheet = Sheet::new(title, &subtitle);
        let lines = QUANTILES
            .iter()
            .enumerate()
            .map(|(index, (_, name))| (Swatch::Line(ink(index)), (*name).to_owned()));
        let mut legend: Vec<(Swatch, String)> = lines.collect();
        legend.push((Swatch::Block(RANGE), "lowest to highest flow".to_owned()));
        sheet.legend(&legend);
        for pair in few {
            let place = sheet.take(height + 24.0 + Style::BELOW);
            sheet.draw(drawn(pair, height, place));
        }
        let mut scenarios: Vec<usize> = few.iter().map(|pair| pair.scenario).collect();
        scenarios.dedup();
        let mut notes = vec![Note::plain(CAPTION)];
        notes.extend(flags::notes(data, scenarios, settings));
        sheet.finish(
            "flow-fairness",
            page_name("flow-fairness", page, total),
            &notes,
        )
    });
    pages.collect()
}

const CAPTION: &str = "Left: where p50, p95 and p99 lie apart, some flows are slower than others at the same moment; where all of them rise together, a queue that all share. Right: which share of the bins had at most that value; a line with two steps is a value that changes between two paths. The difference told is the median over bins of p99 above p50. Each pair has its own scale; what lies outside is counted above it.";
const RANGE: Colour = Colour::hex(0x0093_9ba8);

fn ink(index: usize) -> Stroke {
    let colours = [0, 4, 1].map(palette::line_colour);
    let stroke = Stroke::solid(colours[index], 1.5);
    match index {
        1 => stroke.dashed(5.0, 2.0),
        _ => stroke,
    }
}

fn values(bins: &[Fairness], place: usize) -> Vec<f64> {
    let bins = bins.iter().filter(|bin| bin.flows > 0);
    bins.map(|bin| bin.latency[place].millis_f64()).collect()
}

fn drawn(pair: &Pair<'_>, height: f64, place: Rect) -> Vec<Mark> {
    let bins = pair.fairness();
    let mut all: Vec<f64> = (0..5).flat_map(|place| values(bins, place)).collect();
    all.sort_unstable_by(f64::total_cmp);
    let spread = Sorted::check(&all).ok().and_then(Spread::of);
    let Some(scale) = spread.and_then(|spread| choose(&[spread], Limits::default())) else {
        return Vec::new();
    };
    let unit = TimeUnit::up_to(scale.high);
    let scale = in_unit(scale, unit);
    let right = 210.0;
    let clock = Clock::of(pair.view);
    let time = Plot {
        area: Rect::new(
            place.x + LEFT,
            place.y + 22.0,
            place.width - LEFT - GAP - right,
            height,
        ),
        x: clock.scale,
        y: scale,
    };
    let mut marks = heading(pair, &outside(&all, &untold(scale, unit)), place);
    time.y_axis(&mut marks, unit.name());
    time.x_axis(&mut marks, &clock.title());
    marks.push(time.clipped(over_time(bins, &time, &clock, unit)));
    let shares = Plot {
        area: Rect::new(place.right() - right, time.area.y, right - 8.0, height),
        x: scale,
        y: Scale::linear(0.0, 1.0),
    };
    shares.x_axis(&mut marks, unit.name());
    shares.y_axis(&mut marks, "share of bins");
    let lines = QUANTILES
        .iter()
        .enumerate()
        .filter_map(|(index, (quantile, _))| {
            let points = steps(values(bins, *quantile), &shares, unit)?;
            let stroke = ink(index);
            Some(Mark::Line { points, stroke })
        });
    marks.push(shares.clipped(lines.collect()));
    marks
}

/// The scale in milliseconds again.
fn untold(scale: Scale, unit: TimeUnit) -> Scale {
    Scale {
        low: scale.low / unit.per_milli(),
        high: scale.high / unit.per_milli(),
        ..scale
    }
}

fn heading(pair: &Pair<'_>, outside: &str, place: Rect) -> Vec<Mark> {
    let bins = pair.fairness();
    let mut apart: Vec<f64> = bins
        .iter()
        .filter(|bin| bin.flows > 0 && bin.latency[1] > Span::from_nanos(0))
        .map(|bin| bin.latency[3].millis_f64() / bin.latency[1].millis_f64() - 1.0)
        .collect();
    apart.sort_unstable_by(f64::total_cmp);
    let median = apart.get(apart.len() / 2).copied().unwrap_or(0.0);
    let plain = format!(
        "p99 {} above p50, {} bins",
        percent(median),
        crate::axis::count(apart.len())
    );
    let y = place.y + 13.0;
    let note = |x: f64, text: &str| Text::new(Point::new(x, y), Anchor::End, Style::NOTE, text);
    let plain = note(place.right(), &plain).coloured(Colour::FAINT_INK);
    let outside = note(place.right() - plain.width() - 10.0, outside).coloured(Colour::ALARM);
    let room = place.width - plain.width() - outside.width() - 24.0;
    let name = fit(&pair.label, Style::TITLE, room / 1.06);
    let name = Text::new(Point::new(place.x, y), Anchor::Start, Style::TITLE, name).semibold();
    let all = [name, plain, outside].into_iter();
    all.filter(|text| !text.text.is_empty())
        .map(Mark::Text)
        .collect()
}

fn over_time(bins: &[Fairness], plot: &Plot, clock: &Clock, unit: TimeUnit) -> Vec<Mark> {
    let line = |place: usize| {
        let readings: Vec<Reading> = bins
            .iter()
            .map(|bin| Reading {
                t: clock.at(bin.from),
                v: (bin.flows > 0).then(|| bin.latency[place].millis_f64()),
            })
            .collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a width in pixels"
        )]
        let grid = Grid {
            buckets: (plot.area.width / 2.0) as usize,
            longest_gap: f64::INFINITY,
        };
        envelope(&readings, grid).map_or_else(|_| Vec::new(), |found| found.runs)
    };
    let at = |point: &neph_stats::Point| {
        Point::new(plot.px(point.t), plot.py(point.v * unit.per_milli()))
    };
    let mut marks = Vec::new();
    for (low, high) in line(0).iter().zip(&line(4)) {
        let mut points: Vec<Point> = high.iter().map(at).collect();
        points.extend(low.iter().rev().map(at));
        let fill = Fill {
            colour: RANGE,
            opacity: 0.3,
        };
        marks.push(Mark::Area { points, fill });
    }
    for (index, (quantile, _)) in QUANTILES.iter().enumerate().rev() {
        marks.extend(line(*quantile).iter().map(|run| Mark::Line {
            points: run.iter().map(at).collect(),
            stroke: ink(index),
        }));
    }
    marks
}

/// A distribution as steps.
fn steps(mut values: Vec<f64>, plot: &Plot, unit: TimeUnit) -> Option<Vec<Point>> {
    let points = ecdf(Sorted::sort(&mut values).ok()?, 0, 200).ok()?;
    let mut path = vec![Point::new(plot.area.x, plot.area.bottom())];
    let mut before = 0.0;
    for point in points {
        let x = plot.px(point.value * unit.per_milli());
        path.push(Point::new(x, plot.py(before)));
        path.push(Point::new(x, plot.py(point.share)));
        before = point.share;
    }
    path.push(Point::new(plot.area.right(), plot.py(before)));
    Some(path)
}
