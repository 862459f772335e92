//! Steady time: the time of one capture without the steps back of its clock.
//!
//! If a clock is set back, or a file holds captures in a row, two packets may have the same timestamp. Steady
//! time falls only as far as packets are out of order, and continues after each step. Owns both directions of
//! the conversion. One capture does not show a clock that is set forward (see neph-stats, `clock_course`).

/// Nanoseconds by which packets of several processors may be out of order in a capture.
const MAX_DISORDER_NANOS: i64 = 100_000_000;
/// Timestamps from 1970 to 2116. Others are no times and are not converted.
const SUPPORTED_TIMES: std::ops::Range<i64> = 0..1 << 62;

/// Where the time of a capture steps back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepBack {
    /// Packets after it have at least this steady time, in nanoseconds. Packets before it have less.
    pub(crate) from: i64,
    /// Nanoseconds to add to timestamps after it, for all steps back so far.
    pub(crate) added: i64,
}

/// Converts the timestamps of a capture, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct SteadyClock {
    latest: Option<i64>,
    steps_back: Vec<StepBack>,
}

impl SteadyClock {
    /// The steady time of the next timestamp.
    pub(crate) fn next(&mut self, stamp: i64) -> i64 {
        if !SUPPORTED_TIMES.contains(&stamp) {
            return stamp;
        }
        let mut at = stamp.saturating_add(self.added());
        let latest = *self.latest.get_or_insert(at);
        let resumes_at = latest.saturating_add(2 * MAX_DISORDER_NANOS);
        if latest.saturating_sub(at) > MAX_DISORDER_NANOS && SUPPORTED_TIMES.contains(&resumes_at) {
            at = resumes_at;
            self.steps_back.push(StepBack {
                from: latest.saturating_add(MAX_DISORDER_NANOS),
                added: at.saturating_sub(stamp),
            });
        }
        self.latest = Some(latest.max(at));
        at
    }

    /// The same for a packet that equals one at the steady time `before`: within `soon` it is a duplicate in
    /// the capture. A file may hold a capture twice; that is no step.
    pub(crate) fn correct(&mut self, stamp: i64, (before, soon): (i64, i64)) -> i64 {
        let [added_before, added_now] = [added_at(&self.steps_back, before), self.added()];
        let times = [added_before, added_now].map(|added| (stamp.saturating_add(added), added));
        let has_this_offset = |(at, added): &(i64, i64)| added_at(&self.steps_back, *at) == *added;
        let [repeated, later] = times.map(|time| Some(time).filter(has_this_offset));
        let is_near = |(at, _): &(i64, i64)| at.saturating_sub(before).saturating_abs() < soon;
        let Some((at, added)) = repeated.filter(is_near).or(later) else {
            return self.next(stamp);
        };
        // The next step back lies after it.
        if added == added_now && SUPPORTED_TIMES.contains(&at) {
            self.latest = self.latest.max(Some(at));
        }
        at
    }

    /// The steady time of a record that is no packet. `None` where it does not show how long the capture ran.
    pub(crate) fn convert(&self, stamp: i64) -> Option<i64> {
        let at = stamp.saturating_add(self.added());
        let min = self
            .latest
            .map_or(i64::MIN, |latest| latest.saturating_sub(MAX_DISORDER_NANOS));
        (self.steps_back.is_empty() || at >= min).then_some(at)
    }

    /// All steps back, in order.
    pub(crate) fn steps_back(&self) -> &[StepBack] {
        &self.steps_back
    }

    fn added(&self) -> i64 {
        self.steps_back
            .last()
            .map_or(0, |step_back| step_back.added)
    }
}

/// Number of these steps back before a steady time.
pub(crate) fn steps_back_before(steps_back: &[StepBack], at: i64) -> usize {
    if SUPPORTED_TIMES.contains(&at) {
        steps_back.partition_point(|step_back| step_back.from <= at)
    } else {
        0
    }
}

