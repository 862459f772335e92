//! Variation of a delay from packet to packet.

use std::sync::Arc;

use neph_model::Span;

use super::random::{Random, scaled};

/// The shape parameter of [`Jitter::Pareto`], as in netem's table: mean and variance exist, the third moment
/// does not.
const PARETO_SHAPE: f64 = 3.0;

/// Variation of a delay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniform, at most this much in either direction.
    Uniform(Span),
    /// Normal, with this standard deviation; a delay is never negative.
    Normal(Span),
    /// Positive only, with a heavy tail and this mean m. The excess is 2m (X - 1), where X has the Pareto
    /// distribution with shape 3 and minimum 1. It exceeds e with probability (1 + e / 2m)^-3. Its median is
    /// 0.52 m, its standard deviation 1.73 m, its p99 7.3 m, its p99.9 18 m. netem's `distribution pareto` is
    /// the same X, shifted to mean 0.
    Pareto(Span),
    /// From a file, one entry per packet; starts again after the last entry.
    Trace(Arc<Trace>),
}

impl Jitter {
    /// Usual maximum deviation: the limit, or what 99.7 % stay within.
    pub fn max_deviation(&self) -> Span {
        match self {
            Self::None => Span::ZERO,
            Self::Uniform(bound) => *bound,
            Self::Normal(deviation) => deviation.times(3),
            Self::Pareto(mean) => scaled(*mean, pareto_excess(0.997)),
            Self::Trace(trace) => trace.max_delay(),
        }
    }

    /// Deviation of the next delay. `entries_used` counts entries of a trace.
    pub(super) fn draw(&self, random: &mut Random, entries_used: &mut usize) -> Span {
        match self {
            Self::None => Span::ZERO,
            Self::Uniform(bound) => scaled(*bound, 2.0 * random.uniform() - 1.0),
            Self::Normal(deviation) => scaled(*deviation, random.normal()),
            Self::Pareto(mean) => scaled(*mean, pareto_excess(random.uniform())),
            Self::Trace(trace) => {
                let entry = trace.delays[*entries_used % trace.delays.len()];
                *entries_used = (*entries_used + 1) % trace.delays.len();
                entry
            }
        }
    }
}

/// The quantile `probability` (0 up to, not including, 1) of the excess whose mean is 1.
fn pareto_excess(probability: f64) -> f64 {
    (PARETO_SHAPE - 1.0) * ((1.0 - probability).powf(-1.0 / PARETO_SHAPE) - 1.0)
}

/// Measured delays, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    delays: Vec<Span>,
}

impl Trace {
    /// From its entries; `None` if there are none.
    pub fn new(delays: Vec<Span>) -> Option<Self> {
        (!delays.is_empty()).then_some(Self { delays })
    }

    /// Its entries, in order.
    pub fn delays(&self) -> &[Span] {
        &self.delays
    }

    fn max_delay(&self) -> Span {
        self.delays.iter().copied().max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` draws in milliseconds, sorted.
    fn sorted_draws_ms(jitter: &Jitter, count: usize) -> Vec<f64> {
        let (mut random, mut entries_used) = (Random::new(5), 0);
        let mut millis: Vec<f64> = (0..count)
            .map(|_| jitter.draw(&mut random, &mut entries_used).millis_f64())
            .collect();
        millis.sort_by(f64::total_cmp);
        millis
    }

    #[test]
    fn a_pareto_excess_has_its_mean_and_the_quantiles_of_its_formula() {
        let millis = sorted_draws_ms(&Jitter::Pareto(Span::from_millis(2)), 400_000);
        let mean = millis.iter().sum::<f64>() / 400_000.0;
        // Five standard errors: 1.73 * 2 ms / sqrt(400,000).
        assert!((mean - 2.0).abs() < 0.028, "{mean}");
        assert!(millis[0] >= 0.0);
        // Quantile of a Pareto distribution with shape 3 and least value 1, shifted and scaled.
        for (rank, probability) in [(200_000, 0.5_f64), (360_000, 0.9), (396_000, 0.99)] {
            let expected = 4.0 * ((1.0 - probability).powf(-1.0 / 3.0) - 1.0);
            let deviation = (millis[rank] / expected - 1.0).abs();
            assert!(
                deviation < 0.03,
                "{probability}: {} and not {expected}",
                millis[rank]
            );
        }
        let max_deviation = Jitter::Pareto(Span::from_millis(2))
            .max_deviation()
            .millis_f64();
        let share = millis
            .iter()
            .filter(|excess| **excess <= max_deviation)
            .count();
        assert!((398_600..=399_000).contains(&share), "{share}");
    }

    #[test]
    fn uniform_jitter_is_evenly_distributed_within_its_bound() {
        let millis = sorted_draws_ms(&Jitter::Uniform(Span::from_millis(3)), 90_000);
        assert!(millis[0] >= -3.0 && millis[89_999] <= 3.0);
        for (rank, value) in [(15_000, -2.0), (45_000, 0.0), (75_000, 2.0)] {
            assert!((millis[rank] - value).abs() < 0.05, "{}", millis[rank]);
        }
    }

    #[test]
    fn a_trace_returns_its_entries_in_order_and_repeats_them() {
        let delays = vec![Span::from_millis(1), Span::from_millis(5), Span::ZERO];
        let jitter = Jitter::Trace(Arc::new(Trace::new(delays.clone()).expect("three")));
        let (mut random, mut entries_used) = (Random::new(5), 0);
        let draws: Vec<Span> = (0..7)
            .map(|_| jitter.draw(&mut random, &mut entries_used))
            .collect();
        assert_eq!(draws[..3], delays);
        assert_eq!(draws[3..6], delays);
        assert_eq!(draws[6], delays[0]);
        assert_eq!(jitter.max_deviation(), Span::from_millis(5));
        assert_eq!(Trace::new(Vec::new()), None);
    }
}
