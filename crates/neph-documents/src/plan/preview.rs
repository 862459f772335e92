//! What a plan will do and cost, before anything runs.

use std::io::{self, Write};

use neph_campaign::estimate::{Estimate, estimate, length};
use neph_campaign::plan::{Endpoint, Season};
use neph_campaign::rounds::groups;
use neph_campaign::{Plan, flow_sets, order};
use neph_model::{BlockOrder, ByteSize, Scenario, Span};
use neph_text::counted::counted;

use super::{rounds, time};

/// Writes the matrix, the order, the cost, the seasons and the alarms of a plan.
///
/// # Errors
/// It cannot be written.
pub fn write_preview(plan: &Plan, scenarios: &[Scenario], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{}: {} x {}",
        plan.name,
        counted(scenarios.len() as u64, "scenario"),
        counted(plan.blocks.into(), "block")
    )?;
    write_scenarios(out, scenarios)?;
    let cost = estimate(plan, scenarios);
    write_common_site(out, scenarios)?;
    write_lifetime(out, scenarios)?;
    write_order(out, plan, scenarios)?;
    writeln!(
        out,
        "cost: {}, {}, {} out, {} back (payload)",
        counted(cost.experiments, "experiment"),
        counted(cost.messages, "message"),
        cost.request_bytes,
        cost.response_bytes
    )?;
    writeln!(
        out,
        "time: {} a block, {} in all",
        time(cost.block),
        time(cost.total)
    )?;
    let is_unlimited_transfer = |scenario: &Scenario| {
        scenario.measure().is_transfer() && scenario.measure().target_rate().is_none()
    };
    if scenarios.iter().any(is_unlimited_transfer) {
        writeln!(
            out,
            "the bytes of transfers without a rate are not included"
        )?;
    }
    if scenarios.iter().any(|scenario| scenario.stress().is_some()) {
        writeln!(
            out,
            "loads: what stress sends, and the CPU time that it takes, come on top of that"
        )?;
    }
    write_traces(out, &cost)?;
    write_fleets(out, &cost)?;
    write_seasons(out, plan)?;
    write_alarms(out, plan)
}

/// Each scenario with its traffic and its duration.
fn write_scenarios(out: &mut impl Write, scenarios: &[Scenario]) -> io::Result<()> {
    // Wide enough for a label of four or five parameters.
    const MIN_WIDTH: usize = 58;
    let labels: Vec<String> = scenarios.iter().map(Scenario::label).collect();
    let widths = labels.iter().map(|label| label.chars().count() + 2);
    let width = widths.fold(MIN_WIDTH, usize::max);
    writeln!(
        out,
        "\n{:>4}  {:<width$}{:>9}{:>11}",
        "", "scenario", "messages", "length"
    )?;
    for (scenario, label) in scenarios.iter().zip(&labels) {
        let messages = if scenario.measure().is_transfer() {
            "-".to_owned()
        } else {
            scenario.messages_of_all_flows().to_string()
        };
        writeln!(
            out,
            "{:>4}  {label:<width$}{messages:>9}{:>11}",
            scenario.index + 1,
            length(scenario)
        )?;
    }
    Ok(())
}

/// The limits of the estimate: how often routers answer is unknown.
fn write_traces(out: &mut impl Write, cost: &Estimate) -> io::Result<()> {
    if cost.slow_traces == Span::ZERO {
        return Ok(());
    }
    writeln!(
        out,
        "traces of flows: up to {} more a block where a router answers once a second",
        time(cost.slow_traces)
    )
}

fn write_fleets(out: &mut impl Write, cost: &Estimate) -> io::Result<()> {
    if cost.fleet_bytes == ByteSize(0) {
        return Ok(());
    }
    writeln!(
        out,
        "disk: about {} for the fleets' messages, and up to {} more while they are measured",
        cost.fleet_bytes, cost.journal_bytes
    )
}

/// The site that measures, if all scenarios have the same: else labels contain it.
fn write_common_site(out: &mut impl Write, scenarios: &[Scenario]) -> io::Result<()> {
    match only_value(scenarios.iter().map(Scenario::site)) {
        Some(Some(site)) => writeln!(out, "\nmeasured from: {site}"),
        _ => Ok(()),
    }
}

/// The value that all have; `None` if they differ, or there is none.
fn only_value<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// The lifetime of flows, if all scenarios have the same: else labels contain it.
fn write_lifetime(out: &mut impl Write, scenarios: &[Scenario]) -> io::Result<()> {
    let lifetimes = scenarios
        .iter()
        .filter_map(|scenario| scenario.parameters.lifetime());
    match only_value(lifetimes) {
        Some(lifetime) => writeln!(
            out,
            "\nrenewal: each flow takes a new source port every {lifetime}"
        ),
        None => Ok(()),
    }
}

/// The times of the seasons. How long a campaign waits for them depends on its start.
fn write_seasons(out: &mut impl Write, plan: &Plan) -> io::Result<()> {
    for season in &plan.seasons {
        let topology = season.topology.as_ref();
        let topology = topology.map_or_else(String::new, |file| format!(", in {}", file.value));
        writeln!(
            out,
            "season {}: {}{topology}",
            season.name,
            season.hours_text()
        )?;
    }
    if plan.seasons.iter().all(Season::is_always_open) {
        return Ok(());
    }
    writeln!(out, "waiting for the seasons comes on top of the time")
}