/// Nanoseconds that were added to the timestamp of this steady time.
pub(crate) fn added_at(steps_back: &[StepBack], at: i64) -> i64 {
    let last = steps_back_before(steps_back, at).checked_sub(1);
    last.map_or(0, |last| steps_back[last].added)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn steady_time_continues_where_a_clock_was_set_back() {
        let mut steady = SteadyClock::default();
        let stamps = [100, 101, 41, 42, 1, 2].map(|second| second * SECOND);
        let steady_times = stamps.map(|stamp| steady.next(stamp));
        let from_101 = steady_times.map(|at| at - 101 * SECOND);
        assert_eq!(
            from_101,
            [
                -SECOND,
                0,
                2 * MAX_DISORDER_NANOS,
                SECOND + 2 * MAX_DISORDER_NANOS,
                SECOND + 4 * MAX_DISORDER_NANOS,
                2 * SECOND + 4 * MAX_DISORDER_NANOS
            ]
        );
        let timestamps = steady_times.map(|at| at - added_at(steady.steps_back(), at));
        assert_eq!(timestamps, stamps);
        assert_eq!(steady.steps_back().len(), 2);
    }

    #[test]
    fn a_small_step_back_is_disorder_and_no_clock_step() {
        let mut steady = SteadyClock::default();
        for stamp in [SECOND, SECOND - MAX_DISORDER_NANOS, 2 * SECOND] {
            assert_eq!(steady.next(stamp), stamp);
        }
        assert!(steady.steps_back().is_empty());
    }

    #[test]
    fn a_duplicate_in_the_capture_has_the_time_of_the_first_copy() {
        let mut steady = SteadyClock::default();
        let first = steady.next(10 * SECOND);
        steady.next(20 * SECOND);
        assert_eq!(
            steady.correct(10 * SECOND, (first, MAX_DISORDER_NANOS)),
            first
        );
        assert!(steady.steps_back().is_empty());
    }

    #[test]
    fn a_clock_set_back_after_identical_packets_is_corrected() {
        let mut steady = SteadyClock::default();
        let mut identical = steady.next(10 * SECOND);
        let mut steady_times = Vec::new();
        let stamps = [11, 12, 13, 1].map(|second| second * SECOND);
        for stamp in stamps {
            identical = steady.correct(stamp, (identical, MAX_DISORDER_NANOS));
            steady_times.push(identical);
        }
        steady_times.push(steady.next(2 * SECOND));
        let timestamps = steady_times
            .iter()
            .map(|at| at - added_at(steady.steps_back(), *at));
        assert!(
            timestamps.eq(stamps.into_iter().chain([2 * SECOND])),
            "{steady_times:?}"
        );
    }

    proptest! {
        #[test]
        fn corrected_times_of_identical_packets_restore_their_timestamps(
            stamps in prop::collection::vec((0..1_000_i64, any::<bool>()), 1..60),
        ) {
            let mut steady = SteadyClock::default();
            let mut identical = None;
            let mut steady_times = Vec::new();
            for (tenths, is_identical) in &stamps {
                let stamp = tenths * SECOND / 50;
                let before = identical.filter(|_| *is_identical);
                let at = match before {
                    Some(before) => steady.correct(stamp, (before, MAX_DISORDER_NANOS)),
                    None => steady.next(stamp),
                };
                identical = if *is_identical { Some(at) } else { identical };
                steady_times.push(at);
            }
            for ((tenths, _), at) in stamps.iter().zip(steady_times) {
                prop_assert_eq!(at - added_at(steady.steps_back(), at), tenths * SECOND / 50);
            }
        }

        #[test]
        fn steady_times_fall_only_by_disorder_and_restore_their_timestamps(
            stamps in prop::collection::vec(0..1_000_i64, 1..60),
        ) {
            let mut steady = SteadyClock::default();
            let mut latest = i64::MIN;
            let steady_times: Vec<i64> = stamps
                .iter()
                .map(|tenths| {
                    let at = steady.next(tenths * SECOND / 50);
                    assert!(at >= latest.saturating_sub(MAX_DISORDER_NANOS));
                    latest = latest.max(at);
                    at
                })
                .collect();
            for (stamp, at) in stamps.iter().zip(steady_times) {
                prop_assert_eq!(at - added_at(steady.steps_back(), at), stamp * SECOND / 50);
            }
        }
    }
}
