//! The gallery, by one short entry: it is right, its control is right, and neither is where the
//! cause is on the wrong side.

#![expect(
    clippy::print_stdout,
    reason = "a test tells what neph said and what it skipped"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::privileged;

fn shipped(file: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../gallery/transfers");
    fs::read_to_string(root.join(file)).expect("a shipped file")
}

/// Writes the entry's plan, shortened, over this topology.
fn write(folder: &Path, control: bool, topology: &str) {
    let entry = folder.join("transfers");
    fs::create_dir_all(&entry).expect("a folder");
    let short = shipped("plan.toml").replace("messages = 12", "messages = 3");
    let (plan, lab) = if control {
        ("control.toml", "control.lab.toml")
    } else {
        ("plan.toml", "lab.toml")
    };
    fs::write(
        entry.join(plan),
        short.replace("\"lab.toml\"", &format!("\"{lab}\"")),
    )
    .expect("written");
    fs::write(entry.join(lab), topology).expect("written");
}

/// Runs it; the exit status, and what was said.
fn neph(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_neph"))
        .args(["gallery", "transfers", "--quiet", "--folder"])
        .arg(folder)
        .args(arguments)
        .output()
        .expect("neph runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{told}");
    (output.status.code(), told)
}

#[test]
fn an_entry_is_right_with_its_cause_and_its_control_without() {
    if !privileged("the gallery's transfers") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (with, without) = (shipped("lab.toml"), shipped("control.lab.toml"));
    write(folder, false, &with);
    let (status, told) = neph(folder, &[]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("neph says: slow path is "), "{told}");
    assert!(told.contains("verdict: right"), "{told}");
    write(folder, true, &without);
    let (status, told) = neph(folder, &["--control"]);
    assert_eq!(status, Some(0), "{told}");
    assert!(told.contains("neph does not say, and must not"), "{told}");
    // The cause on the wrong side.
    write(folder, true, &with);
    let (status, told) = neph(folder, &["--control"]);
    assert_eq!(status, Some(1), "{told}");
    assert!(
        told.contains("neph says what it must not say here: slow path is "),
        "{told}"
    );
    assert!(told.contains("verdict: WRONG"), "{told}");
}
