//! Which way a flow's path changed, by the peer's stamps.
//!
//! The two clocks' offset is not known, so a one-way time says nothing; but it does not change by
//! much from one message of a flow to the next. So what is compared is the latest that came as the
//! old base latency says with what came as the new one says: offset and drift drop out. What is
//! taken of each message is its skew: by how much its way there is longer than half its round trip.
//! Jitter of both ways is in it with half its size. The change of the skew and that of the base
//! latency together are what each way moved by.

use std::num::NonZeroU8;

use neph_model::{AtPeer, Instant, Own, Span};

use crate::direction::Direction;

/// So many messages share in the mean.
const SHARING: u8 = 8;
/// And so many in how far messages lie from it; as many are as much as the mean is worth.
const MOST: u8 = 12;
/// From fewer than these it is not known how far messages of a flow lie from each other.
const LEAST: u8 = 4;
/// The standard deviation of what is normal over its mean deviation.
const TO_DEVIATION: f64 = 1.253_314;
/// A way is said to have moved where it did so by so many standard errors more than it must.
const SURE: f64 = 3.0;
/// And not to have moved where it did so by so many less: rarely do both ways move at once.
const LIKELY: f64 = 1.0;
/// What moved by less than the other way divided by this has not moved.
const SMALL: i64 = 4;
/// Where messages of a flow are farther apart, clocks drift too much between them for a direction.
const FARTHEST: Span = Span::from_secs(5);

/// Beyond this, nanoseconds, no clock is: what a peer or a damaged file tells is brought back to
/// it, so that differences and means of such times are numbers still.
const FAR: i64 = i64::MAX / 4;

/// The skew of the latest messages of one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skew {
    /// When their requests left, in the mean, nanoseconds.
    at: i64,
    /// In the mean, the clocks' offset included, nanoseconds.
    mean: i64,
    /// How far they lie from it, in the mean, nanoseconds.
    spread: u32,
    /// How many went into it, up to [`MOST`].
    seen: NonZeroU8,
}

impl Skew {
    /// Of one message: when it left, its round trip, what the peer tells.
    pub(crate) fn of(sent: Instant<Own>, round_trip: Span, peer: &AtPeer) -> Self {
        let sent = sent.nanos().clamp(-FAR, FAR);
        let there = peer.rx.nanos().saturating_sub(sent);
        let half = round_trip.nanos() / 2;
        Self {
            at: sent,
            mean: there.saturating_sub(half).clamp(-FAR, FAR),
            spread: 0,
            seen: NonZeroU8::MIN,
        }
    }

    /// When their requests left, in the mean.
    pub(crate) const fn at(&self) -> Instant<Own> {
        Instant::from_nanos(self.at)
    }

    /// How far a later message is from these, the clocks' drift apart.
    fn off(&self, later: &Self, drift: Drift) -> i64 {
        let moved = later.mean - self.mean;
        moved.saturating_sub(drift.over(later.at - self.at))
    }

    /// A further message of the same level.
    pub(crate) fn merge(&mut self, later: &Self, drift: Drift) {
        let off = self.off(later, drift).unsigned_abs();
        let off = u32::try_from(off).unwrap_or(u32::MAX);
        let before = u32::from(self.seen.get());
        let (above, below) = (
            off.saturating_sub(self.spread),
            self.spread.saturating_sub(off),
        );
        self.spread = self.spread + above / before - below / before;
        if self.seen.get() < MOST {
            self.seen = self.seen.saturating_add(1);
        }
        let seen = i64::from(self.seen.get().min(SHARING));
        self.at += (later.at - self.at) / seen;
        self.mean += (later.mean - self.mean) / seen;
    }

    /// The flow's messages lay that far from each other before.
    pub(crate) fn inherit(&mut self, before: &Self) {
        self.spread = self.spread.max(before.spread);
    }
}

/// How fast the peer's clock runs away from ours: what the skews of all flows that stay on their
/// paths have in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drift {
    /// Nanoseconds a second.
    rate: i64,
    /// From how many messages it was learnt, up to [`INERTIA`].
    learnt: i64,
}

