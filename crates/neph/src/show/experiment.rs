//! Shows a stored experiment.

use neph_analysis::fleet_view;
use neph_campaign::retention::MergedMinutes;
use neph_documents::store_content::{
    ClassTransferRow, ExperimentDocument, ExperimentParts, ReducedFacts, RoutesFacts, TracedFacts,
    TracedPaths,
};
use neph_documents::trace::PathRow;
use neph_flows::build_diamond;
use neph_model::{
    Campaign, Diamond, Experiment, ExperimentId, FlowTrace, LatestRoutes, Scenario, UtcOffset,
};
use neph_store::{Store, StoreError};

use crate::exit::Failure;
use crate::list::{self, MAX_READ_MESSAGES};

/// Writes all data of the experiment.
pub(super) fn document(
    store: &dyn Store,
    campaign: &Campaign,
    experiment: &Experiment,
    offset: UtcOffset,
) -> Result<ExperimentDocument, Failure> {
    let scenarios = store.scenarios(campaign.id)?;
    let scenario = list::scenarios_by_id(scenarios).remove(&experiment.scenario);
    let load = scenario.as_ref().and_then(Scenario::stress);
    let load = load.map(str::to_owned);
    let is_transfer = scenario
        .as_ref()
        .is_some_and(|scenario| scenario.measure().is_transfer());
    let label = scenario.map_or_else(
        || experiment.scenario.to_string(),
        |scenario| scenario.label(),
    );
    let (traced_facts, latest_routes) =
        read_traced_routes(store, experiment.id).map_err(Failure::refused)?;
    let transfers = store.transfers(experiment.id)?;
    let provenance = store.provenance(experiment.id)?;
    Ok(ExperimentDocument::of(ExperimentParts {
        campaign,
        experiment,
        label,
        is_transfer,
        load,
        status: list::experiment_status(store, experiment)?,
        p50: list::median_of(store, experiment)?,
        events: &store.events(experiment.id)?,
        samples: &store.samples(experiment.id)?,
        provenance: provenance.as_ref(),
        transfers: ClassTransferRow::all(experiment, &transfers),
        reduced: reduced_facts(store, experiment)?,
        traced: traced_facts,
        paths: find_paths(store, experiment, latest_routes)?,
        offset,
    }))
}

/// The retained data of reduced messages.
fn reduced_facts(
    store: &dyn Store,
    experiment: &Experiment,
) -> Result<Option<ReducedFacts>, Failure> {
    let Some(reduction) = store.reduction(experiment.id)? else {
        return Ok(None);
    };
    let histogram = MergedMinutes::load(store, experiment)?;
    Ok(Some(ReducedFacts {
        at_unix_ns: reduction.at,
        minutes_removed_unix_ns: reduction.minutes_removed,
        minutes: histogram.minutes,
        min_ns: histogram.min(),
        p50_ns: histogram.quantile(500),
        p90_ns: histogram.quantile(900),
        p99_ns: histogram.quantile(990),
        max_ns: histogram.max(),
    }))
}

/// The paths of its flows by the latest trace, and incomplete routes.
fn find_paths(
    store: &dyn Store,
    experiment: &Experiment,
    latest_routes: LatestRoutes,
) -> Result<Option<TracedPaths>, Failure> {
    let mut traces = store.flow_traces(experiment.id)?;
    if let Some(fleet) = &experiment.fleet {
        traces.extend(latest_routes.traces(fleet, experiment.started));
    }
    let Some(trace) = traces.last() else {
        return Ok(None);
    };
    let mut path_diamond = build_diamond(&trace.routes);
    add_latencies(store, experiment, trace, &mut path_diamond)?;
    Ok(Some(TracedPaths {
        paths: PathRow::all(&path_diamond),
        incomplete: RoutesFacts::of(trace),
    }))
}

/// The routes that were traced while the fleet ran, with the path changes as found then, and the
/// latest route of each flow. Withdrawn changes could only be found from the messages.
fn read_traced_routes(
    store: &dyn Store,
    experiment: ExperimentId,
) -> Result<(Option<TracedFacts>, LatestRoutes), StoreError> {
    let mut latest_routes = LatestRoutes::default();
    let (mut routes, mut changes) = (0, Vec::new());
    store.visit_traced_routes(experiment, &mut |batch| {
        latest_routes.take(batch);
        for traced_route in batch {
            routes += 1;
            changes.extend(traced_route.change.map(|change| change.other_routers));
        }
        Ok(())
    })?;
    let facts = (routes > 0).then(|| TracedFacts::of(routes, changes));
    Ok((facts, latest_routes))
}

/// Adds the latest base latencies of their flows to paths whose traces have no RTT of the target:
/// traces of a fleet end before the target on purpose. Reads the messages of the fleet once, unless
/// there are too many.
pub(super) fn add_latencies(
    store: &dyn Store,
    experiment: &Experiment,
    trace: &FlowTrace,
    path_diamond: &mut Diamond,
) -> Result<(), Failure> {
    let has_all_round_trips = path_diamond
        .paths
        .iter()
        .all(|path| !path.round_trips.is_empty());
    if has_all_round_trips
        || experiment.tally.messages > MAX_READ_MESSAGES
        || store.reduction(experiment.id)?.is_some()
    {
        return Ok(());
    }
    let Some(view) = fleet_view(store, experiment).map_err(Failure::refused)? else {
        return Ok(());
    };
    let bases = view.latest_bases(trace.destination.ip());
    for path in &mut path_diamond.paths {
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
    use neph_flows::build_diamond;
    use neph_model::{
        Campaign, Fleet, FleetEndpoint, FleetMessage, FlowHop, FlowRoute, PathHash, ProbeKind,
        Span, TraceEnd, TraceKind, Wall,
    };
    use neph_store::{Access, open};

    use super::*;
    use crate::list::tests::message;

    fn experiment(campaign: &Campaign) -> Experiment {
        let scenario = neph_model::ScenarioId(1);
        let mut experiment = Experiment::new(campaign.id, scenario, campaign.started);
        experiment.fleet = Some(Fleet {
            probe: ProbeKind::Udp,
            slots: 1,
            endpoints: vec![FleetEndpoint {
                name: "here".to_owned(),
                address: ([192, 0, 2, 9], 862).into(),
            }],
            interval: Span::from_millis(100),
            lifetime: None,
            criteria: None,
        });
        experiment
    }

    /// The times of a path whose trace ended before its target.
    fn path_medians(messages: u64) -> Vec<Span> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        let mut store = open(&path, Access::Write).expect("a new workspace");
        let campaign = Campaign::new("traced", Wall::from_unix_nanos(0));
        store.add_campaign(&campaign, &[]).expect("added");
        let mut stored_experiment = experiment(&campaign);
        let mut recorder = store.begin(&stored_experiment).expect("begun");
        let fleet_messages: Vec<FleetMessage> = (0..40).map(message).collect();
        recorder.fleet(&fleet_messages).expect("recorded");
        drop(recorder);
        stored_experiment.tally.messages = messages;
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
        let mut path_diamond = build_diamond(&trace.routes);
        add_latencies(
            store.as_ref(),
            &stored_experiment,
            &trace,
            &mut path_diamond,
        )
        .expect("readable");
        path_diamond.paths.remove(0).round_trips
    }

    #[test]
    fn a_path_traced_short_of_its_target_has_the_round_trip_of_its_flows() {
        assert_eq!(path_medians(40), [Span::from_millis(7)]);
        assert_eq!(path_medians(MAX_READ_MESSAGES + 1), []);
    }
}
