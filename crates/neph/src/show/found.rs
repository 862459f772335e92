//! What a fleet found beside its messages: transfers on the ports of its classes, and how many of its
//! routes and path changes were traced.

use neph_flows::completions;
use neph_model::{ClassTransfer, Experiment, ExperimentId, LatestRoutes, Span};
use neph_store::{Store, StoreError};

use super::document::Pair;
use crate::sheet::{Cell, Column, Sheet};

/// How long transfers took, by endpoint and class.
pub(super) fn transfers(experiment: &Experiment, made: &[ClassTransfer]) -> Sheet {
    let mut sheet = Sheet::new(&[
        Column::left("ENDPOINT", "endpoint"),
        Column::right("CLASS", "class"),
        Column::right("TRANSFERS", "n"),
        Column::right("FAILED", "failed"),
        Column::right("PORTS", "ports"),
        Column::right("MEDIAN", "median_ns"),
        Column::right("LOW", "low_ns"),
        Column::right("HIGH", "high_ns"),
        Column::right("RATIO", "ratio"),
    ]);
    let span = |span: Option<Span>| {
        span.map_or_else(Cell::absent, |span| {
            Cell::new(span.to_string(), span.nanos())
        })
    };
    let endpoints = experiment.fleet.iter().flat_map(|fleet| &fleet.endpoints);
    for (place, endpoint) in endpoints.enumerate() {
        let own = made.iter().filter(|one| one.endpoint == place);
        for one in completions(own) {
            let ratio = |ratio: f64| Cell::new(format!("{ratio:.3}"), ratio);
            sheet.rows.push(vec![
                Cell::text(&endpoint.name),
                Cell::count(one.class as u64 + 1),
                Cell::count(one.n),
                Cell::count(one.failed),
                Cell::count(one.ports),
                span(one.median),
                span(one.interval.map(|(low, _)| low)),
                span(one.interval.map(|(_, high)| high)),
                one.ratio.map_or_else(Cell::absent, ratio),
            ]);
        }
    }
    sheet
}

/// How many routes were traced while the fleet ran, and what they say of path changes, as it was
/// written then: which of these were withdrawn later takes the messages to tell. Nothing without any. And
/// the latest route of each flow.
pub(super) fn traced(
    store: &dyn Store,
    experiment: ExperimentId,
) -> Result<(Vec<Pair>, LatestRoutes), StoreError> {
    let mut latest = LatestRoutes::default();
    let (mut routes, mut changes, mut others, mut same) = (0, 0, 0, 0);
    store.visit_traced_routes(experiment, &mut |batch| {
        latest.take(batch);
        for traced in batch {
            routes += 1;
            let Some(change) = traced.change else {
                continue;
            };
            changes += 1;
            match change.others {
                Some(true) => others += 1,
                Some(false) => same += 1,
                None => {}
            }
        }
        Ok(())
    })?;
    if routes == 0 {
        return Ok((Vec::new(), latest));
    }
    let pairs = vec![
        Pair::new("routes", "routes", Cell::count(routes)),
        Pair::new(
            "after a path change, withdrawn later included",
            "after_change",
            Cell::count(changes),
        ),
        Pair::new("by other routers", "other_routers", Cell::count(others)),
        Pair::new("by the same routers", "same_routers", Cell::count(same)),
    ];
    Ok((pairs, latest))
}
