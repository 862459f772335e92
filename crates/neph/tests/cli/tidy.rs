//! Messages that a retention policy removes, and what is stated of them then.

use std::fs;

use serde_json::Value;

use crate::neph::{RunOutput, TestFolder};
use crate::pings::reflector;

const DUE: [&str; 3] = ["tidy", "--keep-messages", "1ms"];

fn json(folder: &TestFolder, arguments: &[&str]) -> Value {
    let ran = folder.neph([arguments, &["--format", "json"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

fn rows(folder: &TestFolder, arguments: &[&str]) -> Vec<Value> {
    let entries = json(folder, arguments);
    entries.as_array().expect("rows").clone()
}

fn reports(ran: &RunOutput, part: &str) {
    assert!(ran.err.contains(part), "{part}: {}", ran.err);
}

/// Two experiments of 60 messages.
fn measured() -> TestFolder {
    let (reflector, folder) = (reflector(), TestFolder::empty());
    let plan = format!(
        "version = 1\nname = \"p\"\ninterval = \"10ms\"\nmessages = 60\nblocks = 2\n\
         [[endpoint]]\nname = \"here\"\nurl = \"ws://127.0.0.1:{}\"\n[companion]\nenabled = false\n",
        reflector.address().port()
    );
    fs::write(folder.path("p.toml"), plan).expect("writable");
    let ran = folder.neph(["run", "p.toml", "-q", "--no-report"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    folder
}

#[test]
fn a_dry_run_of_tidy_lists_due_experiments_and_changes_nothing() {
    let folder = measured();
    let before = rows(&folder, &["list", "last"]);
    reports(
        &folder.neph(["tidy"]),
        "the messages of 0 experiments were replaced",
    );
    let dry = rows(&folder, &[&DUE[..], &["--dry-run"]].concat());
    assert_eq!((dry.len(), before.len()), (2, 2));
    assert_eq!(dry[0]["action"], "messages to minutes");
    let of_another = folder.neph([&DUE[..], &["--plan", "another.toml"]].concat());
    reports(&of_another, "the messages of 0 experiments");
    assert_eq!(
        rows(&folder, &["list", "last"]),
        before,
        "nothing has changed"
    );
    // What was imported is somebody's only copy.
    reports(
        &TestFolder::with_campaign().neph(DUE),
        "the messages of 0 experiments",
    );
    let none = TestFolder::empty().neph(DUE);
    assert_eq!(none.status, 2, "{}", none.err);
}

#[test]
fn messages_become_minutes_and_these_go_too_and_lists_state_it() {
    let folder = measured();
    let before = rows(&folder, &["list", "last"]);
    let tidied = folder.neph(DUE);
    reports(&tidied, "the messages of 2 experiments were replaced");
    let after = rows(&folder, &["list", "last"]);
    for (before, after) in before.iter().zip(&after) {
        for key in ["messages", "lost", "status"] {
            assert_eq!(before[key], after[key]);
        }
        let warnings = after["warnings"].as_str().expect("text");
        assert!(
            warnings.contains("messages replaced by a histogram"),
            "{warnings}"
        );
        let [exact, merged] = [before, after].map(|row| row["response_p50_ns"].as_f64());
        let ratio = merged.zip(exact).map(|(merged, exact)| merged / exact);
        assert!(
            ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 0.05),
            "{ratio:?}"
        );
    }
    let shown = json(&folder, &["show", after[0]["id"].as_str().expect("an id")]);
    assert!(
        shown["reduced"]["minutes"].as_u64() >= Some(1),
        "{}",
        shown["reduced"]
    );
    assert!(rows(&folder, &DUE).is_empty(), "it is done");

    let second_tidy = folder.neph([&DUE[..], &["--keep-minutes", "1ms"]].concat());
    reports(&second_tidy, "the histograms of 2 experiments were removed");
    let last = rows(&folder, &["list", "last"]);
    assert_eq!(last[0]["messages"], before[0]["messages"]);
    let warnings = last[0]["warnings"].as_str().expect("text");
    assert!(
        warnings.contains("messages and histograms removed"),
        "{warnings}"
    );
}

#[test]
fn commands_that_need_single_messages_refuse_after_tidy() {
    let folder = measured();
    folder.neph(DUE);
    let export = ["export", "--format", "csv", "--output", "-"];
    for needs in [&["report"][..], &["diagnose"], &export] {
        let ran = folder.neph(needs.iter().copied());
        assert_eq!(ran.status, 1, "{needs:?}: {}", ran.err);
        reports(&ran, "needs single messages; neph show");
        assert_eq!(ran.err.trim_end().lines().count(), 1, "{}", ran.err);
    }
}
