//! The second stage, for one flow: whether a level that the rule detects is its new base latency.
//!
//! The source's rule proposes a level as soon as a window is stable more than the tolerance away. So does a
//! window with a quorum that far away. That is a [`Candidate`] here. Then [`choose`] estimates where the last
//! samples came from:
//!
//! - From the flow's own level: there is no candidate.
//! - From a path of other flows, now or recently ([`Levels::paths`]): reported as soon as these samples support
//!   it more than the flow's jitter could in years ([`MIN_PATH_MARGIN`]). A quiet link needs four samples, a
//!   jitter of half the difference a dozen. A flow that moved there gradually, as in a growing queue, must
//!   stay for the hold time. So must one whose old level all flows left gradually: that path has a queue.
//! - From no known level: the level must last for the hold time.
//!
//! With few flows, paths are levels at which one flow has lasted. A quiet flow that moved at once and is as
//! quiet there is trusted after some samples. For any flow, a fall from a level that has lasted is trusted as
//! soon as it is exact: congestion never lowers latency below its base.
//!
//! If the flow returns before that, the candidate is withdrawn and the base has never changed.

use crate::base_latency::{Detection, Stable};
use crate::baseline_drift::BaselineDrift;
use crate::candidate::{Candidate, displaced_window};
use crate::congestion::MIN_FLOWS;
use crate::current_level::{CurrentLevel, SETTLED_SAMPLES};
use crate::jitter_shape::JitterShape;
use crate::level_detection::{Finding, LevelDetection};
use crate::levels::{BucketKey, Levels};
use crate::path_choice::{MAX_LEVELS, PossibleLevel, choose};
use crate::recent::{KEPT_SAMPLES, Recent};

/// The evidence that decides, a natural logarithm: e^25 to one.
const MIN_EVIDENCE: f32 = 25.0;
/// The evidence that decides for a known path.
const MIN_PATH_MARGIN: f64 = 21.0;
/// The evidence that samples came by a known path and not from another level.
const MIN_MARGIN_OVER_UNKNOWN: f64 = 4.0;
/// A flow is quiet if its spread is at most the tolerance divided by this: a window then shows its level.
const QUIET_SPREAD_DIVISOR: i64 = 8;
/// After how many samples a quiet flow's new level is trusted, and the same with hardly any other flow.
const CALM_SAMPLES: i64 = 12;
const CALM_SAMPLES_ALONE: i64 = 8;
/// Fewer flows than these are hardly any.
const MIN_OTHER_FLOWS: usize = 4;

/// One flow's level, in at most 250 bytes.
#[derive(Debug, Clone)]
pub(crate) struct FlowLevel {
    recent: Recent,
    level: Option<CurrentLevel>,
    candidate: Option<Candidate>,
}

/// Where the last samples of a flow came from.
#[derive(Debug, Clone, Copy)]
enum SampleOrigin {
    /// From its own level.
    Here,
    /// From another known level, since then.
    Path { level: i64, since: i64 },
    /// It is not known.
    Unknown,
}

/// The inputs of a decision besides the flow itself.
#[derive(Debug)]
pub(crate) struct FleetContext<'a> {
    pub(crate) detection: &'a Detection,
    pub(crate) hold: i64,
    pub(crate) levels: &'a mut Levels,
    pub(crate) shape: &'a mut JitterShape,
    pub(crate) drift: &'a mut BaselineDrift,
    /// How many flows there are.
    pub(crate) flows: usize,
}

impl FleetContext<'_> {
    /// Whether there are too few flows to estimate their common part.
    fn is_small(&self) -> bool {
        self.flows < MIN_FLOWS
    }
}

impl FlowLevel {
    pub(crate) fn new() -> Self {
        Self {
            recent: Recent::new(),
            level: None,
            candidate: None,
        }
    }

    /// The base latency of its level.
    pub(crate) fn base(&self) -> Option<i64> {
        self.level.map(|level| level.base)
    }

