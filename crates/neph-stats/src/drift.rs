//! The slow part that all flows of a fleet share: a host that warms up, a long line in the sun.
//!
//! Owns how much it is by now, and how much it was shortly before. Queues, which come faster, are
//! `congestion.rs`'s; which samples speak of a flow's level is `flow_level.rs`'s.
//!
//! Samples are gathered for a second or more. How far they lie from their flows' levels on average moves
//! a loop of the second order (Gardner, "Phaselock Techniques", 2005, chapter 2): a steady slope leaves
//! no error behind, so that levels stay what they were. A path change of one flow hardly moves it, and
//! where many lie far from their levels it waits.

use std::collections::VecDeque;

use crate::congestion::LEAST_CROWD;
use crate::real::{nanos, real_nanos};

/// How long samples are gathered for one look at least, nanoseconds, and of each flow how many: a
/// flow's sample speaks when the next ones have come, and a loop must be slow beside its delay.
const LOOK: i64 = 1_000_000_000;
const OF_EACH: usize = 4;
/// Looks until a new slope is followed: so many if looks differ by the tolerance, fewer if they differ
/// by less, and never fewer than these.
const NOISIEST_LOOP: f64 = 60.0;
const SHORTEST_LOOP: f64 = 3.0;
/// If looks differ by more than this part of the tolerance, no slope is followed: a flow that jitters
/// and has no company would take its jitter for one.
const NOISIEST: f64 = 1.0 / 8.0;
/// Looks over which the noise is averaged.
const NOISE_MEMORY: f64 = 30.0;
/// The steepest slope is the tolerance in so many looks. Anything faster is a queue.
const STEEPEST: f64 = 5.0;
/// A look of which one sample in so many lay far from its flow's level says nothing: flows change their
/// paths, or wait in a queue. Without a crowd that would show the queue, fewer are enough.
const ASTRAY: usize = 2;
const ASTRAY_ALONE: usize = 3;
/// Looks in which a slope fades that nothing confirms.
const FADES: f64 = 30.0;
/// After so many looks in a row that a queue kept from speaking, it is taken for none.
const PAUSES: u32 = 30;
/// Looks that are remembered.
const REMEMBERED: usize = 64;

/// By how much all flows have drifted since the first sample.
#[derive(Debug)]
pub(crate) struct Drift {
    tolerance: f64,
    /// Nanoseconds.
    by: f64,
    /// Nanoseconds in a look.
    slope: f64,
    /// How far looks are off by chance, nanoseconds, and how many of them showed it.
    noise: f64,
    looks: f64,
    look: Look,
    /// Looks that begin before this say nothing, and how many did so in a row.
    queued: i64,
    paused: u32,
    /// When looks ended, and the drift until then.
    past: VecDeque<(i64, i64)>,
}

/// The samples of one look.
#[derive(Debug, Default)]
struct Look {
    /// When its first sample was sent.
    since: Option<i64>,
    seen: usize,
    /// How many of them lay far from their flow's level.
    astray: usize,
    /// How far those lay that spoke of their flow's level, in all, nanoseconds.
    sum: f64,
    squares: f64,
    spoke: f64,
}

impl Look {
    /// How far the flows lie from their levels on average, if that can be said.
    fn off(&self, flows: usize) -> Option<f64> {
        let part = if flows < LEAST_CROWD {
            ASTRAY_ALONE
        } else {
            ASTRAY
        };
        (self.spoke > 1.0 && part * self.astray < self.seen).then(|| self.sum / self.spoke)
    }

    /// How far that may be off by chance: the standard error of the average, nanoseconds.
    fn noise(&self) -> f64 {
        let squares = self.squares - self.sum * self.sum / self.spoke;
        (squares.max(0.0) / (self.spoke - 1.0) / self.spoke).sqrt()
    }
}

impl Drift {
    /// For levels that are told apart by more than `tolerance` nanoseconds.
    pub(crate) fn new(tolerance: i64) -> Self {
        Self {
            tolerance: real_nanos(tolerance),
            by: 0.0,
            slope: 0.0,
            noise: 0.0,
            looks: 0.0,
            look: Look::default(),
            queued: i64::MIN,
            paused: 0,
            past: VecDeque::new(),
        }
    }

    /// By how much by now, nanoseconds.
    pub(crate) fn now(&self) -> i64 {
        nanos(self.by)
    }

    /// By how much at a moment, as far back as is remembered, nanoseconds.
    pub(crate) fn at(&self, moment: i64) -> i64 {
        let next = self.past.partition_point(|&(until, _)| until < moment);
        let past = self.past.get(next);
        past.map_or_else(|| self.now(), |&(_, by)| by)
    }

