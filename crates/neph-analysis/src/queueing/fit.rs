//! Models fitted to measured levels, with their residuals, and which of them fits best.
//!
//! The fit minimises the squares of the logarithms of measured rate over modelled rate: relative errors count
//! the same at each level. The corrected Akaike criterion compares models with different numbers of parameters.

use neph_stats::minimum;

use super::bounds::Station;
use super::closed::ClosedQueue;
use super::level::Level;
use super::scalability::Scalability;

/// Minimum number of different levels for a fit: with fewer, the criterion of the model with the most parameters
/// does not exist.
pub const LEVELS_NEEDED: usize = 6;

/// A fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The model with its parameters.
    pub model: Model,
    /// Modelled rate of each level.
    pub rates: Vec<f64>,
    /// Measured over modelled rate minus 1, of each level.
    pub residuals: Vec<f64>,
    /// Root of the mean squared residual.
    pub error: f64,
    /// Corrected Akaike criterion: the model with the smallest one fits best.
    pub criterion: f64,
}

/// A model with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// M/M/c//N with effective servers c*: requests wait in one queue, or share the servers.
    Queue(Station),
    /// The asymptotes: no request waits below the knee, and all servers are busy above.
    Asymptotes(Station),
    /// The universal scalability law.
    Scalability(Scalability),
}

impl Model {
    /// The rate of a level.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of workers"
    )]
    pub fn rate(&self, workers: f64, think: f64) -> f64 {
        match self {
            Self::Queue(station) => ClosedQueue {
                workers: workers.round().max(1.0) as u32,
                think,
                service: station.service,
                servers: station.servers,
            }
            .rate(),
            Self::Asymptotes(station) => {
                Station { think, ..*station }.asymptotic_rate(workers).high
            }
            Self::Scalability(law) => {
                let busy = 1.0 / (1.0 + think * law.single);
                let active = (workers * busy).max(1.0);
                // Below one active worker, the rate is that of the workers that do not wait.
                law.rate(active)
                    .min(workers / (1.0 / law.single + think).max(f64::MIN_POSITIVE))
            }
        }
    }
}

/// All models, the best one first; empty below [`LEVELS_NEEDED`] different levels.
pub fn fits(levels: &[Level]) -> Vec<Fit> {
    let mut workers: Vec<f64> = levels.iter().map(|level| level.workers).collect();
    workers.sort_by(f64::total_cmp);
    workers.dedup();
    let is_positive = |level: &Level| level.rate > 0.0 && level.response > 0.0;
    if workers.len() < LEVELS_NEEDED || !levels.iter().all(is_positive) {
        return Vec::new();
    }
    let service = levels
        .iter()
        .map(|level| level.response)
        .fold(f64::INFINITY, f64::min);
    let capacity = levels.iter().map(|level| level.rate).fold(0.0, f64::max);
    let think = levels.first().map_or(0.0, |level| level.think);
    // Logarithms of the parameters, so that none is negative.
    let start = [service.ln(), (capacity * service).max(0.1).ln()];
    let station = move |at: &[f64]| Station {
        service: at[0].exp(),
        servers: at[1].exp(),
        think,
    };
    let law = |at: &[f64]| Scalability {
        single: at[0].exp(),
        contention: at[1].exp(),
        coherency: at[2].exp(),
    };
    let law_start = [-service.ln(), 0.01_f64.ln(), 0.000_1_f64.ln()];
    let mut fits = vec![
        fit(levels, &start, |at| Model::Queue(station(at))),
        fit(levels, &start, |at| Model::Asymptotes(station(at))),
        fit(levels, &law_start, |at| Model::Scalability(law(at))),
    ];
    fits.sort_by(|one, other| one.criterion.total_cmp(&other.criterion));
    fits
}

fn fit(levels: &[Level], start: &[f64], model: impl Fn(&[f64]) -> Model) -> Fit {
    let logarithms = |model: &Model| -> Vec<f64> {
        let ratios = levels
            .iter()
            .map(|level| level.rate / model.rate(level.workers, level.think));
        ratios.map(f64::ln).collect()
    };
    let squares = |at: &[f64]| {
        logarithms(&model(at))
            .iter()
            .map(|one| one * one)
            .sum::<f64>()
    };
    let found = minimum(start, 0.3, squares);
    let model = model(&found.at);
    let rates: Vec<f64> = levels
        .iter()
        .map(|level| model.rate(level.workers, level.think))
        .collect();
    let pairs = levels.iter().zip(&rates);
    let residuals: Vec<f64> = pairs.map(|(level, rate)| level.rate / rate - 1.0).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few levels")]
    let (n, parameters) = (levels.len() as f64, start.len() as f64 + 1.0);
    let variance = (found.value / n).max(1e-12);
    let correction = if n > parameters + 1.0 {
        2.0 * parameters * (parameters + 1.0) / (n - parameters - 1.0)
    } else {
        f64::INFINITY
    };
    Fit {
        model,
        rates,
        error: (residuals.iter().map(|one| one * one).sum::<f64>() / n).sqrt(),
        residuals,
        criterion: n * variance.ln() + 2.0 * parameters + correction,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels_of(model: Model, think: f64, workers: &[f64]) -> Vec<Level> {
        let level = |workers: &f64| {
            let rate = model.rate(*workers, think);
            Level {
                workers: *workers,
                think,
                rate,
                response: workers / rate - think,
            }
        };
        workers.iter().map(level).collect()
    }

    const WORKERS: [f64; 10] = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0];

    #[test]
    fn the_model_that_made_the_levels_is_recovered_and_fits_best() {
        let station = Station {
            service: 0.063,
            servers: 8.05,
            think: 0.02,
        };
        let found = fits(&levels_of(Model::Queue(station), 0.02, &WORKERS));
        let Model::Queue(fitted) = found[0].model else {
            panic!("{:?}", found[0])
        };
        assert!((fitted.service / 0.063 - 1.0).abs() < 0.01, "{fitted:?}");
        assert!((fitted.servers / 8.05 - 1.0).abs() < 0.01, "{fitted:?}");
        assert!(found[0].error < 1e-4);
        let law = Scalability {
            single: 100.0,
            contention: 0.08,
            coherency: 0.002,
        };
        let found = fits(&levels_of(Model::Scalability(law), 0.0, &WORKERS));
        let Model::Scalability(fitted) = found[0].model else {
            panic!("{:?}", found[0])
        };
        assert!((fitted.contention / 0.08 - 1.0).abs() < 0.02, "{fitted:?}");
        assert!((fitted.coherency / 0.002 - 1.0).abs() < 0.02, "{fitted:?}");
        let found = fits(&levels_of(Model::Asymptotes(station), 0.02, &WORKERS));
        assert!(
            matches!(found[0].model, Model::Asymptotes(_)),
            "{:?}",
            found[0]
        );
    }

    #[test]
    fn too_few_levels_have_no_fit() {
        let station = Station {
            service: 0.01,
            servers: 2.0,
            think: 0.0,
        };
        assert!(
            fits(&levels_of(
                Model::Queue(station),
                0.0,
                &[1.0, 2.0, 3.0, 4.0, 5.0]
            ))
            .is_empty()
        );
        assert!(fits(&[]).is_empty());
    }
}
