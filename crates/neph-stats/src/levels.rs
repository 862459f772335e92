//! The current and recent levels of a fleet's flows: a path is a level that several flows have.

use std::collections::BTreeMap;
use std::num::NonZeroI32;

use crate::path_choice::PossibleLevel;
use crate::real::{nanos, real_nanos};
use crate::weight::Weight;

/// Buckets in one tolerance: the resolution of levels.
const FINENESS: i64 = 4;

/// How long a level without flows is remembered, in nanoseconds.
const MEMORY: i64 = 600_000_000_000;

/// How long a level that all its flows left gradually is assumed to have a queue, in nanoseconds.
const QUEUES_STAND: i64 = 30_000_000_000;

/// After how many nanoseconds a sample counts for a third.
const FORGETTING: f64 = 400_000_000.0;

/// How often known levels are searched, in nanoseconds.
const REFRESH: i64 = 1_000_000_000;

/// Flows after which a bucket's mean forgets.
const LONGEST_MEMORY: i64 = 64;

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Current flows.
    now: u32,
    /// Flows that came there since it was last forgotten.
    came: u32,
    /// The same, with gradual forgetting.
    recent_arrivals: f64,
    /// The mean of the levels of flows that came, in nanoseconds.
    level: i64,
    /// When a flow was last known to be there.
    last_seen: i64,
    /// Recent samples of its flows.
    recent: DecayingCounts,
}

impl Bucket {
    fn weight(&self) -> Weight {
        Weight {
            now: self.now,
            came: self.came,
            recent: self.recent_arrivals,
        }
    }
}

/// Counts that forget.
#[derive(Debug, Clone, Copy, Default)]
struct DecayingCounts {
    at: i64,
    all: f64,
    /// At the flow's own level.
    stayed: f64,
    /// At no level.
    astray: f64,
}

impl DecayingCounts {
    fn at(&self, now: i64) -> Self {
        let decay = (-real_nanos(now.saturating_sub(self.at).max(0)) / FORGETTING).exp();
        Self {
            at: now,
            all: self.all * decay,
            stayed: self.stayed * decay,
            astray: self.astray * decay,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let other = other.at(self.at);
        Self {
            at: self.at,
            all: self.all + other.all,
            stayed: self.stayed + other.stayed,
            astray: self.astray + other.astray,
        }
    }
}

/// Current and earlier flows of each level.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    tolerance: i64,
    buckets: BTreeMap<i64, Bucket>,
    /// Of all levels.
    all: Weight,
    /// The known levels, and when they were found.
    paths: Vec<PossibleLevel>,
    found: Option<i64>,
    /// Levels that all their flows left gradually, and when they last did.
    congested: BTreeMap<i64, i64>,
}

/// A place among the levels, kept by its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelSlot(NonZeroI32);

impl LevelSlot {
    /// The seat of a bucket. No number is 0, so that `None` takes no room.
    fn of(key: i64) -> Self {
        let key = if key < 0 { key } else { key.saturating_add(1) };
        let key = key.clamp(i32::MIN.into(), i32::MAX.into());
        let key = i32::try_from(key).ok().and_then(NonZeroI32::new);
        Self(key.unwrap_or(NonZeroI32::MAX))
    }

    fn key(self) -> i64 {
        let key = i64::from(self.0.get());
        if key < 0 { key } else { key - 1 }
    }
}

impl Levels {
    pub(crate) fn new(tolerance: i64) -> Self {
        Self {
            tolerance,
            buckets: BTreeMap::new(),
            all: Weight::default(),
            paths: Vec::new(),
            found: None,
            congested: BTreeMap::new(),
        }
    }

    fn bucket(&self, level: i64) -> i64 {
        let key = level.div_euclid((self.tolerance / FINENESS).max(1));
        key.clamp(-(1 << 30), 1 << 30)
    }

    /// A flow came to `level`.
    pub(crate) fn add_flow(&mut self, level: i64, at: i64) -> LevelSlot {
        let new_flow = Weight {
            now: 0,
            came: 1,
            recent: 1.0,
        };
        self.all = self.all.plus(new_flow);
        let key = self.bucket(level);
        let bucket = self.buckets.entry(key).or_default();
        bucket.came = bucket.came.saturating_add(1);
        bucket.recent_arrivals += 1.0;
        self.take(level, at)
    }

