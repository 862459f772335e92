//! The scheduled changes of one direction of a link.
//!
//! Owns the cue and the moment of the next change. The state depends on the moment only, not on earlier
//! calls.

use neph_model::Span;

use super::Moment;
use super::change::{Change, ChangeAction, ScheduleEvent};
use super::shape::Shape;

/// A scheduled change that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleStep {
    /// The change's index in the link's schedule.
    pub number: u16,
    /// When it was applied.
    pub at: Moment,
    /// Whether it begins or ends.
    pub event: ScheduleEvent,
}

/// The changes of one direction. Nothing happens before the first cue.
#[derive(Clone, Debug)]
pub(super) struct Timetable {
    changes: Vec<(u16, Change)>,
    /// Seed of random changes.
    seed: u64,
    cue: Moment,
    next: Option<Moment>,
}

impl Timetable {
    /// `changes`, each with its index in the link's schedule.
    pub(super) const fn new(changes: Vec<(u16, Change)>, seed: u64) -> Self {
        Self {
            changes,
            seed,
            cue: Moment::DISTANT_PAST,
            next: None,
        }
    }

    /// Restarts at `cue`.
    pub(super) fn restart(&mut self, cue: Moment) {
        self.cue = cue;
        // Changes at the cue itself are still due.
        self.find_next_change(cue + Span::from_nanos(-1));
    }

    /// When the next change is due.
    pub(super) const fn next(&self) -> Option<Moment> {
        self.next
    }

    /// Applies the changes that are due at [`Self::next`].
    pub(super) fn apply_due(&mut self) -> Vec<ScheduleStep> {
        let Some(at) = self.next else {
            return Vec::new();
        };
        let (now, just_before) = (at - self.cue, at - self.cue - Span::from_nanos(1));
        let mut steps = Vec::new();
        for (number, change) in &self.changes {
            let event = match change.action {
                ChangeAction::Reshuffle => ScheduleEvent::Reshuffles,
                ChangeAction::Rebalance(_) => ScheduleEvent::Rebalances,
                _ => ScheduleEvent::Begins,
            };
            let recurrence = change.recurrence();
            let ends = recurrence.end_count(now) > recurrence.end_count(just_before);
            let begins = recurrence.begin_count(now) > recurrence.begin_count(just_before);
            for (event, is_due) in [(ScheduleEvent::Ends, ends), (event, begins)] {
                let number = *number;
                steps.extend(is_due.then_some(ScheduleStep { number, at, event }));
            }
        }
        self.find_next_change(at);
        steps
    }

    /// `base` with the active changes at `at`; later entries override earlier ones.
    pub(super) fn shape_at(&self, base: &Shape, at: Moment) -> Shape {
        let mut shape = base.clone();
        for (_, change) in &self.changes {
            change.apply(self.seed, at - self.cue, &mut shape);
        }
        shape
    }

    /// Number of reshuffles by `at`.
    pub(super) fn reshuffle_count(&self, at: Moment) -> u64 {
        let reshuffles = self
            .changes
            .iter()
            .filter(|(_, change)| change.action == ChangeAction::Reshuffle);
        let count: i64 = reshuffles
            .map(|(_, change)| change.recurrence().begin_count(at - self.cue))
            .sum();
        u64::try_from(count).unwrap_or(0)
    }

    fn find_next_change(&mut self, after: Moment) {
        let time = after - self.cue;
        let next = self.changes.iter();
        let next = next.filter_map(|(_, change)| change.recurrence().next_after(time));
        let next = next.min();
        self.next = next.map(|next| self.cue + next);
    }
}

#[cfg(test)]
mod tests {
    use super::ScheduleEvent::{Begins, Ends, Reshuffles};
    use super::*;
    use crate::gate::{PartialShape, PartialWire};

    const fn secs(secs: i64) -> Span {
        Span::from_secs(secs)
    }

    /// A delay of `delay` seconds (0: a reshuffle) with start, end and period in seconds.
    fn change(delay: i64, at: i64, until: Option<i64>, every: Option<i64>) -> Change {
        let wire = PartialWire {
            delay: Some(secs(delay)),
            ..PartialWire::default()
        };
        Change {
            direction: None,
            at: secs(at),
            until: until.map(secs),
            every: every.map(secs),
            action: match delay {
                0 => ChangeAction::Reshuffle,
                _ => ChangeAction::Override(PartialShape {
                    wire,
                    ..PartialShape::default()
                }),
            },
        }
    }

    /// (second, number, turn) of every change in the first `until` seconds.
    fn steps_until(timetable: &mut Timetable, until: i64) -> Vec<(i64, u16, ScheduleEvent)> {
        let end = timetable.cue + secs(until);
        let mut steps = Vec::new();
        while timetable.next().is_some_and(|next| next < end) {
            for step in timetable.apply_due() {
                let at = (step.at - timetable.cue).nanos() / 1_000_000_000;
                steps.push((at, step.number, step.event));
            }
        }
        steps
    }

    #[test]
    fn schedules_start_at_the_cue_and_restart_at_the_next() {
        let mut timetable = Timetable::new(vec![(4, change(2, 0, Some(5), None))], 1);
        assert_eq!(timetable.next(), None);
        for cue in [Moment(7), Moment(100_000_000_000)] {
            timetable.restart(cue);
            assert_eq!(timetable.next(), Some(cue));
            let steps = steps_until(&mut timetable, 1_000);
            assert_eq!(
                steps,
                [(0, 4, ScheduleEvent::Begins), (5, 4, ScheduleEvent::Ends)]
            );
        }
    }

    #[test]
    fn periodic_changes_alternate_and_reshuffles_occur_between_them() {
        let night = change(2, 10, Some(25), Some(30));
        let mut timetable = Timetable::new(vec![(0, night), (1, change(0, 20, None, Some(20)))], 1);
        timetable.restart(Moment(0));
        assert_eq!(
            steps_until(&mut timetable, 71),
            [
                (10, 0, Begins),
                (20, 1, Reshuffles),
                (25, 0, Ends),
                (40, 0, Begins),
                (40, 1, Reshuffles),
                (55, 0, Ends),
                (60, 1, Reshuffles),
                (70, 0, Begins),
            ]
        );
        let delay = |at| {
            let at = Moment(0) + secs(at);
            timetable.shape_at(&Shape::default(), at).wire.delay
        };
        let delays: Vec<i64> = [9, 10, 24, 25, 39, 40, 54, 55, 30_010]
            .into_iter()
            .map(|at| delay(at).nanos() / 1_000_000_000)
            .collect();
        assert_eq!(delays, [0, 2, 2, 0, 0, 2, 2, 0, 2]);
        assert_eq!(timetable.reshuffle_count(Moment(0) + secs(60)), 3);
    }

    #[test]
    fn later_entries_override_earlier_active_entries() {
        let changes = vec![
            (0, change(2, 0, None, None)),
            (1, change(3, 10, Some(20), None)),
        ];
        let mut timetable = Timetable::new(changes, 1);
        timetable.restart(Moment(0));
        let delay = |at| {
            let at = Moment(0) + secs(at);
            timetable.shape_at(&Shape::default(), at).wire.delay
        };
        assert_eq!([5, 15, 20].map(delay), [2, 3, 2].map(secs));
    }
}
