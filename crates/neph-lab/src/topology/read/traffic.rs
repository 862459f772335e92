//! From a `[[traffic]]` table to a [`Traffic`].

use std::collections::BTreeSet;

use neph_model::Span;
use neph_text::{Fault, Fields, FromNode, Node};

use super::link::LinkEnds;
use super::{schedule, service, site};
use crate::topology::traffic::Traffic;

const MAX_STREAMS: u16 = 64;

/// All traffic of a topology.
pub(super) fn traffic(fields: &mut Fields<'_>, ends: LinkEnds<'_>) -> Vec<Traffic> {
    let mut transfers = Vec::new();
    let mut names = BTreeSet::new();
    for (number, table) in fields.tables("traffic").into_iter().enumerate() {
        let span = table.span();
        let Some(traffic) = read_traffic(table, number, ends) else {
            continue;
        };
        if !names.insert(traffic.name.clone()) {
            let message = format!("two transfers are called '{}'", traffic.name);
            fields.fault(span, message, "give each its own name");
        }
        transfers.push(traffic);
    }
    transfers
}

fn read_traffic(mut table: Fields<'_>, number: usize, ends: LinkEnds<'_>) -> Option<Traffic> {
    let name = table.optional_with("name", service::program_name);
    let from = service::site_index(&mut table, "from", ends);
    let to = service::site_index(&mut table, "to", ends);
    let at = table.optional_with("at", schedule::moment);
    let until = table.required_with("until", schedule::moment);
    let every = table.optional_with("every", schedule::period);
    let streams = table.optional_with("streams", stream_count);
    let congestion = table.optional_with("congestion", site::congestion_control);
    let at = at.map_or(Span::ZERO, |at| at.value);
    if let Some(until) = until.as_ref().filter(|until| until.value <= at) {
        let message = "this ends before it begins";
        table.fault(until.span.clone(), message, "write a time after 'at'");
    }
    if let (Some(until), Some(every)) = (&until, &every)
        && until.value > at
        && until.value - at >= every.value
    {
        let message = "this begins again before it ends";
        let remedy = "write an 'every' that is longer than from 'at' to 'until'";
        table.fault(every.span.clone(), message, remedy);
    }
    if from.is_some() && from == to {
        let message = "source and destination are the same site";
        table.fault(table.span(), message, "name two different sites");
    }
    // The routes of such a site are locked to its own.
    let locked = from.and_then(|from| ends.sites[from].congestion_control.as_ref());
    if let (Some(requested), Some(locked)) = (&congestion, locked)
        && requested.value != *locked
    {
        let message = format!("everything that this site sends uses {locked}");
        let remedy = "drop 'congestion' here, or congestion_control there";
        table.fault(requested.span.clone(), message, remedy);
    }
    table.finish();
    Some(Traffic {
        name: name.map_or_else(|| format!("traffic{}", number + 1), |name| name.value),
        from: from?,
        to: to?,
        at,
        until: until?.value,
        every: every.map(|every| every.value),
        streams: streams.map_or(1, |streams| streams.value),
        congestion: congestion.map(|congestion| congestion.value),
    })
}

fn stream_count(node: &Node) -> Result<u16, Fault> {
    match u16::from_node(node) {
        Ok(streams) if (1..=MAX_STREAMS).contains(&streams) => Ok(streams),
        _ => Err(Fault::new(
            "this is no number of connections",
            format!("write a whole number from 1 to {MAX_STREAMS}"),
        )),
    }
}
