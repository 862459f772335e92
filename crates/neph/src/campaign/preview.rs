//! `neph plan`: the matrix, the order, and what it will cost, before anything runs.

use std::io::Write;

use neph_campaign::estimate::{Estimate, estimate, length};
use neph_campaign::{Plan, expand, order};
use neph_model::{ByteSize, Order, Span};

use super::{PlanArgs, read};
use crate::exit::{Failure, Outcome};
use crate::output;

/// Shows what a plan would do.
pub(crate) fn run(args: &PlanArgs) -> Result<Outcome, Failure> {
    let read = read(&args.plan)?;
    let plan = &read.plan;
    let scenarios = expand::scenarios(plan);
    let mut out = output::data();
    writeln!(
        out,
        "{}: {} scenarios x {} blocks",
        plan.name,
        scenarios.len(),
        plan.blocks
    )?;
    writeln!(
        out,
        "\n{:>4}  {:<58}{:>9}{:>11}",
        "", "scenario", "messages", "length"
    )?;
    for scenario in &scenarios {
        let (number, label) = (scenario.index + 1, scenario.label());
        let length = length(scenario);
        writeln!(
            out,
            "{number:>4}  {label:<58}{:>9}{length:>11}",
            scenario.messages_of_all_flows()
        )?;
    }
    let cost = estimate(plan, &scenarios);
    tell_order(&mut out, plan, scenarios.len())?;
    writeln!(
        out,
        "cost: {} experiments, {} messages, {} out, {} back (payload)",
        cost.experiments, cost.messages, cost.request_bytes, cost.response_bytes
    )?;
    writeln!(
        out,
        "time: {} a block, {} in all",
        time(cost.block),
        time(cost.whole)
    )?;
    tell_fleets(&mut out, &cost)?;
    tell_seasons(&mut out, plan)?;
    if cost.outlasts_interval(plan) {
        output::say("neph: a block takes longer than block_interval, so each starts late");
    }
    for note in &plan.notes {
        output::say(&format!("neph: {note}"));
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn tell_fleets(out: &mut impl Write, cost: &Estimate) -> std::io::Result<()> {
    if cost.fleet_bytes == ByteSize(0) {
        return Ok(());
    }
    writeln!(
        out,
        "disk: about {} for the fleets' messages",
        cost.fleet_bytes
    )
}

/// When the seasons are. How long a campaign waits for them depends on when it begins.
fn tell_seasons(out: &mut impl Write, plan: &Plan) -> std::io::Result<()> {
    for season in &plan.seasons {
        writeln!(out, "season {}: {}", season.name, season.when())?;
    }
    if plan.seasons.is_empty() {
        return Ok(());
    }
    writeln!(out, "waiting for the seasons comes on top of the time")
}

/// The order in which scenarios will run, where it is known already.
fn tell_order(out: &mut impl Write, plan: &Plan, scenarios: usize) -> std::io::Result<()> {
    const SHOWN: u32 = 10;
    let seed = match (plan.order, plan.seed) {
        (Order::Sequential, _) => return writeln!(out, "\norder: as listed, in every block"),
        (Order::Random, None) => {
            return writeln!(
                out,
                "\norder: random within each block, seed drawn at the start"
            );
        }
        (Order::Random, Some(seed)) => seed,
    };
    writeln!(out, "\norder: random within each block, seed {seed}")?;
    let count = u32::try_from(scenarios).unwrap_or(u32::MAX);
    for block in 0..plan.blocks.min(SHOWN) {
        let order = order::order_of_block(plan.order, seed, block, count);
        let numbers: Vec<String> = order.iter().map(|at| (at + 1).to_string()).collect();
        writeln!(out, "  block {}: {}", block + 1, numbers.join(" "))?;
    }
    Ok(())
}

/// Hours, minutes and seconds.
pub(super) fn time(span: Span) -> String {
    let seconds = span.nanos() / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
