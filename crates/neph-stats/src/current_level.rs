//! The level of a flow, and its jitter there. Owns what is learnt while no sample contradicts the level.
//! Makes no decisions.

use crate::base_latency::Stable;
use crate::casts::{clamp_to_i32, nanos_to_f64};
use crate::levels::{BucketKey, Levels};

/// The weight of the tail: the density falls with this power of the distance.
const TAIL_EXPONENT: f64 = 3.0;
/// Samples after which averages forget.
const MAX_MEAN_SAMPLES: i64 = 64;
/// Samples after which the estimate of a flow's jitter forgets.
const MAX_JITTER_SAMPLES: i64 = 256;
/// Samples at a level before it counts for other flows, and before a change from it is trusted.
pub const SETTLED_SAMPLES: u32 = 16;
/// Jitter is assumed to be at least this part of the tolerance.
const MIN_JITTER_DIVISOR: i64 = 25;

/// The level of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CurrentLevel {
    /// The base, in nanoseconds.
    pub(crate) base: i64,
    /// When its first sample was sent.
    pub(crate) since: i64,
    /// From how many samples it is known.
    pub(crate) samples: u32,
    /// Whether it was reported on evidence, or is just the first stable window.
    pub(crate) proven: bool,
    /// Samples from which the flow's jitter was learnt, at this level and those before.
    learnt: u32,
    /// Its place among the levels of all flows, if it counts there.
    pub(crate) bucket_key: Option<BucketKey>,
    /// Mean distance of samples above the base.
    lift: i32,
    /// Mean distance of samples from base plus lift.
    spread: i32,
}

/// The position of a sample that a flow learnt from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleDeviation {
    /// Distance from the mean of samples, in nanoseconds.
    pub(crate) off: i64,
    /// The same as it counts in that mean: it is 0 on average, whatever the tail.
    pub(crate) aside: i64,
}

impl CurrentLevel {
    /// A new base without further knowledge.
    pub(crate) fn first(base: i64, since: i64, tolerance: i64) -> Self {
        Self {
            base,
            since,
            samples: 0,
            proven: false,
            learnt: 0,
            bucket_key: None,
            lift: 0,
            spread: clamp_to_i32(tolerance / 4),
        }
    }

    /// The flow moved to another level, known as if from this many samples; its jitter is the same.
    pub(crate) fn moved(self, base: i64, since: i64, samples: u32) -> Self {
        Self {
            base,
            since,
            samples,
            proven: true,
            bucket_key: None,
            ..self
        }
    }

    /// Refines the level while no sample contradicts it. Returns the position of the sample, once the usual
    /// position is known.
    pub(crate) fn learn(
        &mut self,
        sample: i64,
        stable: Option<Stable>,
        tolerance: i64,
    ) -> Option<SampleDeviation> {
        self.samples = self.samples.saturating_add(1);
        self.learnt = self.learnt.saturating_add(1);
        let memory = i64::from(self.learnt).min(MAX_JITTER_SAMPLES);
        let off = sample - self.base - self.lift();
        let lift = (sample - self.base).clamp(-tolerance, tolerance);
        let aside = lift - self.lift();
        self.lift = clamp_to_i32(self.lift() + aside / memory);
        let spread = (sample - self.base - self.lift()).abs().min(2 * tolerance);
        // The first samples have little weight: two that happen to be equal do not mean no jitter.
        let step = (spread - self.spread()) / (memory + 2).min(MAX_JITTER_SAMPLES);
        self.spread = clamp_to_i32(self.spread() + step);
        if let Some(stable) = stable {
            let off = stable.minimum - self.base;
            if off.abs() <= tolerance {
                let step = off / i64::from(self.samples).min(MAX_MEAN_SAMPLES);
                self.base += step;
                // Samples are as far above as before: only the estimate of the base moved.
                self.lift = clamp_to_i32(self.lift() - step);
            }
        }
        (self.learnt > 16).then_some(SampleDeviation { off, aside })
    }

    /// Counts for other flows, once it is known well enough.
    pub(crate) fn register(&mut self, at: i64, levels: &mut Levels) {
        match self.bucket_key {
            None if self.samples >= SETTLED_SAMPLES => {
                self.bucket_key = Some(levels.add_flow(self.base, at));
            }
            Some(bucket_key)
                if self.samples.is_multiple_of(64)
                    && !levels.is_in_bucket(bucket_key, self.base) =>
            {
                self.bucket_key = Some(levels.move_flow(bucket_key, self.base, at));
            }
            _ => {}
        }
    }

    /// Mean distance of samples above the base, in nanoseconds.
    pub(crate) fn lift(&self) -> i64 {
        self.lift.into()
    }

    /// Mean distance from that, in nanoseconds.
    pub(crate) fn spread(&self) -> i64 {
        self.spread.into()
    }

    /// Whether a sample is further away than jitter and differences within one path explain.
    pub(crate) fn is_far(&self, sample: i64, tolerance: i64) -> bool {
        (sample - self.base - self.lift()).abs() > tolerance + 3 * self.spread()
    }

    /// The spread, at least the assumed minimum.
    pub(crate) fn width(&self, tolerance: i64) -> i64 {
        self.spread().max(tolerance / MIN_JITTER_DIVISOR).max(1)
    }

    /// How much more a sample supports `other` than this level: a logarithm.
    pub(crate) fn evidence_for(&self, other: i64, sample: i64, tolerance: i64) -> f64 {
        let width = 1.5 * nanos_to_f64(self.width(tolerance));
        let distance = |base: i64| {
            let distance = sample.saturating_sub(base).saturating_sub(self.lift());
            distance.saturating_abs()
        };
        let density = |distance: i64| (nanos_to_f64(distance) / width).ln_1p();
        let evidence = TAIL_EXPONENT * (density(distance(self.base)) - density(distance(other)));
        if distance(other) > tolerance.saturating_add(3 * self.spread()) {
            // It lies at neither level: a growing queue supports no path.
            return evidence.min(-TAIL_EXPONENT);
        }
        evidence
    }
}
