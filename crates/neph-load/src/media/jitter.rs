//! Interarrival jitter over time.

use crate::throughput::variation::Jitter;

/// Jitter, with its mean and maximum over packets, as in tshark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JitterCourse {
    jitter: Jitter,
    sum: u128,
    count: u64,
    max: u64,
}

impl JitterCourse {
    /// Adds a packet with this transit time, the difference of the two clocks.
    pub(super) fn arrive(&mut self, transit_ns: i64) {
        self.jitter.arrive(transit_ns);
        self.count += 1;
        self.sum += u128::from(self.jitter.nanos());
        self.max = self.max.max(self.jitter.nanos());
    }

    /// Current jitter in nanoseconds.
    pub(super) const fn nanos(&self) -> u64 {
        self.jitter.nanos()
    }

    /// Mean over packets in nanoseconds; absent below two packets.
    pub(super) fn mean(&self) -> Option<u64> {
        let mean = self.sum / u128::from(self.count.max(1));
        u64::try_from(mean).ok().filter(|_| self.count > 1)
    }

    /// Maximum in nanoseconds.
    pub(super) const fn max(&self) -> u64 {
        self.max
    }
}
