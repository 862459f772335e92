//! Levels over blocks: means with intervals, the knee, the models, and times at shares of the capacity.

use neph_stats::student_quantile;

use super::fit::{Fit, fits};
use super::knee::{Knee, knee};
use super::level::Level;

/// What follows from the levels of all blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelsAnalysis {
    /// Each level, in ascending order of workers.
    pub levels: Vec<LevelMean>,
    /// The knee; `None` below three levels.
    pub knee: Option<Knee>,
    /// Models, the best one first; empty below six levels.
    pub fits: Vec<Fit>,
}

/// A level as a mean over blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelMean {
    /// The means.
    pub mean: Level,
    /// Lower end of the 95 % confidence interval of the rate; `None` below three blocks.
    pub rate_low: Option<f64>,
    /// Upper end.
    pub rate_high: Option<f64>,
}

/// Whether requests wait at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Below the interval of the knee.
    Stable,
    /// Within the interval of the knee, or the knee is not known.
    Unknown,
    /// Above the interval of the knee.
    Overloaded,
}

/// Analyses blocks with the same levels in ascending order.
pub fn analyse(blocks: &[Vec<Level>]) -> LevelsAnalysis {
    let count = blocks.iter().map(Vec::len).min().unwrap_or(0);
    let levels: Vec<LevelMean> = (0..count).map(|index| mean_of(blocks, index)).collect();
    let means: Vec<Level> = levels.iter().map(|level| level.mean).collect();
    LevelsAnalysis {
        levels,
        knee: knee(blocks),
        fits: fits(&means),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few blocks")]
fn mean_of(blocks: &[Vec<Level>], index: usize) -> LevelMean {
    let n = blocks.len() as f64;
    let mean =
        |of: fn(&Level) -> f64| blocks.iter().map(|block| of(&block[index])).sum::<f64>() / n;
    let rate = mean(|level| level.rate);
    let squares = blocks
        .iter()
        .map(|block| (block[index].rate - rate).powi(2))
        .sum::<f64>();
    let half = (blocks.len() >= super::knee::BLOCKS_NEEDED)
        .then(|| student_quantile(0.975, n - 1.0) * (squares / (n - 1.0) / n).sqrt());
    LevelMean {
        mean: Level {
            workers: mean(|level| level.workers),
            think: mean(|level| level.think),
            rate,
            response: mean(|level| level.response),
        },
        rate_low: half.map(|half| rate - half),
        rate_high: half.map(|half| rate + half),
    }
}

impl LevelsAnalysis {
    /// The region of a number of workers.
    pub fn region(&self, workers: f64) -> Region {
        let Some(knee) = self.knee.filter(|knee| knee.is_reached) else {
            return Region::Unknown;
        };
        if workers < knee.low.unwrap_or(knee.workers) {
            Region::Stable
        } else if workers > knee.high.unwrap_or(knee.workers) {
            Region::Overloaded
        } else {
            Region::Unknown
        }
    }
}

/// A value at a rate, on the line between the two levels around it. `points` have a rate and a value, in
/// ascending order of workers. Only the part up to the first rate above `rate` counts: behind the knee, one rate
/// has many values. `None` below the lowest rate or above the highest.
pub fn at_rate(points: &[[f64; 2]], rate: f64) -> Option<f64> {
    let above = points.iter().position(|[of, _]| *of >= rate)?;
    let [high_rate, high] = points[above];
    if above == 0 {
        return ((high_rate - rate).abs() < 1e-12).then_some(high);
    }
    let [low_rate, low] = points[above - 1];
    let share = (rate - low_rate) / (high_rate - low_rate);
    Some(low + share * (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(workers: f64, rate: f64) -> Level {
        Level {
            workers,
            think: 0.0,
            rate,
            response: workers / rate,
        }
    }

    #[test]
    fn regions_follow_the_interval_of_the_knee() {
        let block = |noise: f64| {
            let rates = [
                (1.0, 10.0),
                (5.0, 50.0),
                (10.0, 99.0),
                (20.0, 100.0),
                (30.0, 100.0),
                (40.0, 100.0),
            ];
            let noisy = |(workers, rate): (f64, f64)| Level {
                rate: rate * noise,
                ..level(workers, rate)
            };
            rates.map(noisy).to_vec()
        };
        let found = analyse(&[block(1.0), block(1.01), block(0.99)]);
        let regions = [1.0, 10.0, 40.0].map(|workers| found.region(workers));
        assert_eq!(
            regions,
            [Region::Stable, Region::Unknown, Region::Overloaded]
        );
        assert!((found.levels[1].mean.rate - 50.0).abs() < 1e-9);
        let low = found.levels[1].rate_low.expect("three blocks");
        // Standard deviation 0.5, Student's t 4.303: 50 - 4.303 * 0.5 / sqrt(3).
        assert!((low - 48.758).abs() < 1e-3, "{low}");
        assert!(!found.fits.is_empty());
    }

    #[test]
    fn a_value_between_levels_lies_on_the_line_between_them() {
        let points = [[10.0, 1.0], [20.0, 3.0], [19.0, 9.0]];
        assert_eq!(at_rate(&points, 15.0), Some(2.0));
        assert_eq!(at_rate(&points, 10.0), Some(1.0));
        assert_eq!(
            (at_rate(&points, 5.0), at_rate(&points, 21.0)),
            (None, None)
        );
    }
}
