//! The second stage, for one flow: whether a level that the rule detects is its new base latency.
//!
//! The source's rule proposes a level as soon as a window is stable more than the tolerance away. So does a
//! window with a quorum that far away. That is a [`Candidate`] here. Then [`choose`] estimates where the last
//! samples came from:
//!
//! - From the flow's own level: there is no candidate.
//! - From a path of other flows, now or lately ([`Levels::paths`]): reported as soon as these samples support
//!   it more than the flow's jitter could in years ([`SURE_OF_PATH`]). A quiet link needs four samples, a
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
use crate::candidate::{Candidate, strayed};
use crate::congestion::MIN_FLOWS;
use crate::drift::Drift;
use crate::held::{Held, SETTLED};
use crate::jitter_shape::JitterShape;
use crate::levels::{Levels, Seat};
use crate::path_choice::{MAXIMUM, Place, choose};
use crate::recent::{KEPT, Recent};

/// The evidence that decides, a natural logarithm: e^25 to one.
const SURE: f32 = 25.0;
/// The evidence that decides for a known path.
const SURE_OF_PATH: f64 = 21.0;
/// The evidence that samples came by a known path and not from another level.
const OVER_NOWHERE: f64 = 4.0;
/// A flow is quiet if its spread is at most the tolerance divided by this: a window then shows its level.
const QUIET: i64 = 8;
/// After how many samples a quiet flow's new level is trusted, and the same with hardly any other flow.
const CALM: i64 = 12;
const CALM_ALONE: i64 = 8;
/// Fewer flows than these are hardly any.
const HARDLY_ANY: usize = 4;

/// The kind of a finding about a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Its first base latency.
    First,
    /// Its path changed: the base latency became another.
    Change,
    /// The base reported before was wrong: it was measured during congestion, or with too few samples. The
    /// base since then is this one.
    Correction,
}

/// A base latency without the drift of all flows, and how it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelDetection {
    /// The kind of the finding.
    pub finding: Finding,
    /// When the first sample at the new level was sent, in nanoseconds of the caller's clock.
    pub at: i64,
    /// When the sample was sent that made it certain.
    pub certain: i64,
    /// The base before, as known at its end; `None` for the first.
    pub before: Option<i64>,
    /// The base since `at`, as known when it was reported.
    pub after: i64,
}

/// One flow's level, in at most 250 bytes.
#[derive(Debug, Clone)]
pub(crate) struct FlowLevel {
    recent: Recent,
    held: Option<Held>,
    candidate: Option<Candidate>,
}

/// Where the last samples of a flow came from.
#[derive(Debug, Clone, Copy)]
enum Seems {
    /// From its own level.
    Here,
    /// From another known level, since then.
    Path { level: i64, since: i64 },
    /// It is not known.
    Nowhere,
}

/// The inputs of a decision besides the flow itself.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) detection: &'a Detection,
    pub(crate) hold: i64,
    pub(crate) levels: &'a mut Levels,
    pub(crate) shape: &'a mut JitterShape,
    pub(crate) drift: &'a mut Drift,
    /// How many flows there are.
    pub(crate) flows: usize,
}

impl Ground<'_> {
    /// Whether there are too few flows to estimate their common part.
    fn alone(&self) -> bool {
        self.flows < MIN_FLOWS
    }
}

impl FlowLevel {
    pub(crate) fn new() -> Self {
        Self {
            recent: Recent::new(),
            held: None,
            candidate: None,
        }
    }

    /// The current base.
    pub(crate) fn base(&self) -> Option<i64> {
        self.held.map(|held| held.base)
    }

    /// Whether a sample is further from the level than samples of one path are.
    pub(crate) fn is_astray(&self, sample: i64, tolerance: i64) -> bool {
        self.held.is_some_and(|held| held.is_far(sample, tolerance))
    }

    /// Separates earlier samples from later ones.
    pub(crate) fn gap(&mut self) {
        self.recent.clear();
    }

    /// The flow is over.
    pub(crate) fn leave(&mut self, levels: &mut Levels, at: i64) {
        if let Some(seat) = self.held.as_mut().and_then(|held| held.seat.take()) {
            levels.leave(seat, at);
        }
    }

    /// All flows, with this one, moved by the same amount and stayed.
    pub(crate) fn shift(&mut self, by: i64, seat: impl Fn(Seat) -> Seat) {
        self.gap();
        if let Some(held) = self.held.as_mut() {
            held.seat = held.seat.map(seat);
        }
        for base in [
            self.held.as_mut().map(|h| &mut h.base),
            self.candidate.as_mut().map(|c| &mut c.base),
        ]
        .into_iter()
        .flatten()
        {
            *base = base.saturating_add(by);
        }
    }

