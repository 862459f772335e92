//! A queue with servers, in virtual time: when each request begins and ends its service.
//!
//! A server that becomes free takes the next request at that moment, however late its thread wakes up. So
//! the sequence of times is exactly that of the model.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use neph_model::{ServiceModel, Span};
use neph_stats::Random;

use crate::workload::TimeSampler;

/// A moment, nanoseconds on the server's clock.
type Nanos = i64;

/// Servers and a queue. `T` names a request.
#[derive(Debug)]
pub(super) struct ServiceQueue<T> {
    idle_servers: u32,
    max_waiting: u32,
    service_time: TimeSampler,
    random: Random,
    waiting: VecDeque<T>,
    /// Requests in service by the end of their service; the number keeps the order of equal times.
    served: BinaryHeap<Reverse<(Nanos, u64)>>,
    names: std::collections::BTreeMap<u64, T>,
    number: u64,
}

/// The queue has no place for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

impl<T> ServiceQueue<T> {
    pub(super) fn new(model: &ServiceModel, seed: u64) -> Self {
        Self {
            idle_servers: model.servers.max(1),
            max_waiting: model.queue.unwrap_or(ServiceModel::MAX),
            service_time: TimeSampler::new(&model.service_time),
            random: Random::new(seed),
            waiting: VecDeque::new(),
            served: BinaryHeap::new(),
            names: std::collections::BTreeMap::new(),
            number: 0,
        }
    }

    /// A request arrives. First take all requests that ended before `now`.
    pub(super) fn arrive(&mut self, name: T, now: Nanos) -> Result<(), QueueFull> {
        if self.idle_servers > 0 {
            self.idle_servers -= 1;
            self.begin(name, now);
            return Ok(());
        }
        if self.waiting.len() >= self.max_waiting as usize {
            return Err(QueueFull);
        }
        self.waiting.push_back(name);
        Ok(())
    }

    fn begin(&mut self, name: T, at: Nanos) {
        let service: Span = self.service_time.draw(&mut self.random);
        let number = self.number;
        self.number += 1;
        self.served
            .push(Reverse((at.saturating_add(service.nanos()), number)));
        self.names.insert(number, name);
    }

    /// When the next request ends.
    pub(super) fn next_end(&self) -> Option<Nanos> {
        self.served.peek().map(|Reverse((end, _))| *end)
    }

    /// A request whose service has ended by `now`. Its server takes the next one.
    pub(super) fn take_ended(&mut self, now: Nanos) -> Option<T> {
        let Reverse((end, number)) = self.served.peek().copied()?;
        if end > now {
            return None;
        }
        self.served.pop();
        match self.waiting.pop_front() {
            Some(next) => self.begin(next, end),
            None => self.idle_servers += 1,
        }
        self.names.remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(text: &str) -> ServiceQueue<u32> {
        ServiceQueue::new(&text.parse().expect(text), 1)
    }

    #[test]
    fn requests_are_served_in_their_order_by_the_servers_that_are_idle() {
        let mut queue = queue("c=2 10ns");
        for (name, at) in [(1, 0), (2, 3), (3, 4), (4, 5)] {
            assert_eq!(queue.arrive(name, at), Ok(()));
        }
        assert_eq!((queue.next_end(), queue.take_ended(9)), (Some(10), None));
        // All ends, seen very late: request 3 began at 10 and 4 at 13.
        let ends: Vec<(Option<Nanos>, Option<u32>)> = (0..5)
            .map(|_| (queue.next_end(), queue.take_ended(1_000)))
            .collect();
        let end = |at, name| (Some(at), Some(name));
        assert_eq!(
            ends,
            [end(10, 1), end(13, 2), end(20, 3), end(23, 4), (None, None)]
        );
        assert_eq!(queue.arrive(5, 1_000), Ok(()));
        assert_eq!(queue.next_end(), Some(1_010));
    }

    #[test]
    fn a_full_queue_refuses_requests() {
        let mut queue = queue("c=1 10ns queue=1");
        assert_eq!(queue.arrive(1, 0), Ok(()));
        assert_eq!(queue.arrive(2, 1), Ok(()));
        assert_eq!(queue.arrive(3, 2), Err(QueueFull));
        assert_eq!(queue.take_ended(10), Some(1));
        assert_eq!(queue.arrive(4, 11), Ok(()));
    }

    /// M/M/1 at 80 % utilisation: 4 requests on average, by the formula rho / (1 - rho).
    #[test]
    fn the_mean_number_of_requests_matches_the_formula() {
        let mut queue = queue("c=1 exp 800us");
        let arrivals = "poisson 1000/s".parse().expect("a rate");
        let mut times = crate::workload::ArrivalTimes::new(&arrivals, 3).map(Span::nanos);
        let (mut present, mut area, mut last) = (0_i64, 0_i128, 0);
        let mut next = times.next().expect("arrivals");
        for number in 0..400_000 {
            loop {
                let event = queue.next_end().filter(|end| *end <= next);
                let now = event.unwrap_or(next);
                area += i128::from(present) * i128::from(now - last);
                last = now;
                if event.is_none() {
                    break;
                }
                present -= i64::from(queue.take_ended(now).is_some());
            }
            queue.arrive(number, next).expect("no limit");
            present += 1;
            next = times.next().expect("arrivals");
        }
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean = area as f64 / last as f64;
        assert!((mean / 4.0 - 1.0).abs() < 0.05, "{mean}");
    }
}
