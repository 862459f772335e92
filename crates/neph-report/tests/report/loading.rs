//! From the embedded store to the same numbers.

use std::error::Error;

use neph_flows::{Digest, Settings};
use neph_model::{Criteria, ExperimentStatus, FleetMessage, FlowIndex, Message, Span};
use neph_report::{CampaignData, ExperimentData, Include, PlotSettings, draw, load, summary};
use neph_stats::Random;
use neph_store::{Access, open};

use crate::synthetic::{self, CONTINENT, fleet};

/// A campaign of one experiment, with the messages it was made from.
fn with_messages() -> (CampaignData, Vec<Message>) {
    let mut data = synthetic::one();
    let messages = synthetic::messages(&data.scenarios[0], &CONTINENT, &mut Random::new(3));
    let before = &data.experiments[0];
    let mut experiment = ExperimentData::new(before.experiment.clone(), 0, &messages);
    experiment.provenance.clone_from(&before.provenance);
    data.experiments = vec![experiment];
    (data, messages)
}

/// Writes a campaign of one scenario and its messages into a workspace and reads it again.
fn through_a_store(
    data: &CampaignData,
    messages: &[Message],
    status: ExperimentStatus,
    include: Include,
) -> Result<CampaignData, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("workspace");
    let mut store = open(&place.to_string_lossy(), Access::Write)?;
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
) -> Result<CampaignData, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("workspace");
    let mut store = open(&place.to_string_lossy(), Access::Write)?;
    store.add_campaign(&data.campaign, &data.scenarios)?;
    let experiment = data.experiments[0].experiment.clone();
    let mut recorder = store.begin(&experiment)?;
    recorder.fleet(messages)?;
    let provenance = data.experiments[0].provenance.clone().ok_or("none")?;
    store.finish(recorder, &experiment, &provenance)?;
    Ok(load(store.as_ref(), &data.campaign, Include::Complete)?)
}

#[test]
fn a_stored_campaign_gives_the_same_summary() {
    let (data, messages) = with_messages();
    let loaded = through_a_store(
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
fn what_did_not_end_well_is_left_out_unless_asked_for() {
    let (data, messages) = with_messages();
    for status in [ExperimentStatus::Interrupted, ExperimentStatus::Failed] {
        let usual = through_a_store(&data, &messages, status, Include::Complete).unwrap();
        assert_eq!((usual.experiments.len(), usual.left_out.len()), (0, 1));
        let all = through_a_store(&data, &messages, status, Include::Everything).unwrap();
        assert_eq!(
            (all.experiments.len(), all.left_out.len()),
            (1, 0),
            "{status:?}"
        );
        let rows = summary(&all, &PlotSettings::default());
        assert!(rows[0].n > 0, "its messages are shown");
    }
}

#[test]
fn an_experiment_that_measured_nothing_breaks_no_report() {
    let (data, _) = with_messages();
    let failed = ExperimentStatus::Failed;
    let all = through_a_store(&data, &[], failed, Include::Everything).unwrap();
    let settings = PlotSettings::default();
    assert!(summary(&all, &settings).is_empty());
    let told = neph_report::diagnose(&all, &settings);
    let shown = neph_report::text(&all, &settings, &told, 200);
    assert!(
        shown.contains("1 experiment, 0 messages, 0 of them answered."),
        "{shown}"
    );
    let folder = tempfile::tempdir().unwrap();
    neph_report::write_report(&all, &settings, &told, folder.path()).unwrap();
}

#[test]
fn a_stored_fleet_shows_the_changes_that_were_told_live_whatever_they_were_told_by() {
    let (mut data, _) = with_messages();
    let world = fleet::World {
        flows: 64,
        pairs: 1,
        seconds: 300,
        mood: fleet::Mood::Wild,
    };
    let messages = world.messages();
    let mut found = Vec::new();
    for criteria in [
        None,
        Some(Criteria {
            tolerance: Span::from_millis(50),
            ..Criteria::default()
        }),
    ] {
        let mut fleet = world.view().fleet;
        fleet.criteria = criteria;
        let mut live = Digest::new(&fleet, Settings::of(&fleet)).unwrap();
        for message in &messages {
            live.push(message);
        }
        live.finish();
        data.experiments[0].experiment.fleet = Some(fleet);
        let loaded = stored_fleet(&data, &messages).unwrap();
        let read = loaded.experiments[0].fleet.as_ref().unwrap();
        assert_eq!(read.changes, live.view().changes, "{criteria:?}");
        found.push(read.changes.len());
    }
    assert!(found[0] > found[1], "{found:?}");
}

#[test]
fn the_paths_of_stored_traces_are_drawn() {
    let (mut data, messages) = with_messages();
    let world = fleet::World {
        flows: 64,
        pairs: 1,
        seconds: 300,
        mood: fleet::Mood::Quiet,
    };
    let traces = world.campaign().experiments.remove(0).traces;
    data.experiments[0].traces.clone_from(&traces);
    let complete = ExperimentStatus::Complete;
    let loaded = through_a_store(&data, &messages, complete, Include::Complete).unwrap();
    assert_eq!(loaded.experiments[0].traces, traces);
    let drawn = draw(&loaded, &PlotSettings::default());
    assert!(drawn.iter().any(|figure| figure.kind == "flow-paths"));
}
