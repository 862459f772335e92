//! An open queue: M/M/c and its Erlang formulas, and M/M/c/K with a finite queue.

use super::states::probabilities;

/// Poisson arrivals at c servers with exponential service times and one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OpenQueue {
    /// Arrivals per second.
    pub arrivals: f64,
    /// Mean service time, above 0.
    pub service: f64,
    /// Number of servers, at least 1.
    pub servers: u32,
}

impl OpenQueue {
    /// Offered load in erlangs: mean number of servers that it needs.
    pub fn offered(&self) -> f64 {
        self.arrivals * self.service
    }

    /// Offered load per server. The queue grows without end from 1 on.
    pub fn utilisation(&self) -> f64 {
        self.offered() / f64::from(self.servers)
    }

    /// Probability that a request has to wait (Erlang C); 1 if the queue grows without end.
    pub fn waiting_probability(&self) -> f64 {
        let utilisation = self.utilisation();
        if utilisation >= 1.0 {
            return 1.0;
        }
        let blocked = erlang_b(self.servers, self.offered());
        blocked / (1.0 - utilisation * (1.0 - blocked))
    }

    /// Mean response time; infinite if the queue grows without end.
    pub fn response(&self) -> f64 {
        if self.utilisation() >= 1.0 {
            return f64::INFINITY;
        }
        let spare = f64::from(self.servers) / self.service - self.arrivals;
        self.service + self.waiting_probability() / spare
    }

    /// Probability that a response takes longer than `time`, first come, first served.
    pub fn response_above(&self, time: f64) -> f64 {
        if self.utilisation() >= 1.0 {
            return 1.0;
        }
        let units = time / self.service;
        let waits = self.waiting_probability();
        let spare = f64::from(self.servers) - 1.0 - self.offered();
        let unserved = (-units).exp();
        // The product of exp(-u) and (1 - exp(-u s)) / s, whose limit at s = 0 is u exp(-u). Written as a
        // difference, because exp(-u s) overflows for negative s.
        let waiting = if spare.abs() < 1e-9 {
            units * unserved
        } else {
            (unserved - (-units * (spare + 1.0)).exp()) / spare
        };
        (unserved + waits * waiting).clamp(0.0, 1.0)
    }

    /// The quantile `share` (0 to below 1) of response times; infinite if the queue grows without end.
    pub fn response_quantile(&self, share: f64) -> f64 {
        if self.utilisation() >= 1.0 {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (0.0, self.service);
        while self.response_above(high) > 1.0 - share {
            high *= 2.0;
        }
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if self.response_above(middle) > 1.0 - share {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// Probability that all servers are busy, and no request waits (Erlang B).
pub fn erlang_b(servers: u32, offered: f64) -> f64 {
    (1..=servers).fold(1.0, |blocked, server| {
        offered * blocked / (f64::from(server) + offered * blocked)
    })
}

/// M/M/c/K: `places` requests can wait; others are refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FiniteQueue {
    /// Arrivals and servers.
    pub queue: OpenQueue,
    /// Requests that can wait.
    pub places: u32,
}

impl FiniteQueue {
    /// Probability that a request is refused.
    pub fn refused(&self) -> f64 {
        let last = self.probabilities().last().copied();
        last.unwrap_or(0.0)
    }

    /// Successful responses per second.
    pub fn rate(&self) -> f64 {
        self.queue.arrivals * (1.0 - self.refused())
    }

    /// Mean response time of requests that are not refused.
    pub fn response(&self) -> f64 {
        let requests = (0..).map(f64::from).zip(self.probabilities());
        let mean: f64 = requests
            .map(|(number, probability)| number * probability)
            .sum();
        mean / self.rate()
    }

    fn probabilities(&self) -> Vec<f64> {
        let (offered, servers) = (self.queue.offered(), self.queue.servers);
        let numbers = 1..=servers.saturating_add(self.places);
        probabilities(numbers.map(|number| offered / f64::from(number.min(servers))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(arrivals: f64, service: f64, servers: u32) -> OpenQueue {
        OpenQueue {
            arrivals,
            service,
            servers,
        }
    }

    #[test]
    fn erlang_formulas_match_published_values() {
        // Tables of Erlang B: 10 erlangs at 10 servers 0.2146, 5 at 10 0.0184.
        assert!((erlang_b(10, 10.0) - 0.2146).abs() < 5e-5);
        assert!((erlang_b(10, 5.0) - 0.0184).abs() < 5e-5);
        // Erlang C: 2 servers at 1 erlang: 1/3.
        assert!((queue(1.0, 1.0, 2).waiting_probability() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn one_server_is_the_formula_of_m_m_1() {
        let one = queue(80.0, 0.01, 1);
        assert!((one.response() - 0.05).abs() < 1e-12);
        // Exponential with mean 50 ms.
        assert!((one.response_above(0.1) - (-2.0_f64).exp()).abs() < 1e-12);
        assert!((one.response_quantile(0.99) - 0.05 * 100.0_f64.ln()).abs() < 1e-9);
        assert!(queue(100.0, 0.01, 1).response().is_infinite());
        // Far behind 709 service times, where exp overflows.
        let busy = queue(999.9, 0.001, 1);
        let quantile = busy.response_quantile(0.99);
        assert!(
            (quantile / (10.0 * 100.0_f64.ln()) - 1.0).abs() < 1e-6,
            "{quantile}"
        );
    }

    #[test]
    fn the_mean_is_the_integral_of_the_probability_above() {
        for queue in [
            queue(90.0, 0.01, 2),
            queue(100.0, 0.063, 8),
            queue(100.0, 0.01, 2),
        ] {
            let step = 1e-5;
            let steps = (0..2_000_000).map(|index| (f64::from(index) + 0.5) * step);
            let mean: f64 = steps.map(|time| queue.response_above(time) * step).sum();
            assert!((mean / queue.response() - 1.0).abs() < 1e-3, "{mean}");
        }
    }

    #[test]
    fn a_finite_queue_refuses_what_it_cannot_keep() {
        // Without places it is Erlang B; with many it is M/M/c.
        let finite = |places| FiniteQueue {
            queue: queue(160.0, 0.01, 2),
            places,
        };
        assert!((finite(0).refused() - erlang_b(2, 1.6)).abs() < 1e-12);
        assert!((finite(0).response() - 0.01).abs() < 1e-12);
        let open = finite(0).queue.response();
        assert!((finite(2_000).response() / open - 1.0).abs() < 1e-9);
    }
}
