//! `neph control schedule`: campaigns at intervals.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use neph_control::{Book, Entry, Outcome as RunOutcome, SHORTEST_INTERVAL, Schedule};
use neph_documents::Format;
use neph_documents::agents::{ScheduleRow, ScheduledRunRow};
use neph_documents::{rows, wall_time};
use neph_model::{AgentName, Span, Wall};

use super::{ControlFolder, now, open_registry};
use crate::campaign::{check_agents, load_plan};
use crate::exit::{Failure, Outcome};
use crate::workspace::Workspace;
use crate::{format, output, value};

/// Options of `neph control schedule`.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Plan file to run, which the controller reads before each run; each site of the plan needs an agent
    #[arg(requires = "every")]
    plan: Option<PathBuf>,
    /// Time from the start of a run to the start of the next, at least 10s; the first run starts at once
    #[arg(long, value_name = "TIME", value_parser = value::positive_span, requires = "plan")]
    every: Option<Span>,
    /// Start no run at this time or later: 2026-12-24T08:00:00Z, or a duration from now, such as 30d
    /// [default: no end]
    #[arg(long, value_name = "WHEN", value_parser = parse_end, requires = "plan")]
    until: Option<ScheduleEnd>,
    /// Name of the schedule: 1 to 63 lower-case letters, digits and hyphens [default: the plan's file name]
    #[arg(long, value_name = "NAME", requires = "plan")]
    name: Option<AgentName>,
    /// Remove the schedule with this name and its list of runs; campaigns stay, and a run in progress continues
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

fn parse_end(text: &str) -> Result<ScheduleEnd, String> {
    if let Ok(timestamp) = text.parse::<jiff::Timestamp>() {
        let nanos = i64::try_from(timestamp.as_nanosecond());
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
    let registry = open_registry(folder)?;
    let book = Book::in_folder(folder);
    if let Some(name) = &args.remove {
        return remove(&book, name);
    }
    if let Some(name) = &args.runs {
        return list_runs(&book, name, args.format);
    }
    let (Some(plan), Some(interval)) = (&args.plan, args.every) else {
        return list(&book, args.format);
    };
    let plan_source = load_plan(plan)?;
    if plan_source.plan.agents.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no site with an agent: a controller schedules what agents measure; add [[site]] with name \
             and agent",
            plan.display()
        )));
    }
    check_agents(&plan_source.plan, &registry, folder)?;
    let schedule = build_schedule(args, plan, interval)?;
    book.add(&schedule).map_err(Failure::usage)?;
    output::say(&format!(
        "neph control: schedule {name} begins a run every {interval}{end} while a controller runs in {folder}. \
         neph control schedule --runs {name} lists them, --remove {name} ends it. Messages are kept for 30 days unless \
         neph control serve has another --keep-messages",
        name = schedule.name,
        interval = interval.exact(),
        end = schedule
            .until
            .map_or_else(String::new, |end| format!(" until {}", wall_time::utc(end))),
        folder = folder.display(),
    ));
    Ok(Outcome::Done)
}

fn remove(book: &Book, name: &AgentName) -> Result<Outcome, Failure> {
    let removed = book.remove(name).map_err(Failure::usage)?;
    let workspace = removed.map_or_else(String::new, |schedule| {
        let location = schedule.workspace;
        Workspace { location }.option()
    });
    output::say(&format!(
        "neph control: schedule {name} and its list of runs are removed; a run in progress continues to its \
         end. neph list{workspace} shows its campaigns"
    ));
    Ok(Outcome::Done)
}

fn build_schedule(args: &Args, plan: &Path, interval: Span) -> Result<Schedule, Failure> {
    if interval < SHORTEST_INTERVAL {
        return Err(Failure::usage(format!(
            "--every {}: write {} or more",
            interval.exact(),
            SHORTEST_INTERVAL.exact()
        )));
    }
    let name = match &args.name {
        Some(name) => name.clone(),
        None => name_from_plan(plan)?,
    };
    let to_absolute = |path: &Path| {
        std::path::absolute(path)
            .map_err(|error| Failure::refused(format!("find {}: {error}", path.display())))
    };
    let start = now();
    let end = args.until.map(|schedule_end| match schedule_end {
        ScheduleEnd::At(time) => time,
        ScheduleEnd::After(span) => start + span,
    });
    if end.is_some_and(|end| end <= start) {
        return Err(Failure::usage(
            "--until lies in the past: no run would begin",
        ));
    }
    let workspace = args.workspace.folder();
    Ok(Schedule {
        name,
        plan: to_absolute(plan)?,
        folder: to_absolute(Path::new("."))?,
        workspace: to_absolute(&workspace)?.display().to_string(),
        every: interval,
        from: start,
        until: end,
    })
}

