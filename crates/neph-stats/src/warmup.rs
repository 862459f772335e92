//! Where the warm-up of a series ends: MSER-5.
//!
//! The start is cut off such that the estimated variance of the mean of the rest is least. Source: K. P. White,
//! "An effective truncation heuristic for bias reduction in simulation output" (1997). Batches of five: White,
//! Cobb and Spratt (2000).

/// Values in a batch.
const BATCH: usize = 5;

/// How many of the first values belong to the warm-up, a multiple of five. `None` if the series has fewer than
/// 20 values, or if the cut would be in its second half: then the series is too short to decide.
pub fn warmup_length(values: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = values
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / 5.0)
        .collect();
    if batches.len() < 4 {
        return None;
    }
    // From the last batch backwards, so that each cut costs one step.
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    let middle = batches[batches.len() / 2];
    for (index, batch) in batches.iter().enumerate().rev() {
        // Relative to a value of the series, so that squares do not cancel.
        let value = batch - middle;
        sum += value;
        squares += value * value;
        count += 1.0;
        let deviation = (squares - sum * sum / count).max(0.0);
        let statistic = deviation / (count * count);
        // A cut must leave enough batches.
        if index + BATCH <= batches.len() && statistic <= best.0 {
            best = (statistic, index);
        }
    }
    let cut = best.1;
    (cut * 2 <= batches.len()).then_some(cut * BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn noise(count: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count).map(|_| random.unit() - 0.5).collect()
    }

    #[test]
    fn a_start_that_differs_is_cut_off() {
        for seed in 0..20 {
            let mut values = noise(200, seed);
            for (index, value) in (0_u32..40).zip(&mut values) {
                *value += 10.0 * (-f64::from(index) / 10.0).exp();
            }
            let cut = warmup_length(&values).expect("long enough");
            assert!((20..=70).contains(&cut), "{cut}");
        }
    }

    #[test]
    fn a_steady_series_loses_little() {
        let cuts: Vec<usize> = (0..50)
            .filter_map(|seed| warmup_length(&noise(200, seed)))
            .collect();
        assert!(cuts.len() >= 45, "{cuts:?}");
        let mean = cuts.iter().sum::<usize>() / cuts.len();
        assert!(mean <= 30, "{cuts:?}");
        assert_eq!(warmup_length(&[3.0; 40]), Some(0));
    }

    #[test]
    fn a_series_that_only_rises_has_no_steady_part() {
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(warmup_length(&rising), None);
        assert_eq!(warmup_length(&[1.0; 19]), None);
    }
}
