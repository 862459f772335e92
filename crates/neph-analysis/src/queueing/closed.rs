//! A closed loop with one queue: M/M/c//N, also known as the machine repair model.
//!
//! Workers think for exponential times, and wait in one queue for c servers with exponential service times.
//! With processor sharing, rate and mean response time are the same, for every distribution of service times
//! (BCMP theorem). Servers may be a fraction: with n requests, the station works at the rate min(n, c) / service.

use super::states::probabilities;

/// Workers and the station that serves them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedQueue {
    /// Number of workers, at least 1.
    pub workers: u32,
    /// Mean think time.
    pub think: f64,
    /// Mean service time at one server, above 0.
    pub service: f64,
    /// Number of effective servers, above 0.
    pub servers: f64,
}

impl ClosedQueue {
    /// Responses per second.
    pub fn rate(&self) -> f64 {
        let probabilities = self.probabilities();
        let requests = (0..).map(f64::from);
        let rates = requests.zip(&probabilities);
        rates
            .map(|(requests, probability)| probability * self.service_rate(requests))
            .sum()
    }

    /// Mean response time.
    pub fn response(&self) -> f64 {
        f64::from(self.workers) / self.rate() - self.think
    }

    /// Share of the servers that is busy on average.
    pub fn utilisation(&self) -> f64 {
        self.rate() * self.service / self.servers
    }

    fn service_rate(&self, requests: f64) -> f64 {
        requests.min(self.servers) / self.service
    }

    /// The probability of each number of requests at the station, from 0 to all workers.
    fn probabilities(&self) -> Vec<f64> {
        if self.think <= 0.0 {
            let mut probabilities = vec![0.0; self.workers as usize];
            probabilities.push(1.0);
            return probabilities;
        }
        let ratios = (1..=self.workers).map(|requests| {
            let arrivals = f64::from(self.workers - requests + 1) / self.think;
            arrivals / self.service_rate(f64::from(requests))
        });
        probabilities(ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of reference.md A for source 4: c* = 8.05, 63 ms, 20 ms.
    #[test]
    fn the_effective_servers_of_source_4_give_its_rates() {
        let rate = |workers| {
            ClosedQueue {
                workers,
                think: 0.02,
                service: 0.063,
                servers: 8.0,
            }
            .rate()
        };
        for (workers, expected) in [(10, 115.8), (12, 124.6), (16, 127.0)] {
            assert!(
                (rate(workers) - expected).abs() < 0.06,
                "{workers}: {}",
                rate(workers)
            );
        }
    }

    #[test]
    fn one_worker_never_waits_and_many_workers_keep_all_servers_busy() {
        let queue = |workers, think| ClosedQueue {
            workers,
            think,
            service: 0.01,
            servers: 2.0,
        };
        assert!((queue(1, 0.04).rate() - 20.0).abs() < 1e-9);
        assert!((queue(1, 0.04).response() - 0.01).abs() < 1e-12);
        assert!((queue(5_000, 0.04).rate() - 200.0).abs() < 1e-6);
        assert!((queue(3, 0.0).rate() - 200.0).abs() < 1e-9);
        assert!((queue(5_000, 0.04).utilisation() - 1.0).abs() < 1e-9);
    }

    /// Two workers, one server, think = service: states 0, 1, 2 with weights 1, 2, 2.
    #[test]
    fn a_hand_computed_case_matches() {
        let queue = ClosedQueue {
            workers: 2,
            think: 1.0,
            service: 1.0,
            servers: 1.0,
        };
        assert!((queue.rate() - 0.8).abs() < 1e-12);
        assert!((queue.response() - 1.5).abs() < 1e-12);
    }
}
