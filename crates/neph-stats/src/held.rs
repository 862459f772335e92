//! The level that a flow is at, and its own jitter there. Owns what is learnt while nothing speaks
//! against the level; decides nothing.

use crate::base_latency::Stable;
use crate::levels::{Levels, Seat};
use crate::real::{real_nanos, short};

/// The weight of the tail: the density falls with this power of the distance.
const TAIL: f64 = 3.0;
/// Samples after which averages forget.
const LONGEST_MEMORY: i64 = 64;
/// Samples after which the idea of a flow's jitter forgets.
const JITTER_MEMORY: i64 = 256;
/// Samples at a level before it counts for other flows, and before a change from it is believed.
pub const SETTLED: u32 = 16;
/// Jitter is not believed to be less than this part of the tolerance.
const SILENCE: i64 = 25;

/// The level that a flow is at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// The base, nanoseconds.
    pub(crate) base: i64,
    /// When its first sample was sent.
    pub(crate) since: i64,
    /// How many samples it is known from.
    pub(crate) samples: u32,
    /// Whether it was told on evidence, or is just the first stable window.
    pub(crate) proven: bool,
    /// Samples from which the flow's jitter was learnt, at this level and those before.
    learnt: u32,
    /// Where it counts for other flows, if it does.
    pub(crate) seat: Option<Seat>,
    /// How far samples lie above the base on average.
    lift: i32,
    /// How far they lie from base and lift on average.
    spread: i32,
}

/// Where a sample lay of which a flow learnt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Learnt {
    /// How far from where samples lie on average, nanoseconds.
    pub(crate) off: i64,
    /// The same, of the sample as it counts in that average: it is 0 on average, whatever the tail.
    pub(crate) aside: i64,
}

impl Held {
    /// A base that was met just now, of which nothing else is known.
    pub(crate) fn first(base: i64, since: i64, tolerance: i64) -> Self {
        Self {
            base,
            since,
            samples: 0,
            proven: false,
            learnt: 0,
            seat: None,
            lift: 0,
            spread: short(tolerance / 4),
        }
    }

    /// The flow is at another level since then, known as if from so many samples; its jitter is the
    /// same.
    pub(crate) fn moved(self, base: i64, since: i64, samples: u32) -> Self {
        Self {
            base,
            since,
            samples,
            proven: true,
            seat: None,
            ..self
        }
    }

    /// The level becomes more exact while nothing speaks against it. Returns where the sample lay,
    /// once it is known where samples lie.
    pub(crate) fn learn(
        &mut self,
        sample: i64,
        stable: Option<Stable>,
        tolerance: i64,
    ) -> Option<Learnt> {
        self.samples = self.samples.saturating_add(1);
        self.learnt = self.learnt.saturating_add(1);
        let memory = i64::from(self.learnt).min(JITTER_MEMORY);
        let off = sample - self.base - self.lift();
        let lift = (sample - self.base).clamp(-tolerance, tolerance);
        let aside = lift - self.lift();
        self.lift = short(self.lift() + aside / memory);
        let spread = (sample - self.base - self.lift()).abs().min(2 * tolerance);
        // The first samples are not believed too much: two that happen to be equal are no silence.
        let step = (spread - self.spread()) / (memory + 2).min(JITTER_MEMORY);
        self.spread = short(self.spread() + step);
        if let Some(stable) = stable {
            let off = stable.minimum - self.base;
            if off.abs() <= tolerance {
                let step = off / i64::from(self.samples).min(LONGEST_MEMORY);
                self.base += step;
                // Samples lie as far above as before: what moved is our idea of the base.
                self.lift = short(self.lift() - step);
            }
        }
        (self.learnt > 16).then_some(Learnt { off, aside })
    }

    /// Counts for other flows, once it is known well enough.
    pub(crate) fn take_seat(&mut self, at: i64, levels: &mut Levels) {
        match self.seat {
            None if self.samples >= SETTLED => self.seat = Some(levels.sit(self.base, at)),
            Some(seat) if self.samples.is_multiple_of(64) && !levels.fits(seat, self.base) => {
                self.seat = Some(levels.sit_better(seat, self.base, at));
            }
            _ => {}
        }
    }

    /// How far samples lie above the base on average, nanoseconds.
    pub(crate) fn lift(&self) -> i64 {
        self.lift.into()
    }

    /// How far they lie from that on average, nanoseconds.
    pub(crate) fn spread(&self) -> i64 {
        self.spread.into()
    }

    /// Whether a sample lies further away than jitter explains and paths that are told as one differ.
    pub(crate) fn is_far(&self, sample: i64, tolerance: i64) -> bool {
        (sample - self.base - self.lift()).abs() > tolerance + 3 * self.spread()
    }

    /// The spread, as far as it is believed.
    pub(crate) fn width(&self, tolerance: i64) -> i64 {
        self.spread().max(tolerance / SILENCE).max(1)
    }

    /// How much more a sample speaks for `other` than for this level: a logarithm.
    pub(crate) fn speaks_for(&self, other: i64, sample: i64, tolerance: i64) -> f64 {
        let width = 1.5 * real_nanos(self.width(tolerance));
        let distance = |base: i64| {
            let distance = sample.saturating_sub(base).saturating_sub(self.lift());
            distance.saturating_abs()
        };
        let density = |distance: i64| (real_nanos(distance) / width).ln_1p();
        let evidence = TAIL * (density(distance(self.base)) - density(distance(other)));
        if distance(other) > tolerance.saturating_add(3 * self.spread()) {
            // It lies at neither level: a queue on the way up speaks for no path.
            return evidence.min(-TAIL);
        }
        evidence
    }
}
