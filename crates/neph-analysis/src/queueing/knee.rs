//! The knee: the number of workers from which on requests wait, because the capacity is reached.
//!
//! It is where the asymptotes of the rate meet (N*, Kleinrock): capacity times the time of a cycle without
//! waiting. Each block gives an estimate from its own levels. The interval is Student's over the logarithms of
//! these estimates: blocks are few, and a bootstrap of few values is too narrow.

use neph_stats::student_quantile;

use super::level::Level;

/// Blocks that an interval needs.
pub const BLOCKS_NEEDED: usize = 3;
/// Levels whose mean rate is at least this share of the largest one belong to the plateau.
const PLATEAU: f64 = 0.97;

/// A knee over blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Number of workers.
    pub workers: f64,
    /// Lower end of its 95 % confidence interval; `None` with too few blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The highest rate.
    pub capacity: f64,
    /// Whether the highest level is far enough above the knee (1.5 times) that the capacity was reached.
    pub is_reached: bool,
}

/// The knee of blocks with the same levels in ascending order. `None` below three levels, if a level has no
/// rate, and if the lowest level has several workers and is on the plateau already.
pub fn knee(blocks: &[Vec<Level>]) -> Option<Knee> {
    let count = blocks.first()?.len();
    let is_complete = |block: &Vec<Level>| {
        let is_positive = |level: &Level| level.rate > 0.0 && level.response > 0.0;
        block.len() == count && block.iter().all(is_positive)
    };
    if count < 3 || !blocks.iter().all(is_complete) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few blocks")]
    let n = blocks.len() as f64;
    let mean_rate = |index: usize| blocks.iter().map(|block| block[index].rate).sum::<f64>() / n;
    let rates: Vec<f64> = (0..count).map(mean_rate).collect();
    let largest = rates.iter().copied().fold(0.0, f64::max);
    let plateau: Vec<usize> = (0..count)
        .filter(|index| rates[*index] >= PLATEAU * largest)
        .collect();
    // Without a level below the plateau, the time of a cycle without waiting is not known.
    if plateau.contains(&0) && blocks.first()?.first()?.workers > 1.0 {
        return None;
    }
    let estimates: Vec<f64> = blocks
        .iter()
        .map(|block| estimate(block, &plateau).ln())
        .collect();
    let mean = estimates.iter().sum::<f64>() / n;
    let interval = interval(&estimates, mean);
    let workers = mean.exp();
    #[expect(clippy::cast_precision_loss, reason = "a few levels")]
    let capacity = plateau.iter().map(|index| rates[*index]).sum::<f64>() / plateau.len() as f64;
    let top = blocks.first()?.last()?.workers;
    Some(Knee {
        workers,
        low: interval.map(|half| (mean - half).exp()),
        high: interval.map(|half| (mean + half).exp()),
        capacity,
        is_reached: top >= 1.5 * workers,
    })
}

/// The knee of one block: the rate of its plateau times the cycle of its lowest level.
fn estimate(block: &[Level], plateau: &[usize]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a few levels")]
    let count = plateau.len() as f64;
    let capacity = plateau.iter().map(|index| block[*index].rate).sum::<f64>() / count;
    let lowest = &block[0];
    capacity * (lowest.response + lowest.think)
}

/// Half of the interval of the mean.
fn interval(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < BLOCKS_NEEDED {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few blocks")]
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    Some(student_quantile(0.975, n - 1.0) * error)
}

#[cfg(test)]
mod tests {
    use neph_stats::{Random, normal_quantile};

    use super::*;
    use crate::queueing::bounds::Station;
    use crate::queueing::closed::ClosedQueue;

    const WORKERS: [u32; 8] = [1, 2, 4, 8, 16, 24, 32, 48];
    const STATION: Station = Station {
        service: 0.063,
        servers: 8.0,
        think: 0.02,
    };

    /// Levels of the model with a relative error of 2 % in rate and response time.
    fn blocks(count: usize, random: &mut Random) -> Vec<Vec<Level>> {
        let mut noise = || 1.0 + 0.02 * normal_quantile(random.unit().max(1e-12));
        let level = |workers: u32, noise: &mut dyn FnMut() -> f64| {
            let exact = ClosedQueue {
                workers,
                think: STATION.think,
                service: STATION.service,
                servers: STATION.servers,
            };
            Level {
                workers: f64::from(workers),
                think: STATION.think,
                rate: exact.rate() * noise(),
                response: exact.response() * noise(),
            }
        };
        (0..count)
            .map(|_| {
                WORKERS
                    .iter()
                    .map(|workers| level(*workers, &mut noise))
                    .collect()
            })
            .collect()
    }

    /// The true knee is 8 x (63 + 20) / 63 = 10.54 workers.
    #[test]
    fn the_interval_covers_the_true_knee_in_93_of_100_runs() {
        let mut random = Random::new(1);
        let mut covered = 0;
        for _ in 0..100 {
            let knee = knee(&blocks(5, &mut random)).expect("levels");
            let (low, high) = (knee.low.expect("blocks"), knee.high.expect("blocks"));
            covered += u32::from((low..=high).contains(&STATION.knee()));
            assert!(knee.is_reached && (knee.capacity / 126.98 - 1.0).abs() < 0.03);
        }
        assert!(covered >= 93, "{covered}");
    }

    #[test]
    fn without_a_plateau_the_knee_is_not_reached_and_few_blocks_have_no_interval() {
        let mut random = Random::new(2);
        let low: Vec<Vec<Level>> = blocks(2, &mut random)
            .into_iter()
            .map(|block| block[..4].to_vec())
            .collect();
        let found = knee(&low).expect("levels");
        assert!(!found.is_reached && found.low.is_none());
        let mut random = Random::new(3);
        let high: Vec<Vec<Level>> = blocks(3, &mut random)
            .into_iter()
            .map(|block| block[5..].to_vec())
            .collect();
        assert_eq!(knee(&high), None, "all levels are on the plateau");
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&[low[0][..2].to_vec()]), None);
    }
}
