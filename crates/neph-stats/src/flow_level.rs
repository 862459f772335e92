//! The second stage, for one flow: whether a level that the source's rule sees is told as the flow's
//! new base latency.
//!
//! The source's rule proposes a level as soon as a window is stable more than the tolerance away.
//! That is a candidate here. It is told when two things hold:
//!
//! 1. The samples since it began speak for it more than this flow's own jitter could in years: the
//!    sum of log likelihood ratios of the two levels passes [`SURE`]. The density is one with a
//!    heavy tail, as wide as the flow's jitter is. On a quiet link four samples are enough, on one
//!    with a jitter of half the difference it takes a dozen.
//! 2. It is a path: other flows are or were at that level ([`Levels::known`]), or the level lasts
//!    for the hold time. A flow that came there by degrees, as a growing queue makes it, has to
//!    stay for the hold time too, and so has one whose old level was left by all flows that were
//!    there, by degrees: that path has a queue.
//!
//! Too few flows to have company are believed a fall at once, from a level that has lasted: no
//! congestion makes latency fall below its base.
//!
//! If the flow goes back before, the candidate is withdrawn and the base never was another.

use crate::base_latency::{Detection, Stable, Window};
use crate::levels::{Levels, Seat};
use crate::real::real_nanos;

/// The evidence that decides, a natural logarithm: e^25 to one.
const SURE: f64 = 25.0;
/// Evidence above this is not collected, so that a return is noticed.
const MOST: f64 = 35.0;
/// The weight of the tail: the density falls with this power of the distance.
const TAIL: f64 = 3.0;
/// Samples after which averages forget.
const LONGEST_MEMORY: i64 = 64;
/// Samples at a level before it counts for other flows, and before a change from it is believed.
const SETTLED: u32 = 16;
/// Samples on the way that make a step a slope.
const SLOPE: usize = 3;
/// How many windows back a level may have begun.
const PAST: usize = 3;

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

/// A base latency, and how it was found.
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

/// The level that a flow is at.
#[derive(Debug, Clone, Copy)]
struct Held {
    base: i64,
    since: i64,
    samples: u32,
    /// Whether it was told on evidence, or is just the first stable window.
    proven: bool,
    /// Samples from which the flow's jitter was learnt, at this level and those before.
    learnt: u32,
    /// How far samples lie above the base on average.
    lift: i64,
    /// How far they lie from base and lift on average.
    spread: i64,
}

/// A level that it may have moved to.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    base: i64,
    since: i64,
    samples: i32,
    evidence: f64,
    slope: bool,
}

/// One flow's level. About 200 bytes.
#[derive(Debug, Clone)]
pub(crate) struct FlowLevel {
    samples: Window,
    /// What came lately, for finding the sample with which a level began.
    past: Past,
    held: Option<Held>,
    candidate: Option<Candidate>,
    seat: Option<Seat>,
}

/// What a decision rests on besides the flow itself.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) detection: &'a Detection,
    pub(crate) hold: i64,
    pub(crate) levels: &'a mut Levels,
    /// Whether there are too few flows to say what they share.
    pub(crate) alone: bool,
}

impl FlowLevel {
    pub(crate) fn new(detection: &Detection) -> Self {
        Self {
            samples: Window::new(detection),
            past: Past::new(PAST * detection.window()),
            held: None,
            candidate: None,
            seat: None,
        }
    }

    /// The base as exactly as it is known.
    pub(crate) fn base(&self) -> Option<i64> {
        self.held.map(|held| held.base)
    }

    /// What came before is not to be seen together with what comes.
    pub(crate) fn gap(&mut self) {
        self.samples.clear();
        self.past.clear();
    }

    /// The flow is over.
    pub(crate) fn leave(&mut self, levels: &mut Levels, at: i64) {
        if let Some(seat) = self.seat.take() {
            levels.leave(seat, at);
        }
    }

    /// All flows moved by the same amount and stayed: so did this one.
    pub(crate) fn shift(&mut self, by: i64, seat: impl Fn(Seat) -> Seat) {
        self.gap();
        self.seat = self.seat.map(seat);
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
        self.samples.push(sample);
        self.past.push(at, sample);
        let stable = self.samples.stable(ground.detection);
        if self.held.is_none() {
            return Some(self.first(at, stable?, ground.detection.tolerance()));
        }
        if let (Some(seat), Some(held)) = (self.seat, self.held) {
            let distance = (sample - held.base - held.lift).abs();
            let stayed = distance <= ground.detection.tolerance();
            ground.levels.saw(seat, at, sample - held.lift, stayed);
        }
        if self.candidate.is_none() {
            self.learn(at, stable, ground);
        }
        self.weigh(sample, stable, ground.detection);
        self.judge(at, ground)
    }