    /// Whether the level has been held since before `at` for at least `hold`.
    pub(crate) fn proven(&self, at: i64, hold: i64) -> bool {
        self.held
            .is_some_and(|held| at.saturating_sub(held.since) >= hold)
    }

    /// Whether the flow had its level at `at`.
    pub(crate) fn was_held(&self, at: i64) -> bool {
        self.held.is_some_and(|held| held.since < at)
    }

    /// Adds the next sample without the common part of all flows.
    pub(crate) fn push(
        &mut self,
        at: i64,
        sample: i64,
        ground: &mut Ground<'_>,
    ) -> Option<LevelDetection> {
        self.recent.push(at, sample);
        let stable = self.recent.stable(ground.detection);
        if self.held.is_none() {
            return Some(self.first(at, stable?, ground.detection.tolerance()));
        }
        if let Some(held) = self.held
            && let Some(seat) = held.seat
        {
            let distance = (sample - held.base - held.lift()).abs();
            let stayed = distance <= ground.detection.tolerance();
            ground.levels.saw(seat, at, sample - held.lift(), stayed);
        }
        // Jitter is learnt from the oldest sample: the newest may belong to the next level already.
        if self.candidate.is_none()
            && let Some(oldest) = self.recent.oldest(ground.detection)
            && let Some(held) = self.held.as_mut()
        {
            let tolerance = ground.detection.tolerance();
            if let Some(learnt) = held.learn(oldest, stable, tolerance) {
                ground.shape.learn(learnt.off, held.width(tolerance));
                ground.drift.learn(learnt.aside);
            }
            held.take_seat(at, ground.levels);
        }
        self.weigh(sample, stable, ground);
        self.judge(at, ground)
    }

    fn first(&mut self, at: i64, stable: Stable, tolerance: i64) -> LevelDetection {
        let since = self
            .recent
            .ago(stable.since.into())
            .map_or(at, |(at, _)| at);
        self.held = Some(Held::first(stable.minimum, since, tolerance));
        LevelDetection {
            finding: Finding::First,
            at: since,
            certain: at,
            before: None,
            after: stable.minimum,
        }
    }

    /// Finds, strengthens, moves or withdraws the candidate.
    fn weigh(&mut self, sample: i64, stable: Option<Stable>, ground: &mut Ground<'_>) {
        let detection = ground.detection;
        let Some(held) = self.held else { return };
        let tolerance = detection.tolerance();
        let far = |a: i64, b: i64| (a - b).abs() > tolerance;
        if let Some(candidate) = self.candidate.as_mut() {
            candidate.weigh(held.speaks_for(candidate.base, sample, tolerance));
            if candidate.evidence <= 0.0 {
                self.candidate = None;
            }
        }
        let near = |a: i64, b: i64| (a - b).abs() <= tolerance.saturating_add(3 * held.spread());
        let stable = stable.or_else(|| strayed(&self.recent, &held, detection));
        let Some(stable) = stable.filter(|s| far(s.minimum, held.base)) else {
            return;
        };
        match self.candidate.as_mut() {
            Some(candidate) if near(stable.minimum, candidate.base) => {
                candidate.samples = candidate.samples.saturating_add(1);
                candidate.base += (stable.minimum - candidate.base) / i64::from(candidate.samples);
                if !far(candidate.base, held.base) {
                    self.candidate = None;
                }
            }
            _ => {
                let known = |level: i64| ground.levels.known(level);
                self.candidate = Some(Candidate::propose(
                    &self.recent,
                    &held,
                    stable,
                    tolerance,
                    known,
                ));
            }
        }
    }

    /// Where the last samples came from, if that is certain.
    fn seems(&self, held: Held, candidate: Candidate, at: i64, ground: &mut Ground<'_>) -> Seems {
        let tolerance = ground.detection.tolerance();
        let here = |&(at, _): &(i64, i64)| at >= held.since;
        let own: Vec<(i64, i64)> = self.recent.newest_first().take_while(here).collect();
        let samples: Vec<i64> = own.iter().rev().map(|s| s.1 - held.lift()).collect();
        let exactly = |level| Place { level, slack: 0 };
        let mut places = vec![exactly(held.base)];
        let far = |level: i64, path: &Place| (path.level - level).abs() > tolerance;
        let paths = ground.levels.paths(at);
        places.extend(paths.iter().filter(|path| far(held.base, path)));
        if places.len() > MAXIMUM - 1 {
            // There is room for the likely paths, and for the candidate.
            places[1..].sort_by_key(|path| (path.level - candidate.base).abs());
            places.truncate(MAXIMUM - 1);
        }
        let known = places.len();
        if places.iter().all(|path| far(candidate.base, path)) {
            places.push(exactly(candidate.base));
        }
        let width = held.width(tolerance);
        let shape = &*ground.shape;
        let choice = choose(&samples, &places, |off| shape.height(off, width));
        let Some(choice) = choice.filter(|c| c.over_nowhere >= OVER_NOWHERE) else {
            return Seems::Nowhere;
        };
        if choice.place == 0 {
            return Seems::Here;
        }
        if choice.place >= known || choice.margin < SURE_OF_PATH {
            return Seems::Nowhere;
        }
        let level = places[choice.place].level;
        // No two changes of a flow have the same time.
        let earliest = held.since.saturating_add(1);
        let since = own[choice.ago].0.max(earliest);
        if choice.ago + 1 < own.len() {
            return Seems::Path { level, since };
        }
        // It began before all kept samples: the candidate may know when.
        if (candidate.base - level).abs() <= tolerance {
            let since = since.min(candidate.since).max(earliest);
            return Seems::Path { level, since };
        }
        if own.len() < KEPT {
            return Seems::Path { level, since };
        }
        Seems::Nowhere
    }

