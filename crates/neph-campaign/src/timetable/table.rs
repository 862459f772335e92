//! A timetable: when each task begins.

use neph_model::Span;

use super::bound::Bound;

/// A task and when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScheduledTask {
    /// Since the timetable's begin.
    pub start: Span,
    /// The task's index in what was requested.
    pub task: usize,
}

/// Tasks that begin at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Since the timetable's begin.
    pub start: Span,
    /// The longest of its tasks' slots.
    pub length: Span,
    /// The tasks' indices, in order.
    pub tasks: Vec<usize>,
}

/// Which task runs when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable {
    /// By time. No two rounds begin at the same time.
    pub rounds: Vec<Round>,
    /// Until the last slot ends.
    pub makespan: Span,
    /// What the makespan cannot be below, and why.
    pub bound: Bound,
}

impl Timetable {
    /// Every task with its start, by time.
    pub fn scheduled_tasks(&self) -> impl Iterator<Item = ScheduledTask> {
        self.rounds.iter().flat_map(|round| {
            let start = round.start;
            let tasks = round.tasks.iter();
            tasks.map(move |task| ScheduledTask { start, task: *task })
        })
    }

    /// The makespan in parts of the bound: 1 is the best that can be; 1 of nothing to do.
    pub fn ratio(&self) -> f64 {
        if self.bound.span == Span::ZERO {
            return 1.0;
        }
        self.makespan.secs_f64() / self.bound.span.secs_f64()
    }
}