    fn first(&mut self, at: i64, stable: Stable, tolerance: i64) -> Told {
        let since = self.past.ago(stable.since.into()).map_or(at, |(at, _)| at);
        self.held = Some(Held {
            base: stable.minimum,
            since,
            samples: 0,
            proven: false,
            learnt: 0,
            lift: 0,
            spread: tolerance / 4,
        });
        Told {
            finding: Finding::First,
            at: since,
            certain: at,
            before: None,
            after: stable.minimum,
        }
    }

    /// The level becomes more exact while nothing speaks against it. Jitter is learnt from the
    /// oldest sample of the window: the newest may belong to the next level already.
    fn learn(&mut self, at: i64, stable: Option<Stable>, ground: &mut Ground<'_>) {
        let tolerance = ground.detection.tolerance();
        let (Some(held), Some(sample)) = (self.held.as_mut(), self.samples.oldest()) else {
            return;
        };
        held.samples = held.samples.saturating_add(1);
        held.learnt = held.learnt.saturating_add(1);
        let memory = i64::from(held.learnt).min(LONGEST_MEMORY);
        let lift = (sample - held.base).clamp(-tolerance, tolerance);
        held.lift += (lift - held.lift) / memory;
        let spread = (sample - held.base - held.lift).abs().min(2 * tolerance);
        // The first samples are not believed too much: two that happen to be equal are no silence.
        held.spread += (spread - held.spread) / (memory + 2).min(LONGEST_MEMORY);
        if let Some(stable) = stable {
            let off = stable.minimum - held.base;
            if off.abs() <= tolerance {
                let step = off / i64::from(held.samples).min(LONGEST_MEMORY);
                held.base += step;
                // Samples lie as far above as before: what moved is our idea of the base.
                held.lift -= step;
            }
        }
        let (base, samples) = (held.base, held.samples);
        self.take_seat(at, base, samples, ground.levels);
    }

    fn take_seat(&mut self, at: i64, base: i64, samples: u32, levels: &mut Levels) {
        match self.seat {
            None if samples >= SETTLED => self.seat = Some(levels.sit(base, at)),
            Some(seat) if samples.is_multiple_of(64) && !levels.fits(seat, base) => {
                levels.leave(seat, at);
                self.seat = Some(levels.sit(base, at));
            }
            _ => {}
        }
    }

    /// Finds, strengthens, moves or withdraws the candidate.
    fn weigh(&mut self, sample: i64, stable: Option<Stable>, detection: &Detection) {
        let Some(held) = self.held else { return };
        let tolerance = detection.tolerance();
        let far = |a: i64, b: i64| (a - b).abs() > tolerance;
        if let Some(candidate) = self.candidate.as_mut() {
            candidate.evidence += held.speaks_for(candidate.base, sample, tolerance);
            candidate.evidence = candidate.evidence.min(MOST);
            if candidate.evidence <= 0.0 {
                self.candidate = None;
            }
        }
        let near = |a: i64, b: i64| (a - b).abs() <= tolerance.saturating_add(3 * held.spread);
        let Some(stable) = stable.filter(|s| far(s.minimum, held.base)) else {
            return;
        };
        match self.candidate.as_mut() {
            Some(candidate) if near(stable.minimum, candidate.base) => {
                candidate.samples += 1;
                candidate.base += (stable.minimum - candidate.base) / i64::from(candidate.samples);
                if !far(candidate.base, held.base) {
                    self.candidate = None;
                }
            }
            _ => self.candidate = Some(self.propose(stable, held, tolerance)),
        }
    }

