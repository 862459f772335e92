//! The density of a sample as steps (Bayesian blocks), and the valleys between its peaks.
//!
//! The steps explain the counts best when each further one has a fixed cost. The method is that of Scargle,
//! Norris, Jackson and Chiang ("Studies in astronomical time series analysis VI: Bayesian block
//! representations", 2013). The widths follow the noise of the sample: narrow where values repeat, wide where
//! they scatter. A random gap is no step.

use crate::casts::usize_to_f64;

/// The share of samples with a false step (the paper's p0). Most of these are no valley.
const FALSE_STEP_SHARE: f64 = 0.05;
/// A valley separates two peaks where its density is at most this share of the lower peak's.
const MAX_VALLEY_SHARE: f64 = 0.5;

/// Bins of constant density.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    /// The first bin.
    from: usize,
    /// The bin after the last.
    until: usize,
    /// Values in a bin.
    density: f64,
}

impl Step {
    fn middle(&self) -> f64 {
        0.5 * usize_to_f64(self.from + self.until)
    }
}

/// The valleys that separate the peaks of a histogram: the middle of each as a place in bins, lowest first.
/// `bins` has the number of values in each bin; the values must be independent. Peaks with middles fewer than
/// `apart` bins apart are one.
pub(crate) fn valleys(bins: &[f64], apart: f64) -> Vec<f64> {
    let steps = steps(bins);
    let mut peaks: Vec<usize> = (0..steps.len()).filter(|&i| is_peak(&steps, i)).collect();
    loop {
        let shallowest = peaks
            .windows(2)
            .enumerate()
            .map(|(index, pair)| (index, depth(&steps, pair[0], pair[1], apart)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        match shallowest {
            Some((index, ratio)) if ratio > MAX_VALLEY_SHARE => {
                let lower = steps[peaks[index]].density < steps[peaks[index + 1]].density;
                peaks.remove(if lower { index } else { index + 1 });
            }
            _ => break,
        }
    }
    let lowest = |pair: &[usize]| {
        let between = &steps[pair[0] + 1..pair[1]];
        let lowest = between
            .iter()
            .min_by(|a, b| a.density.total_cmp(&b.density));
        lowest.map(Step::middle)
    };
    peaks.windows(2).filter_map(lowest).collect()
}

/// The steps of a histogram that explain it best, by dynamic programming over their ends.
fn steps(bins: &[f64]) -> Vec<Step> {
    let mut sums = vec![0.0];
    for count in bins {
        sums.push(sums[sums.len() - 1] + count);
    }
    let penalty = penalty(sums[bins.len()]);
    let mut best = vec![0.0; bins.len() + 1];
    let mut begins = vec![0; bins.len() + 1];
    for until in 1..=bins.len() {
        let with =
            |from: usize| best[from] + fitness(sums[until] - sums[from], until - from) - penalty;
        let candidates = (0..until).map(|from| (from, with(from)));
        if let Some((from, value)) = candidates.max_by(|a, b| a.1.total_cmp(&b.1)) {
            (best[until], begins[until]) = (value, from);
        }
    }
    let mut steps = Vec::new();
    let mut until = bins.len();
    while until > 0 {
        let from = begins[until];
        let density = (sums[until] - sums[from]) / usize_to_f64(until - from);
        steps.push(Step {
            from,
            until,
            density,
        });
        until = from;
    }
    steps.reverse();
    steps
}

/// The logarithm of a step's likelihood.
fn fitness(count: f64, bins: usize) -> f64 {
    if count > 0.0 {
        count * (count / usize_to_f64(bins)).ln()
    } else {
        0.0
    }
}

/// The cost of a further step in a sample of `count` values.
fn penalty(count: f64) -> f64 {
    let count = count.max(1.0);
    (4.0 - (73.53 * FALSE_STEP_SHARE * count.powf(-0.478)).ln()).max(0.0)
}

fn is_peak(steps: &[Step], index: usize) -> bool {
    let density =
        |index: Option<usize>| index.and_then(|i| steps.get(i)).map_or(0.0, |s| s.density);
    let height = steps[index].density;
    height > density(index.checked_sub(1)) && height >= density(Some(index + 1))
}

/// The least density between two peaks as a share of the lower one's; 1 where they are too near.
fn depth(steps: &[Step], left_peak: usize, right_peak: usize, apart: f64) -> f64 {
    if steps[right_peak].middle() - steps[left_peak].middle() < apart {
        return 1.0;
    }
    let between = steps[left_peak + 1..right_peak]
        .iter()
        .map(|step| step.density);
    let valley = between.fold(f64::INFINITY, f64::min);
    valley / steps[left_peak].density.min(steps[right_peak].density)
}
