//! The time in which limits speak of a clock: what is longer than a horizon without one counts as a
//! horizon.
//!
//! Owns the translation, so that work is by packets, and not by how long a capture lasted by a clock
//! that was set, or how long nothing passed.

use neph_stats::OffsetLimits;

/// Nanoseconds of time in which something spoke, and of the clock.
#[derive(Debug, Clone)]
pub struct ActiveTime {
    /// When each stretch without a long silence begins: by this time, and by the clock.
    stretches: Vec<(i64, i64)>,
    /// Sum of all stretches.
    pub total_nanos: i64,
}

impl ActiveTime {
    /// The time that these limits cover. Empty without limits.
    pub fn from_limits(limits: OffsetLimits<'_>, horizon: i64) -> Self {
        let offset_limits = limits.at_most.iter().chain(limits.at_least);
        let mut times: Vec<i64> = offset_limits.map(|limit| limit.at).collect();
        times.sort_unstable();
        let mut stretches: Vec<(i64, i64)> = Vec::new();
        let mut previous = None;
        let mut total_nanos = 0_i64;
        for time in times {
            let gap = previous.map_or(0, |previous| time.saturating_sub(previous));
            total_nanos = total_nanos.saturating_add(gap.min(horizon));
            if stretches.is_empty() || gap > horizon {
                stretches.push((total_nanos, time));
            }
            previous = Some(time);
        }
        Self {
            stretches,
            total_nanos,
        }
    }

    /// The moment of the clock when so much of it had passed.
    pub fn clock_time(&self, elapsed: i64) -> i64 {
        let next = self.stretches.partition_point(|(from, _)| *from <= elapsed);
        let stretch = self.stretches.get(next.saturating_sub(1));
        stretch.map_or(0, |(from, at)| at.saturating_add(elapsed - from))
    }

    /// How much of it had passed at a moment of the clock.
    pub fn elapsed_at(&self, clock_time: i64) -> i64 {
        let next = self
            .stretches
            .partition_point(|(_, since)| *since <= clock_time);
        let Some((from, since)) = next
            .checked_sub(1)
            .and_then(|last| self.stretches.get(last))
        else {
            return 0;
        };
        let next_stretch = self.stretches.get(next);
        let end = next_stretch.map_or(self.total_nanos, |(end, _)| *end);
        from.saturating_add(clock_time - since).min(end)
    }

    /// Times of the clock at regular intervals; the last is the end, and no other is right before it.
    pub fn evenly_spaced_times(
        &self,
        (start, end): (i64, i64),
        interval: i64,
    ) -> impl Iterator<Item = i64> {
        let count = (end - start - interval / 2).max(0) / interval;
        let last = (end > start).then_some(end);
        let evenly_spaced = (0..=count).map(move |n| start + n * interval);
        evenly_spaced
            .chain(last)
            .map(|elapsed| self.clock_time(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use neph_stats::OffsetLimit;

    use super::*;

    fn active_time_of(times: &[i64]) -> ActiveTime {
        let limit = |at: &i64| OffsetLimit {
            at: *at,
            within: 0,
            offset: 0,
        };
        let limits: Vec<OffsetLimit> = times.iter().map(limit).collect();
        let limits = OffsetLimits {
            at_most: &limits,
            at_least: &[],
        };
        ActiveTime::from_limits(limits, 100)
    }

    #[test]
    fn a_gap_longer_than_the_horizon_counts_as_one_horizon() {
        let active_time = active_time_of(&[1_000, 1_050, 9_000_000, 9_000_010]);
        assert_eq!(active_time.total_nanos, 50 + 100 + 10);
        assert_eq!(
            [0, 50, 149, 150, 160].map(|elapsed| active_time.clock_time(elapsed)),
            [1_000, 1_050, 1_149, 9_000_000, 9_000_010]
        );
        assert_eq!(
            [1_000, 1_050, 500_000, 9_000_000, 9_000_010].map(|at| active_time.elapsed_at(at)),
            [0, 50, 150, 150, 160]
        );
        let sample_times: Vec<i64> = active_time
            .evenly_spaced_times((0, active_time.total_nanos), 80)
            .collect();
        assert_eq!(sample_times, [1_000, 1_080, 9_000_010]);
    }

    #[test]
    fn active_time_without_offset_limits_is_zero() {
        let active_time = active_time_of(&[]);
        assert_eq!(
            (
                active_time.total_nanos,
                active_time.clock_time(7),
                active_time.elapsed_at(7)
            ),
            (0, 0, 0)
        );
    }
}
