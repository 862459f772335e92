//! A load that the plan itself makes is named where it does the harm, and only there.

use neph_model::{ExperimentId, Outcome, Parameter, ParameterName, ProbeKind, ScenarioId, Warning};

use super::world::World;
use super::{causes, number};
use crate::diagnosis::Diagnosis;
use crate::{CampaignData, FindingKind, PlotSettings};

const LOAD: &str = "vm2 98%, vm3 98%";

fn set_load(data: &mut CampaignData, load: &str) {
    for scenario in &mut data.scenarios {
        let stress = Parameter::Stress(load.parse().expect("a load"));
        scenario.parameters.insert(stress);
        scenario.varied = vec![ParameterName::Stress];
    }
}

/// The same scenario without background load, and with it.
fn without_and_with(without: &World, with: &World) -> CampaignData {
    let (mut data, mut with_load) = (without.campaign(), with.campaign());
    set_load(&mut data, "none");
    set_load(&mut with_load, LOAD);
    let offset = data.scenarios.len();
    let new_id = |index: usize| ScenarioId(u64::try_from(offset + index).unwrap() + 1);
    for (index, scenario) in with_load.scenarios.iter_mut().enumerate() {
        scenario.index += u32::try_from(offset).unwrap();
        scenario.id = new_id(index);
    }
    for (index, experiment) in with_load.experiments.iter_mut().enumerate() {
        let mut id = [9; 16];
        id[0] = u8::try_from(index).unwrap();
        experiment.experiment.id = ExperimentId::from_bytes(id);
        experiment.experiment.scenario = new_id(experiment.scenario);
        experiment.scenario += offset;
    }
    data.scenarios.extend(with_load.scenarios);
    data.experiments.extend(with_load.experiments);
    data
}

fn slow_server(processing_ms: f64) -> World {
    World {
        processing_ms,
        ..World::default()
    }
}

#[test]
fn a_server_slow_only_under_load_needs_no_profiling() {
    let slow_servers = causes(
        &without_and_with(&slow_server(0.0), &slow_server(30.0)),
        "slow-server",
    );
    let [cause] = slow_servers.as_slice() else {
        panic!("{slow_servers:#?}");
    };
    let expected = "under the background load vm2 98%, vm3 98%, and ";
    assert!(cause.cause.contains(expected), "{}", cause.cause);
    assert!(
        cause.cause.contains("the load causes it"),
        "{}",
        cause.cause
    );
    assert!(!cause.remedy.contains("profile"), "{}", cause.remedy);
    assert!(
        cause.remedy.contains("number of neighbours"),
        "{}",
        cause.remedy
    );
    assert!(
        number(cause, "without the background load") < 1.0,
        "{cause:#?}"
    );
    assert!((cause.added_ms - 30.0).abs() < 1.0, "{cause:#?}");
}

#[test]
fn the_load_is_not_blamed_for_a_server_equally_slow_without_it() {
    let slow_servers = causes(
        &without_and_with(&slow_server(28.0), &slow_server(30.0)),
        "slow-server",
    );
    let [cause] = slow_servers.as_slice() else {
        panic!("{slow_servers:#?}");
    };
    assert!(!cause.cause.contains("load causes it"), "{}", cause.cause);
    assert!(cause.remedy.starts_with("profile"), "{}", cause.remedy);
}

#[test]
fn a_server_above_the_threshold_only_under_load_needs_no_profiling() {
    let near = |processing_ms| World {
        round_trip_ms: 0.3,
        processing_ms,
        ..World::default()
    };
    only_load_cause(&without_and_with(&near(0.3), &near(0.55)), "slow-server");
    let slow_servers = causes(&without_and_with(&near(0.53), &near(0.55)), "slow-server");
    assert!(
        slow_servers[0].remedy.starts_with("profile"),
        "{slow_servers:#?}"
    );
}

#[test]
fn a_slow_server_made_far_slower_by_load_has_two_causes() {
    let slow_servers = causes(
        &without_and_with(&slow_server(10.0), &slow_server(60.0)),
        "slow-server",
    );
    let [load, server] = slow_servers.as_slice() else {
        panic!("{slow_servers:#?}");
    };
    assert!(load.cause.contains("load causes it"), "{}", load.cause);
    assert!((number(load, "without the background load") - 10.0).abs() < 1.0);
    assert!(server.remedy.starts_with("profile"), "{}", server.remedy);
    assert!((server.added_ms - 10.0).abs() < 1.0, "{server:#?}");
}

#[test]
fn the_load_is_not_blamed_without_scenarios_free_of_load() {
    let mut data = slow_server(30.0).campaign();
    set_load(&mut data, LOAD);
    let slow_servers = causes(&data, "slow-server");
    let [cause] = slow_servers.as_slice() else {
        panic!("{slow_servers:#?}");
    };
    assert!(
        cause.cause.contains("under the background load"),
        "{}",
        cause.cause
    );
    assert!(!cause.cause.contains("load causes it"), "{}", cause.cause);
    assert!(
        cause.remedy.contains("stress = \"none\""),
        "{}",
        cause.remedy
    );
}

