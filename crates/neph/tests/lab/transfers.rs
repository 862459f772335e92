//! `neph flows --transfers` over a link with two paths: what a slow path costs an application.

use std::path::Path;

use neph_model::Span;
use serde_json::Value;
use tempfile::TempDir;

use crate::setup::{PORT, TwoSites, is_privileged, neph, run_successfully};
use crate::undisturbed::measure_undisturbed;

/// Round trips of 20 and 23.6 ms: the source's 18 % more.
const LINK: &str = "
delay = \"10ms\"
[[link.path]]
name = \"fast\"
weight = 50
[[link.path]]
name = \"slow\"
weight = 50
a_to_b = { delay = \"13.6ms\" }
";

/// A fleet of 32 flows for three seconds and so many transfers of each class: what was reported, and the
/// workspace that keeps it.
fn measured(lab: &TwoSites, transfers: &str) -> (Value, TempDir) {
    let _reflector = lab.reflector(Span::ZERO);
    let workspace = tempfile::tempdir().expect("a folder");
    let target = format!("tcp://10.79.0.2:{PORT}");
    let output = neph(workspace.path(), &["flows", &target])
        .args(["-n", "32", "-i", "200ms", "-c", "15"])
        .args(["--transfers", transfers, "--format", "json", "--quiet"])
        .args(["--site", &lab.namespace("client"), "--save", "night"])
        .output()
        .expect("neph runs");
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (document, workspace)
}

#[test]
fn transfers_on_the_slow_paths_ports_take_18_percent_longer() {
    if !is_privileged("transfers_on_the_slow_paths_ports_take_18_percent_longer") {
        return;
    }
    let (document, workspace) =
        measure_undisturbed(|| measured(&TwoSites::up("transfers", LINK), "20"));
    let transfers = &document["pairs"][0]["transfers"];
    let [fast, slow] = [&transfers[0], &transfers[1]];
    for (class, lowest) in [(fast, 40_000_000), (slow, 47_200_000)] {
        assert_eq!((&class["n"], &class["failed"]), (&20.into(), &0.into()));
        let median = class["median_ns"].as_i64().expect("a median");
        // Two round trips; what is more is this machine's own.
        assert!(
            median >= lowest && median < lowest + 3_000_000,
            "{transfers}"
        );
    }
    let ratio = slow["ratio"].as_f64().expect("a ratio");
    assert!((1.14..1.22).contains(&ratio), "{transfers}");
    assert_stored_transfers_match(transfers, workspace.path());
}

/// The hash is drawn anew 10 s after the lab came up: the measurement is over by then, most transfers
/// are not. Half of the flows are on the other path from there on.
#[test]
fn transfers_after_a_reshuffle_count_for_the_path_they_took() {
    if !is_privileged("transfers_after_a_reshuffle_count_for_the_path_they_took") {
        return;
    }
    let link = format!("{LINK}[[link.schedule]]\nat = \"10s\"\nreshuffle = true\n");
    let (document, workspace) =
        measure_undisturbed(|| measured(&TwoSites::up("reshuffled", &link), "200"));
    let pair = &document["pairs"][0];
    let moved_transfers = pair["transfers_moved"].as_u64().expect("a number");
    assert!((60..300).contains(&moved_transfers), "{pair}");
    for (index, lowest) in [(0, 40_000_000), (1, 47_200_000)] {
        let class = &pair["transfers"][index];
        let median = class["median_ns"].as_i64().expect("a median");
        assert!(median >= lowest && median < lowest + 3_000_000, "{class}");
    }
    // Each row has the class that its own connect time shows: 20 or 23.6 ms.
    let rows = [
        "export",
        "night",
        "--transfers",
        "--format",
        "jsonl",
        "-o",
        "-",
    ];
    let rows = stdout_of(workspace.path(), &rows);
    let is_wrong = |row: &Value| {
        let connect = row["connect_ns"].as_i64().unwrap_or(0);
        let expected = match connect {
            20_000_000..21_000_000 => 0,
            23_600_000..24_600_000 => 1,
            _ => return false,
        };
        row["class"] != expected
    };
    let rows = rows
        .lines()
        .map(|row| serde_json::from_str(row).expect("JSON"));
    let wrong: Vec<Value> = rows.filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn stdout_of(workspace: &Path, arguments: &[&str]) -> String {
    String::from_utf8(run_successfully(neph(workspace, arguments)).stdout).expect("text")
}

/// In export, show and report.
fn assert_stored_transfers_match(document: &Value, workspace: &Path) {
    let to_stdout = ["--format", "jsonl", "-o", "-"];
    let rows = ["export", "night", "--transfers"];
    let rows = stdout_of(workspace, &[&rows[..], &to_stdout].concat());
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 40);
    assert!(rows.iter().all(|row| row["bytes"] == 1024), "{rows:?}");
    let id = rows[0]["experiment_id"].as_str().expect("an id");
    let shown = stdout_of(workspace, &["show", id, "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let folder = workspace.join("report");
    let out = folder.display().to_string();
    run_successfully(neph(workspace, &["report", "night", "-o", &out]));
    let table = std::fs::read_to_string(folder.join("tables/flow-transfers.json"));
    let table: Value = serde_json::from_str(&table.expect("the table")).expect("JSON");
    for (index, class) in (0..).zip(document.as_array().expect("classes")) {
        let shown = &shown["transfers"][index];
        for key in ["n", "failed", "ports", "median_ns", "ratio"] {
            assert_eq!(shown[key], class[key], "{key}: {shown}");
        }
        let millis = table["rows"][index]["median_ms"].as_f64();
        let nanos = class["median_ns"].as_f64().expect("a median");
        let difference = millis.expect("a median") - nanos / 1e6;
        assert!(difference.abs() < 1e-6, "{table}");
    }
}
