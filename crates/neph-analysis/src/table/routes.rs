//! Routes: one row for each hop of each traceroute.

use neph_model::{Hop, Span, Traceroute};

use super::cells::{Cell, Column, Table};
use crate::{CampaignData, PlotSettings};

pub(crate) fn table(data: &CampaignData, settings: &PlotSettings) -> Table {
    let columns = [
        "endpoint",
        "from",
        "block",
        "destination",
        "hop",
        "addresses",
        "least_ms",
        "greatest_ms",
        "outcome",
    ];
    Table {
        name: "traceroute",
        title: "Routes",
        columns: columns.map(Column).to_vec(),
        rows: data.shown_routes(settings).flat_map(rows).collect(),
        notes: vec![
            "Routers answer late: their times are upper bounds. An empty hop did not answer; \
             where it is the last but one, the destination may be nearer."
                .to_owned(),
        ],
    }
}

fn rows(route: &Traceroute) -> Vec<Vec<Cell>> {
    let uncertain_length = route.length().filter(|length| !length.is_sure());
    let outcome = match (&route.failure, uncertain_length) {
        (Some(reason), _) => reason.clone(),
        (None, Some(length)) => format!("reached in at most {} hops", length.most),
        (None, None) if route.reached => "reached".to_owned(),
        (None, None) => "not reached".to_owned(),
    };
    let route_cells = || {
        vec![
            Cell::Text(route.endpoint.clone()),
            route.site.clone().map_or(Cell::Absent, Cell::Text),
            Cell::Integer(u64::from(route.block) + 1),
            Cell::Text(route.destination.to_string()),
        ]
    };
    if route.hops.is_empty() {
        let mut row = route_cells();
        row.extend([
            Cell::Absent,
            Cell::Absent,
            Cell::Absent,
            Cell::Absent,
            Cell::Text(outcome),
        ]);
        return vec![row];
    }
    let last = route.hops.len() - 1;
    let outcome_cell = |hop: usize| {
        if hop == last {
            Cell::Text(outcome.clone())
        } else {
            Cell::Absent
        }
    };
    let hops = route.hops.iter().enumerate();
    hops.map(|(index, hop)| {
        let mut row = route_cells();
        row.extend(times(hop));
        row.push(outcome_cell(index));
        row
    })
    .collect()
}

fn times(hop: &Hop) -> [Cell; 4] {
    let addresses: Vec<String> = hop.addresses.iter().map(ToString::to_string).collect();
    let min_rtt = hop.round_trips.iter().min().copied().map(Span::millis_f64);
    let max_rtt = hop.round_trips.iter().max().copied().map(Span::millis_f64);
    [
        Cell::Integer(u64::from(hop.ttl)),
        Cell::Text(addresses.join(" ")),
        Cell::real(min_rtt),
        Cell::real(max_rtt),
    ]
}
