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
//!    stay for the hold time too.
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
const SLOPE: u32 = 3;

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
    times: Window,
    held: Option<Held>,
    candidate: Option<Candidate>,
    /// Samples since the last that was near the level.
    away: u32,
    seat: Option<Seat>,
}

/// What a decision rests on besides the flow itself.
#[derive(Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) detection: &'a Detection,
    pub(crate) hold: i64,
    pub(crate) levels: &'a mut Levels,
}

impl FlowLevel {
    pub(crate) fn new(detection: &Detection) -> Self {
        Self {
            samples: Window::new(detection),
            times: Window::new(detection),
            held: None,
            candidate: None,
            away: 0,
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
        self.times.clear();
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
        self.times.push(at);
        let stable = self.samples.stable(ground.detection);
        let Some(held) = self.held else {
            return Some(self.first(at, stable?));
        };
        let tolerance = ground.detection.tolerance();
        let near = (sample - held.base).abs() <= tolerance;
        self.away = if near { 0 } else { self.away.saturating_add(1) };
        if self.candidate.is_none() {
            self.learn(at, sample, stable, ground);
        }
        self.weigh(sample, stable, ground.detection);
        self.judge(at, ground)
    }

    fn first(&mut self, at: i64, stable: Stable) -> Told {
        let since = self.times.ago(stable.since);
        self.held = Some(Held {
            base: stable.minimum,
            since,
            samples: 0,
            lift: 0,
            spread: 0,
        });
        Told {
            finding: Finding::First,
            at: since,
            certain: at,
            before: None,
            after: stable.minimum,
        }
    }

    /// The level becomes more exact while nothing speaks against it.
    fn learn(&mut self, at: i64, sample: i64, stable: Option<Stable>, ground: &mut Ground<'_>) {
        let tolerance = ground.detection.tolerance();
        let Some(held) = self.held.as_mut() else {
            return;
        };
        held.samples = held.samples.saturating_add(1);
        let memory = i64::from(held.samples).min(LONGEST_MEMORY);
        let lift = (sample - held.base).clamp(-tolerance, 2 * tolerance);
        held.lift += (lift - held.lift) / memory;
        let spread = (sample - held.base - held.lift).abs().min(4 * tolerance);
        // The first samples are not believed too much: two that happen to be equal are no silence.
        held.spread += (spread - held.spread) / (memory + 2).min(LONGEST_MEMORY);
        if held.samples == 1 {
            held.spread = tolerance / 4;
        }
        if let Some(stable) = stable {
            let off = stable.minimum - held.base;
            if off.abs() <= tolerance {
                held.base += off / memory;
                // Samples lie as far above as before: what moved is our idea of the base.
                held.lift -= off / memory;
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
        let Some(stable) = stable.filter(|s| far(s.minimum, held.base)) else {
            return;
        };
        match self.candidate.as_mut() {
            Some(candidate) if !far(stable.minimum, candidate.base) => {
                candidate.samples += 1;
                candidate.base += (stable.minimum - candidate.base) / i64::from(candidate.samples);
                if !far(candidate.base, held.base) {
                    self.candidate = None;
                }
            }
            _ => self.candidate = Some(self.propose(stable, held, tolerance)),
        }
    }

    /// The candidate that a stable window proposes, with the evidence that is in the window.
    fn propose(&self, stable: Stable, held: Held, tolerance: i64) -> Candidate {
        let nearer = |&ago: &u8| {
            let sample = self.samples.ago(ago) - held.lift;
            (sample - stable.minimum).abs() < (sample - held.base).abs()
        };
        let supporters: Vec<u8> = (0..=stable.since).filter(nearer).collect();
        let speaks = |&ago: &u8| held.speaks_for(stable.minimum, self.samples.ago(ago), tolerance);
        let ago = supporters.last().copied().unwrap_or(0);
        let on_the_way = self.away.saturating_sub(u32::from(ago) + 1);
        Candidate {
            base: stable.minimum,
            since: self.times.ago(ago),
            samples: 1,
            evidence: supporters.iter().map(speaks).sum::<f64>().min(MOST),
            slope: on_the_way >= SLOPE,
        }
    }

    /// Tells the candidate if it may be told now.
    fn judge(&mut self, at: i64, ground: &mut Ground<'_>) -> Option<Told> {
        let (held, candidate) = (self.held?, self.candidate?);
        let unsettled = held.samples < SETTLED;
        let lasted = at.saturating_sub(candidate.since) >= ground.hold;
        let falls = candidate.base < held.base;
        let proven = candidate.since.saturating_sub(held.since) >= ground.hold;
        let path = lasted
            || (falls && proven)
            || (!candidate.slope && ground.levels.known(candidate.base));
        if candidate.evidence < SURE || !path {
            return None;
        }
        let known = ground.levels.known(candidate.base);
        let correction = unsettled || (falls && !proven && !known);
        self.leave(ground.levels, at);
        self.held = Some(Held {
            base: candidate.base,
            since: candidate.since,
            samples: 1,
            ..held
        });
        (self.candidate, self.away) = (None, 0);
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
        let from = |base: i64| {
            let distance = sample.saturating_sub(base).saturating_sub(self.lift);
            (real_nanos(distance.saturating_abs()) / width).ln_1p()
        };
        TAIL * (from(self.base) - from(other))
    }
}