/// The alarm rules: for each endpoint, or once if all have the same.
fn write_alarms(out: &mut impl Write, plan: &Plan) -> io::Result<()> {
    if !plan.has_alarms() {
        return Ok(());
    }
    let rules_text = |endpoint: &Endpoint| {
        let rules: Vec<&str> = endpoint
            .alarms
            .iter()
            .map(|alarm| alarm.text.as_str())
            .collect();
        match rules.as_slice() {
            [] => "none".to_owned(),
            rules => rules.join(", and "),
        }
    };
    if let Some(rules) = only_value(plan.endpoints.iter().map(rules_text)) {
        return writeln!(out, "alarms: {rules}");
    }
    for endpoint in &plan.endpoints {
        writeln!(out, "alarms of {}: {}", endpoint.name, rules_text(endpoint))?;
    }
    Ok(())
}

/// The order in which scenarios will run, if it is known, and which run at the same time.
fn write_order(out: &mut impl Write, plan: &Plan, scenarios: &[Scenario]) -> io::Result<()> {
    const MAX_SHOWN_BLOCKS: u32 = 10;
    let groups = groups(plan, scenarios);
    let count = u32::try_from(scenarios.len()).unwrap_or(u32::MAX);
    let plan_order: Vec<u32> = (0..count).collect();
    let turns = flow_sets::in_groups(&plan_order, &groups).len();
    let in_rounds = rounds::has_timetable(plan);
    if turns == 1 && scenarios.len() > 1 && !in_rounds {
        return writeln!(out, "\norder: all at the same time, in every block");
    }
    if in_rounds {
        rounds::write_timetable(out, plan, scenarios)?;
    } else if turns < scenarios.len() {
        writeln!(out, "\nturns: {}", order_text(&plan_order, &groups))?;
    }
    let seed = match (plan.order, plan.seed) {
        (BlockOrder::Sequential, _) => return writeln!(out, "\norder: as listed, in every block"),
        (BlockOrder::Random, None) => {
            return writeln!(
                out,
                "\norder: random within each block, seed drawn at the start"
            );
        }
        (BlockOrder::Random, Some(seed)) => seed,
    };
    writeln!(out, "\norder: random within each block, seed {seed}")?;
    for block in 0..plan.blocks.min(MAX_SHOWN_BLOCKS) {
        let order = order::order_of_block(plan.order, seed, block, count);
        writeln!(
            out,
            "  block {}: {}",
            block + 1,
            order_text(&order, &groups)
        )?;
    }
    Ok(())
}

/// `3, then 1 and 2 at the same time, then 4`; where nothing runs at the same time, `3 1 2 4`.
/// Scenarios that run at the same time have no order, so they are in the order of the plan.
fn order_text(order: &[u32], groups: &[u32]) -> String {
    let turns = flow_sets::in_groups(order, groups);
    let is_sequential = turns.iter().all(|turn| turn.len() == 1);
    let turn = |mut turn: Vec<u32>| {
        turn.sort_unstable();
        let mut numbers: Vec<String> = turn.iter().map(|index| (index + 1).to_string()).collect();
        match (numbers.pop(), numbers.is_empty()) {
            (Some(last), false) => format!("{} and {last} at the same time", numbers.join(", ")),
            (last, _) => last.unwrap_or_default(),
        }
    };
    let turns: Vec<String> = turns.into_iter().map(turn).collect();
    turns.join(if is_sequential { " " } else { ", then " })
}

#[cfg(test)]
mod tests {
    use neph_campaign::plan;
    use neph_text::Source;

    use super::{order_text, write_alarms};

    #[test]
    fn alarms_are_listed_per_endpoint_unless_all_are_equal() {
        let text_of = |plan_keys: &str, endpoint_keys: &str| {
            let text = format!(
                "version = 1\nname = \"p\"\ninterval = \"10ms\"\nduration = \"1min\"\n{plan_keys}\n\
                 [[endpoint]]\nname = \"a\"\nurl = \"udp://10.0.0.1\"\n\
                 [[endpoint]]\nname = \"b\"\nurl = \"udp://10.0.0.2\"\n{endpoint_keys}\n"
            );
            let plan = plan::parse(&Source::new("p.toml", text)).expect("a good plan");
            let mut out = Vec::new();
            write_alarms(&mut out, &plan).expect("it is written");
            String::from_utf8(out).expect("text")
        };
        let plan_keys = "alarm = [\"round_trip > 2ms p99\", \"network > 1ms p50 for 9s\"]";
        let both_rules = "round_trip > 2ms p99, and network > 1ms p50 for 9s";
        assert_eq!(text_of("", ""), "");
        assert_eq!(text_of(plan_keys, ""), format!("alarms: {both_rules}\n"));
        assert_eq!(
            text_of(plan_keys, "alarm = []"),
            format!("alarms of a: {both_rules}\nalarms of b: none\n")
        );
    }

    #[test]
    fn scenarios_that_run_at_the_same_time_are_described_in_words() {
        assert_eq!(order_text(&[2, 0, 1], &[0, 1, 2]), "3 1 2");
        assert_eq!(
            order_text(&[3, 2, 0, 1], &[0, 1, 0, 0]),
            "1, 3 and 4 at the same time, then 2"
        );
        assert_eq!(
            order_text(&[2, 1, 0], &[0, 0, 1]),
            "3, then 1 and 2 at the same time"
        );
    }
}
