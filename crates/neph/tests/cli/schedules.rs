//! Campaigns that a controller starts at intervals, and what it knows of its agents.

use serde_json::Value;

use crate::agent_sites::{BLOCKS, SITES, Sites, has_no_orders};
use crate::neph::{TIMEOUT, eventually};

fn json(sites: &Sites, arguments: &[&str]) -> Value {
    let text = sites.neph(&[arguments, &["--control", "control", "--format", "json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// Another campaign is refused, and what is known of an agent shows why.
fn assert_agent_is_reserved(sites: &Sites) {
    let other = [
        "run",
        "p.toml",
        "--control",
        "control",
        "-q",
        "--workspace",
        "other",
    ];
    let other = sites.folder.neph(other);
    assert!(
        other.status != 0 && other.err.contains("measures for another campaign"),
        "{}",
        other.err
    );
    let shown = json(sites, &["agents", "show", "ams"]);
    assert_eq!(
        (&shown["in_campaign"], &shown["agent"]["connected"]),
        (&true.into(), &true.into())
    );
    assert_eq!(shown["orders"][0]["kind"], "experiments", "{shown}");
    let kinds = shown["policy"]
        .as_array()
        .expect("lines")
        .iter()
        .find(|entry| entry["key"] == "kinds");
    assert!(kinds.is_some(), "{shown}");
}

#[test]
fn a_scheduled_campaign_outlives_a_kill_of_its_controller_and_is_measured_once() {
    let mut sites = Sites::new(&["127.0.0.1"]);
    let schedule = [
        "control",
        "schedule",
        "p.toml",
        "--every",
        "1h",
        "--control",
        "control",
    ];
    let added = sites.folder.neph(schedule);
    assert_eq!(added.status, 0, "{}", added.err);
    let taken = sites.folder.neph(schedule);
    assert!(
        taken.status == 2 && taken.err.contains("there is a schedule p already"),
        "{}",
        taken.err
    );
    sites.wait_until_measuring("ams");
    assert_agent_is_reserved(&sites);

    sites.controller.take().expect("it runs").kill();
    sites.start_controller();
    eventually("the run ends", TIMEOUT, || {
        json(&sites, &["control", "schedule", "--runs", "p"])[0]["outcome"] == "complete"
    });
    let listed = json(&sites, &["control", "schedule"]);
    let row = &listed[0];
    let counts = ["complete", "incomplete", "missed", "skipped"].map(|key| row[key].clone());
    assert_eq!(counts, [1, 0, 0, 0].map(Value::from), "{listed}");
    let experiments = sites.experiments();
    assert_eq!(experiments.len(), BLOCKS * SITES.len(), "{experiments:?}");
    assert!(
        experiments
            .iter()
            .all(|experiment| experiment["status"] == "complete")
    );
    eventually("nothing is left of it", TIMEOUT, || {
        has_no_orders(&sites.folder)
    });

    let ended = sites.neph(&[
        "control",
        "schedule",
        "--remove",
        "p",
        "--control",
        "control",
    ]);
    assert_eq!(ended, "");
    assert_eq!(
        json(&sites, &["control", "schedule"]),
        Value::Array(Vec::new())
    );
}

#[test]
fn an_invitation_names_the_port_of_its_controller() {
    let sites = Sites::new(&["127.0.0.1"]);
    let invite = ["control", "invite", "mil", "--control", "control"];
    let invited = sites.folder.neph(invite);
    let command = format!("neph agent --controller wss://CONTROLLER:{} ", sites.port);
    assert!(invited.err.contains(&command), "{}", invited.err);
}

#[test]
fn a_schedule_that_makes_no_sense_is_refused() {
    let sites = Sites::new(&["127.0.0.1"]);
    let refused = |arguments: &[&str], part: &str| {
        let all_args = [&["control", "schedule", "--control", "control"], arguments].concat();
        let ran = sites.folder.neph(all_args);
        assert!(
            ran.status == 2 && ran.err.contains(part),
            "{part}: {}",
            ran.err
        );
    };
    refused(&["p.toml"], "--every");
    refused(&["p.toml", "--every", "1s"], "write 10 s or more");
    refused(
        &["p.toml", "--every", "1h", "--until", "2020-01-01T00:00:00Z"],
        "lies in the past",
    );
    refused(
        &["p.toml", "--every", "1h", "--until", "soon"],
        "write a time with its zone",
    );
    refused(&["none.toml", "--every", "1h"], "none.toml");
    refused(&["--remove", "none"], "there is no schedule none");
    refused(&["--runs", "none"], "there is no schedule none");
    let unknown = sites
        .folder
        .neph(["agents", "show", "nobody", "--control", "control"]);
    assert!(
        unknown.status == 2 && unknown.err.contains("there is no agent nobody"),
        "{}",
        unknown.err
    );
}
