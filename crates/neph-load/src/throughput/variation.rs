//! Jitter (RFC 3550) and delay variation (RFC 5481) from send and arrival times of datagrams.
//!
//! Needs no common clock of sender and receiver: only differences of delays are used. Reads no
//! clock.

use neph_wire::throughput::Variation;

use super::reservoir::Reservoir;
use super::sequence::Arrival;

/// Maximum sample size of an interval's percentiles.
const MAX_INTERVAL_SAMPLES: usize = 2048;
/// Maximum sample size of a stream's percentiles.
const MAX_STREAM_SAMPLES: usize = 1 << 15;

/// Interarrival jitter, in sixteenths of nanoseconds (RFC 3550, appendix A.8).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jitter {
    sixteenths: u64,
    last: Option<i64>,
}

impl Jitter {
    /// Adds a datagram with this transit time, the difference of the two clocks.
    pub(crate) fn arrive(&mut self, transit_ns: i64) {
        if let Some(last) = self.last.replace(transit_ns) {
            let difference = transit_ns.abs_diff(last);
            self.sixteenths = self
                .sixteenths
                .saturating_add(difference)
                .saturating_sub((self.sixteenths.saturating_add(8)) >> 4);
        }
    }

    /// Current jitter in nanoseconds.
    pub(crate) const fn nanos(&self) -> u64 {
        self.sixteenths >> 4
    }
}

/// Samples of delays, and of differences between consecutive ones.
#[derive(Debug)]
struct Samples {
    delays: Reservoir<i64>,
    differences: Reservoir<u64>,
    longest: Option<i64>,
}

impl Samples {
    fn new(capacity: usize) -> Self {
        Self {
            delays: Reservoir::new(capacity),
            differences: Reservoir::new(capacity),
            longest: None,
        }
    }

    fn variation(&self, min_delay: i64) -> Variation {
        let excess_delay = |delay: i64| delay.abs_diff(min_delay.min(delay));
        let delays = self.delays.sorted();
        let differences = self.differences.sorted();
        let pdv = |percent| quantile(&delays, percent).map(excess_delay);
        Variation {
            samples: delays.len() as u64,
            pdv_p50_ns: pdv(50),
            pdv_p95_ns: pdv(95),
            pdv_p99_ns: pdv(99),
            pdv_max_ns: self.longest.map(excess_delay),
            ipdv_p50_ns: quantile(&differences, 50),
            ipdv_p95_ns: quantile(&differences, 95),
            ipdv_p99_ns: quantile(&differences, 99),
        }
    }
}

/// The delay variation of one stream.
#[derive(Debug)]
pub(crate) struct Delays {
    jitter: Jitter,
    min_delay_ns: i64,
    /// Transit time of the datagram with the highest number.
    last: Option<i64>,
    interval: Samples,
    stream: Samples,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            jitter: Jitter::default(),
            min_delay_ns: i64::MAX,
            last: None,
            interval: Samples::new(MAX_INTERVAL_SAMPLES),
            stream: Samples::new(MAX_STREAM_SAMPLES),
        }
    }
}

impl Delays {
    /// Adds a datagram with this transit time, the difference of the two clocks; ignores
    /// duplicates.
    pub(crate) fn arrive(&mut self, arrival: Arrival, transit_ns: i64) {
        if arrival == Arrival::Duplicate {
            return;
        }
        self.jitter.arrive(transit_ns);
        self.min_delay_ns = self.min_delay_ns.min(transit_ns);
        let neighbour = match arrival {
            Arrival::Next => self.last,
            _ => None,
        };
        for samples in [&mut self.interval, &mut self.stream] {
            samples.delays.push(transit_ns);
            samples.longest = samples.longest.max(Some(transit_ns));
            if let Some(neighbour) = neighbour {
                samples.differences.push(transit_ns.abs_diff(neighbour));
            }
        }
        if arrival != Arrival::Late {
            self.last = Some(transit_ns);
        }
    }

    /// Current jitter in nanoseconds.
    pub(crate) const fn jitter(&self) -> u64 {
        self.jitter.nanos()
    }

    /// Returns and resets the interval's samples. Its PDV is relative to the least delay of the
    /// stream so far.
    pub(crate) fn take_interval(&mut self) -> Variation {
        let samples = std::mem::replace(&mut self.interval, Samples::new(MAX_INTERVAL_SAMPLES));
        samples.variation(self.min_delay_ns)
    }

    /// Delay variation of the whole stream.
    pub(crate) fn total(&self) -> Variation {
        self.stream.variation(self.min_delay_ns)
    }
}

/// Nearest-rank percentile; absent if the sample is too small for a 95 % upper confidence bound.
fn quantile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let min_count = match percent {
        99 => 299,
        95 => 59,
        _ => 1,
    };
    if sorted.len() < min_count {
        return None;
    }
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, after RFC 3550: J += (|D| - J) / 16.
    #[test]
    fn jitter_is_the_smoothed_difference_of_transits() {
        let mut jitter = Jitter::default();
        jitter.arrive(1_000_000);
        assert_eq!(jitter.nanos(), 0);
        jitter.arrive(1_160_000);
        assert_eq!(jitter.nanos(), 10_000, "160 us / 16");
        jitter.arrive(1_160_000);
        assert_eq!(jitter.nanos(), 9_375, "10 us x 15 / 16");
        for step in 0..1_000 {
            jitter.arrive(1_000_000 + (step % 2) * 50_000);
        }
        assert!(jitter.nanos().abs_diff(50_000) <= 16, "{}", jitter.nanos());
    }

    #[test]
    fn pdv_is_relative_to_the_minimum_delay_and_independent_of_the_clock_offset() {
        for offset in [0_i64, -7_000_000_000, i64::MAX / 4] {
            let mut delays = Delays::default();
            for number in 0..1_000 {
                // 20 ms, and of each hundred the last ten 1 to 10 ms more.
                let more = (number % 100 - 89_i64).max(0);
                delays.arrive(Arrival::Next, offset + (20 + more) * 1_000_000);
            }
            let taken = delays.take_interval();
            assert_eq!(taken.samples, 1_000);
            assert_eq!(taken.pdv_p50_ns, Some(0));
            assert_eq!(taken.pdv_p95_ns, Some(5_000_000));
            assert_eq!(taken.pdv_p99_ns, Some(9_000_000));
            assert_eq!(taken.pdv_max_ns, Some(10_000_000));
            // Of 100 differences 89 are 0, ten are 1 ms and one is 10 ms.
            assert_eq!(taken.ipdv_p50_ns, Some(0));
            assert_eq!(taken.ipdv_p95_ns, Some(1_000_000));
            assert_eq!(delays.take_interval(), Variation::default());
            assert_eq!(delays.total(), taken);
        }
    }

    #[test]
    fn ipdv_compares_consecutive_sequence_numbers_without_duplicates() {
        let mut delays = Delays::default();
        delays.arrive(Arrival::Next, 10);
        delays.arrive(Arrival::Ahead, 500);
        delays.arrive(Arrival::Late, 900);
        delays.arrive(Arrival::Duplicate, 10_000);
        delays.arrive(Arrival::Next, 530);
        let taken = delays.take_interval();
        assert_eq!((taken.samples, taken.pdv_max_ns), (4, Some(890)));
        assert_eq!(taken.ipdv_p50_ns, Some(30));
        assert_eq!(taken.pdv_p95_ns, None, "too few");
    }
}
