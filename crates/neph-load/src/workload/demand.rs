//! Who sends requests: workers that wait for responses (closed loop), or arrivals (open loop).
//!
//! Owns the seeds: a worker draws the same times, whichever generator and thread it is on.

use neph_model::{Arrivals, Span, TimeDistribution};
use neph_stats::Random;

/// The demand of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Each worker waits for its think time, sends a request, and waits for the response.
    Closed(Workers),
    /// Requests do not wait for the responses of others.
    Open(Arrivals),
}

/// The workers of a closed loop, over all generators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workers {
    /// Number, 1 to 100,000.
    pub count: u32,
    /// Time from a response, or from the start of the worker, to the next request.
    pub think: TimeDistribution,
    /// The workers start one after the other within this time, at equal distances.
    pub ramp: Span,
}

impl Workers {
    /// Maximum number of workers.
    pub const MAX: u32 = 100_000;

    /// When this worker starts, since the start of the load.
    pub(crate) fn start(&self, number: u32) -> Span {
        let nanos =
            i128::from(self.ramp.nanos()) * i128::from(number) / i128::from(self.count.max(1));
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

/// The part of a demand that one generator, or one of its threads, sends: every `of`-th worker or arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// From 0 to below `of`.
    pub index: u32,
    /// Number of parts, at least 1.
    pub of: u32,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The part of one thread of this share.
    pub(crate) const fn of_thread(self, thread: u32, threads: u32) -> Self {
        Self {
            index: self.index + self.of * thread,
            of: self.of * threads,
        }
    }

    /// Whether the worker or arrival with this number is in it.
    pub(crate) fn has(self, number: u64) -> bool {
        number % u64::from(self.of) == u64::from(self.index)
    }

    /// Numbers below `count` that are in it.
    pub(crate) fn numbers(self, count: u32) -> impl Iterator<Item = u32> {
        (self.index..count).step_by(self.of as usize)
    }
}

/// The draws of a worker.
pub(crate) fn random_of_worker(seed: u64, worker: u32) -> Random {
    // Seeds of neighbours differ in about half of their bits.
    Random::new(seed ^ (u64::from(worker) + 1).wrapping_mul(0x9e6c_63d0_876a_68dd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_threads_and_generators_cover_each_worker_once() {
        let mut numbers = Vec::new();
        for index in 0..3 {
            for thread in 0..2 {
                let share = Share { index, of: 3 }.of_thread(thread, 2);
                let part: Vec<u32> = share.numbers(20).collect();
                assert!(part.iter().all(|number| number % 3 == index));
                assert!(part.iter().all(|number| share.has(u64::from(*number))));
                numbers.extend(part);
            }
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..20).collect::<Vec<u32>>());
    }

    #[test]
    fn workers_of_a_ramp_start_at_equal_distances() {
        let workers = Workers {
            count: 4,
            think: TimeDistribution::NONE,
            ramp: Span::from_secs(2),
        };
        let starts: Vec<Span> = (0..4).map(|number| workers.start(number)).collect();
        assert_eq!(starts, [0, 500, 1_000, 1_500].map(Span::from_millis));
    }

    #[test]
    fn workers_draw_different_times() {
        let first: Vec<u64> = (0..100)
            .map(|worker| random_of_worker(1, worker).bits())
            .collect();
        let distinct: std::collections::BTreeSet<u64> = first.iter().copied().collect();
        assert_eq!(distinct.len(), 100);
        assert_eq!(random_of_worker(1, 5).bits(), first[5]);
    }
}
