//! The course of interarrival jitter.

use crate::throughput::variation::Jitter;

/// Jitter, and its mean and maximum over packets, as tshark has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JitterCourse {
    jitter: Jitter,
    sum: u128,
    count: u64,
    max: u64,
}

impl JitterCourse {
    /// A packet came that was under way so long, by the two clocks.
    pub(super) fn arrive(&mut self, transit_ns: i64) {
        self.jitter.arrive(transit_ns);
        self.count += 1;
        self.sum += u128::from(self.jitter.nanos());
        self.max = self.max.max(self.jitter.nanos());
    }

    /// The jitter now, nanoseconds.
    pub(super) const fn nanos(&self) -> u64 {
        self.jitter.nanos()
    }

    /// The mean over packets, nanoseconds; absent of less than two.
    pub(super) fn mean(&self) -> Option<u64> {
        let mean = self.sum / u128::from(self.count.max(1));
        u64::try_from(mean).ok().filter(|_| self.count > 1)
    }

    /// The maximum, nanoseconds.
    pub(super) const fn max(&self) -> u64 {
        self.max
    }
}