    /// A sample of a flow that is at its level lies so far from where its samples do, nanoseconds. 0 on
    /// average while nothing drifts.
    pub(crate) fn learn(&mut self, aside: i64) {
        let aside = real_nanos(aside);
        self.look.sum += aside;
        self.look.squares += aside * aside;
        self.look.spoke += 1.0;
    }

    /// A queue stands that all flows share: what they show until then and shortly after is no drift.
    pub(crate) fn pause(&mut self, until: i64) {
        self.queued = until.saturating_add(LOOK);
    }

    /// One of so many flows had a sample that was sent at `at`. Ends the look if it was long enough.
    pub(crate) fn saw(&mut self, at: i64, is_astray: bool, flows: usize) {
        let look = &mut self.look;
        look.seen += 1;
        look.astray += usize::from(is_astray);
        let since = *look.since.get_or_insert(at);
        if at.saturating_sub(since) < LOOK || look.seen < OF_EACH * flows {
            return;
        }
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back((at, self.now()));
        let next = Look {
            since: Some(at),
            ..Look::default()
        };
        let look = std::mem::replace(&mut self.look, next);
        let is_paused = since < self.queued && self.paused < PAUSES;
        self.paused = if is_paused { self.paused + 1 } else { 0 };
        if is_paused || !self.follow(&look, flows) {
            self.slope *= 1.0 - 1.0 / FADES;
            self.by += self.slope;
        }
    }

    /// Whether the look said by how much.
    fn follow(&mut self, look: &Look, flows: usize) -> bool {
        let Some(off) = look.off(flows) else {
            return false;
        };
        self.looks = (self.looks + 1.0).min(NOISE_MEMORY);
        self.noise += (look.noise() - self.noise) / self.looks;
        let noise = self.noise / self.tolerance;
        if noise > NOISIEST {
            return false;
        }
        let steepest = self.tolerance / STEEPEST;
        let length = (NOISIEST_LOOP * noise).max(SHORTEST_LOOP);
        self.slope = (self.slope + off / (length * length)).clamp(-steepest, steepest);
        self.by += self.slope + off * 2.0 / length;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const US: i64 = 1_000;
    const MS: i64 = 1_000 * US;
    const S: i64 = 1_000 * MS;

    /// So many flows of 5 samples a second each lie `drifts(at)` above levels that stay, and up to
    /// `jitter` above or below that.
    fn followed(flows: i64, seconds: i64, drifts: impl Fn(i64) -> i64, jitter: i64) -> Drift {
        let mut random = Random::new(1);
        let mut drift = Drift::new(MS / 2);
        for number in 0..seconds * 5 * flows {
            let at = number * S / (5 * flows);
            let own = nanos(real_nanos(2 * jitter) * random.unit()) - jitter;
            let aside = drifts(at) + own - drift.now();
            let is_astray = aside.abs() > MS / 2;
            if !is_astray {
                drift.learn(aside);
            }
            drift.saw(at, is_astray, usize::try_from(flows).unwrap());
        }
        drift
    }

    fn slope(at: i64) -> i64 {
        at / 64_000
    }

    #[test]
    fn a_steady_slope_is_followed_without_an_error() {
        let drift = followed(16, 120, slope, 0);
        assert!((drift.now() - slope(120 * S)).abs() < 20 * US, "{drift:?}");
        let earlier = drift.at(100 * S);
        assert!((earlier - slope(100 * S)).abs() < 20 * US, "{earlier}");
    }

    #[test]
    fn jitter_alone_is_no_drift() {
        let drift = followed(16, 600, |_| 0, MS / 2);
        assert!(drift.now().abs() < 50 * US, "{drift:?}");
    }

    #[test]
    fn a_jump_of_all_flows_is_no_drift() {
        let jump = |at: i64| if at < 60 * S { 0 } else { 2 * MS };
        assert_eq!(followed(16, 90, jump, 0).now(), 0);
    }

    #[test]
    fn in_a_queue_the_slope_goes_on_and_fades() {
        let mut drift = followed(16, 60, slope, 0);
        let before = drift.now();
        drift.pause(80 * S);
        for number in 0..20 * 80 {
            drift.learn(MS / 4);
            drift.saw(60 * S + number * S / 80, false, 16);
        }
        let since = drift.now() - before;
        let all = slope(20 * S);
        assert!((all / 2..all).contains(&since), "{since} of {all}");
    }

    #[test]
    fn a_flow_that_jitters_and_has_no_company_is_not_followed() {
        let jitters = followed(1, 600, slope, MS / 2);
        assert!(jitters.now().abs() < 100 * US, "{jitters:?}");
        let quiet = followed(1, 600, slope, MS / 20);
        let off = quiet.now() - slope(600 * S);
        assert!(off.abs() < 100 * US, "{off}");
    }
}
