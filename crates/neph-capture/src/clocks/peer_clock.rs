//! A peer's raw clock against the local one, estimated from messages.
//!
//! Owns which timestamps of a message count, their error bound, and which of them are kept. Does not own the
//! fit (neph-stats). Does no input or output and reads no clock.

use neph_model::{ClockOffset, Marks, Span};
use neph_stats::{
    ClockCourse, ClockFit, ClockNature, FourTimestamps, OffsetLimits, RetainedLimits, clock_course,
};

/// Error bound of kernel timestamps, in nanoseconds. Converting one from wall clock time to raw time costs
/// half the time of reading both clocks, at each machine: 60 to 90 ns, at most 200 ns.
pub const TIMESTAMP_ERROR_NANOS: i64 = 250;
/// One limit of each kind is kept per this many nanoseconds.
const RETENTION_PERIOD_NANOS: i64 = 10_000_000;

/// The raw clocks of a peer and of this host.
#[derive(Clone, Debug)]
pub struct PeerClock {
    nature: ClockNature,
    limits: RetainedLimits,
}

impl Default for PeerClock {
    fn default() -> Self {
        Self::new(ClockNature::default())
    }
}

impl PeerClock {
    pub const fn new(nature: ClockNature) -> Self {
        Self {
            nature,
            limits: RetainedLimits::per_period(RETENTION_PERIOD_NANOS),
        }
    }

    /// Adds a message that was answered. Returns its timestamps if it has all four.
    pub fn add_message(&mut self, marks: &Marks) -> Option<FourTimestamps> {
        let timestamps = tightest_timestamps(marks)?;
        self.add_timestamps(timestamps);
        Some(timestamps)
    }

    /// Adds the timestamps of an answered message. Call it in the order in which messages were sent.
    pub fn add_timestamps(&mut self, timestamps: FourTimestamps) {
        self.limits.add(timestamps, TIMESTAMP_ERROR_NANOS);
    }

    /// The peer's clock over the whole time. `None` without messages in both directions.
    pub fn course(&self) -> Option<ClockCourse<'_>> {
        clock_course(self.limits.limits(), self.nature).ok()
    }

    /// The peer's clock minus the local one at a moment of the local clock, in nanoseconds, from the messages
    /// around it. `None` where these lack one direction.
    pub fn fit(&self, at: i64) -> Option<ClockFit> {
        let window = self.nature.horizon.saturating_mul(3);
        let nearby = self.limits.since(at.saturating_sub(window));
        clock_course(nearby, self.nature).ok()?.at(at)
    }

    /// The same for one-way delays.
    pub fn offset(&self, at: i64) -> Option<ClockOffset> {
        let fit = self.fit(at)?;
        let (offset, bound) = (Span::from_nanos(fit.offset), Span::from_nanos(fit.bound));
        Some(ClockOffset::new(offset, bound))
    }

    /// All limits.
    pub fn limits(&self) -> OffsetLimits<'_> {
        self.limits.limits()
    }

    pub const fn nature(&self) -> ClockNature {
        self.nature
    }
}

/// The tightest timestamps of each side: those of the kernel, else those of the program. The program reads
/// its clock before the kernel sends and after the kernel receives.
fn tightest_timestamps(marks: &Marks) -> Option<FourTimestamps> {
    Some(FourTimestamps {
        sent: marks.nic_tx.or(marks.app_send)?.nanos(),
        arrived: marks.peer.rx.or(marks.peer.app_rx)?.nanos(),
        answered: marks.peer.nic_tx.or(marks.peer.app_tx)?.nanos(),
        returned: marks.nic_rx.or(marks.app_recv)?.nanos(),
    })
}

#[cfg(test)]
mod tests {
    use neph_model::Instant;

    use super::*;

    const MICRO: i64 = 1_000;
    const SECOND: i64 = 1_000_000_000;

    /// An exchange with four timestamps.
    fn exchange(nic_tx: i64, rx: i64, tx: i64, nic_rx: i64) -> Marks {
        let mut marks = Marks::intended_at(Instant::from_nanos(nic_tx));
        marks.nic_tx = Some(Instant::from_nanos(nic_tx));
        marks.peer.rx = Some(Instant::from_nanos(rx));
        marks.peer.nic_tx = Some(Instant::from_nanos(tx));
        marks.nic_rx = Some(Instant::from_nanos(nic_rx));
        marks
    }

    #[test]
    fn each_of_two_exchanges_bounds_the_offset_on_its_better_side() {
        let mut clock = PeerClock::default();
        // True offset 1000 us. Delays forward and reverse: 30 us and 10 us, then 12 us and 40 us.
        for [sent, arrived, answered, returned] in [[0, 1_030, 1_035, 45], [100, 1_112, 1_112, 152]]
        {
            let us = |micros: i64| micros * MICRO;
            let marks = exchange(us(sent), us(arrived), us(answered), us(returned));
            assert!(clock.add_message(&marks).is_some());
        }
        let offset = clock.offset(100 * MICRO).expect("four marks are there");
        // From 990 to 1012 us, plus a margin on both sides for the error of timestamps and rates.
        assert!((offset.value().nanos() - 1_001 * MICRO).abs() < 300);
        assert!(
            (11_250..11_700).contains(&offset.bound().nanos()),
            "{offset:?}"
        );
    }

    #[test]
    fn drifting_clocks_have_an_offset_within_its_bound_at_any_time() {
        let mut clock = PeerClock::default();
        let true_offset = |at: i64| 77 * SECOND + at / 1_000_000 * 40;
        // One minute at 40 ppm is 2.4 ms, far more than the round trip.
        for number in 0..600 {
            let (sent, forward_delay) =
                (number * SECOND / 10, 200 * MICRO + number % 7 * 10 * MICRO);
            let arrived = sent + forward_delay + true_offset(sent + forward_delay);
            let marks = exchange(sent, arrived, arrived, sent + forward_delay + 300 * MICRO);
            clock.add_message(&marks);
        }
        for second in [0, 30, 59] {
            let at = second * SECOND;
            let offset = clock.offset(at).expect("messages are around it");
            let error = (offset.value().nanos() - true_offset(at)).abs();
            assert!(error <= offset.bound().nanos(), "{error} {offset:?}");
            assert!(offset.bound() < Span::from_micros(300), "{offset:?}");
        }
    }

    #[test]
    fn without_all_four_timestamps_there_is_no_offset() {
        let mut clock = PeerClock::default();
        let mut marks = exchange(0, 1, 2, 3);
        marks.peer.nic_tx = None;
        assert_eq!(clock.add_message(&marks), None);
        assert_eq!(clock.offset(0), None);
    }
}
