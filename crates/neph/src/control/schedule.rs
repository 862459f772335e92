//! `neph control schedule`: campaigns at intervals.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_control::{Book, Entry, Outcome as RunOutcome, SHORTEST_INTERVAL, Schedule};
use neph_documents::Format;
use neph_documents::agents::{ScheduleRow, ScheduledRunRow};
use neph_documents::rows;
use neph_model::{AgentName, Span, Wall};

use super::{ControlFolder, existing, now};
use crate::campaign::{check_agents, read};
use crate::exit::{Failure, Outcome};
use crate::workspace::Workspace;
use crate::{format, output, value, when};

/// Options of `neph control schedule`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Plan file to run, which the controller reads before each run; each site of the plan needs an agent
    #[arg(requires = "every")]
    plan: Option<PathBuf>,
    /// Time from the start of a run to the start of the next, at least 10s; the first run starts at once
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, requires = "plan")]
    every: Option<Span>,
    /// Start no run after this time: 2026-12-24T08:00:00Z, or a duration from now, such as 30d
    /// [default: no end]
    #[arg(long, value_name = "WHEN", value_parser = end, requires = "plan")]
    until: Option<ScheduleEnd>,
    /// Name of the schedule: 1 to 63 lower-case letters, digits and hyphens [default: the plan's file name]
    #[arg(long, value_name = "NAME", requires = "plan")]
    name: Option<AgentName>,
    /// Remove the schedule with this name; a run in progress continues
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plan", "runs"])]
    remove: Option<AgentName>,
    /// List the runs of the schedule with this name
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    runs: Option<AgentName>,
    #[command(flatten)]
    workspace: Workspace,
    #[command(flatten)]
    folder: ControlFolder,
    /// Output format
    #[arg(long, default_value = "text", value_parser = format::one_of(format::ALL))]
    format: Format,
}

/// The end of a schedule.
#[derive(Clone, Copy, Debug)]
enum ScheduleEnd {
    At(Wall),
    After(Span),
}

fn end(text: &str) -> Result<ScheduleEnd, String> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        let nanos = i64::try_from(at.as_nanosecond());
        let nanos = nanos.map_err(|_| "write a time before the year 2262".to_owned())?;
        return Ok(ScheduleEnd::At(Wall::from_unix_nanos(nanos)));
    }
    value::positive_span(text)
        .map(ScheduleEnd::After)
        .map_err(|_| {
            "write a time with its zone, such as 2026-12-24T08:00:00Z, or a length such as 30d"
                .to_owned()
        })
}

/// Carries the command out.
pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let folder = &args.folder.folder;
    let registry = existing(folder)?;
    let book = Book::in_folder(folder);
    if let Some(name) = &args.remove {
        book.remove(name).map_err(Failure::usage)?;
        output::say(&format!(
            "neph control: schedule {name} is removed; a run that it has begun goes on to its end"
        ));
        return Ok(Outcome::Done);
    }
    if let Some(name) = &args.runs {
        return runs(&book, name, args.format);
    }
    let (Some(plan), Some(every)) = (&args.plan, args.every) else {
        return list(&book, args.format);
    };
    let read = read(plan)?;
    if read.plan.agents.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no site with an agent: a controller schedules what agents measure; add [[site]] with name \
             and agent",
            plan.display()
        )));
    }
    check_agents(&read.plan, &registry, folder)?;
    let schedule = schedule(args, plan, every)?;
    book.add(&schedule).map_err(Failure::usage)?;
    output::say(&format!(
        "neph control: schedule {name} begins a run every {every} while a controller runs in {folder}. \
         neph control schedule --runs {name} lists them, --remove {name} ends it. Messages are kept for 30 days unless \
         neph control serve has another --keep-messages",
        name = schedule.name,
        every = every.exact(),
        folder = folder.display(),
    ));
    Ok(Outcome::Done)
}

