//! Hartigan's dip test of unimodality: whether a sample has more than one mode.
//!
//! The dip is the largest distance between the sample's distribution function and the nearest unimodal one
//! (Hartigan and Hartigan 1985). The algorithm is theirs (AS 217, R's `diptest`): the greatest convex
//! minorant and the least concave majorant over an interval that narrows around the mode. p is the share of
//! uniform samples of the same size with a dip at least as large, as the uniform distribution has the largest
//! dips.

use crate::casts::usize_to_f64;
use crate::error::StatsError;
use crate::random::Random;
use crate::sorted::{Sorted, refuse_fewer};

/// The largest sample size for draws.
const LARGEST_NULL: usize = 1000;
/// Root n times the dip of n uniform values approaches its limit as 1 - 0.53 / root n. At 200, 1,000 and
/// 4,096 values it is 3.8, 1.7 and 0.8 % below it. That is from medians, 95 % and 99 % quantiles of 4,000 to
/// 40,000 samples (Python's diptest).
const APPROACH_COEFFICIENT: f64 = 0.53;

/// The dip of a sample: from 1 / (2 n) for the most unimodal to below 1 / 4.
///
/// # Errors
/// [`StatsError::TooFew`] without values.
pub fn dip(sample: Sorted<'_>) -> Result<f64, StatsError> {
    refuse_fewer("dip", 1, sample.len())?;
    let values = sample.values();
    let (mut low, mut high) = (0, values.len() - 1);
    let mut dip: f64 = 1.0;
    while values[low] < values[high] {
        let hulls = Hulls::of(values, low, high);
        let widest = hulls.widest();
        if widest.distance < dip {
            break;
        }
        dip = dip.max(hulls.error_outside(&widest));
        if (widest.low, widest.high) == (low, high) {
            break;
        }
        (low, high) = (widest.low, widest.high);
    }
    Ok(dip / (2.0 * usize_to_f64(values.len())))
}

/// The minorant and the majorant of the distribution function between two values, as the indices where they
/// touch it. Heights are in samples: the function rises from i to i + 1 at value i.
struct Hulls<'a> {
    values: &'a [f64],
    minorant: Vec<usize>,
    majorant: Vec<usize>,
}

/// Where minorant and majorant are furthest apart.
struct Widest {
    distance: f64,
    low: usize,
    high: usize,
}

impl<'a> Hulls<'a> {
    fn of(values: &'a [f64], low: usize, high: usize) -> Self {
        let turns = |a: usize, b: usize, c: usize| {
            (values[b] - values[a]) * usize_to_f64(c - b)
                - (values[c] - values[b]) * usize_to_f64(b - a)
        };
        let (mut minorant, mut majorant): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for next in low..=high {
            while let [.., a, b] = minorant[..]
                && turns(a, b, next) <= 0.0
            {
                minorant.pop();
            }
            minorant.push(next);
            while let [.., a, b] = majorant[..]
                && turns(a, b, next) >= 0.0
            {
                majorant.pop();
            }
            majorant.push(next);
        }
        Self {
            values,
            minorant,
            majorant,
        }
    }

    /// The part of a segment's rise before `index`; `None` for a vertical one.
    fn rise(&self, from: usize, to: usize, index: usize) -> Option<f64> {
        let width = self.values[to] - self.values[from];
        let part = self.values[index] - self.values[from];
        (width > 0.0).then(|| part * usize_to_f64(to - from) / width)
    }

