//! From the embedded store to the same numbers.

use std::error::Error;

use neph_analysis::{
    CampaignData, Cell, ExperimentData, Include, PlotSettings, load, summary, tables,
};
use neph_flows::{Digest, Settings};
use neph_model::{
    ByteSize, ClassTransfer, Criteria, ExperimentStatus, FleetMessage, FlowIndex, FlowRoute,
    Instant, Message, PathHash, Slot, SourcePortOutcome, SourcePortTransfer, Span, TraceEnd,
    TracedChange, TracedRoute,
};
use neph_report::draw;
use neph_stats::Random;
use neph_store::{Access, open};

use crate::synthetic::{self, CONTINENT, fleet};

/// A campaign of one experiment, with the messages it was made from.
fn with_messages() -> (CampaignData, Vec<Message>) {
    let mut data = synthetic::one_experiment();
    let messages = synthetic::messages(&data.scenarios[0], &CONTINENT, &mut Random::new(3));
    let before = &data.experiments[0];
    let mut experiment = ExperimentData::new(before.experiment.clone(), 0, &messages);
    experiment.provenance.clone_from(&before.provenance);
    data.experiments = vec![experiment];
    (data, messages)
}

/// Writes a campaign of one scenario and its messages into a workspace and reads it again.
fn store_and_load(
    data: &CampaignData,
    messages: &[Message],
    status: ExperimentStatus,
    include: Include,
) -> Result<CampaignData, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("workspace");
    let mut store = open(&path.to_string_lossy(), Access::Write)?;
    store.add_campaign(&data.campaign, &data.scenarios)?;
    let mut experiment = data.experiments[0].experiment.clone();
    experiment.status = ExperimentStatus::Running;
    let mut recorder = store.begin(&experiment)?;
    recorder.messages(messages)?;
    for trace in &data.experiments[0].traces {
        store.add_flow_trace(experiment.id, trace)?;
    }
    experiment.status = status;
    let provenance = data.experiments[0]
        .provenance
        .clone()
        .ok_or("a synthetic one has it")?;
    store.finish(recorder, &experiment, &provenance)?;
    Ok(load(store.as_ref(), &data.campaign, include)?)
}

/// Writes a campaign of one fleet and its messages into a workspace and reads it again.
fn stored_fleet(
    data: &CampaignData,
    messages: &[FleetMessage],
    (routes, transfers): (&[TracedRoute], &[ClassTransfer]),
) -> Result<CampaignData, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("workspace");
    let mut store = open(&path.to_string_lossy(), Access::Write)?;
    store.add_campaign(&data.campaign, &data.scenarios)?;
    let experiment = data.experiments[0].experiment.clone();
    let mut recorder = store.begin(&experiment)?;
    recorder.fleet(messages)?;
    store.add_traced_routes(experiment.id, routes)?;
    store.add_transfers(experiment.id, transfers)?;
    let provenance = data.experiments[0].provenance.clone().ok_or("none")?;
    store.finish(recorder, &experiment, &provenance)?;
    Ok(load(store.as_ref(), &data.campaign, Include::Complete)?)
}

#[test]
fn a_stored_campaign_gives_the_same_summary() {
    let (data, messages) = with_messages();
    let loaded = store_and_load(
        &data,
        &messages,
        ExperimentStatus::Complete,
        Include::Complete,
    )
    .unwrap();
    let settings = PlotSettings::default();
    assert_eq!(summary(&loaded, &settings), summary(&data, &settings));
    assert_eq!(
        loaded.experiments[0].provenance,
        data.experiments[0].provenance
    );
    assert!(messages.iter().any(|message| message.flow == FlowIndex(1)));
}

#[test]
fn incomplete_experiments_are_left_out_by_default() {
    let (data, messages) = with_messages();
    for status in [ExperimentStatus::Interrupted, ExperimentStatus::Failed] {
        let usual = store_and_load(&data, &messages, status, Include::Complete).unwrap();
        assert_eq!((usual.experiments.len(), usual.left_out.len()), (0, 1));
        let loaded_data = store_and_load(&data, &messages, status, Include::Everything).unwrap();
        assert_eq!(
            (loaded_data.experiments.len(), loaded_data.left_out.len()),
            (1, 0),
            "{status:?}"
        );
        let rows = summary(&loaded_data, &PlotSettings::default());
        assert!(rows[0].n > 0, "its messages are shown");
    }
}