/// The name of a plan's file, converted to the characters of schedule names.
fn name_from_plan(plan: &Path) -> Result<AgentName, Failure> {
    let stem = plan.file_stem().unwrap_or_default().to_string_lossy();
    let letters = stem
        .chars()
        .map(|letter| match letter.to_ascii_lowercase() {
            lowercase if lowercase.is_ascii_alphanumeric() => lowercase,
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
        rows.push(build_row(schedule, &history));
    }
    write_rows(&rows, format)?;
    if rows.is_empty() {
        output::say(
            "neph control: there is no schedule; neph control schedule PLAN --every 1h adds one",
        );
    }
    Ok(Outcome::Done)
}

fn write_rows<R: rows::Row>(rows: &[R], format: Format) -> Result<(), Failure> {
    let mut out = output::data();
    rows::write(rows, format, &mut out)?;
    out.flush()?;
    Ok(())
}

fn build_row(schedule: Schedule, history: &[Entry]) -> ScheduleRow {
    let runs = build_run_rows(history);
    let count_runs = |is_counted: &dyn Fn(&ScheduledRunRow) -> bool| -> u64 {
        let counted_runs = runs.iter().filter(|run| is_counted(run));
        counted_runs.map(|run| run.count).sum()
    };
    let is_over = |run: &ScheduledRunRow| run.ended_unix_ns.is_some();
    let is_complete =
        |run: &ScheduledRunRow| is_over(run) && run.outcome.starts_with(COMPLETE_PREFIX);
    ScheduleRow {
        next_unix_ns: schedule.next(history.iter().map(Entry::due).max()),
        last: runs.last().map(|run| {
            let due_text = wall_time::utc(run.due_unix_ns);
            format!("{due_text}: {}", run.outcome)
        }),
        complete: count_runs(&is_complete),
        incomplete: count_runs(&|run| is_over(run) && !is_complete(run)),
        missed: count_runs(&|run| run.outcome.starts_with(MISSED_PREFIX)),
        skipped: count_runs(&|run| run.outcome.starts_with(SKIPPED_PREFIX)),
        every_ns: schedule.every,
        until_unix_ns: schedule.until,
        plan: schedule.plan.display().to_string(),
        workspace: schedule.workspace,
        schedule: schedule.name,
    }
}

const COMPLETE_PREFIX: &str = "complete";
const MISSED_PREFIX: &str = "missed: ";
const SKIPPED_PREFIX: &str = "left out: ";

fn list_runs(book: &Book, name: &AgentName, format: Format) -> Result<Outcome, Failure> {
    let schedules = book.schedules().map_err(Failure::refused)?;
    if !schedules.iter().any(|schedule| schedule.name == *name) {
        return Err(Failure::usage(format!(
            "there is no schedule {name}; neph control schedule lists the schedules, and neph list the \
             campaigns, including those of removed schedules"
        )));
    }
    let history = book.history(name).map_err(Failure::refused)?;
    write_rows(&build_run_rows(&history), format)?;
    Ok(Outcome::Done)
}

/// One row per run, with its latest status.
fn build_run_rows(history: &[Entry]) -> Vec<ScheduledRunRow> {
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
                let earlier_row = rows
                    .iter()
                    .position(|scheduled_run_row| scheduled_run_row.due_unix_ns == *due);
                let earlier_row = earlier_row.map(|index| rows.remove(index));
                row.began_unix_ns = earlier_row
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
                let begun_row = rows
                    .iter()
                    .position(|scheduled_run_row| scheduled_run_row.due_unix_ns == *due);
                let begun_row = begun_row.map(|index| rows.remove(index));
                row.began_unix_ns =
                    begun_row.and_then(|scheduled_run_row| scheduled_run_row.began_unix_ns);
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
            Entry::LeftOut { reason, .. } => row.outcome = format!("{SKIPPED_PREFIX}{reason}"),
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
        let wall_at = |seconds: i64| Wall::from_unix_nanos(seconds * 1_000_000_000);
        let begun_entry = |due, now| Entry::Begun {
            due: wall_at(due),
            at: wall_at(now),
            resumes: None,
        };
        let ended_entry = |due, now, outcome| Entry::Ended {
            due: wall_at(due),
            at: wall_at(now),
            outcome,
            campaign: None,
        };
        let history = [
            begun_entry(100, 101),
            Entry::LeftOut {
                due: wall_at(200),
                reason: "the run before was not over".to_owned(),
            },
            ended_entry(100, 230, RunOutcome::Interrupted),
            begun_entry(100, 240),
            ended_entry(100, 250, RunOutcome::Complete),
            Entry::Missed {
                first: wall_at(300),
                last: wall_at(500),
                count: 3,
                reason: "x".to_owned(),
            },
            begun_entry(600, 600),
        ];
        let rows = build_run_rows(&history);
        let actual: Vec<_> = rows
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
            (wall_at(100), 1, Some(wall_at(101)), "complete"),
            (
                wall_at(200),
                1,
                None,
                "left out: the run before was not over",
            ),
            (wall_at(300), 3, None, "missed: x"),
            (wall_at(600), 1, Some(wall_at(600)), "running"),
        ];
        assert_eq!(actual, expected);
    }

    #[test]
    fn an_end_is_a_time_or_a_length() {
        assert!(
            matches!(parse_end("1970-01-01T00:00:01Z"), Ok(ScheduleEnd::At(at)) if at.unix_nanos() == 1_000_000_000)
        );
        assert!(
            matches!(parse_end("2h"), Ok(ScheduleEnd::After(span)) if span == Span::from_secs(7200))
        );
        assert!(parse_end("soon").is_err());
    }

    #[test]
    fn a_schedule_is_named_after_its_plan() {
        let name_of = |path: &str| name_from_plan(Path::new(path)).map(|name| name.to_string());
        assert_eq!(
            name_of("plans/Two Sites.toml").ok().as_deref(),
            Some("two-sites")
        );
        assert!(name_of("plans/….toml").is_err());
    }
}
