//! Draws times from a distribution: the same seed gives the same times.

use neph_model::{Span, TimeDistribution};
use neph_stats::{Random, normal_quantile};

/// Draws times; what does not change between draws is computed once.
#[derive(Clone, Debug)]
pub(crate) struct TimeSampler {
    distribution: TimeDistribution,
    /// Of [`TimeDistribution::JmeterPoisson`].
    poisson: Option<PoissonTable>,
}

impl TimeSampler {
    pub(crate) fn new(distribution: &TimeDistribution) -> Self {
        let poisson = match distribution {
            TimeDistribution::JmeterPoisson { mean, .. } => {
                Some(PoissonTable::new(mean.millis_f64()))
            }
            _ => None,
        };
        Self {
            distribution: distribution.clone(),
            poisson,
        }
    }

    /// The next time.
    pub(crate) fn draw(&self, random: &mut Random) -> Span {
        match &self.distribution {
            TimeDistribution::Constant { time } => *time,
            TimeDistribution::Uniform { from, to } => {
                *from + seconds((*to - *from).secs_f64() * random.unit())
            }
            TimeDistribution::Exponential { mean } => {
                seconds(mean.secs_f64() * exponential(random))
            }
            TimeDistribution::Lognormal { mean, deviation } => {
                let variation = deviation.secs_f64() / mean.secs_f64();
                let variance = (variation * variation).ln_1p();
                let exponent = variance.sqrt() * normal_quantile(random.unit()) - variance / 2.0;
                seconds(mean.secs_f64() * exponent.exp())
            }
            TimeDistribution::Normal { mean, deviation } => {
                seconds(mean.secs_f64() + deviation.secs_f64() * normal_quantile(random.unit()))
            }
            TimeDistribution::JmeterPoisson { offset, .. } => {
                let table = self.poisson.as_ref();
                *offset + table.map_or(Span::ZERO, |table| table.draw(random))
            }
            TimeDistribution::Samples { times } if times.is_empty() => Span::ZERO,
            TimeDistribution::Samples { times } => times[random.below(times.len())],
        }
    }
}

/// A draw of the exponential distribution with mean 1.
pub(super) fn exponential(random: &mut Random) -> f64 {
    // 1 - u is above 0.
    -(-random.unit()).ln_1p()
}

/// From seconds, none below zero and none above a day.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is limited first"
)]
fn seconds(seconds: f64) -> Span {
    Span::from_nanos((seconds.clamp(0.0, 86_400.0) * 1e9).round() as i64)
}

/// Cumulative probabilities of a Poisson distribution of milliseconds, without the tails below 1e-15.
#[derive(Clone, Debug)]
struct PoissonTable {
    first: i64,
    cumulative: Vec<f64>,
}

impl PoissonTable {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "milliseconds of at most a day"
    )]
    fn new(mean: f64) -> Self {
        let reach = 9.0 * mean.sqrt() + 20.0;
        let first = (mean - reach).max(0.0).floor() as i64;
        let last = (mean + reach).ceil() as i64;
        // Relative to the first value: logarithms, because the probabilities may be tiny.
        let mut logarithm = 0.0;
        let logarithms: Vec<f64> = (first..=last)
            .map(|value| {
                if value > first {
                    logarithm += mean.ln() - (value as f64).ln();
                }
                logarithm
            })
            .collect();
        let largest = logarithms.iter().copied().fold(f64::MIN, f64::max);
        let mut sum = 0.0;
        let sums = logarithms.iter().map(|logarithm| {
            sum += (logarithm - largest).exp();
            sum
        });
        let mut cumulative: Vec<f64> = sums.collect();
        for value in &mut cumulative {
            *value /= sum;
        }
        Self { first, cumulative }
    }

    fn draw(&self, random: &mut Random) -> Span {
        let unit = random.unit();
        let index = self.cumulative.partition_point(|value| *value <= unit);
        let index = index.min(self.cumulative.len() - 1);
        Span::from_millis(self.first + i64::try_from(index).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(text: &str, count: usize) -> Vec<f64> {
        let sampler = TimeSampler::new(&text.parse().expect(text));
        let mut random = Random::new(1);
        (0..count)
            .map(|_| sampler.draw(&mut random).millis_f64())
            .collect()
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a count of draws")]
    fn draws_have_the_moments_of_their_distribution() {
        const COUNT: usize = 200_000;
        for text in [
            "20ms",
            "uniform 10ms..30ms",
            "exp 63ms",
            "lognormal 20ms sd=10ms",
            "normal 300ms sd=50ms",
            "jmeter-poisson 20ms offset=5ms",
            "jmeter-poisson 2ms",
        ] {
            let distribution: TimeDistribution = text.parse().expect(text);
            let draws = sample(text, COUNT);
            let mean = draws.iter().sum::<f64>() / COUNT as f64;
            let squares = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>();
            let variation = squares / COUNT as f64 / (mean * mean);
            let expected = distribution.mean().millis_f64();
            assert!((mean / expected - 1.0).abs() < 0.01, "{text}: {mean}");
            let expected = distribution.squared_variation();
            assert!(
                (variation - expected).abs() < 0.02 * expected + 1e-9,
                "{text}: {variation}"
            );
        }
    }

    #[test]
    fn a_poisson_number_has_the_probabilities_of_the_formula() {
        let table = PoissonTable::new(2.0);
        let probability = |index: usize| {
            table.cumulative[index]
                - if index > 0 {
                    table.cumulative[index - 1]
                } else {
                    0.0
                }
        };
        // e^-2, 2 e^-2, 2 e^-2, 4/3 e^-2.
        let unit = (-2.0_f64).exp();
        for (index, factor) in [(0, 1.0), (1, 2.0), (2, 2.0), (3, 4.0 / 3.0)] {
            assert!((probability(index) - factor * unit).abs() < 1e-12);
        }
    }

    #[test]
    fn a_seed_determines_all_draws_and_no_draw_is_negative() {
        assert_eq!(sample("exp 5ms", 50), sample("exp 5ms", 50));
        assert!(
            sample("normal 1ms sd=5ms", 1_000)
                .iter()
                .all(|draw| *draw >= 0.0)
        );
    }
}
