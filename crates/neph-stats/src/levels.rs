//! The current and recent levels of a fleet's flows: a path is a level that several flows have.

use std::collections::BTreeMap;
use std::num::NonZeroI32;

use crate::casts::{nanos_to_f64, round_to_i64};
use crate::path_choice::PossibleLevel;
use crate::weight::Weight;

/// Buckets in one tolerance: the resolution of levels.
const BUCKETS_PER_TOLERANCE: i64 = 4;

/// How long a level without flows is remembered, in nanoseconds.
const LEVEL_RETENTION_NS: i64 = 600_000_000_000;

/// How long a level that all its flows left gradually is assumed to have a queue, in nanoseconds.
const CONGESTION_EXPIRY_NS: i64 = 30_000_000_000;

/// Time in which the weight of a sample decays to 1/e, in nanoseconds.
const SAMPLE_DECAY_NS: f64 = 400_000_000.0;

/// How often known levels are searched, in nanoseconds.
const REFRESH_INTERVAL_NS: i64 = 1_000_000_000;

/// The mean of a bucket weights new flows as if it had at most this many.
const MAX_MEAN_FLOWS: i64 = 64;

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Current flows.
    current_flows: u32,
    /// Flows that arrived since the bucket was created.
    arrived_flows: u32,
    /// The same, decayed over time.
    recent_arrivals: f64,
    /// The mean of the levels of flows that came, in nanoseconds.
    level_ns: i64,
    /// When a flow was last known to be there, in nanoseconds.
    last_seen_ns: i64,
    /// Recent samples of its flows.
    recent_samples: DecayingCounts,
}

impl Bucket {
    fn weight(&self) -> Weight {
        Weight {
            current_flows: self.current_flows,
            arrived_flows: self.arrived_flows,
            recent_arrivals: self.recent_arrivals,
        }
    }
}

/// Counts of samples, decayed over time.
#[derive(Debug, Clone, Copy, Default)]
struct DecayingCounts {
    updated_at_ns: i64,
    total: f64,
    /// At the flow's own level.
    at_own_level: f64,
    /// At no level.
    at_no_level: f64,
}

impl DecayingCounts {
    fn decayed_to(&self, now_ns: i64) -> Self {
        let elapsed = nanos_to_f64(now_ns.saturating_sub(self.updated_at_ns).max(0));
        let decay = (-elapsed / SAMPLE_DECAY_NS).exp();
        Self {
            updated_at_ns: now_ns,
            total: self.total * decay,
            at_own_level: self.at_own_level * decay,
            at_no_level: self.at_no_level * decay,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let other = other.decayed_to(self.updated_at_ns);
        Self {
            updated_at_ns: self.updated_at_ns,
            total: self.total + other.total,
            at_own_level: self.at_own_level + other.at_own_level,
            at_no_level: self.at_no_level + other.at_no_level,
        }
    }
}

/// Current and earlier flows of each level.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    tolerance_ns: i64,
    buckets: BTreeMap<i64, Bucket>,
    /// Of all levels.
    total_weight: Weight,
    /// The known levels, and when they were found in nanoseconds.
    paths: Vec<PossibleLevel>,
    paths_found_at_ns: Option<i64>,
    /// Levels that all their flows left gradually, and when they last did.
    congested: BTreeMap<i64, i64>,
}

/// The key of a bucket, stored by each of its flows. Never 0, so that `None` takes no space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketKey(NonZeroI32);

impl BucketKey {
    fn from_key(key: i64) -> Self {
        let key = if key < 0 { key } else { key.saturating_add(1) };
        let key = key.clamp(i32::MIN.into(), i32::MAX.into());
        let key = i32::try_from(key).ok().and_then(NonZeroI32::new);
        Self(key.unwrap_or(NonZeroI32::MAX))
    }

    fn value(self) -> i64 {
        let key = i64::from(self.0.get());
        if key < 0 { key } else { key - 1 }
    }
}

impl Levels {
    pub(crate) fn new(tolerance_ns: i64) -> Self {
        Self {
            tolerance_ns,
            buckets: BTreeMap::new(),
            total_weight: Weight::default(),
            paths: Vec::new(),
            paths_found_at_ns: None,
            congested: BTreeMap::new(),
        }
    }

    fn bucket_key(&self, level_ns: i64) -> i64 {
        let key = level_ns.div_euclid((self.tolerance_ns / BUCKETS_PER_TOLERANCE).max(1));
        key.clamp(-(1 << 30), 1 << 30)
    }

    /// A flow came to `level`.
    pub(crate) fn add_flow(&mut self, level: i64, at: i64) -> BucketKey {
        let new_flow = Weight {
            current_flows: 0,
            arrived_flows: 1,
            recent_arrivals: 1.0,
        };
        self.total_weight = self.total_weight.plus(new_flow);
        let key = self.bucket_key(level);
        let bucket = self.buckets.entry(key).or_default();
        bucket.arrived_flows = bucket.arrived_flows.saturating_add(1);
        bucket.recent_arrivals += 1.0;
        self.enter_bucket(level, at)
    }

