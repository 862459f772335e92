//! Exact mean value analysis of a closed network with one class (Reiser and Lavenberg 1980).

/// A network that workers pass through once per request: queues with one server each, and a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Service demand of a request at each queue, seconds.
    pub demands: Vec<f64>,
    /// Think time, and everything else that does not queue.
    pub think: f64,
}

/// The network with some number of workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Requests per second.
    pub rate: f64,
    /// Mean response time, without the think time.
    pub response: f64,
    /// Mean number of requests at each queue.
    pub queues: Vec<f64>,
}

/// The solution for this number of workers.
pub fn solve(network: &Network, workers: u32) -> Solution {
    let mut queues = vec![0.0; network.demands.len()];
    let (mut rate, mut response) = (0.0, 0.0);
    for number in 1..=workers {
        let times: Vec<f64> = network
            .demands
            .iter()
            .zip(&queues)
            .map(|(demand, queue)| demand * (1.0 + queue))
            .collect();
        response = times.iter().sum();
        rate = f64::from(number) / (response + network.think);
        queues = times.iter().map(|time| rate * time).collect();
    }
    Solution {
        rate,
        response,
        queues,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::closed::ClosedQueue;

    #[test]
    fn one_queue_is_the_machine_repair_model() {
        let network = Network {
            demands: vec![0.01],
            think: 0.05,
        };
        for workers in [1, 2, 5, 20] {
            let exact = ClosedQueue {
                workers,
                think: 0.05,
                service: 0.01,
                servers: 1.0,
            };
            let solution = solve(&network, workers);
            assert!((solution.rate / exact.rate() - 1.0).abs() < 1e-9);
        }
    }

    /// Lazowska et al. (1984), section 6.4: demands 0.605, 2.1 and 1.35 s, think time 15 s: 0.152 per second with
    /// three workers; by hand, 0.15152.
    #[test]
    fn a_published_case_matches() {
        let network = Network {
            demands: vec![0.605, 2.1, 1.35],
            think: 15.0,
        };
        let solution = solve(&network, 3);
        assert!((solution.rate - 0.151_52).abs() < 1e-5, "{solution:?}");
        let total: f64 = solution.queues.iter().sum::<f64>() + solution.rate * network.think;
        assert!((total - 3.0).abs() < 1e-9, "{total}");
    }
}
