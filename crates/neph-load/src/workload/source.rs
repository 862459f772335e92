//! When the next requests of a thread are intended: of its workers, or of its arrivals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use neph_model::Span;
use neph_stats::Random;
use neph_sys::clock::RawNanos;

use super::arrival_times::ArrivalTimes;
use super::demand::{Demand, Share, random_of_worker};
use super::pool::ConnectionId;
use super::time_sampler::TimeSampler;

/// A worker that could not connect waits at least this long, so that a dead peer is not flooded.
const FAILED_CONNECT_PAUSE: Span = Span::from_millis(100);

/// A worker of a closed loop.
#[derive(Debug)]
pub(super) struct Worker {
    random: Random,
    /// The connection that only this worker uses.
    pub(super) connection: Option<ConnectionId>,
}

/// Where the requests of a thread come from.
#[derive(Debug)]
pub(super) enum Source {
    Workers(WorkerSource),
    Arrivals(ArrivalSource),
}

#[derive(Debug)]
pub(super) struct WorkerSource {
    share: Share,
    workers: Vec<Worker>,
    think: TimeSampler,
    /// The intended time of the next request of each thinking worker.
    next: BinaryHeap<Reverse<(RawNanos, u32)>>,
}

#[derive(Debug)]
pub(super) struct ArrivalSource {
    times: ArrivalTimes,
    share: Share,
    start: RawNanos,
    number: u64,
    next: Option<RawNanos>,
}

/// A request whose intended time is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intended {
    pub(super) worker: Option<u32>,
    pub(super) at: RawNanos,
}

impl Source {
    /// The requests of this share.
    pub(super) fn new(demand: &Demand, seed: u64, share: Share, start: RawNanos) -> Self {
        match demand {
            Demand::Closed(workers) => {
                let think = TimeSampler::new(&workers.think);
                let mut source = WorkerSource {
                    share,
                    workers: Vec::new(),
                    think,
                    next: BinaryHeap::new(),
                };
                for number in share.numbers(workers.count) {
                    let mut random = random_of_worker(seed, number);
                    let thought = source.think.draw(&mut random);
                    let at = after(start, workers.start(number) + thought);
                    source.next.push(Reverse((at, number)));
                    source.workers.push(Worker {
                        random,
                        connection: None,
                    });
                }
                Self::Workers(source)
            }
            Demand::Open(arrivals) => {
                let mut source = ArrivalSource {
                    times: ArrivalTimes::new(arrivals, seed),
                    share,
                    start,
                    number: 0,
                    next: None,
                };
                source.advance();
                Self::Arrivals(source)
            }
        }
    }

    /// When the next request is intended; `None` if no request is known.
    pub(super) fn next(&self) -> Option<RawNanos> {
        match self {
            Self::Workers(source) => source.next.peek().map(|Reverse((at, _))| *at),
            Self::Arrivals(source) => source.next,
        }
    }

    /// The next request, if its time has come.
    pub(super) fn take(&mut self, now: RawNanos) -> Option<Intended> {
        let at = self.next().filter(|at| *at <= now)?;
        let worker = match self {
            Self::Workers(source) => source.next.pop().map(|Reverse((_, number))| number),
            Self::Arrivals(source) => {
                source.advance();
                None
            }
        };
        Some(Intended { worker, at })
    }

    /// The request of a worker ended: its think time begins. Returns its next request if that is intended at once.
    pub(super) fn ended(
        &mut self,
        worker: Option<u32>,
        now: RawNanos,
        is_connected: bool,
    ) -> Option<Intended> {
        let (Self::Workers(source), Some(number)) = (self, worker) else {
            return None;
        };
        let think = source.think_time(number);
        let think = if is_connected {
            think
        } else {
            think.max(FAILED_CONNECT_PAUSE)
        };
        let at = after(now, think);
        if think == Span::ZERO {
            return Some(Intended { worker, at });
        }
        source.next.push(Reverse((at, number)));
        None
    }

    /// The worker with this number.
    pub(super) fn worker(&mut self, number: u32) -> Option<&mut Worker> {
        match self {
            Self::Workers(source) => source.worker(number),
            Self::Arrivals(_) => None,
        }
    }
}

impl WorkerSource {
    fn think_time(&mut self, number: u32) -> Span {
        let index = (number - self.share.index) / self.share.of;
        let worker = self.workers.get_mut(index as usize);
        worker.map_or(Span::ZERO, |worker| self.think.draw(&mut worker.random))
    }

    fn worker(&mut self, number: u32) -> Option<&mut Worker> {
        let index = (number - self.share.index) / self.share.of;
        self.workers.get_mut(index as usize)
    }
}

impl ArrivalSource {
    fn advance(&mut self) {
        self.next = None;
        for time in self.times.by_ref() {
            let number = self.number;
            self.number += 1;
            if self.share.has(number) {
                self.next = Some(after(self.start, time));
                return;
            }
        }
    }
}

fn after(from: RawNanos, span: Span) -> RawNanos {
    RawNanos(from.0.saturating_add(span.nanos()))
}

#[cfg(test)]
mod tests {
    use neph_model::TimeDistribution;

    use super::*;
    use crate::workload::demand::Workers;

    const START: RawNanos = RawNanos(1_000);

    fn closed(count: u32, think: &str) -> Demand {
        Demand::Closed(Workers {
            count,
            think: think.parse().expect(think),
            ramp: Span::ZERO,
        })
    }

    /// The first requests of a source whose service takes 1 ms, in the order of their intended times.
    fn requests(demand: &Demand, share: Share, count: usize) -> Vec<Intended> {
        let mut source = Source::new(demand, 5, share, START);
        let mut requests = Vec::new();
        while requests.len() < count {
            let Some(at) = source.next() else { break };
            let intended = source.take(at).expect("it is due");
            requests.push(intended);
            let done = RawNanos(at.0 + 1_000_000);
            source.ended(intended.worker, done, true);
        }
        requests
    }

    #[test]
    fn ten_generators_send_what_one_sends() {
        for demand in [
            closed(120, "exp 20ms"),
            Demand::Open("poisson 5000/s".parse().expect("a rate")),
        ] {
            let one = requests(&demand, Share::WHOLE, 2_000);
            let last = one.last().expect("requests").at;
            let mut ten: Vec<Intended> = (0..10)
                .flat_map(|index| requests(&demand, Share { index, of: 10 }, 2_000))
                .filter(|request| request.at <= last)
                .collect();
            ten.sort_by_key(|request| (request.at, request.worker));
            assert_eq!(ten, one, "{demand:?}");
        }
    }

    #[test]
    fn a_worker_without_think_time_sends_at_once_and_pauses_if_it_cannot_connect() {
        let mut source = Source::new(&closed(1, "none"), 1, Share::WHOLE, START);
        assert_eq!(
            source.take(START).and_then(|request| request.worker),
            Some(0)
        );
        let now = RawNanos(5_000);
        let next = source.ended(Some(0), now, true);
        assert_eq!(next.map(|next| next.at), Some(now));
        assert_eq!(source.ended(Some(0), now, false), None);
        assert_eq!(source.next(), Some(after(now, FAILED_CONNECT_PAUSE)));
        assert!(TimeDistribution::NONE.is_none());
    }
}