fn schedule(args: &Args, plan: &Path, every: Span) -> Result<Schedule, Failure> {
    if every < SHORTEST_INTERVAL {
        return Err(Failure::usage(format!(
            "--every {}: write {} or more",
            every.exact(),
            SHORTEST_INTERVAL.exact()
        )));
    }
    let name = match &args.name {
        Some(name) => name.clone(),
        None => named_after(plan)?,
    };
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .map_err(|error| Failure::refused(format!("find {}: {error}", path.display())))
    };
    let from = now();
    let until = args.until.map(|end| match end {
        ScheduleEnd::At(at) => at,
        ScheduleEnd::After(span) => from + span,
    });
    if until.is_some_and(|until| until <= from) {
        return Err(Failure::usage(
            "--until lies in the past: no run would begin",
        ));
    }
    let workspace = args.workspace.folder();
    Ok(Schedule {
        name,
        plan: absolute(plan)?,
        folder: absolute(Path::new("."))?,
        workspace: absolute(&workspace)?.display().to_string(),
        every,
        from,
        until,
    })
}

/// The name of a plan's file, converted to the characters of schedule names.
fn named_after(plan: &Path) -> Result<AgentName, Failure> {
    let stem = plan.file_stem().unwrap_or_default().to_string_lossy();
    let letters = stem.chars().map(|stem| match stem.to_ascii_lowercase() {
        ascii_lowercase if ascii_lowercase.is_ascii_alphanumeric() => ascii_lowercase,
        _ => '-',
    });
    let name: String = letters.collect();
    name.trim_matches('-').parse().map_err(|_| {
        Failure::usage(format!(
            "{} gives no name; add --name with lower-case letters, digits and hyphens",
            plan.display()
        ))
    })
}

fn list(book: &Book, format: Format) -> Result<Outcome, Failure> {
    let mut rows = Vec::new();
    for schedule in book.schedules().map_err(Failure::refused)? {
        let history = book.history(&schedule.name).map_err(Failure::refused)?;
        rows.push(row(schedule, &history));
    }
    write(&rows, format)?;
    if rows.is_empty() {
        output::say(
            "neph control: there is no schedule; neph control schedule PLAN --every 1h adds one",
        );
    }
    Ok(Outcome::Done)
}

fn write<R: rows::Row>(rows: &[R], format: Format) -> Result<(), Failure> {
    let mut out = output::data();
    rows::write(rows, format, &mut out)?;
    out.flush()?;
    Ok(())
}

fn row(schedule: Schedule, history: &[Entry]) -> ScheduleRow {
    let runs = rows_of(history);
    let count = |fits: &dyn Fn(&ScheduledRunRow) -> bool| -> u64 {
        let fitting = runs.iter().filter(|run| fits(run));
        fitting.map(|run| run.count).sum()
    };
    let is_over = |run: &ScheduledRunRow| run.ended_unix_ns.is_some();
    let complete = |run: &ScheduledRunRow| is_over(run) && run.outcome.starts_with(COMPLETE);
    ScheduleRow {
        next_unix_ns: schedule.next(history.iter().map(Entry::due).max()),
        last: runs.last().map(|run| {
            let at = when::utc(run.due_unix_ns);
            format!("{at}: {}", run.outcome)
        }),
        complete: count(&complete),
        incomplete: count(&|run| is_over(run) && !complete(run)),
        missed: count(&|run| run.outcome.starts_with(MISSED_PREFIX)),
        skipped: count(&|run| run.outcome.starts_with(LEFT_OUT_PREFIX)),
        every_ns: schedule.every,
        until_unix_ns: schedule.until,
        plan: schedule.plan.display().to_string(),
        workspace: schedule.workspace,
        schedule: schedule.name,
    }
}

const COMPLETE: &str = "complete";
const MISSED_PREFIX: &str = "missed: ";
const LEFT_OUT_PREFIX: &str = "left out: ";

fn runs(book: &Book, name: &AgentName, format: Format) -> Result<Outcome, Failure> {
    let schedules = book.schedules().map_err(Failure::refused)?;
    if !schedules.iter().any(|schedule| schedule.name == *name) {
        return Err(Failure::usage(format!(
            "there is no schedule {name}; neph control schedule lists the schedules, and neph list the \
             campaigns, including those of removed schedules"
        )));
    }
    let history = book.history(name).map_err(Failure::refused)?;
    write(&rows_of(&history), format)?;
    Ok(Outcome::Done)
}

