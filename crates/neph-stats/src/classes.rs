//! Classes of values that lie together: base latencies that are probably one path.
//!
//! Clusters in one dimension whose number is found, not given, and which do not depend on the order
//! of the values. Neighbours further apart than the gap (the tolerance beyond which a detector reports
//! a change) are always two classes. Nearer values are not one class for that alone: a chain of
//! neighbours (single linkage) would join levels that lie far apart. So what is left is cut
//!
//! 1. where it is wider than the gap, at gaps that are most of its width or far wider than the others;
//! 2. in the valleys of its density ([`crate::density`]), which are evaluated by the noise of the values;
//! 3. where it is wider than two gaps, in any case: each value is within a gap of its path.
//!
//! Values of little weight between two classes (a change that was seen halfway) are set aside first.

use crate::casts::to_usize;
use crate::density::valleys;
use crate::error::StatsError;

/// A value with its weight, for example a base latency and the time that flows spent at it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// The value.
    pub value: f64,
    /// How much it counts, in independent values: 0 or above.
    pub weight: f64,
}

/// Values that lie together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelClass {
    /// The weighted median.
    pub centre: f64,
    /// The lowest value.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Its share of all weight that belongs to a class, 0..=1.
    pub share: f64,
    /// How many values it has.
    pub n: usize,
}

/// Two values may differ by this part of the gap and still be the same level: the width of the bins
/// in which density is counted.
const RESOLUTION: f64 = 1.0 / 16.0;
/// Peaks of density nearer than this part of the gap are one level.
const MIN_APART: f64 = 0.25;
/// Gaps that are at least this part of the width of all values separate levels.
const SEPARATING_GAP_SHARE: f64 = 0.6;
/// Less than this share of the weight that lies together is an outlier, which cuts nothing in two.
const MAX_OUTLIER_SHARE: f64 = 0.05;
/// Gaps of at least this share of the widest are as wide.
const WIDE_GAP_SHARE: f64 = 0.7;
/// As are gaps that are so many times the median one.
const WIDE_GAP_RATIO: f64 = 5.0;
/// Most bins in which density is counted.
const MAX_BINS: f64 = 1024.0;

/// The classes of `values`, lowest first; weights are numbers of independent values. Neighbours more
/// than `gap` apart are in different classes, and no class is wider than two gaps. Values whose
/// surroundings, half a gap to both sides, have less than `min_share` (0..1) of all weight belong to no
/// class.
///
/// # Errors
/// [`StatsError::NotFinite`]; [`StatsError::OutOfRange`] for a negative weight, a gap that is not
/// above 0, a `min_share` outside 0..1.
pub fn classes(
    values: &[Weighted],
    gap: f64,
    min_share: f64,
) -> Result<Vec<LevelClass>, StatsError> {
    refuse(values, gap, min_share)?;
    let mut sorted: Vec<Weighted> = values.iter().copied().filter(|v| v.weight > 0.0).collect();
    sorted.sort_by(|a, b| {
        a.value
            .total_cmp(&b.value)
            .then(a.weight.total_cmp(&b.weight))
    });
    let total_weight = weight(&sorted);
    let dense_values = dense(&sorted, gap, min_share * total_weight);
    let total = weight(&dense_values);
    Ok(dense_values
        .chunk_by(|a, b| b.value - a.value <= gap)
        .flat_map(|near| cut_in_gaps(near, gap))
        .flat_map(|near| cut_in_valleys(near, gap))
        .flat_map(|peak| cut_to_width(peak, gap))
        .map(|together| class(together, total))
        .collect())
}

/// Values that lie near each other, cut where their density has a valley.
fn cut_in_valleys(near: &[Weighted], gap: f64) -> Vec<&[Weighted]> {
    let low = near[0].value;
    let width = near[near.len() - 1].value - low;
    let height = (gap * RESOLUTION).max(width / MAX_BINS);
    let mut bins = vec![0.0; to_usize(width / height) + 1];
    for value in near {
        bins[to_usize((value.value - low) / height)] += value.weight;
    }
    let mut remaining = near;
    let mut cut = Vec::new();
    for valley in valleys(&bins, MIN_APART * gap / height) {
        let below = remaining.partition_point(|v| v.value < low + valley * height);
        let (peak, above) = remaining.split_at(below);
        cut.push(peak);
        remaining = above;
    }
    cut.push(remaining);
    cut.retain(|peak| !peak.is_empty());
    cut
}

