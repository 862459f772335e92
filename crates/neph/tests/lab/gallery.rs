//! The gallery, by two short entries: one is right, its control is right, and neither is where the
//! cause is on the wrong side; and what the other one advises holds.

#![expect(
    clippy::print_stdout,
    reason = "a test prints neph's output and what it skips"
)]

use std::fs;
use std::path::{Path, PathBuf};

use neph_sys::process;

use crate::setup::is_privileged;
use crate::undisturbed::measure_undisturbed;

fn shipped_text(entry: &str, file: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../gallery");
    fs::read_to_string(root.join(entry).join(file)).expect("a shipped file")
}

/// Writes the entry's plan, shortened, and its topology.
fn write_entry(folder: &Path, is_control: bool, topology: &str) {
    let entry = folder.join("transfers");
    fs::create_dir_all(&entry).expect("a folder");
    let short_plan =
        shipped_text("transfers", "plan.toml").replace("messages = 12", "messages = 3");
    let (plan, lab) = if is_control {
        ("control.toml", "control.lab.toml")
    } else {
        ("plan.toml", "lab.toml")
    };
    fs::write(
        entry.join(plan),
        short_plan.replace("\"lab.toml\"", &format!("\"{lab}\"")),
    )
    .expect("written");
    fs::write(entry.join(lab), topology).expect("written");
}

/// Runs a gallery command in a folder: its exit status and its output.
fn neph(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = process::command(env!("CARGO_BIN_EXE_neph"))
        .args(arguments)
        .arg("--quiet")
        .args(["--folder".as_ref(), folder])
        .output()
        .expect("neph runs");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{stdout}");
    (output.status.code(), stdout)
}

/// Measures the entry or its control with the topology of a shipped file, on a calm machine.
fn measured(is_control: bool, topology_file: &str) -> (Option<i32>, String) {
    measure_undisturbed(|| {
        let folder = tempfile::tempdir().expect("a folder");
        write_entry(
            folder.path(),
            is_control,
            &shipped_text("transfers", topology_file),
        );
        let control: &[&str] = if is_control { &["--control"] } else { &[] };
        neph(
            folder.path(),
            &[&["gallery", "transfers"], control].concat(),
        )
    })
}

#[test]
fn an_entry_is_right_with_its_cause_and_its_control_without() {
    if !is_privileged("the gallery's transfers") {
        return;
    }
    let (status, stdout) = measured(false, "lab.toml");
    assert_eq!(status, Some(0), "{stdout}");
    assert!(stdout.contains("neph reports: slow path is "), "{stdout}");
    assert!(stdout.contains("verdict: right"), "{stdout}");
    let (status, stdout) = measured(true, "control.lab.toml");
    assert_eq!(status, Some(0), "{stdout}");
    assert!(
        stdout.contains("neph does not say, and must not"),
        "{stdout}"
    );
    // The cause on the wrong side.
    let (status, stdout) = measured(true, "lab.toml");
    assert_eq!(status, Some(1), "{stdout}");
    assert!(
        stdout.contains("neph reports what it must not report here: slow path is "),
        "{stdout}"
    );
    assert!(stdout.contains("verdict: WRONG"), "{stdout}");
}

/// The only report of a workspace.
fn report(workspace: &Path) -> PathBuf {
    let reports = fs::read_dir(workspace.join("reports")).expect("reports");
    let folders: Vec<PathBuf> = reports
        .map(|entry| entry.expect("a folder").path())
        .collect();
    let [report] = folders.as_slice() else {
        panic!("{folders:?}")
    };
    report.clone()
}

/// The port that the diagnosis of a report says to bind.
fn advised_port(report: &Path) -> u16 {
    let text = fs::read_to_string(report.join("diagnosis.json")).expect("a diagnosis");
    let causes: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let evidence = causes["diagnoses"][0]["evidence"]
        .as_array()
        .expect("evidence")
        .iter();
    let mut port = evidence.filter(|evidence| evidence["name"] == "best source port");
    let port = port.next().and_then(|port| port["value"].as_f64());
    format!("{}", port.expect("a port"))
        .parse()
        .expect("a port")
}

#[test]
fn the_advised_source_port_uses_the_short_path() {
    if !is_privileged("the gallery's ecmp") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (folder.path().join("first"), folder.path().join("then"));
    let short_plan =
        shipped_text("ecmp", "plan.toml").replace("duration = \"1s\"", "duration = \"500ms\"");
    fs::create_dir_all(first.join("ecmp")).expect("a folder");
    fs::write(first.join("ecmp/plan.toml"), &short_plan).expect("written");
    let (status, stdout) = neph(&first, &["gallery", "ecmp"]);
    assert_eq!(status, Some(0), "{stdout}");
    // The advice followed: a new campaign over the same network, from that port.
    let port = advised_port(&report(&first));
    let followed = short_plan.replace("source_port = 40001", &format!("source_port = {port}"));
    let followed = followed.replace("blocks = 12", "blocks = 3");
    let plan = first.join("ecmp/followed.toml");
    fs::write(&plan, followed).expect("written");
    let output = process::command(env!("CARGO_BIN_EXE_neph"))
        .args(["run".as_ref(), plan.as_os_str()])
        .args([
            "--quiet".as_ref(),
            "--workspace".as_ref(),
            second.as_os_str(),
        ])
        .output()
        .expect("neph runs");
    assert!(output.status.success(), "{output:?}");
    let summary = fs::read_to_string(report(&second).join("tables/summary.csv")).expect("a table");
    let median = |endpoint: &str| -> f64 {
        let mut rows = summary.lines().filter(|row| row.starts_with(endpoint));
        let row = rows.find(|row| row.contains(",network round trip"));
        let cell = row.and_then(|row| row.split(',').nth(11));
        cell.expect("a median").parse().expect("milliseconds")
    };
    // 8 ms over the short path, 16 over the other: nearer to the one than to the other.
    assert!(median("port 40001") < 12.0, "port {port}: {summary}");
}