    /// Reports the candidate if that is possible now.
    fn judge(&mut self, at: i64, ground: &mut Ground<'_>) -> Option<LevelDetection> {
        let (held, mut candidate) = (self.held?, self.candidate?);
        match self.seems(held, candidate, at, ground) {
            Seems::Path { level, since } => {
                let step = !candidate.slope && !ground.levels.congested(held.base, at);
                if step || (candidate.base - level).abs() > ground.detection.tolerance() {
                    candidate = candidate.known_to_be(level, since);
                    self.candidate = Some(candidate);
                }
                if step {
                    return self.report(at, candidate, SETTLED, ground);
                }
            }
            Seems::Here => {
                self.candidate = None;
                return None;
            }
            Seems::Nowhere => {}
        }
        let tolerance = ground.detection.tolerance();
        let lasted = at.saturating_sub(candidate.since) >= ground.hold;
        let falls = candidate.base < held.base;
        let proven = candidate.since.saturating_sub(held.since) >= ground.hold;
        let calm = self.calm(held, candidate, ground);
        // One window of noisy samples does not show the new level.
        let exact = u32::from(candidate.samples) >= SETTLED || held.spread() * QUIET <= tolerance;
        let path = lasted || calm || (ground.alone() && falls && proven && exact);
        // The jitter limits how well the difference of two levels is known.
        let apart = (candidate.base - held.base).abs() > tolerance + 2 * held.spread();
        if candidate.evidence < SURE || !path || !apart {
            return None;
        }
        self.report(at, candidate, 1, ground)
    }

    /// Whether a quiet flow without other flows moved there at once and has been as quiet there for long
    /// enough: packets in a queue have jitter.
    fn calm(&self, held: Held, candidate: Candidate, ground: &Ground<'_>) -> bool {
        let tolerance = ground.detection.tolerance();
        let there = |&(at, _): &(i64, i64)| at >= candidate.since;
        let samples = || self.recent.newest_first().take_while(there).map(|s| s.1);
        let centre = candidate.base + held.lift();
        let off = |sample: i64| (sample - centre).abs().min(tolerance / 4);
        let count = samples().map(|_| 1).sum::<i64>();
        let quiet = 2 * held.spread() * QUIET <= tolerance
            && 2 * samples().map(off).sum::<i64>() <= 3 * count * held.width(tolerance);
        let is_alone = ground.flows < HARDLY_ANY;
        let enough = if is_alone { CALM_ALONE } else { CALM };
        ground.alone() && !candidate.slope && quiet && count >= enough
    }

    /// Moves the flow to the candidate's level, with this many samples.
    fn report(
        &mut self,
        at: i64,
        candidate: Candidate,
        samples: u32,
        ground: &mut Ground<'_>,
    ) -> Option<LevelDetection> {
        let held = self.held?;
        let tolerance = ground.detection.tolerance();
        // A young level is not known well: one that its jitter can explain is the same.
        let close = tolerance + 3 * held.spread();
        let doubtful = !held.proven || (candidate.base - held.base).abs() <= close;
        let unsettled = held.samples < SETTLED && doubtful;
        let falls = candidate.base < held.base;
        let proven = candidate.since.saturating_sub(held.since) >= ground.hold;
        let known = ground.levels.known(candidate.base);
        let calm = self.calm(held, candidate, ground);
        let correction = unsettled || (falls && !proven && !known && !calm);
        self.leave(ground.levels, at);
        self.held = Some(held.moved(candidate.base, candidate.since, samples));
        self.candidate = None;
        let kinds = [Finding::Change, Finding::Correction];
        Some(LevelDetection {
            finding: kinds[usize::from(correction)],
            at: candidate.since,
            certain: at,
            before: Some(held.base),
            after: candidate.base,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_takes_at_most_250_bytes() {
        let all = size_of::<Option<FlowLevel>>();
        assert!(all <= 250, "{all}");
    }
}