    /// The candidate that a stable window proposes. It began with the sample from which on the
    /// evidence for it is greatest.
    fn propose(&self, stable: Stable, held: Held, tolerance: i64) -> Candidate {
        let (mut sum, mut evidence, mut began) = (0.0, 0.0, 0);
        let here = |&(at, _): &(i64, i64)| at >= held.since;
        for (ago, (_, sample)) in self.past.newest_first().take_while(here).enumerate() {
            sum += held.speaks_for(stable.minimum, sample, tolerance);
            if sum > evidence {
                (evidence, began) = (sum, ago);
            }
        }
        let between = |&(_, sample): &(i64, i64)| {
            let own = sample - held.lift;
            let (low, high) = (held.base.min(stable.minimum), held.base.max(stable.minimum));
            low + tolerance < own && own < high - tolerance
        };
        let on_the_way = self
            .past
            .newest_first()
            .take_while(here)
            .skip(began)
            .filter(between)
            .count();
        Candidate {
            base: stable.minimum,
            since: self.past.ago(began).map_or(held.since, |(at, _)| at),
            samples: 1,
            evidence: evidence.min(MOST),
            slope: on_the_way >= SLOPE,
        }
    }

    /// Tells the candidate if it may be told now.
    fn judge(&mut self, at: i64, ground: &mut Ground<'_>) -> Option<Told> {
        let (held, candidate) = (self.held?, self.candidate?);
        let tolerance = ground.detection.tolerance();
        // A level that is young is not known well: one that its jitter can explain is the same.
        let close = tolerance + 3 * held.spread;
        let doubtful = !held.proven || (candidate.base - held.base).abs() <= close;
        let unsettled = held.samples < SETTLED && doubtful;
        let lasted = at.saturating_sub(candidate.since) >= ground.hold;
        let falls = candidate.base < held.base;
        let proven = candidate.since.saturating_sub(held.since) >= ground.hold;
        let step = !candidate.slope && !ground.levels.congested(held.base, at);
        let path = lasted
            || (ground.alone && falls && proven)
            || (step && ground.levels.known(candidate.base));
        // How far apart two levels are is known no better than the jitter allows.
        let apart = (candidate.base - held.base).abs() > tolerance + held.spread;
        if candidate.evidence < SURE || !path || !apart {
            return None;
        }
        let known = ground.levels.known(candidate.base);
        let correction = unsettled || (falls && !proven && !known);
        self.leave(ground.levels, at);
        self.held = Some(Held {
            base: candidate.base,
            since: candidate.since,
            samples: 1,
            proven: true,
            ..held
        });
        self.candidate = None;
        Some(Told {
            finding: if correction {
                Finding::Correction
            } else {
                Finding::Change
            },
            at: candidate.since,
            certain: at,
            before: Some(held.base),
            after: candidate.base,
        })
    }
}

impl Held {
    /// How much more a sample speaks for `other` than for this level: a logarithm.
    fn speaks_for(&self, other: i64, sample: i64, tolerance: i64) -> f64 {
        let width = 1.5 * real_nanos(self.spread.max(tolerance / 25));
        let distance = |base: i64| {
            let distance = sample.saturating_sub(base).saturating_sub(self.lift);
            distance.saturating_abs()
        };
        let density = |distance: i64| (real_nanos(distance) / width).ln_1p();
        let evidence = TAIL * (density(distance(self.base)) - density(distance(other)));
        if distance(other) > tolerance.saturating_add(3 * self.spread) {
            // It lies at neither level: a queue on the way up speaks for no path.
            return evidence.min(-TAIL);
        }
        evidence
    }
}

/// The last samples with their times.
#[derive(Debug, Clone)]
struct Past {
    ring: Box<[(i64, i64)]>,
    next: usize,
    held: usize,
}

impl Past {
    fn new(size: usize) -> Self {
        Self {
            ring: vec![(0, 0); size].into_boxed_slice(),
            next: 0,
            held: 0,
        }
    }

    fn push(&mut self, at: i64, sample: i64) {
        self.ring[self.next] = (at, sample);
        self.next = (self.next + 1) % self.ring.len();
        self.held = (self.held + 1).min(self.ring.len());
    }

    fn clear(&mut self) {
        (self.next, self.held) = (0, 0);
    }

    fn ago(&self, ago: usize) -> Option<(i64, i64)> {
        let size = self.ring.len();
        (ago < self.held).then(|| self.ring[(self.next + size - 1 - ago) % size])
    }

    fn newest_first(&self) -> impl Iterator<Item = (i64, i64)> {
        (0..self.held).filter_map(|ago| self.ago(ago))
    }
}
