//! Arrival rate, service rate and utilisation of a closed loop as source 4 defines them (its section 4).
//!
//! Each worker sends 1 / (response time + think time) requests per second; each pod serves 1 / (least response
//! time). Their ratio is a utilisation only below 1: above, workers wait for each other, and send less.

/// Rates of a closed loop by the definitions of source 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceRates {
    /// Requests per second that all workers would send without waiting (lambda).
    pub arrivals: f64,
    /// Requests per second that all pods could serve (mu).
    pub service: f64,
}

impl SourceRates {
    /// The rates of workers and pods; `least_response` is the response time without waiting, seconds.
    pub fn new(workers: f64, pods: f64, least_response: f64, think: f64) -> Self {
        Self {
            arrivals: workers / (least_response + think),
            service: pods / least_response,
        }
    }

    /// Utilisation (rho).
    pub fn utilisation(&self) -> f64 {
        self.arrivals / self.service
    }

    /// Whether the utilisation has its meaning: it is below 1.
    pub fn is_valid(&self) -> bool {
        self.utilisation() < 1.0
    }
}

/// The number of workers for a utilisation of 1.
pub fn workers_at_full_utilisation(servers: f64, least_response: f64, think: f64) -> f64 {
    servers * (least_response + think) / least_response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference.md A: 20 pods give 26.3 workers, the plateau of 127.8/s gives 10.6.
    #[test]
    fn the_numbers_of_source_4_contradict_each_other() {
        let by_pods = workers_at_full_utilisation(20.0, 0.063, 0.02);
        assert!((by_pods - 26.3).abs() < 0.1, "{by_pods}");
        let by_plateau = workers_at_full_utilisation(127.8 * 0.063, 0.063, 0.02);
        assert!((by_plateau - 10.6).abs() < 0.1, "{by_plateau}");
        let rates = SourceRates::new(20.0, 20.0, 0.063, 0.02);
        assert!(rates.is_valid() && rates.utilisation() < 0.77);
        assert!(!SourceRates::new(30.0, 20.0, 0.063, 0.02).is_valid());
    }
}
