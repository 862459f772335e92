//! The universal scalability law (N. J. Gunther, "Guerrilla Capacity Planning", 2007): a rate that grows with the
//! workers, less by contention, and falls by coherency.

/// Parameters of the law. With think times, a worker counts as the share of a worker that it is without waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalability {
    /// Rate of one worker without think time, per second.
    pub single: f64,
    /// Share of the work that only one worker can do at a time (sigma).
    pub contention: f64,
    /// Cost of agreement between each two workers (kappa).
    pub coherency: f64,
}

impl Scalability {
    /// The rate with this many workers.
    pub fn rate(&self, workers: f64) -> f64 {
        let others = workers - 1.0;
        let slowed = 1.0 + self.contention * others + self.coherency * workers * others;
        self.single * workers / slowed
    }

    /// The number of workers with the highest rate; `None` if the rate never falls.
    pub fn peak(&self) -> Option<f64> {
        let is_falling = self.coherency > 0.0 && self.contention < 1.0;
        is_falling.then(|| ((1.0 - self.contention) / self.coherency).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_peaks_where_the_formula_says() {
        let law = Scalability {
            single: 100.0,
            contention: 0.05,
            coherency: 0.001,
        };
        let peak = law.peak().expect("it falls");
        assert!((peak - 30.822).abs() < 1e-3, "{peak}");
        assert!(law.rate(peak) > law.rate(peak - 1.0) && law.rate(peak) > law.rate(peak + 1.0));
        assert!((law.rate(1.0) - 100.0).abs() < 1e-9);
        let linear = Scalability {
            coherency: 0.0,
            contention: 0.0,
            ..law
        };
        assert!((linear.rate(50.0) - 5_000.0).abs() < 1e-9);
        assert_eq!(linear.peak(), None);
    }
}