/// A single step changes the rate by this at most, nanoseconds a second: jitter is no drift.
const LARGEST_STEP: i64 = 100_000;
/// A step counts as one of so many.
const INERTIA: i64 = 256;
/// The rate itself changes by so much, nanoseconds a second.
const UNSTEADY: i64 = 5_000;

impl Drift {
    /// From a flow's messages on its path to the next.
    pub(crate) fn learn(&mut self, known: &Skew, later: &Skew) {
        let between = later.at - known.at;
        // From below a millisecond nobody learns how fast a clock is.
        if between < 1_000_000 {
            return;
        }
        let rate = i128::from(later.mean - known.mean) * 1_000_000_000 / i128::from(between);
        let off = i64::try_from(rate)
            .unwrap_or(i64::MAX)
            .saturating_sub(self.rate);
        self.learnt = (self.learnt + 1).min(INERTIA);
        self.rate += off.clamp(-LARGEST_STEP, LARGEST_STEP) / INERTIA;
    }

    /// By how much skews differ after this long, nanoseconds.
    fn over(self, between: i64) -> i64 {
        by_second(self.rate, between)
    }

    /// What that may be wrong by.
    fn doubt(self, between: i64) -> i64 {
        by_second(
            UNSTEADY + LARGEST_STEP * (INERTIA - self.learnt) / INERTIA,
            between,
        )
    }
}

/// So many nanoseconds a second, after this long.
fn by_second(rate: i64, between: i64) -> i64 {
    let moved = i128::from(rate) * i128::from(between) / 1_000_000_000;
    i64::try_from(moved).unwrap_or(0)
}

/// A change of a flow's base latency, as far as its direction rests on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) before: Span,
    pub(crate) after: Span,
    pub(crate) tolerance: Span,
    /// Time between two messages of the flow.
    pub(crate) interval: Span,
}

/// What a way did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Moved,
    Stayed,
}

/// Which way moved by more than half of what counts as a change of both together; nothing where the
/// flow's own jitter could have the one or the other.
pub(crate) fn direction(old: &Skew, new: &Skew, step: &Step, drift: Drift) -> Option<Direction> {
    let known = old.seen.get() + new.seen.get();
    if step.interval > FARTHEST || known < LEAST + 2 {
        return None;
    }
    let drifted = drift.doubt((new.at - old.at).abs());
    let doubt = |errors: f64| error(old, new, errors).saturating_add(drifted);
    let (sure, likely) = (doubt(SURE), doubt(LIKELY));
    let off = old.off(new, drift);
    let half = (step.after - step.before).nanos() / 2;
    let (there, back) = (half.saturating_add(off), half.saturating_sub(off));
    let greatest = there.saturating_abs().max(back.saturating_abs());
    let least = (step.tolerance.nanos() / 2).max(greatest / SMALL);
    let way = |moved: i64| {
        let moved = moved.saturating_abs();
        let (has_moved, has_stayed) = (
            moved.saturating_sub(sure) > least,
            moved.saturating_add(likely) <= least,
        );
        (has_moved || has_stayed).then_some(if has_moved { Way::Moved } else { Way::Stayed })
    };
    match (way(there)?, way(back)?) {
        (Way::Moved, Way::Moved) => Some(Direction::Both),
        (Way::Moved, Way::Stayed) => Some(Direction::Forward),
        (Way::Stayed, Way::Moved) => Some(Direction::Reverse),
        (Way::Stayed, Way::Stayed) => None,
    }
}

/// So many standard errors of the difference of two means, nanoseconds: by the wider spread of both,
/// for a few messages lie near each other by chance.
fn error(old: &Skew, new: &Skew, errors: f64) -> i64 {
    let deviation = f64::from(old.spread.max(new.spread)) * TO_DEVIATION;
    let part = |skew: &Skew| 1.0 / f64::from(skew.seen.get());
    let error = errors * deviation * (part(old) + part(new)).sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "below a minute")]
    let error = error.ceil() as i64;
    error
}

#[cfg(test)]
mod tests;
