//! An experiment: what it carried out, how its messages ended, and what is needed to doubt it.

use std::collections::BTreeMap;

use neph_flows::diamond;
use neph_model::{
    Campaign, Event, Experiment, Fleet, Flow, Provenance, Sample, Scenario, Span, Tally, UtcOffset,
};
use neph_store::Store;
use serde_json::json;

use super::document::{Document, Pair};
use super::found;
use crate::exit::Failure;
use crate::list;
use crate::sheet::{Cell, Column, Sheet};

/// Everything about it.
pub(super) fn document(
    store: &dyn Store,
    (campaign, experiment): (&Campaign, &Experiment),
    offset: UtcOffset,
) -> Result<Document, Failure> {
    let scenarios = store.scenarios(campaign.id).map_err(Failure::refused)?;
    let scenario = list::by_id(scenarios).remove(&experiment.scenario);
    let load = scenario
        .as_ref()
        .and_then(Scenario::stress)
        .map(str::to_owned);
    let label = scenario.map_or_else(|| experiment.scenario.to_string(), |known| known.label());
    let events = store.events(experiment.id).map_err(Failure::refused)?;
    let samples = store.samples(experiment.id).map_err(Failure::refused)?;
    let mut document = Document::default();
    let status = list::experiment_status(store, experiment)?;
    let facts = facts((campaign, experiment), (&label, status), offset);
    document.pairs("Experiment", "experiment", facts);
    document.pairs("Messages", "tally", tally(&experiment.tally));
    if let Some(known) = &experiment.fleet {
        document.pairs("Fleet", "fleet", fleet(known));
    }
    document.table("Flows", "flows", flows(&experiment.flows));
    let made = store.transfers(experiment.id).map_err(Failure::refused)?;
    if !made.is_empty() {
        let took = found::transfers(experiment, &made);
        document.table("Transfers on its classes' ports", "transfers", took);
    }
    let (followed, latest) = found::traced(store, experiment.id).map_err(Failure::refused)?;
    if !followed.is_empty() {
        document.pairs("Traced while it ran", "traced", followed);
    }
    let mut traces = store.flow_traces(experiment.id).map_err(Failure::refused)?;
    if let Some(fleet) = &experiment.fleet {
        traces.extend(latest.traces(fleet, experiment.started));
    }
    if let Some(trace) = traces.last() {
        let mut drawn = diamond(&trace.routes);
        found::latencies(store, experiment, trace, &mut drawn)?;
        document.table("Paths of its flows", "paths", crate::trace::paths(&drawn));
        let lacking = found::routes(trace);
        if !lacking.is_empty() {
            document.pairs("Its routes", "routes", lacking);
        }
    }
    document.table("Flags", "flags", flags(experiment, load.as_deref()));
    document.table("Events", "events", happened(&events));
    document.table("Series", "series", series(&samples));
    if let Some(known) = store.provenance(experiment.id).map_err(Failure::refused)? {
        document.pairs("Provenance", "provenance", provenance(&known));
        let (offloads, sysctls) = (&known.host.offloads, &known.host.sysctls);
        document.pairs("Offloads", "offloads", settings(offloads));
        document.pairs("Sysctls", "sysctls", settings(sysctls));
    }
    Ok(document)
}

fn facts(
    (campaign, experiment): (&Campaign, &Experiment),
    (label, status): (&str, Cell),
    offset: UtcOffset,
) -> Vec<Pair> {
    let ended = experiment
        .ended
        .map_or_else(Cell::absent, |at| list::moment(at, offset));
    let started = list::moment(experiment.started, offset);
    let whose = format!("{} ({})", campaign.name, campaign.id);
    let mut pairs = vec![
        Pair::new("id", "id", Cell::text(experiment.id.to_string())),
        Pair::new(
            "campaign",
            "campaign",
            Cell::new(whose, campaign.id.to_string()),
        ),
        Pair::new("scenario", "scenario", Cell::text(label)),
        Pair::new(
            "scenario id",
            "scenario_id",
            Cell::text(experiment.scenario.to_string()),
        ),
        Pair::new("block", "block", Cell::block(experiment.block)),
        Pair::new(
            "place in block",
            "position",
            Cell::count(experiment.position.into()),
        ),
        Pair::new("try", "attempt", Cell::count(experiment.attempt.into())),
        Pair::new("status", "status", status),
        Pair::new("started", "started_unix_ns", started),
        Pair::new("ended", "ended_unix_ns", ended),
    ];
    if let Some(reason) = &experiment.reason {
        pairs.push(Pair::new("reason", "reason", Cell::text(reason)));
    }
    pairs
}

