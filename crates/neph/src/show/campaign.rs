//! A campaign: its plan and matrix, its experiments, and what was measured once per block.

use neph_model::{
    BlockOrder, Campaign, Experiment, Hop, Scenario, Span, Throughput, ThroughputSecond,
    Traceroute, UtcOffset, Warning, reply_size_in_words,
};
use neph_store::Store;
use serde_json::json;

use super::document::{Document, Pair};
use super::pings;
use crate::exit::Failure;
use crate::list;
use crate::sheet::{Cell, Column, Sheet};

/// Everything about it.
pub(super) fn document(
    store: &dyn Store,
    campaign: &Campaign,
    offset: UtcOffset,
) -> Result<Document, Failure> {
    let scenarios = store.scenarios(campaign.id).map_err(Failure::refused)?;
    let experiments = store.experiments(campaign.id).map_err(Failure::refused)?;
    let checks = store.throughputs(campaign.id).map_err(Failure::refused)?;
    let routes = store.traceroutes(campaign.id).map_err(Failure::refused)?;
    let pings = store.pings_between(campaign.id).map_err(Failure::refused)?;
    let mut document = Document::default();
    let status = list::campaign_status(store, campaign)?;
    document.pairs("Campaign", "campaign", facts(campaign, status, offset));
    document.table("Scenarios", "scenarios", matrix(&scenarios));
    let rows = list::experiments(store, campaign, offset)?;
    document.table("Experiments", "experiments", rows);
    document.table("Flags", "flags", flags(&experiments, &scenarios));
    document.table("Throughput checks", "throughput", throughput(&checks));
    document.table("Traceroutes", "traceroutes", traceroutes(&routes));
    if !pings.is_empty() {
        document.table(
            "Pings between blocks",
            "pings_between",
            pings::sheet(&pings),
        );
    }
    document.quote("Plan", "plan", &campaign.plan_text);
    if let Some(topology) = &campaign.topology_text {
        document.quote("Topology", "topology", topology);
    }
    Ok(document)
}

fn facts(campaign: &Campaign, status: Cell, offset: UtcOffset) -> Vec<Pair> {
    let ended = campaign
        .ended
        .map_or_else(Cell::absent, |at| list::moment(at, offset));
    let order = match campaign.order {
        BlockOrder::Random => "random",
        BlockOrder::Sequential => "sequential",
    };
    let started = list::moment(campaign.started, offset);
    let mut pairs = vec![
        Pair::new("id", "id", Cell::text(campaign.id.to_string())),
        Pair::new("name", "name", Cell::text(&campaign.name)),
        Pair::new("status", "status", status),
        Pair::new("started", "started_unix_ns", started),
        Pair::new("ended", "ended_unix_ns", ended),
        Pair::new("blocks", "blocks", Cell::count(campaign.blocks.into())),
        Pair::new("order", "order", Cell::text(order)),
        Pair::new("seed", "seed", Cell::count(campaign.seed)),
        Pair::new("plan file", "plan_path", Cell::text(&campaign.plan_path)),
        Pair::new(
            "plan SHA-256",
            "plan_hash",
            Cell::known(&campaign.plan_hash),
        ),
    ];
    if let Some(hash) = &campaign.topology_hash {
        let title = "topology SHA-256";
        pairs.push(Pair::new(title, "topology_hash", Cell::text(hash)));
    }
    pairs
}

fn matrix(scenarios: &[Scenario]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::right("NO", "index"),
        Column::left("SCENARIO", "label"),
        Column::left("TARGET", "target"),
        Column::left("PROBE", "probe"),
        Column::right("INTERVAL", "interval_ns"),
        Column::right("REQUEST", "request_bytes"),
        Column::right("REPLY", "response_bytes"),
        Column::right("MESSAGES", "messages"),
        Column::left("FIXED", "parameters"),
    ]);
    for (one, label) in scenarios.iter().zip(Scenario::labels_apart(scenarios)) {
        let fixed = one.parameters.iter();
        let fixed: Vec<String> = fixed
            .map(|one| format!("{}={}", one.name(), one.text()))
            .collect();
        let (request, reply) = (one.request_size, one.response_size);
        let shown = reply_size_in_words(one.probe, reply);
        sheet.rows.push(vec![
            Cell::count(one.index.into()),
            Cell::new(label, one.label()),
            Cell::text(one.target.to_string()),
            Cell::text(one.probe.name()),
            Cell::new(one.interval.to_string(), one.interval.nanos()),
            Cell::new(request.to_string(), request.bytes()),
            Cell::new(shown, reply.bytes()),
            Cell::count(one.messages),
            Cell::new(fixed.join(" "), json!(one.parameters)),
        ]);
    }
    sheet
}

