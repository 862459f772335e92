//! A level that a flow may have moved to: who proposes it, and since when it may hold. Decides
//! nothing.

use crate::base_latency::{Detection, Stable};
use crate::casts::to_f32;
use crate::current_level::CurrentLevel;
use crate::recent::Recent;

/// Evidence above this is not collected, so that a return is noticed.
const MAX_EVIDENCE: f32 = 35.0;
/// Stable windows that the level of a known path counts for.
const KNOWN_PATH_SAMPLES: u16 = 16;
/// Samples on the way that make a step a slope.
const SLOPE_SAMPLES: usize = 3;

/// A level that it may have moved to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    /// The level, nanoseconds.
    pub(crate) base: i64,
    /// When its first sample was sent.
    pub(crate) since: i64,
    /// How many stable windows it is known from.
    pub(crate) samples: u16,
    /// How much the samples since then speak for it: a logarithm.
    pub(crate) evidence: f32,
    /// Whether the flow came there by degrees.
    pub(crate) slope: bool,
}

impl Candidate {
    /// The candidate that a stable window proposes. It began with the sample from which on the
    /// evidence for it is greatest.
    pub(crate) fn propose(
        recent: &Recent,
        current: &CurrentLevel,
        stable: Stable,
        tolerance: i64,
        known: impl Fn(i64) -> bool,
    ) -> Self {
        let (mut sum, mut evidence, mut began) = (0.0, 0.0, 0);
        let here = |&(at, _): &(i64, i64)| at >= current.since;
        for (ago, (_, sample)) in recent.newest_first().take_while(here).enumerate() {
            sum += current.evidence_for(stable.minimum, sample, tolerance);
            if sum > evidence {
                (evidence, began) = (sum, ago);
            }
        }
        // Beyond what its jitter explains.
        let apart = tolerance + 2 * current.spread();
        let between = |&(_, sample): &(i64, i64)| {
            let without_lift = sample - current.lift();
            let (low, high) = (
                current.base.min(stable.minimum),
                current.base.max(stable.minimum),
            );
            low + apart < without_lift && without_lift < high - apart && !known(without_lift)
        };
        let on_the_way = recent
            .newest_first()
            .take_while(here)
            .skip(began)
            .filter(between)
            .count();
        Self {
            base: stable.minimum,
            since: recent.ago(began).map_or(current.since, |(at, _)| at),
            samples: 1,
            evidence: to_f32(evidence).min(MAX_EVIDENCE),
            slope: on_the_way >= SLOPE_SAMPLES,
        }
    }

    /// It turned out to be a known path, since then.
    pub(crate) fn known_to_be(self, level: i64, since: i64) -> Self {
        Self {
            base: level,
            since,
            samples: KNOWN_PATH_SAMPLES,
            evidence: MAX_EVIDENCE,
            ..self
        }
    }

    /// A sample speaks so much for it: a logarithm.
    pub(crate) fn weigh(&mut self, evidence: f64) {
        self.evidence = (self.evidence + to_f32(evidence)).min(MAX_EVIDENCE);
    }
}

/// A window of which a quorum lies far from the level, all on one side of it, though not together.
pub(crate) fn displaced_window(
    recent: &Recent,
    current: &CurrentLevel,
    detection: &Detection,
) -> Option<Stable> {
    let far_on = |sign: i64| {
        let (mut count, mut since, mut lowest) = (0, 0, i64::MAX);
        for (ago, (_, sample)) in (0_u8..).zip(recent.newest_first().take(detection.window())) {
            let without_lift = sample - current.lift();
            if (without_lift - current.base) * sign > detection.tolerance() {
                (count, since, lowest) = (count + 1, ago, lowest.min(without_lift));
            }
        }
        (count >= detection.quorum()).then_some(Stable {
            minimum: lowest,
            since,
        })
    };
    far_on(1).or_else(|| far_on(-1))
}
