//! Bounds of rate and response time of a closed loop, without a solution of the model.
//!
//! E. D. Lazowska et al., "Quantitative System Performance" (1984), chapter 5: asymptotic bounds (5.2) and
//! balanced system bounds for terminal workloads (5.4). Several equal servers are one fast server and a delay
//! (Seidmann et al. 1987).

/// A station with equal servers, and workers that think.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Mean service time of a request at one server.
    pub service: f64,
    /// Number of servers; effective servers may be a fraction.
    pub servers: f64,
    /// Mean think time.
    pub think: f64,
}

/// The least and the largest possible value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Station {
    /// The largest rate: all servers are busy.
    pub fn capacity(&self) -> f64 {
        self.servers / self.service
    }

    /// The number of workers at which the asymptotes of the rate meet (N*): the knee.
    pub fn knee(&self) -> f64 {
        (self.service + self.think) * self.capacity()
    }

    /// Asymptotic bounds of the rate: no request waits, or all wait for all others.
    pub fn asymptotic_rate(&self, workers: f64) -> Bounds {
        let fastest = workers / (self.service + self.think);
        let (demand, delay) = self.single_server();
        Bounds {
            low: workers / (workers * demand + delay),
            high: fastest.min(self.capacity()),
        }
    }

    /// Asymptotic bounds of the response time.
    pub fn asymptotic_response(&self, workers: f64) -> Bounds {
        let rate = self.asymptotic_rate(workers);
        Bounds {
            low: workers / rate.high - self.think,
            high: workers / rate.low - self.think,
        }
    }

    /// Balanced job bounds of the rate, which are closer.
    pub fn balanced_rate(&self, workers: f64) -> Bounds {
        let (demand, delay) = self.single_server();
        let others = workers - 1.0;
        let slow = demand + delay + others * demand / (1.0 + delay / (workers * demand));
        let fast = demand + delay + others * demand / (1.0 + delay / demand);
        Bounds {
            low: workers / slow,
            high: (workers / fast).min(self.capacity()),
        }
    }

    /// One fast server, and what remains of a service as a delay together with the think time.
    fn single_server(&self) -> (f64, f64) {
        let demand = self.service / self.servers;
        (demand, self.think + self.service - demand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::closed::ClosedQueue;

    #[test]
    fn bounds_meet_at_the_knee_and_enclose_the_exact_solution() {
        for (service, servers, think) in [(0.01, 1.0, 0.1), (0.063, 8.0, 0.02), (0.01, 2.0, 0.005)]
        {
            let station = Station {
                service,
                servers,
                think,
            };
            let knee = station.knee();
            let at_knee = station.asymptotic_rate(knee);
            assert!((at_knee.high - station.capacity()).abs() < 1e-9);
            for workers in 1..60 {
                let exact = ClosedQueue {
                    workers,
                    think,
                    service,
                    servers,
                };
                let (workers, rate) = (f64::from(workers), exact.rate());
                let within = |bounds: Bounds| {
                    assert!(
                        bounds.low <= rate * (1.0 + 1e-9),
                        "{workers}: {bounds:?} {rate}"
                    );
                    assert!(
                        bounds.high >= rate * (1.0 - 1e-9),
                        "{workers}: {bounds:?} {rate}"
                    );
                };
                within(station.asymptotic_rate(workers));
                if servers <= 1.0 {
                    within(station.balanced_rate(workers));
                }
                let response = station.asymptotic_response(workers);
                let exact_response = exact.response();
                assert!(response.low <= exact_response + 1e-9);
                assert!(response.high >= exact_response - 1e-9);
            }
        }
    }
}
