//! The second stage, for one flow: whether a level that the rule sees is its new base latency.
//!
//! The source's rule proposes a level as soon as a window is stable more than the tolerance away, and
//! so does a window of which a quorum lies that far. That is a [`Candidate`] here, and begins a
//! question: where did the last samples come from ([`choose`])?
//!
//! - From the flow's own level: there is no candidate.
//! - From a path that other flows are or lately were on ([`Levels::paths`]): told as soon as these
//!   samples speak for it more than the flow's jitter could in years ([`SURE_OF_PATH`]). On a quiet
//!   link four samples are enough, with a jitter of half the difference it takes a dozen. A flow that
//!   came there by degrees, as a growing queue makes it, has to stay for the hold time, and so has
//!   one whose old level was left by all flows that were there, by degrees: that path has a queue.
//! - From nowhere that is known: the level must last for the hold time.
//!
//! Few flows have little company: paths are then levels that one flow has lasted at. A quiet flow that
//! came to its level at once and is as quiet there is believed after some samples; any flow a fall from
//! a level that has lasted, as soon as it is exact: no congestion makes latency fall below its base.
//!
//! If the flow goes back before, the candidate is withdrawn and the base never was another.

use crate::base_latency::{Detection, Stable};
use crate::candidate::{Candidate, strayed};
use crate::congestion::LEAST_CROWD;
use crate::drift::Drift;
use crate::held::{Held, SETTLED};
use crate::jitter_shape::JitterShape;
use crate::levels::{Levels, Seat};
use crate::path_choice::{MOST, Place, choose};
use crate::recent::{KEPT, Recent};

/// The evidence that decides, a natural logarithm: e^25 to one.
const SURE: f32 = 25.0;
/// The evidence that decides for a known path.
const SURE_OF_PATH: f64 = 21.0;
/// The evidence that samples came by a known path and not from somewhere else.
const OVER_NOWHERE: f64 = 4.0;
/// A flow whose spread is at most the tolerance divided by this is quiet: a window tells its level.
const QUIET: i64 = 8;
/// After how many samples a quiet flow's new level is believed, and where hardly any other flow is.
const CALM: i64 = 12;
const CALM_ALONE: i64 = 8;
/// Fewer flows than these are hardly any.
const HARDLY_ANY: usize = 4;

/// What was found about a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Its first base latency.
    First,
    /// Its path changed: the base latency became another.
    Change,
    /// The base told before was not one: it was met during congestion, or by too few samples. The
    /// base since then is this one.
    Correction,
}

/// A base latency without the drift of all flows, and how it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// What was found.
    pub finding: Finding,
    /// When the first sample at the new level was sent, nanoseconds of the caller's clock.
    pub at: i64,
    /// When the sample was sent that made it certain.
    pub certain: i64,
    /// The base before, as exactly as it was known at its end; `None` for the first.
    pub before: Option<i64>,
    /// The base since `at`, as far as it was known when it was told.
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
    /// From the level that it has.
    Here,
    /// From another that is known, since then.
    Path { level: i64, since: i64 },
    /// It is not known.
    Nowhere,
}

/// What a decision rests on besides the flow itself.
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
    /// Whether there are too few flows to say what they share at a moment.
    fn alone(&self) -> bool {
        self.flows < LEAST_CROWD
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

    /// The base as exactly as it is known.
    pub(crate) fn base(&self) -> Option<i64> {
        self.held.map(|held| held.base)
    }

    /// Whether a sample lies further from the level than paths do that are one.
    pub(crate) fn is_astray(&self, sample: i64, tolerance: i64) -> bool {
        self.held.is_some_and(|held| held.is_far(sample, tolerance))
    }

    /// What came before is not to be seen together with what comes.
    pub(crate) fn gap(&mut self) {
        self.recent.clear();
    }

    /// The flow is over.
    pub(crate) fn leave(&mut self, levels: &mut Levels, at: i64) {
        if let Some(seat) = self.held.as_mut().and_then(|held| held.seat.take()) {
            levels.leave(seat, at);
        }
    }

    /// All flows moved by the same amount and stayed: so did this one.
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

    /// Takes the next sample without what it shares with all flows.
    pub(crate) fn push(&mut self, at: i64, sample: i64, ground: &mut Ground<'_>) -> Option<Told> {
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

    fn first(&mut self, at: i64, stable: Stable, tolerance: i64) -> Told {
        let since = self
            .recent
            .ago(stable.since.into())
            .map_or(at, |(at, _)| at);
        self.held = Some(Held::first(stable.minimum, since, tolerance));
        Told {
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

    /// Where the last samples came from, if that is sure.
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
        if places.len() > MOST - 1 {
            // There is room for those that it may be, and for the candidate.
            places[1..].sort_by_key(|path| (path.level - candidate.base).abs());
            places.truncate(MOST - 1);
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
        // No two changes of a flow have one date.
        let earliest = held.since.saturating_add(1);
        let since = own[choice.ago].0.max(earliest);
        if choice.ago + 1 < own.len() {
            return Seems::Path { level, since };
        }
        // It began before all that is kept: the candidate may know when.
        if (candidate.base - level).abs() <= tolerance {
            let since = since.min(candidate.since).max(earliest);
            return Seems::Path { level, since };
        }
        if own.len() < KEPT {
            return Seems::Path { level, since };
        }
        Seems::Nowhere
    }

    /// Tells the candidate if it may be told now.
    fn judge(&mut self, at: i64, ground: &mut Ground<'_>) -> Option<Told> {
        let (held, mut candidate) = (self.held?, self.candidate?);
        match self.seems(held, candidate, at, ground) {
            Seems::Path { level, since } => {
                let step = !candidate.slope && !ground.levels.congested(held.base, at);
                if step || (candidate.base - level).abs() > ground.detection.tolerance() {
                    candidate = candidate.known_to_be(level, since);
                    self.candidate = Some(candidate);
                }
                if step {
                    return self.tell(at, candidate, SETTLED, ground);
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
        // One window of noisy samples does not tell where the new level is.
        let exact = u32::from(candidate.samples) >= SETTLED || held.spread() * QUIET <= tolerance;
        let path = lasted || calm || (ground.alone() && falls && proven && exact);
        // How far apart two levels are is known no better than the jitter allows.
        let apart = (candidate.base - held.base).abs() > tolerance + 2 * held.spread();
        if candidate.evidence < SURE || !path || !apart {
            return None;
        }
        self.tell(at, candidate, 1, ground)
    }

    /// Whether a quiet flow that has no company came there at once and has been as quiet there, for as
    /// long as it takes to say that: packets that wait in a queue jitter.
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

    /// The flow is at the candidate's level, which is known as if from so many samples.
    fn tell(
        &mut self,
        at: i64,
        candidate: Candidate,
        samples: u32,
        ground: &mut Ground<'_>,
    ) -> Option<Told> {
        let held = self.held?;
        let tolerance = ground.detection.tolerance();
        // A level that is young is not known well: one that its jitter can explain is the same.
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
        let finding = if correction {
            Finding::Correction
        } else {
            Finding::Change
        };
        Some(Told {
            finding,
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