    /// Whether a sample is further from the level than samples of one path are.
    pub(crate) fn is_astray(&self, sample: i64, tolerance: i64) -> bool {
        self.level
            .is_some_and(|level| level.is_far(sample, tolerance))
    }

    /// Separates earlier samples from later ones.
    pub(crate) fn gap(&mut self) {
        self.recent.clear();
    }

    /// The flow is over.
    pub(crate) fn leave(&mut self, levels: &mut Levels, at: i64) {
        if let Some(bucket_key) = self
            .level
            .as_mut()
            .and_then(|level| level.bucket_key.take())
        {
            levels.remove_flow(bucket_key, at);
        }
    }

    /// All flows, with this one, moved by the same amount and stayed.
    pub(crate) fn shift(&mut self, by: i64, shift_key: impl Fn(BucketKey) -> BucketKey) {
        self.gap();
        if let Some(level) = self.level.as_mut() {
            level.bucket_key = level.bucket_key.map(shift_key);
        }
        let bases = [
            self.level.as_mut().map(|level| &mut level.base),
            self.candidate.as_mut().map(|candidate| &mut candidate.base),
        ];
        for base in bases.into_iter().flatten() {
            *base = base.saturating_add(by);
        }
    }

    /// Whether the level has been held since before `at` for at least `hold`.
    pub(crate) fn is_proven(&self, at: i64, hold: i64) -> bool {
        self.level
            .is_some_and(|level| at.saturating_sub(level.since) >= hold)
    }

    /// Whether the flow had its level at `at`.
    pub(crate) fn had_level_at(&self, at: i64) -> bool {
        self.level.is_some_and(|level| level.since < at)
    }

    /// Adds the next sample without the common part of all flows.
    pub(crate) fn push(
        &mut self,
        at: i64,
        sample: i64,
        fleet: &mut FleetContext<'_>,
    ) -> Option<LevelDetection> {
        self.recent.push(at, sample);
        let stable = self.recent.stable(fleet.detection);
        if self.level.is_none() {
            return Some(self.first(at, stable?, fleet.detection.tolerance()));
        }
        if let Some(level) = self.level
            && let Some(bucket_key) = level.bucket_key
        {
            let distance = (sample - level.base - level.lift()).abs();
            let stayed = distance <= fleet.detection.tolerance();
            fleet
                .levels
                .record_sample(bucket_key, at, sample - level.lift(), stayed);
        }
        // Jitter is learnt from the oldest sample: the newest may belong to the next level already.
        if self.candidate.is_none()
            && let Some(oldest) = self.recent.oldest(fleet.detection)
            && let Some(level) = self.level.as_mut()
        {
            let tolerance = fleet.detection.tolerance();
            if let Some(learnt) = level.learn(oldest, stable, tolerance) {
                fleet.shape.learn(learnt.off, level.width(tolerance));
                fleet.drift.add_deviation(learnt.aside);
            }
            level.register(at, fleet.levels);
        }
        self.weigh(sample, stable, fleet);
        self.decide(at, fleet)
    }

    fn first(&mut self, at: i64, stable: Stable, tolerance: i64) -> LevelDetection {
        let since = self
            .recent
            .ago(stable.since.into())
            .map_or(at, |(at, _)| at);
        self.level = Some(CurrentLevel::first(stable.minimum, since, tolerance));
        LevelDetection {
            finding: Finding::First,
            at: since,
            certain: at,
            before: None,
            after: stable.minimum,
        }
    }