#[test]
fn an_experiment_that_measured_nothing_breaks_no_report() {
    let (data, _) = with_messages();
    let failed = ExperimentStatus::Failed;
    let loaded_data = store_and_load(&data, &[], failed, Include::Everything).unwrap();
    let settings = PlotSettings::default();
    assert!(summary(&loaded_data, &settings).is_empty());
    let diagnoses = neph_analysis::diagnose(&loaded_data, &settings);
    let report_text = neph_report::text(&loaded_data, &settings, &diagnoses, 200);
    assert!(
        report_text.contains("1 experiment, 0 messages, 0 of them answered."),
        "{report_text}"
    );
    let folder = tempfile::tempdir().unwrap();
    neph_report::write_report(&loaded_data, &settings, &diagnoses, folder.path()).unwrap();
}

#[test]
fn a_stored_fleet_has_the_same_changes_as_the_live_fleet() {
    let (mut data, messages) = changing_fleet();
    let mut counts = Vec::new();
    for criteria in [
        None,
        Some(Criteria {
            tolerance: Span::from_millis(50),
            ..Criteria::default()
        }),
    ] {
        let mut fleet = UNSTABLE_MODEL.view().fleet;
        fleet.criteria = criteria;
        let mut live = Digest::new(&fleet, Settings::of(&fleet)).unwrap();
        for message in &messages {
            live.push(message);
        }
        live.finish();
        data.experiments[0].experiment.fleet = Some(fleet);
        let loaded = stored_fleet(&data, &messages, (&[], &[])).unwrap();
        let read = loaded.experiments[0].fleet.as_ref().unwrap();
        assert_eq!(read.changes, live.view().changes, "{criteria:?}");
        counts.push(read.changes.len());
    }
    assert!(counts[0] > counts[1], "{counts:?}");
}

/// The cells of the only row, from the fourth on: what stands before tells whose it is.
fn row_cells(data: &CampaignData, name: &str) -> Vec<Cell> {
    let all_tables = tables(data, &PlotSettings::default());
    let table = all_tables.iter().find(|table| table.name == name);
    let rows = &table.unwrap_or_else(|| panic!("there is no {name}")).rows;
    assert_eq!(rows.len(), 1);
    rows[0][3..].to_vec()
}

/// Flows that change their paths.
const UNSTABLE_MODEL: fleet::FleetModel = fleet::FleetModel {
    flows: 64,
    pairs: 1,
    seconds: 300,
    stability: fleet::PathStability::Unstable,
};

/// A campaign of them, and its messages.
fn changing_fleet() -> (CampaignData, Vec<FleetMessage>) {
    let (mut data, _) = with_messages();
    let (fleet, messages) = (UNSTABLE_MODEL.view().fleet, UNSTABLE_MODEL.messages());
    data.experiments[0].experiment.fleet = Some(fleet);
    (data, messages)
}

fn route(slot: Slot, source_port: u16, change: Option<TracedChange>) -> TracedRoute {
    TracedRoute {
        slot,
        at: Instant::from_nanos(1 << 40),
        route: FlowRoute {
            source_port,
            hops: Vec::new(),
            hash: PathHash(2),
            end: TraceEnd::Stopped,
        },
        change,
    }
}

/// The trace that was made for a change.
fn route_of(change: &neph_flows::PathChange, others: Option<bool>) -> TracedRoute {
    let traced_change = TracedChange {
        at: change.at,
        before: Some(PathHash(1)),
        other_routers: others,
    };
    route(change.slot, change.source_port, Some(traced_change))
}

#[test]
fn a_trace_speaks_for_the_change_that_it_was_made_for() {
    let (data, messages) = changing_fleet();
    let untraced = stored_fleet(&data, &messages, (&[], &[])).unwrap();
    let changes = &untraced.experiments[0].fleet.as_ref().unwrap().changes;
    let mut unknown_id = route_of(&changes[4], Some(true));
    unknown_id.route.source_port ^= 1;
    let routes = [
        route_of(&changes[0], Some(true)),
        route_of(&changes[1], Some(true)),
        route_of(&changes[2], Some(false)),
        route_of(&changes[3], None),
        unknown_id,
        route(Slot(0), changes[0].source_port, None),
    ];
    let loaded = stored_fleet(&data, &messages, (&routes, &[])).unwrap();
    let experiment = &loaded.experiments[0];
    let read = &experiment.fleet.as_ref().unwrap().changes;
    let verdicts: Vec<Option<bool>> = read.iter().map(|change| change.evidence.trace).collect();
    let first = [Some(true), Some(true), Some(false), None, None];
    assert_eq!(verdicts[..5], first);
    assert!(verdicts[5..].iter().all(Option::is_none));
    let count = read.len() as u64;
    let traced = [count, 3, 2, 1].map(Cell::Integer);
    assert_eq!(row_cells(&loaded, "flow-traced"), traced);
    let ports: usize = experiment
        .traces
        .iter()
        .map(|trace| trace.routes.len())
        .sum();
    assert!((1..=5).contains(&ports), "the latest route of each slot");
}