/// Each kind of warning once, with how many experiments have it and what to do about it; by load where
/// the plan makes one and that is what to know.
fn flags(experiments: &[Experiment], scenarios: &[Scenario]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::right("EXPERIMENTS", "experiments"),
        Column::left("FOR EXAMPLE", "example"),
        Column::left("ADVICE", "advice"),
    ]);
    let load = |one: &Experiment| {
        let scenario = scenarios.iter().find(|known| known.id == one.scenario);
        scenario.and_then(Scenario::stress)
    };
    let mut told: Vec<(&Warning, String, u64)> = Vec::new();
    for one in experiments {
        let made = one.load_made(load(one));
        for warning in &one.warnings {
            let advice = warning.advice_under(made.as_deref().as_slice());
            match told.iter_mut().find(|(_, other, _)| *other == advice) {
                Some((_, _, count)) => *count += 1,
                None => told.push((warning, advice, 1)),
            }
        }
    }
    for (warning, advice, count) in told {
        sheet.rows.push(vec![
            Cell::count(count),
            Cell::text(warning.to_string()),
            Cell::text(advice),
        ]);
    }
    sheet
}

fn throughput(checks: &[Throughput]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::right("BLOCK", "block"),
        Column::left("ENDPOINT", "endpoint"),
        Column::left("FROM", "site"),
        Column::left("TOOL", "tool"),
        Column::right("GOODPUT", "goodput_bits_per_s"),
        Column::right("RETRANSMISSIONS", "retransmissions"),
        Column::right("SPURIOUS", "spurious_retransmissions"),
        Column::left("BY SECOND", "seconds"),
        Column::left("FAILURE", "failure"),
    ]);
    for check in checks {
        let seconds = check.seconds.iter();
        let sum = |value: fn(&ThroughputSecond) -> u32| -> u64 {
            check.seconds.iter().map(|s| u64::from(value(s))).sum()
        };
        let goodputs: Vec<String> = seconds.map(|second| second.goodput.to_string()).collect();
        let goodput = check.goodput;
        // A check that failed found nothing, and not 0 bit/s.
        let known = |cell: &dyn Fn() -> Cell| match check.failure {
            None => cell(),
            Some(_) => Cell::absent(),
        };
        sheet.rows.push(vec![
            Cell::block(check.block),
            Cell::text(&check.endpoint),
            check.site.as_ref().map_or_else(Cell::absent, Cell::text),
            Cell::text(&check.tool),
            known(&|| Cell::new(goodput.to_string(), goodput.bits_per_second())),
            known(&|| Cell::count(sum(|second| second.retransmissions))),
            known(&|| Cell::count(sum(|second| second.spurious_retransmissions))),
            Cell::new(goodputs.join(", "), json!(check.seconds)),
            Cell::new(
                check.failure.clone().unwrap_or_default(),
                json!(check.failure),
            ),
        ]);
    }
    sheet
}

fn traceroutes(routes: &[Traceroute]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::right("BLOCK", "block"),
        Column::left("ENDPOINT", "endpoint"),
        Column::left("FROM", "site"),
        Column::left("DESTINATION", "destination"),
        Column::left("REACHED", "reached"),
        Column::left("LENGTH", "length"),
        Column::left("HOPS", "hops"),
        Column::left("FAILURE", "failure"),
    ]);
    for route in routes {
        let hops: Vec<String> = route.hops.iter().map(hop).collect();
        let reached = if route.reached { "yes" } else { "no" };
        sheet.rows.push(vec![
            Cell::block(route.block),
            Cell::text(&route.endpoint),
            route.site.as_ref().map_or_else(Cell::absent, Cell::text),
            Cell::text(route.destination.to_string()),
            Cell::new(reached, route.reached),
            length(route),
            Cell::new(hops.join(", "), json!(route.hops)),
            Cell::new(
                route.failure.clone().unwrap_or_default(),
                json!(route.failure),
            ),
        ]);
    }
    sheet
}

/// `3`, `at most 9`
fn length(route: &Traceroute) -> Cell {
    let Some(length) = route.length() else {
        return Cell::absent();
    };
    let shown = if length.is_sure() {
        length.most.to_string()
    } else {
        format!("at most {}", length.most)
    };
    Cell::new(shown, json!(length))
}

/// `3 10.0.0.1 4.02 ms`, `4 *`
fn hop(hop: &Hop) -> String {
    let addresses: Vec<String> = hop.addresses.iter().map(ToString::to_string).collect();
    let fastest: Option<&Span> = hop.round_trips.iter().min();
    match (addresses.is_empty(), fastest) {
        (true, _) => format!("{} *", hop.ttl),
        (false, None) => format!("{} {}", hop.ttl, addresses.join("/")),
        (false, Some(span)) => format!("{} {} {span}", hop.ttl, addresses.join("/")),
    }
}
