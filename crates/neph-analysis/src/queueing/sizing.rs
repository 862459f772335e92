//! How many servers (pods) a rate and a latency goal need, by M/M/c.

use super::open::OpenQueue;

/// A goal for response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The quantile that the goal is about, 0 to below 1; `None` for the mean.
    pub quantile: Option<f64>,
    /// The largest allowed response time, seconds.
    pub limit: f64,
}

impl Goal {
    /// The response time of the goal's kind.
    pub fn response(&self, queue: &OpenQueue) -> f64 {
        match self.quantile {
            Some(share) => queue.response_quantile(share),
            None => queue.response(),
        }
    }
}

/// Servers for a rate and a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Number of servers.
    pub servers: u32,
    /// The response time of the goal's kind with these servers, seconds.
    pub response: f64,
    /// Their utilisation.
    pub utilisation: f64,
}

/// More servers are never tried.
pub const MAX_SERVERS: u32 = 100_000;

/// The least number of servers that reaches the goal. `None` if no number does: the service time alone is too
/// long, or more than [`MAX_SERVERS`] are needed.
pub fn size(arrivals: f64, service: f64, goal: &Goal) -> Option<Size> {
    let queue = |servers| OpenQueue {
        arrivals,
        service,
        servers,
    };
    let idle = queue(MAX_SERVERS);
    if idle.utilisation() >= 1.0 || goal.response(&idle) > goal.limit {
        return None;
    }
    let is_enough = |servers| {
        let queue = queue(servers);
        queue.utilisation() < 1.0 && goal.response(&queue) <= goal.limit
    };
    // More servers are never slower.
    let (mut low, mut high) = (0, MAX_SERVERS);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let sized = queue(high);
    Some(Size {
        servers: high,
        response: goal.response(&sized),
        utilisation: sized.utilisation(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_the_least_that_reaches_the_goal() {
        let goal = Goal {
            quantile: Some(0.99),
            limit: 0.4,
        };
        let found = size(500.0, 0.063, &goal).expect("reachable");
        assert!(found.response <= 0.4 && found.utilisation < 1.0);
        let fewer = OpenQueue {
            arrivals: 500.0,
            service: 0.063,
            servers: found.servers - 1,
        };
        assert!(fewer.utilisation() >= 1.0 || goal.response(&fewer) > 0.4);
        assert!(found.servers >= 32, "31.5 erlangs");
    }

    #[test]
    fn a_goal_below_the_service_time_is_not_reachable() {
        let goal = Goal {
            quantile: None,
            limit: 0.05,
        };
        assert_eq!(size(10.0, 0.063, &goal), None);
        assert!(size(10.0, 0.04, &goal).is_some());
    }
}
