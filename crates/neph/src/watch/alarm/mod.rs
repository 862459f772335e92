//! Alarms: a rule, when it began to be broken, and when it was well again.
//!
//! Owns the counting and the states. Reads no clock and says nothing. Round trips are counted until
//! there are as many as the rule's quantile needs; such a stretch is then over the limit, well, or in
//! between. The alarm is raised when stretches over the limit follow each other for as long as the
//! rule says, and ends when stretches that are well do.

mod rule;

use neph_capture::{Method, Sample};
use neph_model::Span;

use crate::exit::Failure;
use rule::Rule;

/// What was counted before a silence of this length, or of the rule's where that is longer, counts no
/// more.
const PATIENCE: Span = Span::from_secs(60);

/// A rule and how it stands.
#[derive(Debug)]
pub(super) struct Alarm {
    rule: Rule,
    method: Method,
    stretch: Stretch,
    /// How many round trips there were in the stretch at the last look, and when there were more.
    looked: u64,
    latest: Span,
    is_raised: bool,
    was_raised: bool,
    /// Since when stretches have spoken for a change.
    since: Option<Span>,
}

/// Round trips that were counted together. Times are since the watch began.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: Span,
    n: u64,
    /// Longer than the limit.
    longer: u64,
    /// Longer than what is well.
    unwell: u64,
}

/// An alarm that was raised or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change<'a> {
    /// As the rule was typed.
    pub(super) rule: &'a str,
    pub(super) is_raised: bool,
    /// Of the latest round trips, those longer than `limit`.
    pub(super) longer: u64,
    pub(super) of: u64,
    pub(super) limit: Span,
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

impl Alarm {
    /// One that was typed so; of round trips by `method`.
    pub(super) fn parse(text: &str, method: Method) -> Result<Self, Failure> {
        Ok(Self {
            rule: rule::parse(text)?,
            method,
            stretch: Stretch::begin(Span::ZERO),
            looked: 0,
            latest: Span::ZERO,
            is_raised: false,
            was_raised: false,
            since: None,
        })
    }

    /// As the rule was typed, and whether it is raised.
    pub(super) fn standing(&self) -> (&str, bool) {
        (&self.rule.text, self.is_raised)
    }

    /// Whether it was ever raised.
    pub(super) const fn was_raised(&self) -> bool {
        self.was_raised
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        if sample.method != self.method || !self.rule.subject.is_of(sample) {
            return;
        }
        self.stretch.n += 1;
        self.stretch.longer += u64::from(sample.round_trip > self.rule.limit);
        self.stretch.unwell += u64::from(sample.round_trip > self.rule.until);
    }

    /// It is `now`: tells whether that changes anything.
    pub(super) fn look(&mut self, now: Span) -> Option<Change<'_>> {
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
            rule: &self.rule.text,
            is_raised: self.is_raised,
            longer: stretch.longer,
            of: stretch.n,
            limit: self.rule.limit,
        })
    }

    /// There were not enough round trips yet. Of silence nothing is known, neither that it is well.
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
mod tests {
    use neph_capture::{Answer, Half};
    use neph_model::Wall;
    use proptest::prelude::*;

    use super::*;

    fn sample(millis: i64) -> Sample {
        Sample {
            at: Wall::from_unix_nanos(0),
            round_trip: Span::from_millis(millis),
            half: Half::Server,
            method: Method::Acknowledgement,
            answer: Answer::Bare,
            in_flight: 1,
        }
    }

    fn alarm(text: &str) -> Alarm {
        Alarm::parse(text, Method::Acknowledgement).expect("a rule")
    }

    /// Seconds at which the alarm was raised (positive) or ended (negative), when each second had so
    /// many round trips of so many milliseconds.
    fn changes(alarm: &mut Alarm, seconds: impl IntoIterator<Item = (u32, i64)>) -> Vec<i64> {
        let mut changes = Vec::new();
        for (second, (many, millis)) in (1..).zip(seconds) {
            for _ in 0..many {
                alarm.sample(&sample(millis));
            }
            if let Some(change) = alarm.look(Span::from_secs(second)) {
                changes.push(if change.is_raised { second } else { -second });
            }
        }
        changes
    }

    #[test]
    fn it_is_raised_after_as_long_as_it_says_and_not_by_less() {
        let rule = "path > 10ms p50 for 5s";
        assert_eq!(changes(&mut alarm(rule), [(6, 11); 7]), [5]);
        assert_eq!(changes(&mut alarm(rule), [(6, 10); 50]), [0; 0]);
        let mut broken = vec![(6, 11); 4];
        broken.push((6, 10));
        assert_eq!(changes(&mut alarm(rule), broken.repeat(9)), [0; 0]);
    }

    #[test]
    fn it_ends_below_a_lower_level_and_after_as_long() {
        let rule = "path > 10ms p50 for 5s until 6ms";
        let seconds = [vec![(6, 11); 5], vec![(6, 7); 20], vec![(6, 6); 5]].concat();
        assert_eq!(changes(&mut alarm(rule), seconds), [5, -30]);
        let flapping = [(6, 11), (6, 6)].repeat(50);
        let mut once = alarm(rule);
        assert_eq!(changes(&mut once, flapping), [0; 0]);
        assert!(!once.was_raised());
    }

    #[test]
    fn few_round_trips_are_counted_together_and_silence_tells_nothing() {
        // p50 needs six: two a second tell each third second.
        assert_eq!(
            changes(&mut alarm("path > 10ms p50 for 5s"), [(2, 11); 9]),
            [6]
        );
        // However rare they are, if only they come: one each 20 s.
        let rare = [vec![(1, 11)], vec![(0, 0); 19]].concat().repeat(7);
        assert_eq!(changes(&mut alarm("path > 10ms p50"), rare), [101]);
        let mut raised = alarm("path > 10ms p50");
        let seconds = [vec![(6, 11)], vec![(0, 0); 200], vec![(6, 1)]].concat();
        assert_eq!(changes(&mut raised, seconds), [1, -202]);
        // What was over the limit before a long silence does not count on.
        let seconds = [vec![(6, 11); 4], vec![(0, 0); 200], vec![(6, 11); 4]].concat();
        assert_eq!(
            changes(&mut alarm("path > 10ms p50 for 5s"), seconds),
            [0; 0]
        );
    }

    #[test]
    fn other_round_trips_do_not_count() {
        let mut alarm = alarm("path > 10ms p50");
        for answer in [Answer::WithData, Answer::Delayed] {
            alarm.sample(&Sample {
                answer,
                ..sample(99)
            });
        }
        let other = Method::Echo;
        alarm.sample(&Sample {
            method: other,
            ..sample(99)
        });
        let half = Half::Client;
        alarm.sample(&Sample { half, ..sample(99) });
        assert_eq!(alarm.stretch.n, 0);
    }

    proptest! {
        #[test]
        fn raising_and_ending_alternate_and_are_apart_by_as_long(
            seconds in prop::collection::vec((0_u32..20, 0_i64..20), 0..300),
        ) {
            let changes = changes(&mut alarm("path > 10ms p50 for 5s"), seconds);
            for (place, change) in changes.iter().enumerate() {
                prop_assert_eq!(*change > 0, place % 2 == 0);
            }
            for two in changes.windows(2) {
                prop_assert!(two[1].abs() - two[0].abs() >= 5);
            }
        }
    }
}
