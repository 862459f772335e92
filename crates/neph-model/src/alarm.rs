//! Alarms: a rule, when its limit was exceeded, and when values were normal again.
//!
//! Owns the counting and the states, for all timed values: the messages of a plan, passive round
//! trips, the segments of hops. How a rule is typed is `neph-campaign`'s. It reads no clock. Times
//! are counted until there are as many as the rule's quantile needs. Such a stretch is then over
//! the limit, normal, or in between. The alarm is raised when stretches over the limit follow each
//! other for the rule's duration, and ends when normal stretches do.

mod paced;
mod rule;

use crate::Span;

pub use paced::Paced;
pub use rule::{Quantile, Rule};

/// What was counted before a silence of this length, or of the rule's where that is longer, counts
/// no more.
const PATIENCE: Span = Span::from_secs(60);

/// A rule with its state.
#[derive(Debug, Clone)]
pub struct Alarm<S> {
    rule: Rule<S>,
    stretch: Stretch,
    /// Number of times in the stretch at the last evaluation, and when it last grew.
    looked: u64,
    latest: Span,
    is_raised: bool,
    was_raised: bool,
    /// Since when stretches have spoken for a change.
    since: Option<Span>,
}

/// Times that were counted together, since the beginning.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Span,
    n: u64,
    /// Longer than the limit.
    longer: u64,
    /// Above the level at which values are normal again.
    unwell: u64,
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
    pub longer: u64,
    /// How many these were.
    pub of: u64,
    /// More than this is too long.
    pub limit: Span,
}

impl Change {
    /// The rule and its result in words, for a number of `noun`s.
    pub fn to_text(&self, noun: &str) -> String {
        let Self {
            rule,
            longer,
            of,
            limit,
            ..
        } = self;
        let ending = if *of == 1 { "" } else { "s" };
        format!("{rule}; of the last {of} {noun}{ending}, {longer} took longer than {limit}")
    }
}

impl Stretch {
    const fn begin(from: Span) -> Self {
        Self {
            from,
            n: 0,
            longer: 0,
            unwell: 0,
        }
    }
}

impl<S> Alarm<S> {
    /// Nothing is counted yet; it is the beginning.
    pub const fn new(rule: Rule<S>) -> Self {
        Self {
            rule,
            stretch: Stretch::begin(Span::ZERO),
            looked: 0,
            latest: Span::ZERO,
            is_raised: false,
            was_raised: false,
            since: None,
        }
    }

    /// What it judges by.
    pub const fn rule(&self) -> &Rule<S> {
        &self.rule
    }

    /// As the rule was typed, and whether it is raised.
    pub fn active_rule(&self) -> (&str, bool) {
        (&self.rule.text, self.is_raised)
    }

    /// Whether it was ever raised.
    pub const fn was_raised(&self) -> bool {
        self.was_raised
    }

    /// Counts a time; `None`: a loss, which is longer than any limit.
    pub fn count(&mut self, took: Option<Span>) {
        let exceeds = |limit| u64::from(took.is_none_or(|took| took > limit));
        self.stretch.n += 1;
        self.stretch.longer += exceeds(self.rule.limit);
        self.stretch.unwell += exceeds(self.rule.until);
    }

    /// Evaluates the rule at `now`, since the beginning; returns a change of the alarm.
    pub fn look(&mut self, now: Span) -> Option<Change> {
        let stretch = self.stretch;
        if stretch.n < self.rule.quantile.needs {
            self.wait(now);
            return None;
        }
        (self.stretch, self.looked, self.latest) = (Stretch::begin(now), 0, now);
        let quantile = self.rule.quantile;
        let speaks_for_change = if self.is_raised {
            !quantile.exceeds(stretch.unwell, stretch.n)
        } else {
            quantile.exceeds(stretch.longer, stretch.n)
        };
        if !speaks_for_change {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(stretch.from);
        if now - since < self.rule.length {
            return None;
        }
        self.is_raised = !self.is_raised;
        self.was_raised = true;
        self.since = None;
        Some(Change {
            rule: self.rule.text.clone(),
            at: now,
            is_raised: self.is_raised,
            longer: stretch.longer,
            of: stretch.n,
            limit: self.rule.limit,
        })
    }

    /// There were not enough times yet. Of silence nothing is known, neither that it is well.
    fn wait(&mut self, now: Span) {
        if self.stretch.n > self.looked {
            (self.looked, self.latest) = (self.stretch.n, now);
        }
        if now - self.latest > PATIENCE.max(self.rule.length) {
            (self.stretch.n, self.since) = (0, None);
        }
        if self.stretch.n == 0 {
            (self.stretch, self.looked) = (Stretch::begin(now), 0);
        }
    }
}

#[cfg(test)]
mod tests;
