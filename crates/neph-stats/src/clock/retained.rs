//! Limits of exchanges for the peer's clock in nearly constant memory: of each short stretch of time the
//! tightest limit of each kind. After five minutes, only one per second is kept.
//!
//! Omitting a limit makes no other wrong: the bound never becomes too small.

use super::{FourTimestamps, OffsetLimit, OffsetLimits};

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// One limit of each kind is kept per this many nanoseconds, once it is older than [`MAX_FINE_AGE_NS`].
const COARSE_INTERVAL_NS: i64 = NANOS_PER_SECOND;
const MAX_FINE_AGE_NS: i64 = 300 * NANOS_PER_SECOND;
/// How many more limits there may be before the old ones are thinned again.
const MAX_ADDED_LIMITS: usize = 8_192;

/// Limits of both kinds, ascending in time.
#[derive(Clone, Debug)]
pub struct RetainedLimits {
    /// One limit of each kind is kept per this many nanoseconds, while it is recent.
    period: i64,
    at_most: Vec<OffsetLimit>,
    at_least: Vec<OffsetLimit>,
    /// How many there may be before the old ones are thinned.
    max_limits: usize,
}

impl RetainedLimits {
    /// Empty; of recent limits one of each kind will be kept per this many nanoseconds.
    pub const fn per_period(period: i64) -> Self {
        Self {
            period,
            at_most: Vec::new(),
            at_least: Vec::new(),
            max_limits: 0,
        }
    }

    /// Adds an exchange. An exchange that began before the latest one is ignored. `doubt` is the largest
    /// error of two of its timestamps, in nanoseconds.
    pub fn add(&mut self, exchange: FourTimestamps, doubt: i64) {
        let (upper, lower) = exchange.limits(doubt);
        // A corrected timestamp may give an exchange a negative duration.
        if upper.within < 0 || upper.offset < lower.offset {
            return;
        }
        self.at_most(upper);
        self.at_least(lower);
    }

    /// Adds a limit from above.
    pub fn at_most(&mut self, limit: OffsetLimit) {
        put(&mut self.at_most, limit, self.period, is_lower);
        self.thin(limit.at);
    }

    /// Adds a limit from below.
    pub fn at_least(&mut self, limit: OffsetLimit) {
        put(&mut self.at_least, limit, self.period, is_higher);
        self.thin(limit.at);
    }

    fn thin(&mut self, now: i64) {
        if self.at_most.len().max(self.at_least.len()) > self.max_limits.max(MAX_ADDED_LIMITS) {
            let old = now.saturating_sub(MAX_FINE_AGE_NS);
            let period = self.period.max(COARSE_INTERVAL_NS);
            thin(&mut self.at_most, (old, period), is_lower);
            thin(&mut self.at_least, (old, period), is_higher);
            self.max_limits = self.at_most.len().max(self.at_least.len()) + MAX_ADDED_LIMITS;
        }
    }

    /// All of them.
    pub fn limits(&self) -> OffsetLimits<'_> {
        OffsetLimits {
            at_most: &self.at_most,
            at_least: &self.at_least,
        }
    }

    /// Those from a moment on.
    pub fn since(&self, from: i64) -> OffsetLimits<'_> {
        let part = |of: &'_ [OffsetLimit]| of.partition_point(|limit| limit.at < from);
        OffsetLimits {
            at_most: &self.at_most[part(&self.at_most)..],
            at_least: &self.at_least[part(&self.at_least)..],
        }
    }
}

const fn is_lower(new: &OffsetLimit, old: &OffsetLimit) -> bool {
    new.offset < old.offset
}

const fn is_higher(new: &OffsetLimit, old: &OffsetLimit) -> bool {
    new.offset > old.offset
}

/// Appends a limit, or replaces the last one of the same stretch if it is tighter.
fn put(
    limits: &mut Vec<OffsetLimit>,
    new: OffsetLimit,
    period: i64,
    is_tighter: impl Fn(&OffsetLimit, &OffsetLimit) -> bool,
) {
    match limits.last_mut() {
        Some(last) if new.at < last.at => {}
        Some(last) if last.at.div_euclid(period) == new.at.div_euclid(period) => {
            if is_tighter(&new, last) {
                *last = new;
            }
        }
        _ => limits.push(new),
    }
}

fn thin(
    limits: &mut Vec<OffsetLimit>,
    (old, period): (i64, i64),
    is_tighter: impl Fn(&OffsetLimit, &OffsetLimit) -> bool,
) {
    let fresh = limits.split_off(limits.partition_point(|limit| limit.at < old));
    let mut few = Vec::new();
    for limit in limits.drain(..) {
        put(&mut few, limit, period, &is_tighter);
    }
    few.extend(fresh);
    *limits = few;
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE_INTERVAL_NS: i64 = NANOS_PER_SECOND / 10;

    fn exchange(at: i64, forward: i64, reverse: i64) -> FourTimestamps {
        FourTimestamps {
            sent: at,
            arrived: at + forward,
            answered: at + forward,
            returned: at + forward + reverse,
        }
    }

    #[test]
    fn each_100_ms_keep_the_tightest_limit_per_direction() {
        let mut retained = RetainedLimits::per_period(FINE_INTERVAL_NS);
        for (at, forward, reverse) in [
            (0, 50, 90),
            (10, 40, 99),
            (20, 60, 70),
            (FINE_INTERVAL_NS, 80, 80),
        ] {
            retained.add(exchange(at, forward, reverse), 1);
        }
        let times_and_offsets = |of: &[OffsetLimit]| -> Vec<(i64, i64)> {
            of.iter().map(|limit| (limit.at, limit.offset)).collect()
        };
        let limits = retained.limits();
        assert_eq!(
            times_and_offsets(limits.at_most),
            [(10, 41), (FINE_INTERVAL_NS, 81)]
        );
        assert_eq!(
            times_and_offsets(limits.at_least),
            [(20, -71), (FINE_INTERVAL_NS, -81)]
        );
        assert_eq!(
            times_and_offsets(retained.since(15).at_most),
            [(FINE_INTERVAL_NS, 81)]
        );
    }

    #[test]
    fn a_day_of_1000_exchanges_per_second_retains_two_limits_per_second() {
        let mut limits = RetainedLimits::per_period(FINE_INTERVAL_NS);
        for at in 0..864_000 {
            limits.add(exchange(at * NANOS_PER_SECOND / 10, 50, 50), 0);
        }
        let count = limits.limits().at_most.len();
        assert!(
            (86_400..86_400 + 2 * MAX_ADDED_LIMITS).contains(&count),
            "{count}"
        );
        let times = limits.limits().at_least.windows(2);
        assert!(times.map(|pair| pair[1].at - pair[0].at).all(|gap| gap > 0));
    }

    #[test]
    fn an_exchange_with_a_negative_rtt_is_ignored() {
        let mut limits = RetainedLimits::per_period(FINE_INTERVAL_NS);
        limits.add(exchange(0, 50, -60), 0);
        assert!(limits.limits().at_most.is_empty());
    }
}