    /// Moves a flow whose estimate of its level became more exact; it is not counted as new.
    pub(crate) fn move_flow(&mut self, bucket_key: BucketKey, level: i64, at: i64) -> BucketKey {
        self.remove_flow(bucket_key, at);
        self.enter_bucket(level, at)
    }

    fn enter_bucket(&mut self, level: i64, at: i64) -> BucketKey {
        let key = self.bucket_key(level);
        let bucket = self.buckets.entry(key).or_default();
        bucket.current_flows += 1;
        bucket.last_seen_ns = at;
        let mean_weight = i64::from(bucket.arrived_flows.max(bucket.current_flows));
        bucket.level_ns += (level - bucket.level_ns) / mean_weight.min(MAX_MEAN_FLOWS);
        self.total_weight.current_flows = self.total_weight.current_flows.saturating_add(1);
        BucketKey::from_key(key)
    }

    /// Removes a flow from its bucket.
    pub(crate) fn remove_flow(&mut self, bucket_key: BucketKey, at: i64) {
        if let Some(bucket) = self.buckets.get_mut(&bucket_key.value()) {
            bucket.current_flows = bucket.current_flows.saturating_sub(1);
            bucket.last_seen_ns = at;
            if bucket.current_flows == 0 {
                self.congested.remove(&bucket_key.value());
            }
        }
        self.total_weight.current_flows = self.total_weight.current_flows.saturating_sub(1);
        self.buckets.retain(|_, bucket| {
            bucket.current_flows > 0 || at.saturating_sub(bucket.last_seen_ns) < LEVEL_RETENTION_NS
        });
    }

    /// Whether a bucket is still the right one for a level that became more exact.
    pub(crate) fn is_in_bucket(&self, bucket_key: BucketKey, level: i64) -> bool {
        self.bucket_key(level) == bucket_key.value()
    }

    /// Whether enough flows are or were at `level` within the tolerance: at least 2, and 1 % of those with a
    /// level.
    pub(crate) fn is_known_level(&self, level: i64) -> bool {
        let range = self.bucket_key(level.saturating_sub(self.tolerance_ns))
            ..=self.bucket_key(level.saturating_add(self.tolerance_ns));
        let weights = self.buckets.range(range).map(|(_, bucket)| bucket.weight());
        weights
            .fold(Weight::default(), Weight::plus)
            .has_enough_flows(&self.total_weight)
    }

    /// The current and recent levels of enough flows, more than the tolerance apart.
    pub(crate) fn paths(&mut self, at: i64) -> &[PossibleLevel] {
        let elapsed_ns = self
            .paths_found_at_ns
            .map(|found_at_ns| at.saturating_sub(found_at_ns));
        if elapsed_ns.is_none_or(|elapsed_ns| elapsed_ns >= REFRESH_INTERVAL_NS) {
            let decay =
                (-nanos_to_f64(elapsed_ns.unwrap_or(0)) / nanos_to_f64(LEVEL_RETENTION_NS)).exp();
            for bucket in self.buckets.values_mut() {
                bucket.recent_arrivals *= decay;
            }
            let weights = self.buckets.values().map(Bucket::weight);
            self.total_weight = weights.fold(Weight::default(), Weight::plus);
            self.paths_found_at_ns = Some(at);
            self.paths = self.find_paths();
        }
        &self.paths
    }

    /// The highest peak first, without its surroundings, and so on.
    fn find_paths(&self) -> Vec<PossibleLevel> {
        let total_weight = self.total_weight;
        let mut remaining: BTreeMap<i64, (Weight, i64)> = self
            .buckets
            .iter()
            .map(|(&key, b)| (key, (b.weight(), b.level_ns)))
            .collect();
        let within = |remaining: &BTreeMap<i64, (Weight, i64)>, key: i64, reach: i64| {
            let weights = remaining.range(key - reach..=key + reach);
            weights.fold(Weight::default(), |sum, (_, &(weight, _))| sum.plus(weight))
        };
        let around = |remaining: &BTreeMap<i64, (Weight, i64)>, key| {
            within(remaining, key, BUCKETS_PER_TOLERANCE / 2)
        };
        // Nearer levels count more: between two paths just further apart than the tolerance, half of each is
        // as near as all of one.
        let peak_score = |remaining: &BTreeMap<i64, (Weight, i64)>, key| -> f64 {
            let reaches = 0..=BUCKETS_PER_TOLERANCE / 2;
            reaches
                .map(|reach| within(remaining, key, reach).share(&total_weight))
                .sum()
        };
        let mut paths: Vec<PossibleLevel> = Vec::new();
        loop {
            let has_enough = |key: &i64| around(&remaining, *key).has_enough_flows(&total_weight);
            let peaks = remaining.keys().copied().filter(has_enough);
            let highest = peaks
                .max_by(|&a, &b| peak_score(&remaining, a).total_cmp(&peak_score(&remaining, b)));
            let Some(key) = highest else {
                return paths;
            };
            let range = key - BUCKETS_PER_TOLERANCE / 2..=key + BUCKETS_PER_TOLERANCE / 2;
            let nearby_buckets: Vec<(f64, i64)> = remaining
                .range(range.clone())
                .map(|(_, (weight, level))| (weight.share(&total_weight), *level))
                .collect();
            let sum: f64 = nearby_buckets.iter().map(|t| t.0).sum();
            let origin = nearby_buckets[0].1;
            let mean = |of: &dyn Fn(i64) -> i64| {
                let total: f64 = nearby_buckets
                    .iter()
                    .map(|t| t.0 * nanos_to_f64(of(t.1)))
                    .sum();
                round_to_i64(total / sum)
            };
            let level = origin + mean(&|level| level - origin);
            let mean_deviation_ns = mean(&|other| (other - level).abs());
            remaining.retain(|key, _| !range.contains(key));
            let is_far = |path: &PossibleLevel| (path.level - level).abs() > self.tolerance_ns;
            if paths.iter().all(is_far) {
                paths.push(PossibleLevel {
                    level,
                    mean_deviation_ns,
                });
            }
        }
    }

