//! Stores of older versions open and say what they said: the fixtures were written, shown and reported by
//! the program of their month.

use std::fs;
use std::path::{Path, PathBuf};

use neph_sys::process;
use serde_json::Value;

use crate::neph::{RunOutput, TestFolder};

/// Campaigns of the store, and the names of the files that say what the older program said of them.
const CAMPAIGNS: [(&str, &str); 4] = [
    // Every probe kind, TLS, a fleet, and sizes of which a reflector raises some.
    ("one of each", "one_of_each"),
    // A lab with sites, seasons and loads, of which one has a name.
    ("loads and seasons", "loads_and_seasons"),
    // Read from a Latency Tester's folder, which leaves much open.
    ("lt", "lt"),
    // Kept by neph flows --save.
    ("kept", "kept"),
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores")
}

/// The store of that month, in a place of its own.
fn unpack_store(month: &str) -> TestFolder {
    let folder = TestFolder::empty();
    let archive = fixtures().join(format!("{month}.tar.gz"));
    let unpacked = process::command("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder.path("."))
        .status();
    assert!(unpacked.expect("tar").success());
    folder
}

fn expected_output(month: &str, file: &str) -> String {
    let path = fixtures().join(month).join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn successful_output(ran: RunOutput) -> String {
    assert_eq!(ran.status, 0, "{}", ran.err);
    ran.out
}

#[test]
fn a_store_of_november_2026_has_unchanged_output() {
    let month = "2026-11";
    let folder = unpack_store(month);
    let listed =
        successful_output(folder.neph(["list", "--workspace", "store", "--format", "json"]));
    assert_eq!(json(&listed), json(&expected_output(month, "list.json")));
    for (campaign, file) in CAMPAIGNS {
        let shown = ["show", campaign, "--workspace", "store", "--format", "json"];
        let shown = successful_output(folder.neph(shown));
        let mut shown = json(&shown);
        // The version of the keys came later.
        shown.as_object_mut().expect("an object").remove("schema");
        assert_eq!(
            shown,
            json(&expected_output(month, &format!("{file}.json")))
        );
        let report = ["report", campaign, "--workspace", "store", "-o", file];
        let report = successful_output(folder.neph(report));
        let (report, _path) = report.rsplit_once("report: ").expect("where it is");
        assert_eq!(
            report.trim_end(),
            expected_output(month, &format!("{file}.txt")).trim_end()
        );
    }
}
