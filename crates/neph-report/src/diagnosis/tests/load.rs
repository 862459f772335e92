//! A load that the plan itself makes is named where it does the harm, and only there.

use neph_model::{ExperimentId, ScenarioId, Warning};

use super::number;
use super::world::World;
use crate::diagnosis::{Diagnosis, diagnose};
use crate::{CampaignData, FindingKind, PlotSettings};

const LOAD: &str = "vm2 98%, vm3 98%";

fn stressed(data: &mut CampaignData, load: &str) {
    for scenario in &mut data.scenarios {
        let stress = ("stress".to_owned(), load.to_owned());
        scenario.parameters.extend([stress]);
        scenario.varied = vec!["stress".to_owned()];
    }
}

/// The same scenario without the plan's load, and with it.
fn both(without: &World, with: &World) -> CampaignData {
    let (mut data, mut loaded) = (without.campaign(), with.campaign());
    stressed(&mut data, "none");
    stressed(&mut loaded, LOAD);
    for scenario in &mut loaded.scenarios {
        (scenario.index, scenario.id) = (1, ScenarioId(2));
    }
    for (place, one) in loaded.experiments.iter_mut().enumerate() {
        let mut id = [9; 16];
        id[0] = u8::try_from(place).unwrap();
        one.scenario = 1;
        (one.experiment.id, one.experiment.scenario) =
            (ExperimentId::from_bytes(id), ScenarioId(2));
    }
    data.scenarios.extend(loaded.scenarios);
    data.experiments.extend(loaded.experiments);
    data
}

fn causes(data: &CampaignData, rule: &str) -> Vec<Diagnosis> {
    let mut told = diagnose(data, &PlotSettings::default()).causes;
    told.retain(|one| one.rule == rule);
    told
}

fn thinks(think_ms: f64) -> World {
    World {
        think_ms,
        ..World::default()
    }
}

#[test]
fn a_server_that_is_slow_only_under_the_plan_s_load_is_not_to_be_profiled() {
    let told = causes(&both(&thinks(0.0), &thinks(30.0)), "slow-server");
    let [told] = told.as_slice() else {
        panic!("{told:#?}");
    };
    let words = "under the plan's load vm2 98%, vm3 98%, and ";
    assert!(told.cause.contains(words), "{}", told.cause);
    assert!(told.cause.contains("the load does it"), "{}", told.cause);
    assert!(!told.remedy.contains("profile"), "{}", told.remedy);
    assert!(told.remedy.contains("fewer neighbours"), "{}", told.remedy);
    assert!(number(told, "without the plan's load") < 1.0, "{told:#?}");
    assert!((told.cost_ms - 30.0).abs() < 1.0, "{told:#?}");
}

#[test]
fn a_server_that_is_as_slow_without_the_load_is_told_as_ever() {
    let told = causes(&both(&thinks(28.0), &thinks(30.0)), "slow-server");
    let [told] = told.as_slice() else {
        panic!("{told:#?}");
    };
    assert!(!told.cause.contains("load does it"), "{}", told.cause);
    assert!(told.remedy.starts_with("profile"), "{}", told.remedy);
}

#[test]
fn a_slow_server_that_a_load_makes_far_slower_is_two_causes() {
    let told = causes(&both(&thinks(10.0), &thinks(60.0)), "slow-server");
    let [load, own] = told.as_slice() else {
        panic!("{told:#?}");
    };
    assert!(load.cause.contains("load does it"), "{}", load.cause);
    assert!((number(load, "without the plan's load") - 10.0).abs() < 1.0);
    assert!(own.remedy.starts_with("profile"), "{}", own.remedy);
    assert!((own.cost_ms - 10.0).abs() < 1.0, "{own:#?}");
}

#[test]
fn where_nothing_is_measured_without_the_load_nobody_is_blamed_for_sure() {
    let mut data = thinks(30.0).campaign();
    stressed(&mut data, LOAD);
    let told = causes(&data, "slow-server");
    let [told] = told.as_slice() else {
        panic!("{told:#?}");
    };
    assert!(
        told.cause.contains("under the plan's load"),
        "{}",
        told.cause
    );
    assert!(!told.cause.contains("load does it"), "{}", told.cause);
    assert!(told.remedy.contains("stress = \"none\""), "{}", told.remedy);
}

#[test]
fn a_client_that_only_the_plan_s_load_starves_is_told_so() {
    let starved = |starved_ms| World {
        starved_ms,
        ..World::default()
    };
    let told = causes(&both(&starved(0.0), &starved(3.0)), "starved-client");
    let [told] = told.as_slice() else {
        panic!("{told:#?}");
    };
    let words = "under the plan's load vm2 98%, vm3 98%, which does it";
    assert!(told.cause.contains(words), "{}", told.cause);
    assert!(told.remedy.contains("load"), "{}", told.remedy);
    let told = causes(&both(&starved(3.0), &starved(3.0)), "starved-client");
    let [told] = told.as_slice() else {
        panic!("{told:#?}");
    };
    assert!(!told.cause.contains("the plan's load"), "{}", told.cause);
    assert!(told.cause.contains("in 2 of 2 scenarios"), "{}", told.cause);
}

#[test]
fn a_busy_host_is_asked_to_stop_other_programs_only_where_the_plan_makes_no_load() {
    let mut data = both(&thinks(0.0), &thinks(0.0));
    for one in &mut data.experiments {
        let busy = Warning::CpuSaturated { percent: 100.0 };
        one.experiment.warnings.push(busy);
    }
    let found = crate::findings(&data, &PlotSettings::default());
    let flagged = found.iter().filter(|one| one.kind == FindingKind::Flagged);
    let texts: Vec<&str> = flagged.map(|one| one.text.as_str()).collect();
    let [own, planned] = texts.as_slice() else {
        panic!("{texts:#?}");
    };
    assert!(own.contains("stop other programs"), "{own}");
    assert!(own.contains("stress none"), "{own}");
    assert!(!planned.contains("stop other programs"), "{planned}");
    assert!(
        planned.contains("makes the load vm2 98%, vm3 98%"),
        "{planned}"
    );
    assert!(planned.contains("5 more experiments"), "{planned}");
}
