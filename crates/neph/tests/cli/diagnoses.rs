//! `neph diagnose` and the end of `neph ping`: causes are told where there are some, and that there
//! are none where there are none.

use std::net::SocketAddr;

use neph_model::{ReflectorSpec, Span};
use neph_probe::Reflector;
use serde_json::Value;

use crate::neph::{TestFolder, neph};

#[test]
fn a_ping_ends_with_the_causes_that_its_messages_show() {
    let spec = ReflectorSpec {
        reply_delay: Span::from_millis(40),
        ..ReflectorSpec::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    };
    let reflector = Reflector::start(&spec).expect("loopback has a free port");
    let target = format!("ws://{}", reflector.address());
    let ping = ["ping", &target, "--no-icmp", "-q", "-c", "12", "-i", "60ms"];
    let ran = neph(ping);
    assert!(
        ran.out.contains("slow server") && ran.out.contains("remedy: profile the server"),
        "{}",
        ran.out
    );
    let ran = neph(ping.into_iter().chain(["--format", "json"]));
    let document: Value = serde_json::from_str(&ran.out).expect("one document");
    let causes = document["diagnoses"].as_array().expect("a list");
    let slow = causes.iter().find(|cause| cause["rule"] == "slow-server");
    let cost = slow.and_then(|cause| cause["added_ms"].as_f64());
    assert!(cost.is_some_and(|cost| cost >= 40.0), "{causes:?}");
}

#[test]
fn a_ping_without_answers_prints_no_root_cause() {
    let ran = neph(["ping", "tcp://127.0.0.1:9", "--no-icmp", "-c", "1"]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(!ran.out.contains("cause"), "{}", ran.out);
}

#[test]
fn a_campaign_without_a_root_cause_reports_none_found() {
    let folder = TestFolder::with_campaign();
    let ran = folder.neph(["diagnose"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert!(
        ran.out.starts_with("No root cause found by the "),
        "{}",
        ran.out
    );
    let ran = folder.neph(["diagnose", "--format", "json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("one document");
    assert_eq!(document["diagnoses"], Value::Array(Vec::new()));
    // It was measured with one size, which leaves a rule nothing to compare.
    let not_evaluated = document["not_evaluated"].as_array().expect("a list");
    let rules: Vec<&Value> = not_evaluated.iter().map(|entry| &entry["rule"]).collect();
    assert!(rules.iter().any(|rule| *rule == "serialisation"), "{ran:?}");
}

#[test]
fn blocks_without_an_experiment_are_nothing_to_look_at() {
    let folder = TestFolder::with_campaign();
    let ran = folder.neph(["diagnose", "--blocks", "9"]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(ran.err.contains("no complete experiment"), "{}", ran.err);
    assert_eq!(folder.neph(["diagnose", "--blocks", "0"]).status, 2);
    assert_eq!(folder.neph(["diagnose", "nonesuch"]).status, 2);
}