    fn widest(&self) -> Widest {
        let (minorant, majorant) = (&self.minorant, &self.majorant);
        let mut widest = Widest {
            distance: 1.0,
            low: minorant[0],
            high: majorant[majorant.len() - 1],
        };
        if minorant.len() == 2 && majorant.len() == 2 {
            return widest;
        }
        widest.distance = 0.0;
        let (mut g, mut l) = (1, 1);
        while g < minorant.len() && l < majorant.len() {
            let (below, above) = (minorant[g], majorant[l]);
            let candidate = if below > above {
                let from = minorant[g - 1];
                l += 1;
                self.rise(from, below, above).map(|rise| {
                    (
                        usize_to_f64(above + 1) - usize_to_f64(from) - rise,
                        from,
                        above,
                    )
                })
            } else {
                let from = majorant[l - 1];
                g += 1;
                self.rise(from, above, below).map(|rise| {
                    (
                        usize_to_f64(from + 1) + rise - usize_to_f64(below),
                        below,
                        above,
                    )
                })
            };
            if let Some((distance, low, high)) = candidate
                && distance >= widest.distance
            {
                widest = Widest {
                    distance,
                    low,
                    high,
                };
            }
        }
        widest
    }

    /// The distance of the distribution function from the minorant before the mode, and from the majorant
    /// after it.
    fn error_outside(&self, mode: &Widest) -> f64 {
        let mut error: f64 = 0.0;
        for pair in self.minorant.windows(2).filter(|p| p[1] <= mode.low) {
            error = error.max(1.0);
            for index in pair[0]..=pair[1] {
                if let Some(rise) = self.rise(pair[0], pair[1], index) {
                    error = error.max(usize_to_f64(index + 1) - usize_to_f64(pair[0]) - rise);
                }
            }
        }
        for pair in self.majorant.windows(2).filter(|p| p[0] >= mode.high) {
            error = error.max(1.0);
            for index in pair[0]..=pair[1] {
                if let Some(rise) = self.rise(pair[0], pair[1], index) {
                    error = error.max(usize_to_f64(pair[0] + 1) + rise - usize_to_f64(index));
                }
            }
        }
        error
    }
}

/// The dips of uniform samples of one size, for p values.
#[derive(Debug, Clone)]
pub struct DipNull {
    size: usize,
    /// Ascending.
    dips: Vec<f64>,
}

impl DipNull {
    /// Draws `draws` uniform samples of `size` values, at most 1000. The same seed gives the same p.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] for fewer than 4 values, which cannot dip, or without draws.
    pub fn new(size: usize, draws: usize, seed: u64) -> Result<Self, StatsError> {
        refuse_fewer("dip test", 4, size)?;
        refuse_fewer("draws of the dip test", 1, draws)?;
        let size = size.min(LARGEST_NULL);
        let mut random = Random::new(seed);
        let mut dips = Vec::with_capacity(draws);
        for _ in 0..draws {
            let mut sample: Vec<f64> = (0..size).map(|_| random.unit()).collect();
            dips.push(dip(Sorted::sort(&mut sample)?)?);
        }
        dips.sort_unstable_by(f64::total_cmp);
        Ok(Self { size, dips })
    }

