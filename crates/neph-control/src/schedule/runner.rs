//! Carries out schedules: starts a process for each run that is due, and follows it to its end.
//!
//! Owns the active runs. A run is recorded before its process starts, so that it begins at most
//! once if a kill comes in between.

mod run_end;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::Child;
use std::time::Duration;

use neph_model::{AgentName, CampaignId, CampaignStatus, Wall};
use neph_sys::clock;
use neph_sys::process::{self, Request};
use neph_text::counted::counted;

use super::Schedule;
use super::book::{Book, BookError, Entry, Outcome};
use super::program::{RunnerFolder, failure_reason, take_run_lock};
use run_end::RunEnd;

/// Reasons of missed runs.
const CONTROLLER_NOT_RUNNING: &str = "the controller was not running";
const CHECK_MISSED: &str =
    "the controller did not check in time: its host was suspended, or its clock was set";

/// Interval of the check for ended runs.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The campaign of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundCampaign {
    /// Its id.
    pub id: CampaignId,
    /// Its status.
    pub status: CampaignStatus,
}

/// Finds the campaign of a run in the store.
pub trait CampaignFinder: Debug {
    /// The first campaign of a schedule's plan in its workspace that began at or after `since`.
    fn find(&self, schedule: &Schedule, since: Wall) -> Option<FoundCampaign>;
}

/// An active run.
#[derive(Debug)]
struct Run {
    due: Wall,
    /// Earliest start of its campaign.
    since: Wall,
    /// Its process, if this controller started it.
    child: Option<Child>,
}

#[derive(Debug)]
struct ScheduleState {
    schedule: Schedule,
    /// The last decided run.
    decided: Option<Wall>,
    run: Option<Run>,
}

/// Carries out schedules.
#[derive(Debug)]
pub struct Runner {
    folder: RunnerFolder,
    book: Book,
    finder: Box<dyn CampaignFinder>,
    /// Start of this controller.
    began: Wall,
    states: BTreeMap<AgentName, ScheduleState>,
    /// Schedules that were removed while a process of this controller ran for them.
    removed: Vec<ScheduleState>,
}

impl Runner {
    /// A runner for the schedules of a controller that starts at `now`.
    pub fn new(folder: RunnerFolder, finder: Box<dyn CampaignFinder>, now: Wall) -> Self {
        Self {
            book: Book::in_folder(&folder.control),
            folder,
            finder,
            began: now,
            states: BTreeMap::new(),
            removed: Vec::new(),
        }
    }

