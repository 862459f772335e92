//! How many flows move at the same time: path changes in every bin of time, as a distribution.

use std::collections::BTreeSet;

use super::clock::exact_text;
use super::colours::{MAX_DISTINGUISHED, curve_stroke, distinguished_stroke};
use super::pair_groups::{Band, PairGroup, Pooling};
use super::percent_axis::{LEFT, percent_axis};
use crate::axis::{Plot, Scale, Style};
use crate::figure::legend::Swatch;
use crate::figure::sheet::{Note, Sheet};
use crate::figure::{Figure, flags};
use crate::scene::{Fill, Mark, Point, Rect, Stroke};
use neph_analysis::fleet::{Pair, pairs, scenarios};
use neph_analysis::numbers::count;
use neph_analysis::text::{plural, to_f64};
use neph_analysis::{CampaignData, PlotSettings};

const HEIGHT: f64 = 260.0;
/// An axis whose end is more than so many times its 95th percentile is logarithmic.
const LOGARITHMIC_RATIO: f64 = 12.0;
/// Where a logarithmic axis begins: bins without a change lie left of it.
const LOGARITHMIC_START: f64 = 0.7;

/// The distribution of one group of pairs.
#[derive(Clone, Debug, PartialEq)]
struct CountLine {
    label: String,
    pooling: Pooling,
    /// For each number of path changes that occurs, the share of bins with no more.
    points: Vec<(u32, Band)>,
    /// Number of bins.
    bins: usize,
    stroke: Stroke,
    /// Whether it has a colour of its own.
    has_own_colour: bool,
}

impl CountLine {
    fn of(group: &PairGroup<'_>, stroke: Stroke) -> Option<Self> {
        let sorted_counts = |pair: &&Pair<'_>| -> Vec<u32> {
            let mut counts: Vec<u32> = pair
                .latency_bins()
                .iter()
                .filter_map(|b| b.changes)
                .collect();
            counts.sort_unstable();
            counts
        };
        let counts_by_block = |blocks: &Vec<&Pair<'_>>| -> Vec<Vec<u32>> {
            let block_counts = blocks.iter().map(sorted_counts);
            block_counts.filter(|counts| !counts.is_empty()).collect()
        };
        let by_pair: Vec<Vec<Vec<u32>>> =
            group.blocks_by_pair.iter().map(counts_by_block).collect();
        let by_pair: Vec<Vec<Vec<u32>>> = by_pair
            .into_iter()
            .filter(|pair| !pair.is_empty())
            .collect();
        let occurring_counts: BTreeSet<u32> = by_pair.iter().flatten().flatten().copied().collect();
        let share = |counts: &[u32], max: u32| {
            to_f64(counts.partition_point(|count| *count <= max)) / to_f64(counts.len())
        };
        let band = |max: u32| {
            let pair_band = |blocks: &Vec<Vec<u32>>| {
                Band::of(blocks.iter().map(|counts| share(counts, max)).collect())
            };
            match by_pair.as_slice() {
                [only] => pair_band(only),
                several => Band::of(
                    several
                        .iter()
                        .filter_map(pair_band)
                        .map(|b| b.median)
                        .collect(),
                ),
            }
        };
        let pooling = match by_pair.as_slice() {
            [] => return None,
            [only] if only.len() == 1 => Pooling::OneExperiment,
            [only] => Pooling::Blocks(only.len()),
            several => Pooling::Pairs(several.len()),
        };
        Some(Self {
            label: group.label.clone(),
            pooling,
            points: occurring_counts
                .iter()
                .filter_map(|n| Some((*n, band(*n)?)))
                .collect(),
            bins: by_pair.iter().flatten().map(Vec::len).sum(),
            stroke,
            has_own_colour: true,
        })
    }

    /// The least number of path changes that this share of the bins does not exceed.
    fn quantile(&self, share: f64) -> u32 {
        let reached = |point: &&(u32, Band)| point.1.median >= share - 1e-9;
        self.points.iter().find(reached).map_or(0, |point| point.0)
    }

    fn max_changes(&self) -> u32 {
        self.points.last().map_or(0, |point| point.0)
    }

    fn legend(&self) -> String {
        format!(
            "{}: median {}, p95 {}, at most {} (n {}{})",
            self.label,
            self.quantile(0.5),
            self.quantile(0.95),
            self.max_changes(),
            plural(self.bins, "bin"),
            self.pooling.count_text()
        )
    }
}

