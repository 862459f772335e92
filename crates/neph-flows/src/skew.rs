//! The direction of a flow's path change, by the peer's timestamps.
//!
//! The offset of the clocks is unknown, but it changes little from one message of a flow to the next. So the
//! last messages before a change are compared with the first ones after it, and offset and drift cancel out.
//!
//! The skew of a message is its forward time minus half of its round trip; it contains half of the jitter of
//! both directions. The changes of skew and base latency give the change of each direction.

use std::num::NonZeroU8;

use neph_model::{Instant, Local, PeerReport, Span};

use crate::direction::Direction;

/// Number of messages in the mean.
const MAX_MEAN_WEIGHT: u8 = 8;
/// Number of messages in the spread; the mean has at most the weight of this many.
const MAX_MESSAGES: u8 = 12;
/// Minimum number of messages for a spread.
const MIN_MESSAGES: u8 = 4;
/// Ratio of standard deviation to mean deviation of a normal distribution.
const DEVIATION_RATIO: f64 = 1.253_314;
/// A direction has moved if it exceeds the required change by this many standard errors.
const ERRORS_IF_MOVED: f64 = 3.0;
/// It has not moved if it is below by this many: both directions rarely move at once.
const ERRORS_IF_STAYED: f64 = 1.0;
/// It has not moved if its change is below that of the other direction divided by this.
const SMALL_CHANGE_DIVISOR: i64 = 4;
/// Longest interval between a flow's messages: above it, clocks drift too much for a direction.
const MAX_INTERVAL: Span = Span::from_secs(5);

/// Limit of plausible times in nanoseconds. Times of a peer or a damaged file are clamped to it, so that
/// differences and means do not overflow.
const MAX_TIME_NANOS: i64 = i64::MAX / 4;

/// The skew of the latest messages of one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skew {
    /// Mean send time of their requests, nanoseconds.
    at: i64,
    /// Mean skew including the offset of the clocks, nanoseconds.
    mean: i64,
    /// Mean deviation from it, nanoseconds.
    spread: u32,
    /// Number of messages in it, up to [`MAX_MESSAGES`].
    messages: NonZeroU8,
}

impl Skew {
    /// The skew of one message, from its send time, its round trip and the peer's data.
    pub(crate) fn of(sent: Instant<Local>, round_trip: Span, peer: &PeerReport) -> Self {
        let sent = sent.nanos().clamp(-MAX_TIME_NANOS, MAX_TIME_NANOS);
        let forward = peer.rx.nanos().saturating_sub(sent);
        let half_round_trip = round_trip.nanos() / 2;
        Self {
            at: sent,
            mean: forward
                .saturating_sub(half_round_trip)
                .clamp(-MAX_TIME_NANOS, MAX_TIME_NANOS),
            spread: 0,
            messages: NonZeroU8::MIN,
        }
    }

    /// Mean send time of their requests.
    pub(crate) const fn at(&self) -> Instant<Local> {
        Instant::from_nanos(self.at)
    }

    /// Difference of a later message to these, without the drift of the clocks.
    fn difference(&self, other: &Self, drift: Drift) -> i64 {
        let change = other.mean - self.mean;
        change.saturating_sub(drift.change_over(other.at - self.at))
    }

    /// Adds a message of the same level.
    pub(crate) fn merge(&mut self, other: &Self, drift: Drift) {
        let difference = self.difference(other, drift).unsigned_abs();
        let difference = u32::try_from(difference).unwrap_or(u32::MAX);
        let previous_count = u32::from(self.messages.get());
        let (excess, shortfall) = (
            difference.saturating_sub(self.spread),
            self.spread.saturating_sub(difference),
        );
        self.spread = self.spread + excess / previous_count - shortfall / previous_count;
        if self.messages.get() < MAX_MESSAGES {
            self.messages = self.messages.saturating_add(1);
        }
        let weight = i64::from(self.messages.get().min(MAX_MEAN_WEIGHT));
        self.at += (other.at - self.at) / weight;
        self.mean += (other.mean - self.mean) / weight;
    }

    /// Takes over the spread of the flow's earlier messages.
    pub(crate) fn inherit(&mut self, earlier: &Self) {
        self.spread = self.spread.max(earlier.spread);
    }
}

/// Drift of the peer's clock against the local clock: the common change of skew of all flows that stay on
/// their paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drift {
    /// Nanoseconds per second.
    rate: i64,
    /// Number of messages that it was learned from, up to [`STEP_DIVISOR`].
    learned_count: i64,
}