    /// The known level nearest to `level` within the tolerance, if `level` is known.
    pub(crate) fn nearest_known_level(&self, level: i64) -> Option<i64> {
        if !self.is_known_level(level) {
            return None;
        }
        let width = (self.tolerance_ns / BUCKETS_PER_TOLERANCE).max(1);
        let range = self.bucket_key(level.saturating_sub(self.tolerance_ns))
            ..=self.bucket_key(level.saturating_add(self.tolerance_ns));
        let nearby_buckets = || self.buckets.range(range.clone());
        let flows = |bucket: &Bucket| bucket.current_flows.max(bucket.arrived_flows);
        let max_flows = nearby_buckets().map(|(_, bucket)| flows(bucket)).max()?;
        nearby_buckets()
            .filter(|(_, bucket)| 4 * flows(bucket) >= max_flows)
            .map(|(&key, _)| key.saturating_mul(width).saturating_add(width / 2))
            .min_by_key(|centre| centre.saturating_sub(level).abs())
    }

    /// Records a sample, without jitter, of a flow in a bucket: at the flow's own level or not.
    pub(crate) fn record_sample(
        &mut self,
        bucket_key: BucketKey,
        at: i64,
        sample: i64,
        at_own_level: bool,
    ) {
        let at_no_level = !at_own_level && !self.is_known_level(sample);
        let Some(bucket) = self.buckets.get_mut(&bucket_key.value()) else {
            return;
        };
        let mut recent = bucket.recent_samples.decayed_to(at);
        recent.total += 1.0;
        recent.at_own_level += f64::from(u8::from(at_own_level));
        recent.at_no_level += f64::from(u8::from(at_no_level));
        bucket.recent_samples = recent;
        if at_own_level == self.congested.is_empty() {
            return;
        }
        let range =
            bucket_key.value() - BUCKETS_PER_TOLERANCE..=bucket_key.value() + BUCKETS_PER_TOLERANCE;
        let nearby = self
            .buckets
            .range(range)
            .fold(recent.decayed_to(at), |sum, (&key, b)| {
                if key == bucket_key.value() {
                    sum
                } else {
                    sum.plus(&b.recent_samples)
                }
            });
        if at_own_level && nearby.at_own_level >= 0.2 * nearby.total {
            self.congested.remove(&bucket_key.value());
        } else if at_no_level
            && nearby.total >= 4.0
            && nearby.at_own_level < 0.1 * nearby.total
            && nearby.at_no_level >= 0.3 * nearby.total
        {
            self.congested.insert(bucket_key.value(), at);
        }
    }

    /// Whether all flows of `level` left it gradually, and have not come back.
    pub(crate) fn is_congested(&self, level: i64, at: i64) -> bool {
        let key = self.bucket_key(level);
        let range = key - BUCKETS_PER_TOLERANCE..=key + BUCKETS_PER_TOLERANCE;
        self.congested
            .range(range)
            .any(|(_, &since)| at.saturating_sub(since) < CONGESTION_EXPIRY_NS)
    }

    /// Shifts all levels by the same amount.
    pub(crate) fn shift(&mut self, offset_ns: i64) -> impl Fn(BucketKey) -> BucketKey + use<> {
        let steps = self.bucket_key(offset_ns);
        let shifted = |(key, mut bucket): (i64, Bucket)| {
            bucket.level_ns = bucket.level_ns.saturating_add(offset_ns);
            (key.saturating_add(steps), bucket)
        };
        self.paths_found_at_ns = None;
        self.buckets = std::mem::take(&mut self.buckets)
            .into_iter()
            .map(shifted)
            .collect();
        self.congested.clear();
        move |bucket_key| BucketKey::from_key(bucket_key.value().saturating_add(steps))
    }
}

#[cfg(test)]
mod tests;