    /// Finds, strengthens, moves or withdraws the candidate.
    fn weigh(&mut self, sample: i64, stable: Option<Stable>, fleet: &mut FleetContext<'_>) {
        let detection = fleet.detection;
        let Some(level) = self.level else { return };
        let tolerance = detection.tolerance();
        let far = |a: i64, b: i64| (a - b).abs() > tolerance;
        if let Some(candidate) = self.candidate.as_mut() {
            candidate.weigh(level.evidence_for(candidate.base, sample, tolerance));
            if candidate.evidence <= 0.0 {
                self.candidate = None;
            }
        }
        let near = |a: i64, b: i64| (a - b).abs() <= tolerance.saturating_add(3 * level.spread());
        let stable = stable.or_else(|| displaced_window(&self.recent, &level, detection));
        let Some(stable) = stable.filter(|s| far(s.minimum, level.base)) else {
            return;
        };
        match self.candidate.as_mut() {
            Some(candidate) if near(stable.minimum, candidate.base) => {
                candidate.samples = candidate.samples.saturating_add(1);
                candidate.base += (stable.minimum - candidate.base) / i64::from(candidate.samples);
                if !far(candidate.base, level.base) {
                    self.candidate = None;
                }
            }
            _ => {
                let known = |level: i64| fleet.levels.is_known_level(level);
                self.candidate = Some(Candidate::propose(
                    &self.recent,
                    &level,
                    stable,
                    tolerance,
                    known,
                ));
            }
        }
    }

    /// Where the last samples came from, if that is certain.
    fn origin_of_samples(
        &self,
        level: CurrentLevel,
        candidate: Candidate,
        at: i64,
        fleet: &mut FleetContext<'_>,
    ) -> SampleOrigin {
        let tolerance = fleet.detection.tolerance();
        let here = |&(at, _): &(i64, i64)| at >= level.since;
        let samples_at_level: Vec<(i64, i64)> =
            self.recent.newest_first().take_while(here).collect();
        let samples: Vec<i64> = samples_at_level
            .iter()
            .rev()
            .map(|s| s.1 - level.lift())
            .collect();
        let exactly = |level| PossibleLevel {
            level,
            mean_deviation_ns: 0,
        };
        let mut levels = vec![exactly(level.base)];
        let far = |level: i64, path: &PossibleLevel| (path.level - level).abs() > tolerance;
        let paths = fleet.levels.paths(at);
        levels.extend(paths.iter().filter(|path| far(level.base, path)));
        if levels.len() > MAX_LEVELS - 1 {
            // There is room for the likely paths, and for the candidate.
            levels[1..].sort_by_key(|path| (path.level - candidate.base).abs());
            levels.truncate(MAX_LEVELS - 1);
        }
        let known = levels.len();
        if levels.iter().all(|path| far(candidate.base, path)) {
            levels.push(exactly(candidate.base));
        }
        let width = level.width(tolerance);
        let shape = &*fleet.shape;
        let choice = choose(&samples, &levels, |off| shape.height(off, width));
        let Some(choice) = choice.filter(|c| c.margin_over_unknown >= MIN_MARGIN_OVER_UNKNOWN)
        else {
            return SampleOrigin::Unknown;
        };
        if choice.index == 0 {
            return SampleOrigin::Here;
        }
        if choice.index >= known || choice.margin < MIN_PATH_MARGIN {
            return SampleOrigin::Unknown;
        }
        let path = levels[choice.index].level;
        // No two changes of a flow have the same time.
        let earliest = level.since.saturating_add(1);
        let since = samples_at_level[choice.ago].0.max(earliest);
        if choice.ago + 1 < samples_at_level.len() {
            return SampleOrigin::Path { level: path, since };
        }
        // It began before all kept samples: the candidate may know when.
        if (candidate.base - path).abs() <= tolerance {
            let since = since.min(candidate.since).max(earliest);
            return SampleOrigin::Path { level: path, since };
        }
        if samples_at_level.len() < KEPT_SAMPLES {
            return SampleOrigin::Path { level: path, since };
        }
        SampleOrigin::Unknown
    }

