//! Carries a lab out with the program, as a user would, and reads what it named.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use neph_sys::process;
use serde_json::Value;

use crate::lab::{EndpointCause, Lab};

/// Rules about this host and this hour, which no lab decides.
const DISTURBANCES: [&str; 3] = ["starved-client", "stalled-client", "clock-step"];

/// The file that says what was measured in a folder, to its end.
const COMPLETE_FILE: &str = "measured.txt";

/// What the program named, with its sentence.
#[derive(Debug, Default)]
pub(crate) struct DiagnosedCauses {
    pub(crate) causes: BTreeMap<(String, String), String>,
    /// Of this host.
    pub(crate) disturbances: Vec<String>,
}

impl DiagnosedCauses {
    pub(crate) fn has(&self, (rule, endpoint): EndpointCause) -> bool {
        self.causes
            .contains_key(&(rule.to_owned(), endpoint.to_owned()))
    }
}

/// Measures a lab in `folder`, which is there, and says so there.
fn measure(lab: &Lab, folder: &Path) {
    fs::write(folder.join("lab.toml"), lab.topology()).expect("a file");
    fs::write(folder.join("plan.toml"), lab.plan()).expect("a file");
    let run = neph(
        folder,
        &["run", "plan.toml", "--yes", "--no-report", "--quiet"],
    );
    assert!(
        run.status.success(),
        "lab {}: {}",
        lab.number,
        stderr_text(&run.stderr)
    );
    fs::write(folder.join(COMPLETE_FILE), lab.topology() + &lab.plan()).expect("a file");
}

/// Measures a lab in `folder`, unless just that was measured there, and asks for the causes.
pub(crate) fn measure_and_diagnose(lab: &Lab, folder: &Path) -> DiagnosedCauses {
    let measured = fs::read_to_string(folder.join(COMPLETE_FILE));
    if !measured.is_ok_and(|text| text == lab.topology() + &lab.plan()) {
        measure(lab, folder);
    }
    let output = neph(folder, &["diagnose", "--format", "json"]);
    assert!(
        output.status.success(),
        "lab {}: {}",
        lab.number,
        stderr_text(&output.stderr)
    );
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let diagnoses = document["diagnoses"].as_array().expect("a list");
    let mut named = DiagnosedCauses::default();
    for diagnosis in diagnoses {
        let text = |key: &str| diagnosis[key].as_str().expect("a text").to_owned();
        let (rule, cause) = (text("rule"), text("cause"));
        if DISTURBANCES.contains(&rule.as_str()) || is_short_stall(diagnosis) {
            named.disturbances.push(cause);
            continue;
        }
        for observed in diagnosis["observations"].as_array().expect("a list") {
            let scenario = observed["scenario"].as_str().expect("a label");
            let (endpoint, _) = scenario.split_once(" · ").expect("an endpoint first");
            let cause_at = (rule.clone(), endpoint.to_owned());
            named.causes.insert(cause_at, cause.clone());
        }
    }
    named
}

/// Whether a peer stood still once or twice: that was this machine, which was seen to stop for 86 ms
/// beside a calm lab. What labs put in comes three times and more.
fn is_short_stall(diagnosis: &Value) -> bool {
    let evidence = diagnosis["evidence"].as_array().expect("a list");
    let stalls = evidence
        .iter()
        .find(|evidence| evidence["name"] == "stalls");
    let is_few = stalls
        .and_then(|stall| stall["value"].as_f64())
        .is_some_and(|stalls| stalls < 3.0);
    diagnosis["rule"] == "stalled-peer" && is_few
}

fn neph(folder: &Path, args: &[&str]) -> Output {
    process::command(env!("CARGO_BIN_EXE_neph"))
        .args(args)
        .env("NEPH_WORKSPACE", folder.join("measured"))
        .env("NO_COLOR", "1")
        .current_dir(folder)
        .output()
        .expect("neph runs")
}

fn stderr_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
