//! A second of a request/response test, all streams together.

use std::collections::BTreeMap;

use neph_model::Span;
use neph_wire::throughput::{CpuInterval, Intervals, RrInterval};

use super::super::rates::nanos;
use super::super::usage::{Threaded, busiest, core_busy};
use super::measured::RrCounts;
use super::recorder::RttPart;
use crate::durations::Durations;

/// A second, all streams together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RrSecond {
    /// Its number, from 0.
    pub index: u32,
    /// Its end, since the start.
    pub to: Span,
    /// Transactions with a reply per second.
    pub rate: f64,
    /// RTTs of transactions that ended in it with a reply.
    pub rtts: Durations,
    /// Outcomes of transactions in it.
    pub counts: RrCounts,
    /// The client's busiest thread, as a share of a core.
    pub client_thread: f64,
    /// Busy share of that thread's core.
    pub client_core: Option<f64>,
    /// The server's busiest thread, as a share of a core.
    pub server_thread: f64,
    /// Busy share of that thread's core.
    pub server_core: Option<f64>,
}

/// Number of the last interval of each stream and of the CPU meter at one end.
#[derive(Debug, Default)]
struct LastIntervals {
    streams: BTreeMap<u16, u32>,
    cpu: Option<u32>,
}

impl LastIntervals {
    fn add(&mut self, intervals: &Intervals) {
        for interval in intervals
            .exchanged
            .iter()
            .filter(|interval| is_second(interval))
        {
            let reached = self.streams.entry(interval.stream).or_default();
            *reached = interval.index.max(*reached);
        }
        let cpu = intervals.cpu.iter().map(|interval| interval.index).max();
        self.cpu = self.cpu.max(cpu);
    }

    fn has(&self, streams: usize, index: u32) -> bool {
        let reached_streams = self.streams.values().filter(|reached| **reached >= index);
        reached_streams.count() >= streams && self.cpu >= Some(index)
    }
}

/// Counts of both ends, and which seconds were returned.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    pub(super) client: Intervals,
    pub(super) server: Intervals,
    rtts: BTreeMap<u32, Durations>,
    of_client: LastIntervals,
    of_server: LastIntervals,
    streams: usize,
    next: u32,
}

impl Seconds {
    /// For a test with this many streams.
    pub(super) fn of(streams: u16) -> Self {
        Self {
            streams: streams.into(),
            ..Self::default()
        }
    }

    /// Adds counts of both ends.
    pub(super) fn add(&mut self, client: Intervals, server: Intervals) {
        self.of_client.add(&client);
        self.of_server.add(&server);
        self.client.append(client);
        self.server.append(server);
    }

    /// Adds RTTs; call it before the intervals that they belong to.
    pub(super) fn add_rtts(&mut self, part: &RttPart) {
        self.rtts.entry(part.index).or_default().merge(&part.rtts);
    }

    /// The next second that both ends have counted on all streams. If the server did not report it,
    /// it is returned once the client has counted the second after the next.
    pub(super) fn next(&mut self) -> Option<RrSecond> {
        let next = self.next;
        let of_client = |index| self.of_client.has(self.streams, index);
        let is_complete = of_client(next) && self.of_server.has(self.streams, next);
        if !is_complete && !of_client(next.saturating_add(2)) {
            return None;
        }
        self.next += 1;
        Some(self.second(next))
    }

    /// The remaining seconds at the end.
    pub(super) fn remaining(&mut self) -> Vec<RrSecond> {
        let lasting = self
            .client
            .exchanged
            .iter()
            .filter(|interval| is_second(interval));
        let end = lasting
            .map(|interval| interval.index + 1)
            .max()
            .unwrap_or(0);
        let indices = self.next..end;
        indices.map(|index| self.second(index)).collect()
    }