fn tally(tally: &Tally) -> Vec<Pair> {
    let of = |name, key, n: u64| {
        let shown = format!("{n} ({})", list::share(n, tally.messages));
        Pair::new(name, key, Cell::new(shown, n))
    };
    vec![
        Pair::new("messages", "messages", Cell::count(tally.messages)),
        of("replies", "replies", tally.replies),
        of("errors", "errors", tally.errors),
        of("lost", "lost", tally.lost),
        of("not sent", "failed", tally.failed),
        of("duplicates", "duplicates", tally.duplicates),
        of("reordered", "reordered", tally.reordered),
        of("late replies", "late", tally.late),
    ]
}

fn fleet(fleet: &Fleet) -> Vec<Pair> {
    let span = |span: Span| Cell::new(span.exact(), span.nanos());
    let mut pairs = vec![
        Pair::new("flows", "lanes", Cell::count(fleet.lanes.into())),
        Pair::new("probe", "probe", Cell::text(fleet.probe.name())),
        Pair::new("interval", "interval_ns", span(fleet.interval)),
        Pair::new(
            "renewal",
            "renewal_ns",
            fleet.renewal.map_or_else(Cell::absent, span),
        ),
        Pair::new("changes told by", "criteria", Cell::text(criteria(fleet))),
    ];
    pairs.extend(fleet.endpoints.iter().map(|endpoint| {
        let whom = format!("{} ({})", endpoint.name, endpoint.address);
        Pair::new("endpoint", "endpoint", Cell::text(whom))
    }));
    pairs
}

/// `3 of 4 round trips within 500 us`.
fn criteria(fleet: &Fleet) -> String {
    let by = fleet.criteria.unwrap_or_default();
    let (quorum, window, tolerance) = (by.quorum, by.window, by.tolerance.exact());
    format!("{quorum} of {window} round trips within {tolerance}")
}

fn flows(flows: &[Flow]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::right("FLOW", "flow"),
        Column::left("ROLE", "role"),
        Column::left("PROBE", "probe"),
        Column::left("NAME", "name"),
        Column::left("SOURCE", "source"),
        Column::left("TARGET", "target"),
        Column::left("PEER", "reflector"),
        Column::left("CLOCK", "same_clock"),
    ]);
    for flow in flows {
        let peer = if flow.reflector {
            "neph reflector"
        } else {
            "not ours"
        };
        let clock = if flow.same_clock {
            "the same"
        } else {
            "its own"
        };
        let source = flow.source.map(|address| address.to_string());
        sheet.rows.push(vec![
            Cell::count(flow.index.0.into()),
            Cell::text(flow.role.name()),
            Cell::text(flow.probe.name()),
            Cell::text(&flow.name),
            source.map_or_else(Cell::absent, Cell::text),
            target(flow),
            Cell::new(peer, flow.reflector),
            Cell::new(clock, flow.same_clock),
        ]);
    }
    sheet
}

fn flags(experiment: &Experiment, load: Option<&str>) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("FLAG", "flag"),
        Column::left("ADVICE", "advice"),
    ]);
    let made = experiment.load_made(load);
    for warning in &experiment.warnings {
        let flag = Cell::new(warning.to_string(), json!(warning));
        sheet.rows.push(vec![
            flag,
            Cell::text(warning.advice_under(made.as_deref().as_slice())),
        ]);
    }
    sheet
}

