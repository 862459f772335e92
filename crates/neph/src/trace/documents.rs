//! A trace for programs: JSON, a document a line, CSV. Times are integers of nanoseconds.

use std::io::{self, Write};

use neph_model::{Diamond, FlowHop, FlowRoute, FlowTrace, Span};
use neph_text::csv_field;
use serde_json::{Value, json};

/// One document.
pub(super) fn json(told: &FlowTrace, drawn: &Diamond, out: &mut dyn Write) -> io::Result<()> {
    let mut document = head(told)?;
    document["flows"] = serde_json::to_value(&told.routes)?;
    document["diamond"] = serde_json::to_value(drawn)?;
    writeln!(out, "{document:#}")
}

/// A line for each flow; the diamond last.
pub(super) fn ndjson(told: &FlowTrace, drawn: &Diamond, out: &mut dyn Write) -> io::Result<()> {
    for route in &told.routes {
        writeln!(
            out,
            "{}",
            json!({ "type": "flow", "flow": serde_json::to_value(route)? })
        )?;
    }
    let mut last = head(told)?;
    last["type"] = "diamond".into();
    last["diamond"] = serde_json::to_value(drawn)?;
    writeln!(out, "{last}")
}

fn head(told: &FlowTrace) -> io::Result<Value> {
    Ok(json!({
        "destination": told.destination.ip(),
        "port": told.destination.port(),
        "kind": serde_json::to_value(told.kind)?,
        "started_unix_ns": told.started.unix_nanos(),
        "enough_flows": told.enough,
    }))
}

const HEADING: &str =
    "source_port,path,ttl,address,others,asked,replies,best_ns,median_ns,worst_ns,read_by,labels";

/// A line for each hop of each flow.
pub(super) fn csv(told: &FlowTrace, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    for route in &told.routes {
        for hop in &route.hops {
            writeln!(out, "{}", row(route, hop)?)?;
        }
    }
    Ok(())
}

fn row(route: &FlowRoute, hop: &FlowHop) -> io::Result<String> {
    let others: Vec<String> = hop.others.iter().map(ToString::to_string).collect();
    let labels: Vec<String> = hop.labels.iter().map(|one| one.label.to_string()).collect();
    let [best, median, worst] = super::text::three(&hop.round_trips)
        .map(|span| span.map_or_else(String::new, |span: Span| span.nanos().to_string()));
    let read_by = serde_json::to_value(hop.read_by)?;
    let cells = [
        route.source_port.to_string(),
        route.hash.to_string(),
        hop.ttl.to_string(),
        hop.address.map_or_else(String::new, |one| one.to_string()),
        csv_field(&others.join(" ")).into_owned(),
        hop.asked.to_string(),
        hop.round_trips.len().to_string(),
        best,
        median,
        worst,
        csv_field(read_by.as_str().unwrap_or_default()).into_owned(),
        csv_field(&labels.join(" ")).into_owned(),
    ];
    Ok(cells.join(","))
}
