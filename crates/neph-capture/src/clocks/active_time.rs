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
    /// How long all of it is.
    pub total_nanos: i64,
}

impl ActiveTime {
    /// Of these limits. Nothing of none.
    pub fn of(limits: OffsetLimits<'_>, horizon: i64) -> Self {
        let offset_limits = limits.at_most.iter().chain(limits.at_least);
        let mut times: Vec<i64> = offset_limits.map(|limit| limit.at).collect();
        times.sort_unstable();
        let mut stretches: Vec<(i64, i64)> = Vec::new();
        let mut before = None;
        let mut total_nanos = 0_i64;
        for at in times {
            let gap = before.map_or(0, |before| at.saturating_sub(before));
            total_nanos = total_nanos.saturating_add(gap.min(horizon));
            if stretches.is_empty() || gap > horizon {
                stretches.push((total_nanos, at));
            }
            before = Some(at);
        }
        Self {
            stretches,
            total_nanos,
        }
    }

    /// The moment of the clock when so much of it had passed.
    pub fn at(&self, elapsed: i64) -> i64 {
        let next = self.stretches.partition_point(|(from, _)| *from <= elapsed);
        let stretch = self.stretches.get(next.saturating_sub(1));
        stretch.map_or(0, |(from, at)| at.saturating_add(elapsed - from))
    }

    /// How much of it had passed at a moment of the clock.
    pub fn elapsed_at(&self, at: i64) -> i64 {
        let next = self.stretches.partition_point(|(_, since)| *since <= at);
        let Some((from, since)) = next
            .checked_sub(1)
            .and_then(|last| self.stretches.get(last))
        else {
            return 0;
        };
        let next_stretch = self.stretches.get(next);
        let end = next_stretch.map_or(self.total_nanos, |(end, _)| *end);
        from.saturating_add(at - since).min(end)
    }

    /// Even moments; the last comes at the end, and no other right before it.
    pub fn moments(&self, (from, until): (i64, i64), every: i64) -> impl Iterator<Item = i64> {
        let count = (until - from - every / 2).max(0) / every;
        let last = (until > from).then_some(until);
        let even = (0..=count).map(move |n| from + n * every);
        even.chain(last).map(|elapsed| self.at(elapsed))
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
        ActiveTime::of(limits, 100)
    }

    #[test]
    fn a_silence_counts_as_a_horizon_however_long_it_is() {
        let active_time = active_time_of(&[1_000, 1_050, 9_000_000, 9_000_010]);
        assert_eq!(active_time.total_nanos, 50 + 100 + 10);
        assert_eq!(
            [0, 50, 149, 150, 160].map(|elapsed| active_time.at(elapsed)),
            [1_000, 1_050, 1_149, 9_000_000, 9_000_010]
        );
        assert_eq!(
            [1_000, 1_050, 500_000, 9_000_000, 9_000_010].map(|at| active_time.elapsed_at(at)),
            [0, 50, 150, 150, 160]
        );
        let moments: Vec<i64> = active_time
            .moments((0, active_time.total_nanos), 80)
            .collect();
        assert_eq!(moments, [1_000, 1_080, 9_000_010]);
    }

    #[test]
    fn active_time_without_offset_limits_is_zero() {
        let active_time = active_time_of(&[]);
        assert_eq!(
            (
                active_time.total_nanos,
                active_time.at(7),
                active_time.elapsed_at(7)
            ),
            (0, 0, 0)
        );
    }
}
