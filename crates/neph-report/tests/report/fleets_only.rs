//! A report over experiments that have a fleet and no messages of a single flow: nothing breaks,
//! and the fleet's messages come out of the store one by one.

use neph_analysis::{
    CampaignData, Include, PlotSettings, diagnose, findings, load, summary, tables,
};
use neph_model::{
    ExperimentStatus, Fleet, FleetEndpoint, FleetMessage, FleetOutcome, FlowRole, Instant,
    Parameter, ProbeKind, Slot, Span, Targets,
};
use neph_report::{diagnoses_in_brief, draw, text, write_report};
use neph_store::{Access, open};
use std::num::NonZeroU32;

use crate::synthetic::{self, CONTINENT, METRO};

/// Every experiment measures a fleet; echoes go on beside it, or not even those.
fn campaign_of_fleets(keep_echoes: impl Fn(usize) -> bool) -> CampaignData {
    let mut data = synthetic::campaign_over(&[METRO, CONTINENT], 6);
    for scenario in &mut data.scenarios {
        let target = scenario.target.to_string().replace("ws://", "udp://");
        scenario.target = Targets::read(target.trim_end_matches('/'), ProbeKind::Udp);
        let flows = NonZeroU32::new(512).expect("some");
        scenario.parameters.insert(Parameter::Flows(flows));
    }
    for (index, experiment) in data.experiments.iter_mut().enumerate() {
        let keeps = keep_echoes(index);
        let stays = |role| role != FlowRole::Main && keeps;
        experiment.flows.retain(|flow| stays(flow.flow.role));
        experiment.experiment.flows.retain(|flow| stays(flow.role));
        experiment.experiment.fleet = Some(Fleet {
            probe: ProbeKind::Udp,
            slots: 512,
            endpoints: vec![FleetEndpoint {
                name: "metro".to_owned(),
                address: ([192, 0, 2, 1], 862).into(),
            }],
            interval: Span::from_millis(200),
            lifetime: None,
            criteria: None,
        });
    }
    data
}

#[test]
fn findings_tables_figures_diagnosis_and_page_stand_without_a_main_flow() {
    for data in [
        campaign_of_fleets(|_| true),
        campaign_of_fleets(|_| false),
        campaign_of_fleets(|index| index % 2 == 0),
    ] {
        let settings = PlotSettings::default();
        let actual = diagnose(&data, &settings);
        assert!(actual.fleets_only && actual.not_evaluated.is_empty());
        let brief = diagnoses_in_brief(&actual, 200);
        assert_eq!(
            brief.lines().count(),
            1,
            "one sentence, not one a rule: {brief}"
        );
        assert!(!findings(&data, &settings).is_empty());
        let _rows = summary(&data, &settings);
        let _tables = tables(&data, &settings);
        let _figures = draw(&data, &settings);
        let folder = tempfile::tempdir().unwrap();
        let files = write_report(&data, &settings, &actual, folder.path()).unwrap();
        assert!(files[0].exists());
        assert!(!text(&data, &settings, &actual, 100).is_empty());
    }
}

#[test]
fn a_campaign_loads_with_the_messages_of_its_fleets() {
    let data = campaign_of_fleets(|_| false);
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(&folder.path().to_string_lossy(), Access::Write).unwrap();
    store.add_campaign(&data.campaign, &data.scenarios).unwrap();
    let mut experiment = data.experiments[0].experiment.clone();
    experiment.status = ExperimentStatus::Running;
    let mut recorder = store.begin(&experiment).unwrap();
    let message = |n: u32| FleetMessage {
        slot: Slot(n % 512),
        source_port: 40_000 + u16::try_from(n % 512).unwrap(),
        seq: n / 512,
        sent: Instant::from_nanos(i64::from(n)),
        late: Span::ZERO,
        outcome: FleetOutcome::Lost,
    };
    let messages: Vec<FleetMessage> = (0..2_000).map(message).collect();
    recorder.fleet(&messages).unwrap();
    experiment.status = ExperimentStatus::Complete;
    let provenance = data.experiments[0].provenance.clone().unwrap();
    store.finish(recorder, &experiment, &provenance).unwrap();

    let loaded = load(store.as_ref(), &data.campaign, Include::Complete).unwrap();
    assert_eq!(loaded.experiments[0].experiment.fleet, experiment.fleet);
    let view = loaded.experiments[0].fleet.as_ref().unwrap();
    assert_eq!(view.flows.len(), 512);
    let lost: u64 = view.flows.iter().map(|flow| flow.tally.lost).sum();
    assert_eq!(lost, 2_000);
}