#[test]
fn a_client_starved_only_under_load_names_the_load_as_the_cause() {
    let starved = |client_delay_ms| World {
        client_delay_ms,
        ..World::default()
    };
    let starved_clients = causes(
        &without_and_with(&starved(0.0), &starved(3.0)),
        "starved-client",
    );
    let [cause] = starved_clients.as_slice() else {
        panic!("{starved_clients:#?}");
    };
    let expected = "under the background load vm2 98%, vm3 98%, which causes it";
    assert!(cause.cause.contains(expected), "{}", cause.cause);
    assert!(cause.remedy.contains("load"), "{}", cause.remedy);
    let starved_clients = causes(
        &without_and_with(&starved(3.0), &starved(3.0)),
        "starved-client",
    );
    let [cause] = starved_clients.as_slice() else {
        panic!("{starved_clients:#?}");
    };
    assert!(!cause.cause.contains("background load"), "{}", cause.cause);
    assert!(
        cause.cause.contains("in 2 of 2 scenarios"),
        "{}",
        cause.cause
    );
}

/// The only cause of a rule; it must name the background load.
fn only_load_cause(data: &CampaignData, rule: &str) -> Diagnosis {
    let mut diagnoses = causes(data, rule);
    assert_eq!(diagnoses.len(), 1, "{diagnoses:#?}");
    let cause = diagnoses.remove(0);
    assert!(cause.cause.contains(LOAD), "{}", cause.cause);
    assert!(cause.cause.contains("load causes it") || cause.cause.contains("98% causes it"));
    assert!(cause.remedy.starts_with("reduce the "), "{}", cause.remedy);
    cause
}

#[test]
fn a_queue_filled_only_by_the_plans_load_is_not_attributed_to_other_traffic() {
    let quiet = World {
        queue: None,
        ..World::with_queue()
    };
    let cause = only_load_cause(
        &without_and_with(&quiet, &World::with_queue()),
        "bufferbloat",
    );
    assert!(!cause.cause.contains("Other traffic"), "{}", cause.cause);
    // One that is there as well without it is told as ever.
    let data = without_and_with(&World::with_queue(), &World::with_queue());
    let queues = causes(&data, "bufferbloat");
    assert_eq!(queues.len(), 1, "{queues:#?}");
    assert!(
        queues[0].cause.contains("Other traffic fills it"),
        "{queues:#?}"
    );
    // Where nothing is measured without it nobody knows.
    let mut data = World::with_queue().campaign();
    set_load(&mut data, LOAD);
    let queues = causes(&data, "bufferbloat");
    assert!(queues[0].cause.contains("may cause it"), "{queues:#?}");
    assert!(
        queues[0].remedy.contains("stress = \"none\""),
        "{queues:#?}"
    );
}

#[test]
fn datagram_loss_only_under_load_is_attributed_to_the_load() {
    let lossy = |loss| World {
        loss,
        probe: ProbeKind::Udp,
        intervals_ms: vec![20],
        ..World::default()
    };
    let cause = only_load_cause(&without_and_with(&lossy(0.0), &lossy(0.02)), "random-loss");
    assert!(!cause.remedy.contains("cable"), "{}", cause.remedy);
    for loads in [0.02, 0.03] {
        let losses = causes(
            &without_and_with(&lossy(0.02), &lossy(loads)),
            "random-loss",
        );
        assert_eq!(losses.len(), 1, "{losses:#?}");
        assert!(losses[0].remedy.contains("cable"), "{losses:#?}");
    }
    let losses = causes(&without_and_with(&lossy(0.02), &lossy(0.1)), "random-loss");
    assert_eq!(losses.len(), 2, "{losses:#?}");
}

#[test]
fn messages_queued_behind_the_plans_load_need_no_lower_rate() {
    let slow = World {
        round_trip_ms: 150.0,
        max_window: Some(400),
        sizes: vec![100_000],
        intervals_ms: vec![20],
        unqueued_wait_share: Some(0.0),
        ..World::default()
    };
    let quick = World {
        round_trip_ms: 1.0,
        ..slow.clone()
    };
    only_load_cause(&without_and_with(&quick, &slow), "head-of-line");
    let waits = causes(&without_and_with(&slow, &slow), "head-of-line");
    assert!(!waits[0].cause.contains("load"), "{waits:#?}");
    assert!(waits[0].remedy.starts_with("send fewer"), "{waits:#?}");
}

#[test]
fn delay_of_all_messages_under_load_is_not_reported_as_ecmp() {
    // Each from ports of its own.
    let world_with = |round_trip_ms, seed| World {
        seed,
        round_trip_ms,
        ..World::default()
    };
    let imbalances = causes(
        &without_and_with(&world_with(1.0, 1), &world_with(20.0, 2)),
        "ecmp-imbalance",
    );
    assert!(imbalances.is_empty(), "{imbalances:#?}");
}