/// One figure over all pairs and seasons; nothing where no flow moved.
pub(in crate::figure) fn draw(data: &CampaignData, settings: &PlotSettings) -> Vec<Figure> {
    let pairs = pairs(data, settings);
    let lines = lines(&pairs);
    let longest_bin = pairs.iter().map(|pair| pair.view.bin()).max();
    let Some(bin) = longest_bin.filter(|_| lines.iter().any(|line| line.max_changes() > 0)) else {
        return Vec::new();
    };
    let bin = exact_text(bin);
    let subtitle = format!(
        "Share of the bins of {bin} that have at most the number of path changes on the axis"
    );
    let mut sheet = Sheet::new(format!("Path changes in every {bin}"), &subtitle);
    sheet.legend(&legend(&lines));
    let frame = sheet.take(HEIGHT + 12.0 + Style::X_AXIS_HEIGHT);
    let plot = Plot {
        area: Rect::new(
            frame.x + LEFT,
            frame.y + 8.0,
            frame.width - LEFT - 10.0,
            HEIGHT,
        ),
        x: scale(&lines),
        y: Scale::linear(0.0, 1.0),
    };
    let mut marks = Vec::new();
    plot.x_axis(
        &mut marks,
        &format!("path changes in {bin}, all flows of a pair"),
    );
    percent_axis(&mut marks, &plot, "share of bins");
    let mut inside = Vec::new();
    if lines.iter().filter(|line| line.has_own_colour).count() <= MAX_DISTINGUISHED {
        let bands = lines
            .iter()
            .filter(|line| line.has_own_colour && line.pooling != Pooling::OneExperiment);
        inside.extend(bands.map(|line| band(line, &plot)));
    }
    inside.extend(lines.iter().map(|line| Mark::Line {
        points: steps(&line.points, &plot, |band| band.median),
        stroke: line.stroke,
    }));
    marks.push(plot.clip(inside));
    sheet.draw(marks);
    let mut notes = vec![Note::plain(caption(&lines, &plot, &bin))];
    notes.extend(flags::notes(data, scenarios(&pairs), settings));
    vec![sheet.finish(
        "flow-change-counts",
        "flow-change-counts".to_owned(),
        &notes,
    )]
}

fn caption(lines: &[CountLine], plot: &Plot, bin: &str) -> String {
    let mut text = format!(
        "A line that begins high is a pair or season whose flows rarely move. A line to the right has {bin} in which many flows move at once, as with traffic engineering. The study Path Persistence in the Cloud (2020) compares a low and a high season this way."
    );
    let coloured = lines.iter().filter(|line| line.has_own_colour);
    text.push_str(Pooling::explanation(coloured.map(|line| line.pooling)));
    if lines.iter().any(|line| !line.has_own_colour) {
        text.push_str(" In colour: the pair with the most path changes, the one in the middle, and the one with the fewest.");
    }
    if plot.x.low > 0.0 {
        text.push_str(" Where a line enters at the left: the share of bins without a path change.");
    }
    text
}

/// The lines, those without a colour of their own first.
fn lines(pairs: &[Pair<'_>]) -> Vec<CountLine> {
    let groups = PairGroup::of_pairs(pairs);
    let exceeds_colours = groups.len() > MAX_DISTINGUISHED;
    let numbered = groups.iter().enumerate();
    let lines = numbered
        .filter_map(|(index, group)| CountLine::of(group, curve_stroke(index, groups.len())));
    let mut lines: Vec<CountLine> = lines.collect();
    if !exceeds_colours {
        return lines;
    }
    let sum = |line: &CountLine| {
        line.points
            .iter()
            .map(|(n, band)| f64::from(*n) * (1.0 - band.median))
            .sum::<f64>()
    };
    lines.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
    let last = lines.len().saturating_sub(1);
    for (index, line) in lines.iter_mut().enumerate() {
        let index_of_colour = [0, last.div_ceil(2), last]
            .iter()
            .position(|coloured_index| *coloured_index == index);
        line.has_own_colour = index_of_colour.is_some();
        line.stroke = index_of_colour.map_or(line.stroke, distinguished_stroke);
    }
    lines.sort_by_key(|line| line.has_own_colour);
    lines
}

fn legend(lines: &[CountLine]) -> Vec<(Swatch, String)> {
    let coloured = lines.iter().filter(|line| line.has_own_colour);
    let mut entries: Vec<(Swatch, String)> = coloured
        .map(|line| (Swatch::Line(line.stroke), line.legend()))
        .collect();
    let mut faint = lines.iter().filter(|line| !line.has_own_colour);
    if let Some(line) = faint.next() {
        let others = count(faint.count() + 1);
        entries.push((Swatch::Line(line.stroke), format!("{others} other pairs")));
    }
    entries
}

/// From 0; logarithmic where a few bins have many times what the others have.
fn scale(lines: &[CountLine]) -> Scale {
    let max = lines
        .iter()
        .map(CountLine::max_changes)
        .max()
        .unwrap_or(1)
        .max(1);
    let p95 = lines
        .iter()
        .map(|line| line.quantile(0.95))
        .max()
        .unwrap_or(1)
        .max(1);
    if f64::from(max) > LOGARITHMIC_RATIO * f64::from(p95) {
        Scale::logarithmic(LOGARITHMIC_START, f64::from(max) * 1.1)
    } else {
        // Ticks are whole numbers.
        Scale::linear(0.0, f64::from(max.max(4)) * 1.04)
    }
}

/// From the left edge on: what bins without a change have is the height at which it begins.
fn steps(points: &[(u32, Band)], plot: &Plot, height_of: impl Fn(&Band) -> f64) -> Vec<Point> {
    let mut y = plot.area.bottom();
    let mut path = Vec::new();
    for (number, band) in points {
        let x = plot.x_px(f64::from(*number)).max(plot.area.x);
        path.push(Point::new(x, y));
        y = plot.y_px(height_of(band));
        path.push(Point::new(x, y));
    }
    path.push(Point::new(plot.area.right(), y));
    path
}

fn band(line: &CountLine, plot: &Plot) -> Mark {
    let mut points = steps(&line.points, plot, |band| band.high);
    points.extend(steps(&line.points, plot, |band| band.low).into_iter().rev());
    let fill = Fill {
        colour: line.stroke.colour,
        opacity: 0.15,
    };
    Mark::Area { points, fill }
}