    /// A flow with a seat knows its level better now: it is not counted as new.
    pub(crate) fn move_flow(&mut self, slot: LevelSlot, level: i64, at: i64) -> LevelSlot {
        self.leave(slot, at);
        self.take(level, at)
    }

    fn take(&mut self, level: i64, at: i64) -> LevelSlot {
        let key = self.bucket(level);
        let bucket = self.buckets.entry(key).or_default();
        bucket.now += 1;
        bucket.last_seen = at;
        let known_from = i64::from(bucket.came.max(bucket.now)).min(LONGEST_MEMORY);
        bucket.level += (level - bucket.level) / known_from;
        self.all.now = self.all.now.saturating_add(1);
        LevelSlot::of(key)
    }

    /// A flow left its seat.
    pub(crate) fn leave(&mut self, slot: LevelSlot, at: i64) {
        if let Some(bucket) = self.buckets.get_mut(&slot.key()) {
            bucket.now = bucket.now.saturating_sub(1);
            bucket.last_seen = at;
            if bucket.now == 0 {
                self.congested.remove(&slot.key());
            }
        }
        self.all.now = self.all.now.saturating_sub(1);
        self.buckets
            .retain(|_, b| b.now > 0 || at.saturating_sub(b.last_seen) < MEMORY);
    }

    /// Whether a seat is still the right one for a level that became more exact.
    pub(crate) fn fits(&self, slot: LevelSlot, level: i64) -> bool {
        self.bucket(level) == slot.key()
    }

    /// Whether enough flows are or were at `level` within the tolerance: at least 2, and 1 % of those with a
    /// level.
    pub(crate) fn known(&self, level: i64) -> bool {
        let range = self.bucket(level.saturating_sub(self.tolerance))
            ..=self.bucket(level.saturating_add(self.tolerance));
        let there = self.buckets.range(range).map(|(_, b)| b.weight());
        there
            .fold(Weight::default(), Weight::plus)
            .has_enough_flows(&self.all)
    }

    /// The current and recent levels of enough flows, more than the tolerance apart.
    pub(crate) fn paths(&mut self, at: i64) -> &[PossibleLevel] {
        let passed = self.found.map(|found| at.saturating_sub(found));
        if passed.is_none_or(|passed| passed >= REFRESH) {
            let decay = (-real_nanos(passed.unwrap_or(0)) / real_nanos(MEMORY)).exp();
            for bucket in self.buckets.values_mut() {
                bucket.recent_arrivals *= decay;
            }
            let weights = self.buckets.values().map(Bucket::weight);
            self.all = weights.fold(Weight::default(), Weight::plus);
            self.found = Some(at);
            self.paths = self.find_paths();
        }
        &self.paths
    }

    /// The highest peak first, without its surroundings, and so on.
    fn find_paths(&self) -> Vec<PossibleLevel> {
        let all = self.all;
        let mut remaining: BTreeMap<i64, (Weight, i64)> = self
            .buckets
            .iter()
            .map(|(&key, b)| (key, (b.weight(), b.level)))
            .collect();
        let within = |remaining: &BTreeMap<i64, (Weight, i64)>, key: i64, reach: i64| {
            let weights = remaining.range(key - reach..=key + reach);
            weights.fold(Weight::default(), |sum, (_, &(weight, _))| sum.plus(weight))
        };
        let around =
            |remaining: &BTreeMap<i64, (Weight, i64)>, key| within(remaining, key, FINENESS / 2);
        // Nearer levels count more: between two paths just further apart than the tolerance, half of each is
        // as near as all of one.
        let peak = |remaining: &BTreeMap<i64, (Weight, i64)>, key| -> f64 {
            let reaches = 0..=FINENESS / 2;
            reaches
                .map(|reach| within(remaining, key, reach).share(&all))
                .sum()
        };
        let mut paths: Vec<PossibleLevel> = Vec::new();
        loop {
            let enough = |key: &i64| around(&remaining, *key).has_enough_flows(&all);
            let peaks = remaining.keys().copied().filter(enough);
            let highest =
                peaks.max_by(|&a, &b| peak(&remaining, a).total_cmp(&peak(&remaining, b)));
            let Some(key) = highest else {
                return paths;
            };
            let range = key - FINENESS / 2..=key + FINENESS / 2;
            let there: Vec<(f64, i64)> = remaining
                .range(range.clone())
                .map(|(_, (weight, level))| (weight.share(&all), *level))
                .collect();
            let sum: f64 = there.iter().map(|t| t.0).sum();
            let origin = there[0].1;
            let mean = |of: &dyn Fn(i64) -> i64| {
                let total: f64 = there.iter().map(|t| t.0 * real_nanos(of(t.1))).sum();
                nanos(total / sum)
            };
            let level = origin + mean(&|level| level - origin);
            let slack = mean(&|other| (other - level).abs());
            remaining.retain(|key, _| !range.contains(key));
            let far = |path: &PossibleLevel| (path.level - level).abs() > self.tolerance;
            if paths.iter().all(far) {
                paths.push(PossibleLevel { level, slack });
            }
        }
    }