#[test]
fn permanent_causes_are_evaluated_without_the_plans_load() {
    let world = |blocks| World {
        sizes: vec![256, 1024],
        blocks,
        ..World::default()
    };
    let delayed = World {
        proxy_ms: 3.0,
        ..world(15)
    };
    let slow = World {
        rate_mbit: 1.0,
        ..world(15)
    };
    for (loaded, rule) in [(slow, "serialisation"), (delayed, "l7-proxy")] {
        let data = without_and_with(&world(1), &loaded);
        assert!(causes(&data, rule).is_empty(), "{:#?}", causes(&data, rule));
        // What is there without the load as well is told.
        let without_load = World {
            blocks: 2,
            ..loaded.clone()
        };
        assert_eq!(
            causes(&without_and_with(&without_load, &loaded), rule).len(),
            1,
            "{rule}"
        );
    }
}

#[test]
fn echoes_lost_only_under_load_show_no_icmp_rate_limit() {
    let mut data = without_and_with(&slow_server(0.0), &slow_server(0.0));
    let lose_echoes = |data: &mut CampaignData, experiments: std::ops::Range<usize>| {
        for experiment in &mut data.experiments[experiments] {
            for echo in experiment.flows[1].exchanges.iter_mut().step_by(3) {
                echo.outcome = Outcome::Lost;
            }
        }
    };
    lose_echoes(&mut data, 6..12);
    assert!(causes(&data, "icmp-differs").is_empty());
    lose_echoes(&mut data, 0..6);
    assert_eq!(causes(&data, "icmp-differs").len(), 1);
}

#[test]
fn the_advice_to_stop_programs_is_omitted_under_the_plans_load() {
    let mut data = without_and_with(&slow_server(0.0), &slow_server(0.0));
    for experiment in &mut data.experiments {
        let busy = Warning::CpuSaturated { percent: 100.0 };
        experiment.experiment.warnings.push(busy);
    }
    let findings = crate::findings(&data, &PlotSettings::default());
    let flagged = findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Flagged);
    let texts: Vec<&str> = flagged.map(|finding| finding.text.as_str()).collect();
    let [without_load, with_load] = texts.as_slice() else {
        panic!("{texts:#?}");
    };
    assert!(
        without_load.contains("stop other programs"),
        "{without_load}"
    );
    assert!(without_load.contains("stress none"), "{without_load}");
    assert!(!with_load.contains("stop other programs"), "{with_load}");
    assert!(
        with_load.contains("generates the load vm2 98%, vm3 98%"),
        "{with_load}"
    );
    assert!(with_load.contains("6 experiments"), "{with_load}");
}

#[test]
fn every_load_under_which_the_host_was_busy_is_named_and_no_other() {
    let mut data = without_and_with(&slow_server(0.0), &slow_server(0.0));
    let mut third = data.scenarios[1].clone();
    (third.id, third.index) = (ScenarioId(9), 2);
    let flow = "other flow 192.0.2.9:8080 max".parse().expect("a load");
    third.parameters.insert(Parameter::Stress(flow));
    data.scenarios.push(third);
    data.experiments[11].scenario = 2;
    data.experiments[11].experiment.scenario = ScenarioId(9);
    let busy = |percent| Warning::CpuSaturated { percent };
    for (index, percent) in [(0, 90.0), (6, 100.0), (11, 95.0)] {
        let warnings = &mut data.experiments[index].experiment.warnings;
        warnings.push(busy(percent));
    }
    let findings = crate::findings(&data, &PlotSettings::default());
    let flagged = findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Flagged);
    let texts: Vec<&str> = flagged.map(|finding| finding.text.as_str()).collect();
    let [with_load, without_load] = texts.as_slice() else {
        panic!("{texts:#?}");
    };
    let expected = "the plan generates a load in each of them (vm2 98%, vm3 98%; other flow 192.0.2.9:8080 max)";
    assert!(with_load.contains(expected), "{with_load}");
    assert!(
        !without_load.contains("the plan generates"),
        "{without_load}"
    );
}

#[test]
fn echoes_delayed_only_under_load_are_not_reported_as_slow_icmp() {
    let far = World {
        icmp_ms: 6.0,
        ..World::default()
    };
    let data = without_and_with(&World::default(), &far);
    assert!(causes(&data, "icmp-differs").is_empty());
    assert_eq!(
        causes(&without_and_with(&far, &far), "icmp-differs").len(),
        1
    );
    // Where nothing is measured without it nobody knows.
    let mut data = far.campaign();
    set_load(&mut data, LOAD);
    let differences = causes(&data, "icmp-differs");
    assert!(
        differences[0].remedy.contains("stress = \"none\""),
        "{differences:#?}"
    );
}