    /// Reports the candidate if that is possible now.
    fn decide(&mut self, at: i64, fleet: &mut FleetContext<'_>) -> Option<LevelDetection> {
        let (level, mut candidate) = (self.level?, self.candidate?);
        match self.origin_of_samples(level, candidate, at, fleet) {
            SampleOrigin::Path { level: path, since } => {
                let step = !candidate.slope && !fleet.levels.is_congested(level.base, at);
                if step || (candidate.base - path).abs() > fleet.detection.tolerance() {
                    candidate = candidate.known_to_be(path, since);
                    self.candidate = Some(candidate);
                }
                if step {
                    return self.report(at, candidate, SETTLED_SAMPLES, fleet);
                }
            }
            SampleOrigin::Here => {
                self.candidate = None;
                return None;
            }
            SampleOrigin::Unknown => {}
        }
        let tolerance = fleet.detection.tolerance();
        let lasted = at.saturating_sub(candidate.since) >= fleet.hold;
        let falls = candidate.base < level.base;
        let proven = candidate.since.saturating_sub(level.since) >= fleet.hold;
        let calm = self.is_calm(level, candidate, fleet);
        // One window of noisy samples does not show the new level.
        let exact = u32::from(candidate.samples) >= SETTLED_SAMPLES
            || level.spread() * QUIET_SPREAD_DIVISOR <= tolerance;
        let path = lasted || calm || (fleet.is_small() && falls && proven && exact);
        // The jitter limits how well the difference of two levels is known.
        let apart = (candidate.base - level.base).abs() > tolerance + 2 * level.spread();
        if candidate.evidence < MIN_EVIDENCE || !path || !apart {
            return None;
        }
        self.report(at, candidate, 1, fleet)
    }

    /// Whether a quiet flow without other flows moved there at once and has been as quiet there for long
    /// enough: packets in a queue have jitter.
    fn is_calm(&self, level: CurrentLevel, candidate: Candidate, fleet: &FleetContext<'_>) -> bool {
        let tolerance = fleet.detection.tolerance();
        let there = |&(at, _): &(i64, i64)| at >= candidate.since;
        let samples = || self.recent.newest_first().take_while(there).map(|s| s.1);
        let centre = candidate.base + level.lift();
        let off = |sample: i64| (sample - centre).abs().min(tolerance / 4);
        let count = samples().map(|_| 1).sum::<i64>();
        let quiet = 2 * level.spread() * QUIET_SPREAD_DIVISOR <= tolerance
            && 2 * samples().map(off).sum::<i64>() <= 3 * count * level.width(tolerance);
        let is_alone = fleet.flows < MIN_OTHER_FLOWS;
        let enough = if is_alone {
            CALM_SAMPLES_ALONE
        } else {
            CALM_SAMPLES
        };
        fleet.is_small() && !candidate.slope && quiet && count >= enough
    }

    /// Moves the flow to the candidate's level, with this many samples.
    fn report(
        &mut self,
        at: i64,
        candidate: Candidate,
        samples: u32,
        fleet: &mut FleetContext<'_>,
    ) -> Option<LevelDetection> {
        let level = self.level?;
        let tolerance = fleet.detection.tolerance();
        // A young level is not known well: one that its jitter can explain is the same.
        let close = tolerance + 3 * level.spread();
        let doubtful = !level.proven || (candidate.base - level.base).abs() <= close;
        let unsettled = level.samples < SETTLED_SAMPLES && doubtful;
        let falls = candidate.base < level.base;
        let proven = candidate.since.saturating_sub(level.since) >= fleet.hold;
        let known = fleet.levels.is_known_level(candidate.base);
        let calm = self.is_calm(level, candidate, fleet);
        let correction = unsettled || (falls && !proven && !known && !calm);
        self.leave(fleet.levels, at);
        self.level = Some(level.moved(candidate.base, candidate.since, samples));
        self.candidate = None;
        let kinds = [Finding::Change, Finding::Correction];
        Some(LevelDetection {
            finding: kinds[usize::from(correction)],
            at: candidate.since,
            certain: at,
            before: Some(level.base),
            after: candidate.base,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_takes_at_most_250_bytes() {
        let size = size_of::<Option<FlowLevel>>();
        assert!(size <= 250, "{size}");
    }
}
