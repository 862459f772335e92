//! What a fleet found beside its messages: transfers on the ports of its classes, and how many of its
//! routes and path changes were traced.

use neph_analysis::fleet_view;
use neph_flows::{Compared, completions};
use neph_model::{
    ClassTransfer, Diamond, Experiment, ExperimentId, FlowRoute, FlowTrace, LatestRoutes, Span,
};
use neph_store::{Store, StoreError};

use super::document::Pair;
use crate::exit::Failure;
use crate::list::MOST_READ;
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
    let (mut routes, mut said) = (0, Vec::new());
    store.visit_traced_routes(experiment, &mut |batch| {
        latest.take(batch);
        for traced in batch {
            routes += 1;
            said.extend(traced.change.map(|change| change.others));
        }
        Ok(())
    })?;
    if routes == 0 {
        return Ok((Vec::new(), latest));
    }
    let changes = said.len() as u64;
    let compared = Compared::of(said);
    let pairs = [
        ("routes", "routes", routes),
        (
            "after a path change, withdrawn later included",
            "after_change",
            changes,
        ),
        ("changes compared", "compared", compared.all()),
        ("by other routers", "other_routers", compared.others),
        ("by the same routers", "same_routers", compared.same),
        (
            "not compared: no route of the path before, or no router of both",
            "not_compared",
            changes - compared.all(),
        ),
    ];
    let pairs = pairs.map(|(name, key, count)| Pair::new(name, key, Cell::count(count)));
    let pairs = pairs.into();
    Ok((pairs, latest))
}

/// How complete the routes of flows are, where they are not: what no router and no target answered has
/// no path, and some routes end before the target on purpose.
pub(super) fn routes(trace: &FlowTrace) -> Vec<Pair> {
    let count =
        |is_so: fn(&FlowRoute) -> bool| trace.routes.iter().filter(|one| is_so(one)).count();
    let unanswered = count(FlowRoute::is_unanswered);
    let short = count(|route| !route.reached() && !route.is_unanswered());
    let told = [
        ("routes without the target", "without_target", short),
        (
            "flows that no router and no target answered",
            "unanswered",
            unanswered,
        ),
    ];
    let some = told.into_iter().filter(|(_, _, count)| *count > 0);
    some.map(|(name, key, count)| Pair::new(name, key, Cell::count(count as u64)))
        .collect()
}

/// Gives paths the latest base latencies of their flows where the traces themselves say nothing: the
/// routes of a fleet's flows end before the target on purpose. Reads the fleet's messages once, where
/// these are not more than people wait for.
pub(super) fn latencies(
    store: &dyn Store,
    experiment: &Experiment,
    trace: &FlowTrace,
    drawn: &mut Diamond,
) -> Result<(), Failure> {
    let is_told = drawn.paths.iter().all(|path| !path.round_trips.is_empty());
    if is_told || experiment.tally.messages > MOST_READ {
        return Ok(());
    }
    let Some(view) = fleet_view(store, experiment).map_err(Failure::refused)? else {
        return Ok(());
    };
    let bases = view.latest_bases(trace.destination.ip());
    for path in &mut drawn.paths {
        if path.round_trips.is_empty() {
            let ports = path.source_ports.iter();
            path.round_trips = ports.filter_map(|port| bases.get(port).copied()).collect();
            path.round_trips.sort_unstable();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use neph_flows::diamond;
    use neph_model::{
        Campaign, Fleet, FleetEndpoint, FleetMessage, FlowHop, FlowRoute, PathHash, ProbeKind,
        TraceEnd, TraceKind, Wall,
    };
    use neph_store::{Access, open};

    use super::*;
    use crate::list::tests::message;

    fn experiment(campaign: &Campaign) -> Experiment {
        let scenario = neph_model::ScenarioId(1);
        let mut one = Experiment::begun(campaign.id, scenario, campaign.started);
        one.fleet = Some(Fleet {
            probe: ProbeKind::Udp,
            lanes: 1,
            endpoints: vec![FleetEndpoint {
                name: "here".to_owned(),
                address: ([192, 0, 2, 9], 862).into(),
            }],
            interval: Span::from_millis(100),
            renewal: None,
            criteria: None,
        });
        one
    }

    /// What is told of a path whose trace ended before its target.
    fn told(messages: u64) -> Vec<Span> {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().display().to_string();
        let mut store = open(&place, Access::Write).expect("a new workspace");
        let campaign = Campaign::begun("traced", Wall::from_unix_nanos(0));
        store.add_campaign(&campaign, &[]).expect("added");
        let mut one = experiment(&campaign);
        let mut recorder = store.begin(&one).expect("begun");
        let all: Vec<FleetMessage> = (0..40).map(message).collect();
        recorder.fleet(&all).expect("recorded");
        drop(recorder);
        one.tally.messages = messages;
        let address = [192, 0, 2, 1].into();
        let trace = FlowTrace {
            destination: ([192, 0, 2, 9], 862).into(),
            kind: TraceKind::Udp,
            started: campaign.started,
            routes: vec![FlowRoute {
                source_port: 10_000,
                hops: vec![FlowHop::new(1, Some(address))],
                hash: PathHash::of(&[Some(address)]),
                end: TraceEnd::Silent,
            }],
            enough: None,
        };
        let mut drawn = diamond(&trace.routes);
        latencies(store.as_ref(), &one, &trace, &mut drawn).expect("readable");
        drawn.paths.remove(0).round_trips
    }

    #[test]
    fn routes_that_lack_the_target_or_everything_are_counted() {
        let route = |end, answered: bool| FlowRoute {
            source_port: 1,
            hops: answered
                .then(|| FlowHop::new(1, Some([192, 0, 2, 1].into())))
                .into_iter()
                .collect(),
            hash: PathHash::of(&[]),
            end,
        };
        let told = |ends: &[(TraceEnd, bool)]| {
            let trace = FlowTrace {
                destination: ([192, 0, 2, 9], 862).into(),
                kind: TraceKind::Syn,
                started: Wall::from_unix_nanos(0),
                routes: ends
                    .iter()
                    .map(|(end, known)| route(*end, *known))
                    .collect(),
                enough: None,
            };
            routes(&trace).len()
        };
        assert_eq!(told(&[(TraceEnd::Reached, true)]), 0);
        assert_eq!(told(&[(TraceEnd::Silent, true)]), 1);
        assert_eq!(told(&[(TraceEnd::Silent, false)]), 1);
        assert_eq!(
            told(&[(TraceEnd::Silent, true), (TraceEnd::Silent, false)]),
            2
        );
    }

    #[test]
    fn a_path_that_was_traced_short_of_its_target_takes_what_its_flows_take() {
        assert_eq!(told(40), [Span::from_millis(7)]);
        assert_eq!(told(MOST_READ + 1), []);
    }
}
