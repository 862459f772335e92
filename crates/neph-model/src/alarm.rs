//! Alarms: a rule, when its limit was exceeded, and when values were normal again.
//!
//! Owns the counting and the states, for all timed values: the messages of a plan, passive round
//! trips, the segments of hops. How a rule is typed is `neph-campaign`'s. It reads no clock. Times
//! are counted until there are as many as the rule's quantile needs. Such a window is then over
//! the limit, normal, or in between. The alarm is raised when windows over the limit follow each
//! other for the rule's duration, and ends when normal windows do.

mod data_time;
mod rule;

use crate::Span;

pub use data_time::DataTimeAlarm;
pub use rule::{Quantile, Rule};

/// What was counted before a silence of this length, or of the rule's where that is longer, counts
/// no more.
const STALE_AFTER: Span = Span::from_secs(60);

/// A rule with its state.
#[derive(Debug, Clone)]
pub struct Alarm<S> {
    rule: Rule<S>,
    window: Window,
    /// Number of times in the window at the last evaluation, and when it last grew.
    seen_count: u64,
    last_sample_at: Span,
    is_raised: bool,
    was_raised: bool,
    /// Since when windows have spoken for a change.
    pending_since: Option<Span>,
}

/// Times that were counted together, since the beginning.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: Span,
    n: u64,
    /// Longer than the limit.
    above_limit: u64,
    /// Above the level at which values are normal again.
    above_clear_limit: u64,
}

/// An alarm that was raised or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// As the rule was typed.
    pub rule: String,
    /// When, since the beginning.
    pub at: Span,
    /// It was raised; else it has ended.
    pub is_raised: bool,
    /// Of the latest times, those longer than `limit`.
    pub above_limit: u64,
    /// How many these were.
    pub total: u64,
    /// More than this is too long.
    pub limit: Span,
}

impl Change {
    /// The rule and its result in words, for a number of `noun`s.
    pub fn to_text(&self, noun: &str) -> String {
        let Self {
            rule,
            above_limit,
            total,
            limit,
            ..
        } = self;
        let plural_suffix = if *total == 1 { "" } else { "s" };
        format!(
            "{rule}; of the last {total} {noun}{plural_suffix}, {above_limit} took longer than \
             {limit}"
        )
    }
}

impl Window {
    const fn begin(from: Span) -> Self {
        Self {
            from,
            n: 0,
            above_limit: 0,
            above_clear_limit: 0,
        }
    }
}

impl<S> Alarm<S> {
    /// Nothing is counted yet; it is the beginning.
    pub const fn new(rule: Rule<S>) -> Self {
        Self {
            rule,
            window: Window::begin(Span::ZERO),
            seen_count: 0,
            last_sample_at: Span::ZERO,
            is_raised: false,
            was_raised: false,
            pending_since: None,
        }
    }

    /// What it judges by.
    pub const fn rule(&self) -> &Rule<S> {
        &self.rule
    }

    /// As the rule was typed, and whether it is raised.
    pub fn status(&self) -> (&str, bool) {
        (&self.rule.text, self.is_raised)
    }

    /// Whether it was ever raised.
    pub const fn was_raised(&self) -> bool {
        self.was_raised
    }

    /// Counts a time; `None`: a loss, which is longer than any limit.
    pub fn record(&mut self, latency: Option<Span>) {
        let exceeds = |limit| u64::from(latency.is_none_or(|latency| latency > limit));
        self.window.n += 1;
        self.window.above_limit += exceeds(self.rule.limit);
        self.window.above_clear_limit += exceeds(self.rule.clear_limit);
    }

    /// Evaluates the rule at `now`, since the beginning; returns a change of the alarm.
    pub fn evaluate(&mut self, now: Span) -> Option<Change> {
        let window = self.window;
        if window.n < self.rule.quantile.needs {
            self.expire_window(now);
            return None;
        }
        (self.window, self.seen_count, self.last_sample_at) = (Window::begin(now), 0, now);
        let quantile = self.rule.quantile;
        let is_opposite_state = if self.is_raised {
            !quantile.exceeds(window.above_clear_limit, window.n)
        } else {
            quantile.exceeds(window.above_limit, window.n)
        };
        if !is_opposite_state {
            self.pending_since = None;
            return None;
        }
        let pending_since = *self.pending_since.get_or_insert(window.from);
        if now - pending_since < self.rule.hold_duration {
            return None;
        }
        self.is_raised = !self.is_raised;
        self.was_raised = true;
        self.pending_since = None;
        Some(Change {
            rule: self.rule.text.clone(),
            at: now,
            is_raised: self.is_raised,
            above_limit: window.above_limit,
            total: window.n,
            limit: self.rule.limit,
        })
    }

    /// There were not enough times yet. Of silence nothing is known, neither that it is well.
    fn expire_window(&mut self, now: Span) {
        if self.window.n > self.seen_count {
            (self.seen_count, self.last_sample_at) = (self.window.n, now);
        }
        if now - self.last_sample_at > STALE_AFTER.max(self.rule.hold_duration) {
            (self.window.n, self.pending_since) = (0, None);
        }
        if self.window.n == 0 {
            (self.window, self.seen_count) = (Window::begin(now), 0);
        }
    }
}

#[cfg(test)]
mod tests;