    /// Starts runs that are due at `now`, and processes ended ones; call it about once a second.
    /// Returns a sentence for each event.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn step(&mut self, now: Wall) -> Result<Vec<String>, BookError> {
        let mut events = Vec::new();
        let schedules = self.book.schedules()?;
        let states = std::mem::take(&mut self.states).into_iter();
        let (states, removed): (BTreeMap<_, _>, BTreeMap<_, _>) =
            states.partition(|(_, state)| schedules.contains(&state.schedule));
        self.states = states;
        self.removed.extend(removed.into_values());
        self.follow_removed(&mut events);
        for schedule in schedules {
            let name = schedule.name.clone();
            let mut state = match self.states.remove(&name) {
                Some(state) => state,
                None => self.load(schedule, now, &mut events)?,
            };
            self.follow(&mut state, now, &mut events)?;
            self.begin_due(&mut state, now, &mut events)?;
            self.states.insert(name, state);
        }
        Ok(events)
    }

    /// Loads the state of a schedule from its history. Resumes an interrupted run if the next one
    /// is not due.
    fn load(
        &self,
        schedule: Schedule,
        now: Wall,
        events: &mut Vec<String>,
    ) -> Result<ScheduleState, BookError> {
        self.book.shorten(&schedule.name)?;
        let history = self.book.history(&schedule.name)?;
        let decided = history.iter().map(Entry::due).max();
        let mut state = ScheduleState {
            schedule,
            decided,
            run: None,
        };
        let last = history
            .iter()
            .rev()
            .find(|entry| matches!(entry, Entry::Begun { .. } | Entry::Ended { .. }));
        let Some(last) = last else {
            return Ok(state);
        };
        let began = history.iter().find_map(|entry| match entry {
            Entry::Begun { due, at, .. } if *due == last.due() => Some(*at),
            _ => None,
        });
        let run = Run {
            due: last.due(),
            since: began.unwrap_or_else(|| last.due()),
            child: None,
        };
        match last {
            Entry::Begun { .. } => state.run = Some(run),
            Entry::Ended {
                outcome: Outcome::Interrupted,
                ..
            } => self.resume(&mut state, &run, now, events)?,
            _ => {}
        }
        Ok(state)
    }

    /// Resumes an interrupted campaign.
    fn resume(
        &self,
        state: &mut ScheduleState,
        run: &Run,
        now: Wall,
        events: &mut Vec<String>,
    ) -> Result<(), BookError> {
        let campaign = self.finder.find(&state.schedule, run.since);
        let Some(campaign) =
            campaign.filter(|campaign| campaign.status != CampaignStatus::Complete)
        else {
            return Ok(());
        };
        if state
            .schedule
            .next(Some(run.due))
            .is_some_and(|next| next <= now)
        {
            return Ok(());
        }
        let begun = Entry::Begun {
            due: run.due,
            at: now,
            resumes: Some(campaign.id),
        };
        self.book.note(&state.schedule.name, &begun)?;
        self.start(state, run, Some(campaign.id), events)
    }

    /// Processes the end of a run.
    fn follow(
        &self,
        state: &mut ScheduleState,
        now: Wall,
        events: &mut Vec<String>,
    ) -> Result<(), BookError> {
        let Some(mut run) = state.run.take() else {
            return Ok(());
        };
        let name = &state.schedule.name;
        let was_ours = run.child.is_some();
        let end = match &mut run.child {
            Some(child) => child.try_wait().ok().flatten().map(RunEnd::Status),
            // Its lock shows whether it runs.
            None => take_run_lock(&self.book.folder_of(name))?.map(|_| RunEnd::Unseen),
        };
        let Some(end) = end else {
            state.run = Some(run);
            return Ok(());
        };
        let outcome = self.record_end(state, &run, end, now)?;
        events.push(format!("schedule {name}: {outcome}"));
        // A campaign that was interrupted while no controller followed it is resumed.
        if outcome == Outcome::Interrupted && !was_ours {
            self.resume(state, &run, now, events)?;
        }
        Ok(())
    }

    /// Waits for the runs of removed schedules. Their history is removed too, so that their outcomes
    /// are only reported.
    fn follow_removed(&mut self, events: &mut Vec<String>) {
        for mut state in std::mem::take(&mut self.removed) {
            let Some(run) = &mut state.run else { continue };
            let Some(child) = &mut run.child else {
                continue;
            };
            match child.try_wait() {
                Ok(None) => self.removed.push(state),
                Ok(Some(status)) => {
                    let end = RunEnd::Status(status);
                    let campaign = self.finder.find(&state.schedule, run.since);
                    let outcome = self.outcome(&state.schedule, end, campaign);
                    let name = &state.schedule.name;
                    events.push(format!("schedule {name}, which was removed: {outcome}"));
                }
                Err(_) => {}
            }
        }
    }

    fn outcome(
        &self,
        schedule: &Schedule,
        end: RunEnd,
        campaign: Option<FoundCampaign>,
    ) -> Outcome {
        let status = campaign.map(|campaign| campaign.status);
        end.outcome(status).unwrap_or_else(|| Outcome::Failed {
            reason: failure_reason(&self.book.folder_of(&schedule.name)),
        })
    }

    /// Records the outcome of a run.
    fn record_end(
        &self,
        state: &ScheduleState,
        run: &Run,
        end: RunEnd,
        now: Wall,
    ) -> Result<Outcome, BookError> {
        let schedule = &state.schedule;
        let campaign = self.finder.find(schedule, run.since);
        let outcome = self.outcome(schedule, end, campaign);
        let ended = Entry::Ended {
            due: run.due,
            at: now,
            outcome: outcome.clone(),
            campaign: campaign.map(|campaign| campaign.id),
        };
        self.book.note(&schedule.name, &ended)?;
        Ok(outcome)
    }

    /// Begins runs that are due, and records the others.
    fn begin_due(
        &self,
        state: &mut ScheduleState,
        now: Wall,
        events: &mut Vec<String>,
    ) -> Result<(), BookError> {
        let due = state.schedule.due(state.decided, now);
        let name = state.schedule.name.clone();
        if let Some(missed) = due.missed {
            let reason = if missed.first < self.began {
                CONTROLLER_NOT_RUNNING
            } else {
                CHECK_MISSED
            };
            self.book.note(&name, &Entry::missed(missed, reason))?;
            state.decided = Some(missed.last);
            let runs = counted(missed.count, "run");
            events.push(format!("schedule {name}: {runs} missed: {reason}"));
        }
        let Some(at) = due.now else {
            return Ok(());
        };
        state.decided = Some(at);
        if state.run.is_some() {
            let reason = "the run before was not over".to_owned();
            events.push(format!("schedule {name}: left out: {reason}"));
            return self.book.note(&name, &Entry::LeftOut { due: at, reason });
        }
        let begun = Entry::Begun {
            due: at,
            at: now,
            resumes: None,
        };
        self.book.note(&name, &begun)?;
        let run = Run {
            due: at,
            since: now,
            child: None,
        };
        self.start(state, &run, None, events)
    }

    /// Starts the process of a recorded run.
    fn start(
        &self,
        state: &mut ScheduleState,
        run: &Run,
        resumes: Option<CampaignId>,
        events: &mut Vec<String>,
    ) -> Result<(), BookError> {
        let schedule = &state.schedule;
        let name = &schedule.name;
        let files = self.book.folder_of(name);
        let spawned = self.folder.spawn(&files, schedule, resumes);
        match spawned {
            Ok(child) => {
                events.push(format!("schedule {name}: a run began"));
                state.run = Some(Run {
                    due: run.due,
                    since: run.since,
                    child: Some(child),
                });
                Ok(())
            }
            Err(error) => {
                let outcome = Outcome::Failed {
                    reason: error.to_string(),
                };
                events.push(format!("schedule {name}: {outcome}"));
                let ended = Entry::Ended {
                    due: run.due,
                    at: run.since,
                    outcome,
                    campaign: None,
                };
                self.book.note(name, &ended)
            }
        }
    }

    /// Asks the runs of this controller to end, and waits at most `patience` for them. Agents
    /// finish their orders; the next controller resumes open campaigns.
    ///
    /// # Errors
    /// A disk operation failed.
    pub fn stop(&mut self, now: &dyn Fn() -> Wall, patience: Duration) -> Result<(), BookError> {
        let children = self.states.values().filter_map(|state| state.run.as_ref());
        for child in children.filter_map(|run| run.child.as_ref()) {
            if let Err(error) = process::ask(child.id(), Request::End) {
                tracing::warn!("a run could not be ended: {error}");
            }
        }
        let deadline = clock::raw().0 + i64::try_from(patience.as_nanos()).unwrap_or(i64::MAX);
        loop {
            let names: Vec<AgentName> = self.states.keys().cloned().collect();
            let mut is_any_running = false;
            for name in names {
                let Some(mut state) = self.states.remove(&name) else {
                    continue;
                };
                if state.run.as_ref().is_some_and(|run| run.child.is_some()) {
                    self.follow(&mut state, now(), &mut Vec::new())?;
                    is_any_running |= state.run.is_some();
                }
                self.states.insert(name, state);
            }
            if !is_any_running || clock::raw().0 >= deadline {
                return Ok(());
            }
            clock::nap(CHECK_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests;