    /// The known level nearest to `level` within the tolerance, if `level` is known.
    pub(crate) fn near(&self, level: i64) -> Option<i64> {
        if !self.known(level) {
            return None;
        }
        let width = (self.tolerance / FINENESS).max(1);
        let range = self.bucket(level.saturating_sub(self.tolerance))
            ..=self.bucket(level.saturating_add(self.tolerance));
        let there = || self.buckets.range(range.clone());
        let max_flows = there().map(|(_, b)| b.now.max(b.came)).max()?;
        there()
            .filter(|(_, b)| 4 * b.now.max(b.came) >= max_flows)
            .map(|(&key, _)| key.saturating_mul(width).saturating_add(width / 2))
            .min_by_key(|centre| centre.saturating_sub(level).abs())
    }

    /// A flow at that seat had a sample, without jitter: at its own level (`stayed`) or not.
    pub(crate) fn record_sample(&mut self, slot: LevelSlot, at: i64, sample: i64, stayed: bool) {
        let astray = !stayed && !self.known(sample);
        let Some(bucket) = self.buckets.get_mut(&slot.key()) else {
            return;
        };
        let mut recent = bucket.recent.at(at);
        recent.all += 1.0;
        recent.stayed += f64::from(u8::from(stayed));
        recent.astray += f64::from(u8::from(astray));
        bucket.recent = recent;
        if stayed == self.congested.is_empty() {
            return;
        }
        let range = slot.key() - FINENESS..=slot.key() + FINENESS;
        let all = self
            .buckets
            .range(range)
            .fold(recent.at(at), |sum, (&key, b)| {
                if key == slot.key() {
                    sum
                } else {
                    sum.plus(&b.recent)
                }
            });
        if stayed && all.stayed >= 0.2 * all.all {
            self.congested.remove(&slot.key());
        } else if astray
            && all.all >= 4.0
            && all.stayed < 0.1 * all.all
            && all.astray >= 0.3 * all.all
        {
            self.congested.insert(slot.key(), at);
        }
    }

    /// Whether all flows of `level` left it gradually, and have not come back.
    pub(crate) fn is_congested(&self, level: i64, at: i64) -> bool {
        let key = self.bucket(level);
        let range = key - FINENESS..=key + FINENESS;
        self.congested
            .range(range)
            .any(|(_, &since)| at.saturating_sub(since) < QUEUES_STAND)
    }

    /// Shifts all levels by the same amount.
    pub(crate) fn shift(&mut self, by: i64) -> impl Fn(LevelSlot) -> LevelSlot + use<> {
        let steps = self.bucket(by);
        let moved = |(key, mut bucket): (i64, Bucket)| {
            bucket.level = bucket.level.saturating_add(by);
            (key.saturating_add(steps), bucket)
        };
        self.found = None;
        self.buckets = std::mem::take(&mut self.buckets)
            .into_iter()
            .map(moved)
            .collect();
        self.congested.clear();
        move |slot| LevelSlot::of(slot.key().saturating_add(steps))
    }
}

#[cfg(test)]
mod tests;