/// Maximum change of the rate per step, nanoseconds per second: jitter is no drift.
const MAX_RATE_STEP: i64 = 100_000;
/// The weight of a step is one of this many.
const STEP_DIVISOR: i64 = 256;
/// Possible change of the rate itself, nanoseconds per second.
const RATE_UNCERTAINTY: i64 = 5_000;

impl Drift {
    /// Learns from two consecutive messages of a flow on one path.
    pub(crate) fn learn(&mut self, earlier: &Skew, later: &Skew) {
        let elapsed = later.at - earlier.at;
        // Less than a millisecond is too short for a rate.
        if elapsed < 1_000_000 {
            return;
        }
        let rate = i128::from(later.mean - earlier.mean) * 1_000_000_000 / i128::from(elapsed);
        let difference = i64::try_from(rate)
            .unwrap_or(i64::MAX)
            .saturating_sub(self.rate);
        self.learned_count = (self.learned_count + 1).min(STEP_DIVISOR);
        self.rate += difference.clamp(-MAX_RATE_STEP, MAX_RATE_STEP) / STEP_DIVISOR;
    }

    /// Change of skews after this time, nanoseconds.
    fn change_over(self, elapsed: i64) -> i64 {
        nanos_after(self.rate, elapsed)
    }

    /// Possible error of that change.
    fn uncertainty(self, elapsed: i64) -> i64 {
        nanos_after(
            RATE_UNCERTAINTY + MAX_RATE_STEP * (STEP_DIVISOR - self.learned_count) / STEP_DIVISOR,
            elapsed,
        )
    }
}

/// Nanoseconds for a rate per second, after this time.
fn nanos_after(rate: i64, elapsed: i64) -> i64 {
    let change = i128::from(rate) * i128::from(elapsed) / 1_000_000_000;
    i64::try_from(change).unwrap_or(0)
}

/// A change of a flow's base latency, as far as its direction depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) before: Span,
    pub(crate) after: Span,
    pub(crate) tolerance: Span,
    /// Time between two messages of the flow.
    pub(crate) interval: Span,
}

/// Whether a direction moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Movement {
    Moved,
    Stayed,
}

/// The direction that moved by more than half of the smallest total change; `None` if the flow's jitter could
/// explain either result.
pub(crate) fn direction(old: &Skew, new: &Skew, step: &Step, drift: Drift) -> Option<Direction> {
    let message_count = old.messages.get() + new.messages.get();
    if step.interval > MAX_INTERVAL || message_count < MIN_MESSAGES + 2 {
        return None;
    }
    let drift_error = drift.uncertainty((new.at - old.at).abs());
    let margin = |errors: f64| standard_errors(old, new, errors).saturating_add(drift_error);
    let (moved_margin, stayed_margin) = (margin(ERRORS_IF_MOVED), margin(ERRORS_IF_STAYED));
    let difference = old.difference(new, drift);
    let half_step = (step.after - step.before).nanos() / 2;
    let (forward, reverse) = (
        half_step.saturating_add(difference),
        half_step.saturating_sub(difference),
    );
    let largest_change = forward.saturating_abs().max(reverse.saturating_abs());
    let min_change = (step.tolerance.nanos() / 2).max(largest_change / SMALL_CHANGE_DIVISOR);
    let movement = |change: i64| {
        let change = change.saturating_abs();
        let (has_moved, has_stayed) = (
            change.saturating_sub(moved_margin) > min_change,
            change.saturating_add(stayed_margin) <= min_change,
        );
        (has_moved || has_stayed).then_some(if has_moved {
            Movement::Moved
        } else {
            Movement::Stayed
        })
    };
    match (movement(forward)?, movement(reverse)?) {
        (Movement::Moved, Movement::Moved) => Some(Direction::Both),
        (Movement::Moved, Movement::Stayed) => Some(Direction::Forward),
        (Movement::Stayed, Movement::Moved) => Some(Direction::Reverse),
        (Movement::Stayed, Movement::Stayed) => None,
    }
}

/// This many standard errors of the difference of two means, nanoseconds. Uses the wider spread of both,
/// because a few messages may be close at random.
fn standard_errors(old: &Skew, new: &Skew, errors: f64) -> i64 {
    let deviation = f64::from(old.spread.max(new.spread)) * DEVIATION_RATIO;
    let inverse_count = |skew: &Skew| 1.0 / f64::from(skew.messages.get());
    let standard_errors = errors * deviation * (inverse_count(old) + inverse_count(new)).sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "below a minute")]
    let standard_errors = standard_errors.ceil() as i64;
    standard_errors
}

#[cfg(test)]
mod tests;
