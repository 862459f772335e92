//! The timetable of a block, as `neph plan` prints it.

use std::io::{self, Write};

use neph_campaign::Plan;
use neph_campaign::rounds::{PlanRounds, ResourceUsage, rounds};
use neph_model::{Scenario, Span};

use super::time;

/// Maximum number of rounds that are printed one by one.
const MAX_ROUNDS: usize = 40;

/// Whether a plan has a timetable to show: several sites, or a period.
pub(super) fn has_timetable(plan: &Plan) -> bool {
    !plan.agents.is_empty() || plan.strict_block_interval.is_some()
}

/// Writes the rounds of a block, their least possible duration, and the traffic of each resource.
pub(super) fn write_timetable(
    out: &mut impl Write,
    plan: &Plan,
    scenarios: &[Scenario],
) -> io::Result<()> {
    let plan_rounds = rounds(plan, scenarios);
    let table = &plan_rounds.table;
    let count = table.rounds.len();
    write!(out, "\nrounds: {count}, {} in all", time(table.makespan))?;
    if plan_rounds.sequential_duration > table.makespan {
        let sequential_duration = time(plan_rounds.sequential_duration);
        write!(
            out,
            " ({sequential_duration} one experiment after the other)"
        )?;
    }
    writeln!(out)?;
    if !plan.agents.is_empty() {
        write_bound(out, &plan_rounds)?;
    }
    if let Some(interval) = &plan.strict_block_interval {
        writeln!(out, "every: a block begins every {}", time(interval.value))?;
    }
    if plan.agents.is_empty() {
        return Ok(());
    }
    write_rounds(out, &plan_rounds)?;
    write_usage(out, &plan_rounds.usage)
}

fn write_bound(out: &mut impl Write, plan_rounds: &PlanRounds) -> io::Result<()> {
    let (makespan, bound) = (plan_rounds.table.makespan, &plan_rounds.table.bound);
    if bound.span == Span::ZERO {
        return Ok(());
    }
    let percent = (plan_rounds.table.ratio() - 1.0) * 100.0;
    let excess_text = if makespan > bound.span {
        format!(", the rounds take {percent:.0} % more")
    } else {
        String::new()
    };
    let (span, reason) = (time(bound.span), &bound.reason);
    writeln!(out, "bound: {span}{excess_text} ({reason})")
}

fn write_rounds(out: &mut impl Write, plan_rounds: &PlanRounds) -> io::Result<()> {
    writeln!(
        out,
        "\n{:>7}  {:>11}  scenarios at the same time",
        "round", "length"
    )?;
    let scenarios = plan_rounds.scenarios().take(MAX_ROUNDS);
    for ((number, round), scenarios) in (1_usize..).zip(&plan_rounds.table.rounds).zip(scenarios) {
        let numbers: Vec<String> = scenarios
            .iter()
            .map(|index| (index + 1).to_string())
            .collect();
        writeln!(
            out,
            "{number:>7}  {:>11}  {}",
            time(round.length),
            numbers.join(", ")
        )?;
    }
    match plan_rounds.table.rounds.len().saturating_sub(MAX_ROUNDS) {
        0 => Ok(()),
        more => writeln!(out, "         and {more} more"),
    }
}

fn write_usage(out: &mut impl Write, usage: &[ResourceUsage]) -> io::Result<()> {
    let names: Vec<String> = usage
        .iter()
        .map(|resource_usage| resource_usage.resource.to_string())
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .fold(8, usize::max);
    writeln!(
        out,
        "\n{:<width$}  {:>11}  {:>9}  {:>9}",
        "resource", "busy", "requests", "replies"
    )?;
    for (resource_usage, name) in usage.iter().zip(&names) {
        writeln!(
            out,
            "{name:<width$}  {:>11}  {:>9}  {:>9}",
            time(resource_usage.busy_time),
            resource_usage.request_bytes.to_string(),
            resource_usage.response_bytes.to_string()
        )?;
    }
    Ok(())
}