    fn second(&mut self, index: u32) -> RrSecond {
        let of = |intervals: &[RrInterval]| -> Vec<RrInterval> {
            let of_index = intervals.iter().filter(|interval| interval.index == index);
            of_index.cloned().collect()
        };
        let (client, server) = (of(&self.client.exchanged), of(&self.server.exchanged));
        let mut counts = RrCounts::default();
        for interval in &client {
            counts.add(interval);
        }
        let to = client
            .iter()
            .map(|interval| interval.to_ns)
            .max()
            .unwrap_or(0);
        let rates = client.iter().map(|interval| {
            let length = interval.to_ns.saturating_sub(interval.from_ns);
            per_second(interval.transactions, length)
        });
        let (client_thread, client_core) = busy(&client, &self.client.cpu, index);
        let (server_thread, server_core) = busy(&server, &self.server.cpu, index);
        RrSecond {
            index,
            to: nanos(to),
            rate: rates.sum(),
            rtts: self.rtts.remove(&index).unwrap_or_default(),
            counts,
            client_thread,
            client_core,
            server_thread,
            server_core,
        }
    }
}

/// An interval below 100 ms, after a stop, is no second.
const fn is_second(interval: &RrInterval) -> bool {
    const MIN_LENGTH_NANOS: u64 = 100_000_000;
    interval.to_ns >= interval.from_ns.saturating_add(MIN_LENGTH_NANOS)
}

/// `count` in `length_ns` nanoseconds, per second.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
pub(super) fn per_second(count: u64, length_ns: u64) -> f64 {
    if length_ns == 0 {
        return 0.0;
    }
    count as f64 * 1e9 / length_ns as f64
}

/// The busiest thread of an interval, and its core.
fn busy(intervals: &[RrInterval], cpu: &[CpuInterval], index: u32) -> (f64, Option<f64>) {
    let Some(busiest) = busiest(intervals.iter().map(Threaded::thread)) else {
        return (0.0, None);
    };
    (busiest.share, core_busy(cpu, index, busiest.core))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(stream: u16, index: u32) -> Intervals {
        let (from, to) = (u64::from(index), u64::from(index) + 1);
        Intervals {
            exchanged: vec![RrInterval {
                stream,
                index,
                from_ns: from * 1_000_000_000,
                to_ns: to * 1_000_000_000,
                transactions: 10,
                ..RrInterval::default()
            }],
            cpu: vec![CpuInterval {
                index,
                ..CpuInterval::default()
            }],
            ..Intervals::default()
        }
    }

    #[test]
    fn a_second_is_reported_once_both_ends_have_all_its_streams() {
        let mut seconds = Seconds::of(2);
        seconds.add(counted(0, 0), counted(0, 0));
        assert_eq!(seconds.next(), None);
        seconds.add(counted(1, 0), Intervals::default());
        assert_eq!(seconds.next(), None);
        seconds.add(Intervals::default(), counted(1, 0));
        let second = seconds.next().expect("it is complete");
        assert_eq!((second.index, second.counts.transactions), (0, 20));
        assert!((second.rate - 20.0).abs() < 1e-9, "{}", second.rate);
        assert_eq!(seconds.next(), None);
        assert_eq!(seconds.remaining(), []);
    }

    #[test]
    fn a_server_without_reports_delays_no_second() {
        let mut seconds = Seconds::of(1);
        for index in 0..3 {
            seconds.add(counted(0, index), Intervals::default());
        }
        assert_eq!(seconds.next().map(|second| second.index), Some(0));
        assert_eq!(seconds.next(), None);
        let remaining_indices: Vec<u32> = seconds
            .remaining()
            .iter()
            .map(|rr_second| rr_second.index)
            .collect();
        assert_eq!(remaining_indices, [1, 2]);
    }

    #[test]
    fn a_skipped_interval_delays_no_second() {
        let mut seconds = Seconds::of(1);
        seconds.add(counted(0, 0), counted(0, 1));
        assert_eq!(seconds.next().map(|second| second.index), Some(0));
    }
}
