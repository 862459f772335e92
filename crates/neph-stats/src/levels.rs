//! The levels at which flows of a fleet are or lately were: a path is a level that others have too.

use std::collections::BTreeMap;

use crate::real::real_nanos;

/// Buckets in one tolerance: levels are kept this finely.
const FINENESS: i64 = 4;

/// How long a level that nobody is at any more is remembered, nanoseconds.
const MEMORY: i64 = 600_000_000_000;

/// How long a level that all its flows left by degrees is taken to have a queue, nanoseconds.
const QUEUES_STAND: i64 = 30_000_000_000;

/// After how many nanoseconds a sample counts for a third.
const FORGETTING: f64 = 400_000_000.0;

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Flows that are there.
    now: u32,
    /// Flows that came there since it was last forgotten.
    came: u32,
    /// When somebody was last known to be there.
    seen: i64,
    /// How samples of the flows that are there have lain lately.
    lately: Lately,
}

/// Counts that forget.
#[derive(Debug, Clone, Copy, Default)]
struct Lately {
    at: i64,
    all: f64,
    /// At the flow's own level.
    stayed: f64,
    /// At no level.
    astray: f64,
}

impl Lately {
    fn at(&self, now: i64) -> Self {
        let kept = (-real_nanos(now.saturating_sub(self.at).max(0)) / FORGETTING).exp();
        Self {
            at: now,
            all: self.all * kept,
            stayed: self.stayed * kept,
            astray: self.astray * kept,
        }
    }

    fn and(&self, other: &Self) -> Self {
        let other = other.at(self.at);
        Self {
            at: self.at,
            all: self.all + other.all,
            stayed: self.stayed + other.stayed,
            astray: self.astray + other.astray,
        }
    }
}

/// How many flows are and were at which level.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    tolerance: i64,
    buckets: BTreeMap<i64, Bucket>,
    flows: u32,
    /// Levels that all their flows left by degrees, and when they last did.
    congested: BTreeMap<i64, i64>,
}

/// A place among the levels, kept by the flow that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seat(i64);

impl Levels {
    pub(crate) fn new(tolerance: i64) -> Self {
        Self {
            tolerance,
            buckets: BTreeMap::new(),
            flows: 0,
            congested: BTreeMap::new(),
        }
    }

    fn bucket(&self, level: i64) -> i64 {
        level.div_euclid((self.tolerance / FINENESS).max(1))
    }

    /// A flow is at `level`.
    pub(crate) fn sit(&mut self, level: i64, at: i64) -> Seat {
        let key = self.bucket(level);
        let bucket = self.buckets.entry(key).or_default();
        bucket.now += 1;
        bucket.came = bucket.came.saturating_add(1);
        bucket.seen = at;
        self.flows += 1;
        Seat(key)
    }

    /// It is no longer.
    pub(crate) fn leave(&mut self, seat: Seat, at: i64) {
        if let Some(bucket) = self.buckets.get_mut(&seat.0) {
            bucket.now = bucket.now.saturating_sub(1);
            bucket.seen = at;
            if bucket.now == 0 {
                self.congested.remove(&seat.0);
            }
        }
        self.flows = self.flows.saturating_sub(1);
        self.buckets
            .retain(|_, b| b.now > 0 || at.saturating_sub(b.seen) < MEMORY);
    }

    /// Whether a seat is still the right one for a level that became more exact.
    pub(crate) fn fits(&self, seat: Seat, level: i64) -> bool {
        self.bucket(level) == seat.0
    }

    /// Whether enough flows are or were at `level`, give or take the tolerance: at least 2, and one
    /// in a hundred of those that have a level.
    pub(crate) fn known(&self, level: i64) -> bool {
        let range = self.bucket(level.saturating_sub(self.tolerance))
            ..=self.bucket(level.saturating_add(self.tolerance));
        let there = |sum: u32, b: &Bucket| sum.saturating_add(b.now.max(b.came));
        let count = self.buckets.range(range).map(|(_, b)| b).fold(0, there);
        count >= (self.flows / 100).max(2)
    }

    /// A flow that sits there had a sample, without jitter's part: at its own level or elsewhere.
    pub(crate) fn saw(&mut self, seat: Seat, at: i64, sample: i64, stayed: bool) {
        let astray = !stayed && !self.known(sample);
        let Some(bucket) = self.buckets.get_mut(&seat.0) else {
            return;
        };
        let mut lately = bucket.lately.at(at);
        lately.all += 1.0;
        lately.stayed += f64::from(u8::from(stayed));
        lately.astray += f64::from(u8::from(astray));
        bucket.lately = lately;
        if stayed == self.congested.is_empty() {
            return;
        }
        let range = seat.0 - FINENESS..=seat.0 + FINENESS;
        let all = self
            .buckets
            .range(range)
            .fold(lately.at(at), |sum, (&key, b)| {
                if key == seat.0 {
                    sum
                } else {
                    sum.and(&b.lately)
                }
            });
        if stayed && all.stayed >= 0.2 * all.all {
            self.congested.remove(&seat.0);
        } else if astray
            && all.all >= 4.0
            && all.stayed < 0.1 * all.all
            && all.astray >= 0.3 * all.all
        {
            self.congested.insert(seat.0, at);
        }
    }

    /// Whether all flows that were at `level` left it by degrees, and have not come back.
    pub(crate) fn congested(&self, level: i64, at: i64) -> bool {
        let key = self.bucket(level);
        let range = key - FINENESS..=key + FINENESS;
        self.congested
            .range(range)
            .any(|(_, &since)| at.saturating_sub(since) < QUEUES_STAND)
    }

    /// All levels become another by the same amount.
    pub(crate) fn shift(&mut self, by: i64) -> impl Fn(Seat) -> Seat + use<> {
        let steps = self.bucket(by);
        let moved = |(key, bucket): (i64, Bucket)| (key.saturating_add(steps), bucket);
        self.buckets = std::mem::take(&mut self.buckets)
            .into_iter()
            .map(moved)
            .collect();
        self.congested.clear();
        move |seat| Seat(seat.0.saturating_add(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_level_is_known_by_the_company() {
        let mut levels = Levels::new(MS / 2);
        levels.sit(80 * MS, 0);
        assert!(!levels.known(80 * MS), "one flow is no company");
        let seat = levels.sit(80 * MS + MS / 5, 0);
        assert!(levels.known(80 * MS) && !levels.known(82 * MS));
        levels.leave(seat, 5);
        assert!(levels.known(80 * MS), "it was there lately");
    }

    #[test]
    fn a_level_that_nobody_is_at_is_forgotten() {
        let mut levels = Levels::new(MS / 2);
        let seats = [levels.sit(80 * MS, 0), levels.sit(80 * MS, 0)];
        for seat in seats {
            levels.leave(seat, 0);
        }
        assert!(levels.known(80 * MS));
        let other = levels.sit(90 * MS, MEMORY);
        levels.leave(other, MEMORY);
        assert!(!levels.known(80 * MS) && levels.buckets.len() == 1);
    }

    #[test]
    fn all_levels_shift_together() {
        let mut levels = Levels::new(MS / 2);
        let seats = [levels.sit(80 * MS, 0), levels.sit(80 * MS, 0)];
        let moved = levels.shift(8 * MS);
        assert!(levels.known(88 * MS) && !levels.known(80 * MS));
        assert!(levels.fits(moved(seats[0]), 88 * MS));
    }
}