/// Values that lie together over more than the gap, cut at their widest gaps where these are far wider
/// than others: levels with little noise, however few values they have.
fn cut_in_gaps(near: &[Weighted], gap: f64) -> Vec<&[Weighted]> {
    let (low, high) = (near[0].value, near[near.len() - 1].value);
    if high - low <= gap {
        return vec![near];
    }
    let step = |at: usize| near[at].value - near[at - 1].value;
    let light = MAX_OUTLIER_SHARE * weight(near);
    let is_inner = |at: &usize| weight(&near[..*at]) >= light && weight(&near[*at..]) >= light;
    let inner = (1..near.len()).filter(is_inner);
    let widest = inner.clone().map(step).fold(0.0, f64::max);
    let mut wide: Vec<usize> = inner
        .filter(|&at| step(at) >= WIDE_GAP_SHARE * widest)
        .collect();
    let is_most =
        wide.iter().map(|&at| step(at)).sum::<f64>() >= SEPARATING_GAP_SHARE * (high - low);
    let is_far_wider = widest >= WIDE_GAP_RATIO * middle_step(near);
    if widest < MIN_APART * gap || !(is_most || is_far_wider) {
        return vec![near];
    }
    // The widest first, of equal ones that in the middle: no part may be outliers alone.
    let from_middle = |at: usize| (near[at].value + near[at - 1].value - low - high).abs();
    wide.sort_by(|&a, &b| {
        let wider = step(b).total_cmp(&step(a));
        wider.then(from_middle(a).total_cmp(&from_middle(b)))
    });
    let mut cuts: Vec<usize> = Vec::new();
    for at in wide {
        let index = cuts.partition_point(|&other| other < at);
        let from = index.checked_sub(1).map_or(0, |before| cuts[before]);
        let until = cuts.get(index).copied().unwrap_or(near.len());
        if weight(&near[from..at]) >= light && weight(&near[at..until]) >= light {
            cuts.insert(index, at);
        }
    }
    cut_at(near, &cuts)
}

/// The median of the steps between neighbours.
fn middle_step(sorted: &[Weighted]) -> f64 {
    let mut steps: Vec<f64> = sorted.windows(2).map(|w| w[1].value - w[0].value).collect();
    let middle = steps.len() / 2;
    *steps.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Values without a valley, cut until none is wider than a path's can be: the heaviest that fit stay
/// together.
fn cut_to_width(peak: &[Weighted], gap: f64) -> Vec<&[Weighted]> {
    let fits = |from: usize| peak.partition_point(|v| v.value <= peak[from].value + 2.0 * gap);
    if fits(0) == peak.len() {
        return vec![peak];
    }
    let (mut heaviest, mut fitting) = (0.0, (0, fits(0)));
    for from in 0..peak.len() {
        let until = fits(from);
        let heavy = weight(&peak[from..until]);
        if heavy > heaviest {
            (heaviest, fitting) = (heavy, (from, until));
        }
    }
    let mut parts = Vec::new();
    if fitting.0 > 0 {
        parts.extend(cut_to_width(&peak[..fitting.0], gap));
    }
    parts.push(&peak[fitting.0..fitting.1]);
    if fitting.1 < peak.len() {
        parts.extend(cut_to_width(&peak[fitting.1..], gap));
    }
    parts
}

/// The parts that begin at these places, and the one before.
fn cut_at<'a>(values: &'a [Weighted], cuts: &[usize]) -> Vec<&'a [Weighted]> {
    let mut parts = Vec::new();
    let mut from = 0;
    for &at in cuts.iter().chain(&[values.len()]) {
        parts.push(&values[from..at]);
        from = at;
    }
    parts
}

fn weight(values: &[Weighted]) -> f64 {
    values.iter().map(|v| v.weight).sum()
}

/// Which class a value belongs to: the one whose range, widened by `reach`, holds it, and whose
/// centre is nearest.
pub fn class_of(classes: &[LevelClass], value: f64, reach: f64) -> Option<usize> {
    let contains = |c: &LevelClass| c.low - reach <= value && value <= c.high + reach;
    classes
        .iter()
        .enumerate()
        .filter(|(_, c)| contains(c))
        .min_by(|(_, a), (_, b)| {
            (a.centre - value)
                .abs()
                .total_cmp(&(b.centre - value).abs())
        })
        .map(|(index, _)| index)
}

fn refuse(values: &[Weighted], gap: f64, min_share: f64) -> Result<(), StatsError> {
    let subject = "value or weight of a class";
    if let Some(index) = values
        .iter()
        .position(|v| !v.value.is_finite() || !v.weight.is_finite())
    {
        return Err(StatsError::NotFinite { subject, index });
    }
    let out = |subject, value, wanted| {
        Err(StatsError::OutOfRange {
            subject,
            value,
            wanted,
        })
    };
    if let Some(bad) = values.iter().find(|v| v.weight < 0.0) {
        return out("weight", bad.weight, "0 or above");
    }
    if !(gap.is_finite() && gap > 0.0) {
        return out("gap between classes", gap, "above 0");
    }
    if !(0.0..1.0).contains(&min_share) {
        return out("least share of a class", min_share, "from 0 to below 1");
    }
    Ok(())
}

/// The values whose surroundings weigh at least `min_share`.
fn dense(sorted: &[Weighted], gap: f64, min_share: f64) -> Vec<Weighted> {
    let (mut from, mut to, mut weight) = (0, 0, 0.0);
    let mut dense_values = Vec::with_capacity(sorted.len());
    for value in sorted {
        while to < sorted.len() && sorted[to].value <= value.value + 0.5 * gap {
            weight += sorted[to].weight;
            to += 1;
        }
        while sorted[from].value < value.value - 0.5 * gap {
            weight -= sorted[from].weight;
            from += 1;
        }
        if weight >= min_share {
            dense_values.push(*value);
        }
    }
    dense_values
}

fn class(together: &[Weighted], total: f64) -> LevelClass {
    let weight = weight(together);
    let mut passed = 0.0;
    let middle = together.iter().find(|v| {
        passed += v.weight;
        passed >= 0.5 * weight
    });
    let last = together[together.len() - 1];
    LevelClass {
        centre: middle.unwrap_or(&last).value,
        low: together[0].value,
        high: last.value,
        share: weight / total,
        n: together.len(),
    }
}

#[cfg(test)]
mod tests;