#[test]
fn transfers_are_a_table_of_classes() {
    let (data, messages) = changing_fleet();
    let transfer = |n: u16| ClassTransfer {
        endpoint: 0,
        class: 0,
        size: ByteSize(2048),
        transfer: SourcePortTransfer {
            source_port: 40_000 + n,
            pass: 0,
            begun: Instant::from_nanos(i64::from(n)),
            outcome: SourcePortOutcome::Done {
                connect: Span::from_millis(20),
                total: Span::from_millis(40 + i64::from(n)),
            },
        },
    };
    let transfers: Vec<ClassTransfer> = (0..3).map(transfer).collect();
    let loaded = stored_fleet(&data, &messages, (&[], &transfers)).unwrap();
    let row = row_cells(&loaded, "flow-transfers");
    let counts = [1, 2048, 3, 3, 0].map(Cell::Integer);
    let (absent, median) = (Cell::Absent, Cell::Real(41.0));
    let other_cells = [median, absent.clone(), absent, Cell::Real(1.0)];
    assert_eq!(row, [&counts[..], &other_cells].concat());
}

#[test]
fn where_nothing_was_traced_or_transferred_there_is_no_table_of_it() {
    let (data, messages) = changing_fleet();
    let loaded = stored_fleet(&data, &messages, (&[], &[])).unwrap();
    let all_tables = tables(&loaded, &PlotSettings::default());
    let absent = ["flow-traced", "flow-transfers"];
    assert!(
        all_tables
            .iter()
            .all(|table| !absent.contains(&table.name) || table.rows.is_empty())
    );
}

#[test]
fn the_paths_of_stored_traces_are_drawn() {
    let (mut data, messages) = with_messages();
    let fleet_model = fleet::FleetModel {
        flows: 64,
        pairs: 1,
        seconds: 300,
        stability: fleet::PathStability::Stable,
    };
    let traces = fleet_model.campaign().experiments.remove(0).traces;
    data.experiments[0].traces.clone_from(&traces);
    let complete = ExperimentStatus::Complete;
    let loaded = store_and_load(&data, &messages, complete, Include::Complete).unwrap();
    assert_eq!(loaded.experiments[0].traces, traces);
    let drawn = draw(&loaded, &PlotSettings::default());
    assert!(drawn.iter().any(|figure| figure.kind == "flow-paths"));
}

/// A name led to another machine from the second block on: two medians, not one of both.
#[test]
fn experiments_at_different_addresses_are_separate_scenarios() {
    let (data, messages) = with_messages();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("workspace");
    let mut store = open(&path.to_string_lossy(), Access::Write).unwrap();
    store.add_campaign(&data.campaign, &data.scenarios).unwrap();
    for block in 0..3 {
        let mut experiment = data.experiments[0].experiment.clone();
        experiment.id = neph_model::ExperimentId::new();
        experiment.block = block;
        if block > 0 {
            experiment.flows[0].target = "192.0.2.99:8080".parse().unwrap();
        }
        let mut recorder = store.begin(&experiment).unwrap();
        recorder.messages(&messages).unwrap();
        let mut provenance = data.experiments[0].provenance.clone().unwrap();
        provenance.experiment = experiment.id;
        store.finish(recorder, &experiment, &provenance).unwrap();
    }
    let loaded = load(store.as_ref(), &data.campaign, Include::Complete).unwrap();
    let labels: Vec<String> = loaded
        .scenarios
        .iter()
        .map(neph_model::Scenario::label)
        .collect();
    assert_eq!(loaded.scenarios.len(), data.scenarios.len() + 1);
    assert!(labels[0].ends_with("address 192.0.2.7"), "{labels:?}");
    assert!(
        labels.last().unwrap().ends_with("address 192.0.2.99"),
        "{labels:?}"
    );
    let rows = summary(&loaded, &PlotSettings::default());
    let experiments: Vec<(usize, usize)> = rows
        .iter()
        .filter(|row| row.layer.name() == rows[0].layer.name())
        .map(|row| (row.scenario, row.experiments))
        .collect();
    assert_eq!(experiments, [(0, 1), (loaded.scenarios.len() - 1, 2)]);
}