/// One row per run, with its latest status.
fn rows_of(history: &[Entry]) -> Vec<ScheduledRunRow> {
    let mut rows: Vec<ScheduledRunRow> = Vec::new();
    for entry in history {
        let mut row = ScheduledRunRow {
            due_unix_ns: entry.due(),
            count: 1,
            began_unix_ns: None,
            ended_unix_ns: None,
            campaign: None,
            outcome: String::new(),
        };
        match entry {
            Entry::Begun { due, at, resumes } => {
                let earlier = rows
                    .iter()
                    .position(|scheduled_run_row| scheduled_run_row.due_unix_ns == *due);
                let earlier = earlier.map(|index| rows.remove(index));
                row.began_unix_ns = earlier
                    .and_then(|scheduled_run_row| scheduled_run_row.began_unix_ns)
                    .or(Some(*at));
                row.campaign = *resumes;
                "running".clone_into(&mut row.outcome);
            }
            Entry::Ended {
                due,
                at,
                outcome,
                campaign,
            } => {
                let begun = rows
                    .iter()
                    .position(|scheduled_run_row| scheduled_run_row.due_unix_ns == *due);
                let begun = begun.map(|index| rows.remove(index));
                row.began_unix_ns =
                    begun.and_then(|scheduled_run_row| scheduled_run_row.began_unix_ns);
                row.ended_unix_ns = Some(*at);
                row.campaign = *campaign;
                row.outcome = outcome_text(outcome);
            }
            Entry::Missed {
                first,
                count,
                reason,
                ..
            } => {
                row.due_unix_ns = *first;
                row.count = *count;
                row.outcome = format!("{MISSED_PREFIX}{reason}");
            }
            Entry::LeftOut { reason, .. } => row.outcome = format!("{LEFT_OUT_PREFIX}{reason}"),
        }
        rows.push(row);
    }
    rows.sort_by_key(|row| row.due_unix_ns);
    rows
}

fn outcome_text(outcome: &RunOutcome) -> String {
    outcome.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_one_row_from_its_beginning_to_its_end() {
        let at = |seconds: i64| Wall::from_unix_nanos(seconds * 1_000_000_000);
        let begun = |due, now| Entry::Begun {
            due: at(due),
            at: at(now),
            resumes: None,
        };
        let ended = |due, now, outcome| Entry::Ended {
            due: at(due),
            at: at(now),
            outcome,
            campaign: None,
        };
        let history = [
            begun(100, 101),
            Entry::LeftOut {
                due: at(200),
                reason: "the run before was not over".to_owned(),
            },
            ended(100, 230, RunOutcome::Interrupted),
            begun(100, 240),
            ended(100, 250, RunOutcome::Complete),
            Entry::Missed {
                first: at(300),
                last: at(500),
                count: 3,
                reason: "x".to_owned(),
            },
            begun(600, 600),
        ];
        let rows = rows_of(&history);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.due_unix_ns,
                    row.count,
                    row.began_unix_ns,
                    row.outcome.as_str(),
                )
            })
            .collect();
        let expected = [
            (at(100), 1, Some(at(101)), "complete"),
            (at(200), 1, None, "left out: the run before was not over"),
            (at(300), 3, None, "missed: x"),
            (at(600), 1, Some(at(600)), "running"),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_end_is_a_time_or_a_length() {
        assert!(
            matches!(end("1970-01-01T00:00:01Z"), Ok(ScheduleEnd::At(at)) if at.unix_nanos() == 1_000_000_000)
        );
        assert!(matches!(end("2h"), Ok(ScheduleEnd::After(span)) if span == Span::from_secs(7200)));
        assert!(end("soon").is_err());
    }

    #[test]
    fn a_schedule_is_named_after_its_plan() {
        let with_name = |path: &str| named_after(Path::new(path)).map(|name| name.to_string());
        assert_eq!(
            with_name("plans/Two Sites.toml").ok().as_deref(),
            Some("two-sites")
        );
        assert!(with_name("plans/….toml").is_err());
    }
}