fn happened(events: &[Event]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::right("AT", "at_ns"),
        Column::right("FLOW", "flow"),
        Column::left("EVENT", "kind"),
        Column::left("IN WORDS", "text"),
    ]);
    for event in events {
        sheet.rows.push(vec![
            Cell::new(Span::from_nanos(event.at).to_string(), event.at),
            Cell::count(event.flow.0.into()),
            Cell::text(event.kind.name()),
            Cell::text(&event.text),
        ]);
    }
    sheet
}

/// Each series with its range; the values are in the JSON.
fn series(samples: &[Sample]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("SERIES", "series"),
        Column::right("SAMPLES", "count"),
        Column::right("LEAST", "min"),
        Column::right("MOST", "max"),
        Column::left("", "values"),
    ]);
    for group in samples.chunk_by(|a, b| a.series == b.series) {
        let values = || group.iter().map(|sample| sample.value);
        let (least, most) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        );
        let pairs: Vec<(i64, f64)> = group.iter().map(|s| (s.at, s.value)).collect();
        sheet.rows.push(vec![
            Cell::text(group[0].series.to_string()),
            Cell::count(group.len() as u64),
            Cell::new(format!("{least:.1}"), least),
            Cell::new(format!("{most:.1}"), most),
            Cell::new("", json!(pairs)),
        ]);
    }
    sheet
}

/// An imported flow may not tell whom it was for.
fn target(flow: &Flow) -> Cell {
    if flow.target.ip().is_unspecified() && flow.target.port() == 0 {
        return Cell::absent();
    }
    Cell::text(flow.target.to_string())
}

fn provenance(known: &Provenance) -> Vec<Pair> {
    let host = &known.host;
    let span = |span: Option<Span>| {
        span.map_or_else(Cell::absent, |at| Cell::new(at.to_string(), at.nanos()))
    };
    let percent = |value: f64| {
        if value.is_finite() {
            Cell::new(format!("{value:.1} %"), value)
        } else {
            Cell::absent()
        }
    };
    let optional = |text: &Option<String>| text.clone().map_or_else(Cell::absent, Cell::text);
    // Nobody measured how busy the host of an imported experiment was.
    let load = match known.load.load_average {
        load if load.is_finite() => Cell::new(format!("{load:.2}"), load),
        _ => Cell::absent(),
    };
    let build = format!("{} ({})", known.version, known.commit);
    vec![
        Pair::new("neph", "neph", Cell::text(build)),
        Pair::new("plan SHA-256", "plan_hash", Cell::known(&known.plan_hash)),
        Pair::new("namespace", "site", optional(&known.site)),
        Pair::new("host", "host", Cell::known(&host.host)),
        Pair::new("kernel", "kernel", Cell::known(&host.kernel)),
        Pair::new("CPU", "cpu", Cell::known(&host.cpu)),
        Pair::new(
            "clock source",
            "clock_source",
            Cell::known(&host.clock_source),
        ),
        Pair::new("clock", "clock_sync", Cell::known(&host.clock_sync)),
        Pair::new(
            "congestion control",
            "congestion_control",
            optional(&host.congestion_control),
        ),
        Pair::new("lateness p50", "lateness_p50_ns", span(known.lateness_p50)),
        Pair::new("lateness p99", "lateness_p99_ns", span(known.lateness_p99)),
        Pair::new("CPU busy", "busy_percent", percent(known.load.busy_percent)),
        Pair::new(
            "CPU stolen",
            "steal_percent",
            percent(known.load.steal_percent),
        ),
        Pair::new("load average", "load_average", load),
    ]
}

/// Settings by their names.
fn settings(settings: &BTreeMap<String, String>) -> Vec<Pair> {
    let pair = |(name, value): (&String, &String)| Pair::new(name, name, Cell::text(value));
    settings.iter().map(pair).collect()
}
