//! Values for this crate's tests.

use neph_model::{
    CampaignId, Experiment, ExperimentId, Flow, FlowIndex, FlowRole, HostFacts, ProbeKind,
    Provenance, ScenarioId, Wall,
};

/// A running experiment with one flow.
pub(crate) fn experiment() -> Experiment {
    Experiment {
        flows: vec![Flow {
            index: FlowIndex(0),
            role: FlowRole::Main,
            probe: ProbeKind::Ws,
            name: "metro".to_owned(),
            source: None,
            target: "10.0.0.1:8080".parse().expect("an address"),
            reflector: true,
            same_clock: false,
        }],
        ..Experiment::new(
            CampaignId::new(),
            ScenarioId(7),
            Wall::from_unix_nanos(1_700_000_000_000_000_000),
        )
    }
}

/// A minimal provenance.
pub(crate) fn provenance(experiment: ExperimentId) -> Provenance {
    Provenance {
        experiment,
        version: "0.1.0".to_owned(),
        commit: "abc".to_owned(),
        plan_hash: "00".to_owned(),
        site: None,
        host: HostFacts::default(),
        load: None,
        lateness_p50: None,
        lateness_p99: None,
    }
}