    /// The probability of a dip at least this large in a unimodal sample of `n` values: never 0, at least 1 /
    /// (draws + 1). Other sizes are scaled to the drawn one.
    pub fn p(&self, dip: f64, n: usize) -> f64 {
        let usual = |n: usize| {
            (1.0 - APPROACH_COEFFICIENT / usize_to_f64(n).sqrt()) / usize_to_f64(n).sqrt()
        };
        let same = dip * usual(self.size) / usual(n);
        let below = self.dips.partition_point(|&d| d < same);
        usize_to_f64(self.dips.len() - below + 1) / usize_to_f64(self.dips.len() + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dip_of(values: &[f64]) -> f64 {
        let mut values = values.to_vec();
        dip(Sorted::sort(&mut values).unwrap()).unwrap()
    }

    /// `dip(statfaculty)` of R's diptest is 0.05952381 (n = 63), with the data of its help page.
    #[test]
    fn the_dip_matches_the_published_faculty_example() {
        let faculty = [
            30, 33, 35, 36, 37, 37, 39, 39, 39, 39, 39, 40, 40, 40, 40, 41, 42, 43, 43, 43, 44, 44,
            45, 45, 46, 46, 47, 47, 48, 48, 48, 49, 50, 50, 51, 52, 52, 53, 53, 53, 53, 53, 54, 54,
            57, 57, 59, 60, 60, 60, 61, 61, 61, 61, 62, 62, 62, 62, 63, 66, 70, 72, 72,
        ];
        let faculty: Vec<f64> = faculty.iter().map(|&age| f64::from(age)).collect();
        assert_eq!(faculty.len(), 63);
        assert!(
            (dip_of(&faculty) - 0.059_523_81).abs() < 1e-8,
            "{}",
            dip_of(&faculty)
        );
    }

    /// Results of Python's diptest for samples with and without ties.
    #[test]
    fn the_dip_matches_another_implementation() {
        let pi = [
            3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2,
            7,
        ]
        .map(f64::from);
        assert!((dip_of(&pi) - 0.066_666_666_666_666_67).abs() < 1e-12);
        let scattered: Vec<f64> = (0..60)
            .map(|i| i * i * 7 % 101 + if i % 3 == 0 { 90 } else { 0 })
            .map(f64::from)
            .collect();
        assert!((dip_of(&scattered) - 0.037_990_196_078_431_37).abs() < 1e-12);
    }

    /// By hand: for two clusters the nearest unimodal function misses a quarter, minus half a step.
    #[test]
    fn a_bimodal_sample_has_the_largest_dip_and_an_even_one_the_smallest() {
        let row: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(dip_of(&row), 0.05);
        assert_eq!(dip_of(&[3.0; 7]), 1.0 / 14.0);
        assert_eq!(dip_of(&[0.0, 1.0]), 0.25);
        let heaps: Vec<f64> = (0..200)
            .map(|i| f64::from(i % 100) * 1e-3 + f64::from(i / 100) * 1000.0)
            .collect();
        assert!((dip_of(&heaps) - 0.25).abs() < 0.005, "{}", dip_of(&heaps));
    }

    /// 20,000 uniform samples of 50 in Python's diptest 0.10 have these quantiles: 50 % above 0.0488, 10 %
    /// above 0.0649, 1 % above 0.0806.
    #[test]
    fn uniform_samples_have_the_dip_of_the_python_diptest() {
        let null = DipNull::new(50, 4000, 1).unwrap();
        for (dip, p, reach) in [
            (0.0488, 0.5, 0.03),
            (0.0649, 0.1, 0.02),
            (0.0806, 0.01, 0.006),
        ] {
            assert!(
                (null.p(dip, 50) - p).abs() < reach,
                "{dip}: {}",
                null.p(dip, 50)
            );
        }
        let large = DipNull::new(100_000, 200, 1).unwrap();
        assert_eq!(large.size, LARGEST_NULL);
        assert!(DipNull::new(3, 10, 0).is_err());
    }

    /// As in `neph flows`: 1,000 draws of up to 200 values.
    #[test]
    fn five_percent_of_uniform_samples_exceed_the_5_percent_critical_dip() {
        let mut random = Random::new(7);
        for (n, samples) in [(40, 4000), (200, 4000), (512, 2000), (4096, 1000)] {
            let null = DipNull::new(n.min(200), 1000, 1985).unwrap();
            let rejected = (0..samples).filter(|_| {
                let values: Vec<f64> = (0..n).map(|_| random.unit()).collect();
                null.p(dip_of(&values), n) <= 0.05
            });
            let share = usize_to_f64(rejected.count()) / f64::from(samples);
            assert!((share - 0.05).abs() < 0.012, "{n}: {share}");
        }
    }

    proptest! {
        /// The dip does not depend on the place, the width or the direction of a sample.
        #[test]
        fn the_dip_is_invariant_to_shift_and_reflection(
            values in prop::collection::vec(-100..100_i32, 1..60),
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let mirrored: Vec<f64> = values.iter().map(|v| 8.0 - 2.0 * v).collect();
            let (a, b) = (dip_of(&values), dip_of(&mirrored));
            prop_assert!((a - b).abs() < 1e-12, "{a} {b}");
            let n = usize_to_f64(values.len());
            prop_assert!(0.5 / n <= a + 1e-12 && a <= 0.25_f64.max(0.5 / n));
        }
    }
}
