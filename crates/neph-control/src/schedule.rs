//! Schedules: plans whose campaigns the controller starts at fixed intervals.
//!
//! Owns which runs are due or missed. Pure: the time is an argument. [`Book`] stores the decisions,
//! [`Runner`] carries them out.

mod book;
mod program;
mod runner;

use std::path::PathBuf;

use neph_model::{AgentName, Span, Wall};
use serde::{Deserialize, Serialize};

pub use book::{Book, BookError, Entry, Outcome};
pub use program::RunnerFolder;
pub use runner::{CampaignFinder, FoundCampaign, Runner};

/// Maximum delay of a run that is on time; the controller checks every second.
const MAX_DELAY: Span = Span::from_secs(30);

/// The shortest interval of a schedule.
pub const SHORTEST_INTERVAL: Span = Span::from_secs(10);

/// A plan that is carried out at intervals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Its name, with the syntax of agent names.
    pub name: AgentName,
    /// Absolute path of the plan's file, which is read at each run.
    pub plan: PathBuf,
    /// The folder for relative paths in the plan.
    pub folder: PathBuf,
    /// The workspace for its campaigns.
    pub workspace: String,
    /// Interval between runs.
    #[serde(rename = "every_ns")]
    pub every: Span,
    /// When the first run is due.
    #[serde(rename = "from_unix_ns")]
    pub from: Wall,
    /// No run is due from this time on.
    #[serde(rename = "until_unix_ns")]
    pub until: Option<Wall>,
}

/// Runs that were due and did not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// When the first of them was due.
    pub first: Wall,
    /// When the last of them was due.
    pub last: Wall,
    /// Their number.
    pub count: u64,
}

/// The runs that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Runs that are too late.
    pub missed: Option<Missed>,
    /// The run that begins now.
    pub now: Option<Wall>,
}

impl Schedule {
    /// When the next run is due after the last decided one; `None` if there is none.
    pub fn next(&self, decided: Option<Wall>) -> Option<Wall> {
        let next = decided.map_or(self.from, |last| last + self.every);
        Some(next).filter(|next| self.until.is_none_or(|until| *next < until))
    }

    /// The runs that are due at `now`, after the last decided one.
    pub fn due(&self, decided: Option<Wall>, now: Wall) -> Due {
        let Some(first) = self.next(decided).filter(|next| *next <= now) else {
            return Due::default();
        };
        let period = self.every.nanos().max(1);
        let end = self.until.map_or(i64::MAX, Wall::unix_nanos);
        let latest = now.unix_nanos().min(end.saturating_sub(1));
        let steps = latest.saturating_sub(first.unix_nanos()) / period;
        let at = |step: i64| first + Span::from_nanos(period.saturating_mul(step));
        let last = at(steps);
        let late = now.unix_nanos().saturating_sub(last.unix_nanos());
        let is_on_time = late <= MAX_DELAY.nanos();
        let missed = if is_on_time { steps } else { steps + 1 };
        Due {
            missed: (missed > 0).then(|| Missed {
                first,
                last: at(missed - 1),
                count: missed.unsigned_abs(),
            }),
            now: is_on_time.then_some(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    fn at(seconds: i64) -> Wall {
        Wall::from_unix_nanos(seconds * 1_000_000_000)
    }

    fn hourly(until: Option<i64>) -> Schedule {
        Schedule {
            name: "s".parse().expect("a name"),
            plan: PathBuf::from("/p.toml"),
            folder: PathBuf::from("/"),
            workspace: "/w".to_owned(),
            every: Span::from_secs(HOUR),
            from: at(0),
            until: until.map(at),
        }
    }

    fn missed(first: i64, last: i64, count: u64) -> Missed {
        let (first, last) = (at(first), at(last));
        Missed { first, last, count }
    }

    #[test]
    fn a_run_is_due_at_each_interval_and_on_time_within_30_s() {
        let schedule = hourly(None);
        let due = |decided: Option<i64>, now| schedule.due(decided.map(at), at(now));
        let now = |seconds| Due {
            missed: None,
            now: Some(at(seconds)),
        };
        assert_eq!(due(None, -1), Due::default());
        assert_eq!(due(None, 0), now(0));
        assert_eq!(due(None, 30), now(0));
        assert_eq!(due(Some(0), HOUR - 1), Due::default());
        assert_eq!(due(Some(0), HOUR + 1), now(HOUR));
    }

    #[test]
    fn overdue_runs_are_missed_and_not_caught_up() {
        let schedule = hourly(None);
        let due = |decided, now| schedule.due(Some(at(decided)), at(now));
        let late = due(0, HOUR + 31);
        assert_eq!((late.missed, late.now), (Some(missed(HOUR, HOUR, 1)), None));
        let long = due(0, 5 * HOUR + 60);
        assert_eq!(
            (long.missed, long.now),
            (Some(missed(HOUR, 5 * HOUR, 5)), None)
        );
        // The last of them is on time.
        let some = due(0, 5 * HOUR + 2);
        assert_eq!(some.missed, Some(missed(HOUR, 4 * HOUR, 4)));
        assert_eq!(some.now, Some(at(5 * HOUR)));
    }

    #[test]
    fn no_run_is_due_after_the_end_of_the_schedule() {
        let schedule = hourly(Some(2 * HOUR));
        assert_eq!(schedule.next(Some(at(HOUR))), None);
        assert_eq!(schedule.due(Some(at(HOUR)), at(9 * HOUR)), Due::default());
        // Runs that were due before the end and not checked are missed.
        let due = schedule.due(Some(at(0)), at(9 * HOUR));
        assert_eq!((due.missed, due.now), (Some(missed(HOUR, HOUR, 1)), None));
    }

    #[test]
    fn a_clock_set_back_starts_no_run_twice() {
        let schedule = hourly(None);
        assert_eq!(schedule.due(Some(at(5 * HOUR)), at(HOUR)), Due::default());
    }
}
