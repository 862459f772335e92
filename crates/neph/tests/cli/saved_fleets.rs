//! `neph flows --save`: what was measured is in the workspace, however the measurement ended.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use neph_sys::process;

use crate::neph::{RunOutput, TIMEOUT, TestFolder, eventually, send_signal};
use crate::pings::{reflector, wait_for_end};

/// The messages that the workspace has of the last campaign, without the heading.
fn count_stored_messages(folder: &TestFolder) -> usize {
    let ran = folder.neph([
        "export",
        "last",
        "--flows",
        "--everything",
        "--format",
        "csv",
        "-o",
        "-",
    ]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    ran.out.lines().count() - 1
}

/// How the last campaign's only experiment stands.
fn list_last(folder: &TestFolder) -> RunOutput {
    let ran = folder.neph(["list", "last"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    ran
}

/// The journals of a running fleet hold more than 100 messages from this size on, bytes.
const KEPT: u64 = 10_000;

/// How many bytes the journals of running fleets have.
fn kept_bytes(test_folder: &TestFolder) -> u64 {
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let journals = test_folder.workspace().join("journal");
    let fleets = files(&journals).flat_map(|fleet| files(&fleet.path()));
    fleets
        .filter_map(|file| file.metadata().ok())
        .map(|path_changes| path_changes.len())
        .sum()
}

/// Begins a measurement that is kept, and waits until some messages of it are.
fn start_saved_fleet(
    folder: &TestFolder,
    target: &str,
    extra_args: &[&str],
) -> std::process::Child {
    let base_args = ["flows", target, "-n", "8", "-i", "20ms", "--save", "night"];
    let mut command = folder.command(base_args.into_iter().chain(extra_args.iter().copied()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().expect("neph runs");
    eventually("messages are kept", TIMEOUT, || kept_bytes(folder) > KEPT);
    running
}

/// The path changes that each detector finds in what was kept are a table; never as Parquet.
fn each_detector_is_asked(folder: &TestFolder) {
    for detector in ["guard", "rule", "change-points"] {
        let of = ["export", "night", "--changes", detector, "--output", "-"];
        let ran = folder.neph(of.into_iter().chain(["--format", "csv"]));
        assert_eq!(ran.status, 0, "{detector}: {}", ran.err);
        let heading = ran.out.lines().next().unwrap_or_default();
        assert!(heading.ends_with("before_ns,after_ns,path_before,path_after,other_routers"));
        let refused = folder.neph(of.into_iter().chain(["--format", "parquet"]));
        let why = "path changes are written as csv or jsonl; give --format csv";
        assert!(
            refused.status == 2 && refused.err.contains(why),
            "{}",
            refused.err
        );
    }
}

fn keeps_by_what_changes_were_told(folder: &TestFolder) {
    let listed = folder.neph(["list", "last", "--format", "json"]).out;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let shown = folder.neph(["show", listed[0]["id"].as_str().expect("an id")]);
    let is_shown = shown.out.contains("5 of 8 round trips within 2 ms");
    assert!(is_shown, "{}", shown.out);
}

#[test]
fn saved_flows_are_listed_shown_exported_and_reported() {
    let (first, other) = (reflector(), reflector());
    let targets = [&first, &other].map(|reflector| format!("udp://{}", reflector.address()));
    let folder = TestFolder::empty();
    let ran = folder.neph([
        "flows",
        &targets[0],
        &targets[1],
        "-n",
        "16",
        "-c",
        "12",
        "-i",
        "50ms",
        "--window",
        "8",
        "--quorum",
        "5",
        "--tolerance",
        "2ms",
        "--save",
        "night",
    ]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    keeps_by_what_changes_were_told(&folder);
    assert!(
        ran.err
            .contains("neph: kept as campaign night, complete; neph report "),
        "{}",
        ran.err
    );
    assert_eq!(count_stored_messages(&folder), 16 * 12);
    let shown = folder.neph(["show", "night"]);
    let on_the_wire = shown.out.contains("104 B") && !shown.out.contains("64 B");
    assert!(on_the_wire, "{}", shown.out);
    assert!(
        targets.iter().all(|target| shown.out.contains(target)),
        "{}",
        shown.out
    );
    let report = folder.neph(["report", "night", "-o", &folder.text("report")]);
    assert_eq!(report.status, 0, "{}{}", report.out, report.err);
    let page = fs::read_to_string(folder.path("report/index.html")).expect("a page");
    assert!(page.contains("<dt>Measured by</dt>"), "neph flows kept it");
    let figures = fs::read_dir(folder.path("report").join("figures"))
        .or_else(|_| fs::read_dir(folder.path("report")))
        .expect("a folder");
    let names: Vec<String> = figures
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .collect();
    assert!(
        names.iter().any(|name| name.starts_with("flow-spectrum")),
        "{names:?}"
    );
    each_detector_is_asked(&folder);
    let resumed = folder.neph(["resume", "night"]);
    assert!(
        resumed.err.contains("is complete already"),
        "{}",
        resumed.err
    );
}

#[test]
fn ctrl_c_is_the_end_of_a_run_without_one_and_interrupts_a_run_with_one() {
    let reflector = reflector();
    let target = format!("udp://{}", reflector.address());
    for (extra_args, word) in [(&[][..], "complete"), (&["-w", "60s"][..], "interrupted")] {
        let folder = TestFolder::empty();
        let running = start_saved_fleet(&folder, &target, extra_args);
        send_signal("INT", running.id());
        let ran = wait_for_end(running);
        assert_eq!(ran.status, 130, "{}", ran.err);
        let printed = format!("kept as campaign night, {word}; neph report");
        assert!(ran.err.contains(&printed), "{}", ran.err);
        assert!(list_last(&folder).out.contains(word));
        assert!(count_stored_messages(&folder) > 100);
        if word == "interrupted" {
            let resumed = folder.neph(["resume", "night"]);
            assert_eq!(resumed.status, 2, "{}", resumed.err);
            assert!(resumed.err.contains("without a plan"), "{}", resumed.err);
        }
    }
}

#[test]
fn ctrl_c_in_the_fleet_leaves_the_transfers_out() {
    let reflector = reflector();
    let folder = TestFolder::empty();
    let target = format!("tcp://{}", reflector.address());
    let running = start_saved_fleet(&folder, &target, &["-w", "60s", "--transfers", "8"]);
    send_signal("INT", running.id());
    let ran = wait_for_end(running);
    assert_eq!(ran.status, 130, "{}", ran.err);
    assert!(!ran.err.contains("of each class"), "{}", ran.err);
    assert!(ran.out.contains("path changes:"), "{}", ran.out);
    let printed = "kept as campaign night, interrupted; neph report";
    assert!(ran.err.contains(printed), "{}", ran.err);
}

#[test]
fn transfers_that_fail_do_not_take_the_summary_away() {
    let reflector = reflector();
    let folder = TestFolder::empty();
    let target = format!("syn://{}", reflector.address());
    let base_args = ["flows", &target, "-n", "8", "-i", "100ms", "-c", "8"];
    let extra_args = ["--transfers", "8", "--save", "night"];
    let mut command = folder.command(base_args.into_iter().chain(extra_args));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().expect("neph runs");
    let mut stdout = BufReader::new(running.stdout.take().expect("piped"));
    let mut out = String::new();
    stdout.read_line(&mut out).expect("its title");
    // A port that nobody listens at answers SYNs too.
    drop(reflector);
    stdout.read_to_string(&mut out).expect("the rest");
    let ran = wait_for_end(running);
    assert!(out.contains("8 flows, 64 messages, 64 replies"), "{out}");
    let last = ran.err.lines().last().unwrap_or_default();
    assert!(last.contains("Connection refused"), "{}", ran.err);
    let printed = "kept as campaign night, incomplete; neph report";
    assert!(ran.err.contains(printed), "{}", ran.err);
    assert_ne!(ran.status, 0);
}

#[test]
fn after_a_kill_the_messages_are_there() {
    let reflector = reflector();
    let folder = TestFolder::empty();
    let target = format!("udp://{}", reflector.address());
    let running = start_saved_fleet(&folder, &target, &[]);
    send_signal("KILL", running.id());
    let killed = running.wait_with_output().expect("it ended");
    assert!(!killed.status.success());
    assert!(count_stored_messages(&folder) > 100);
    what_is_kept_is_told(&folder);
    // The next who writes ends what was cut off.
    let next = folder.neph(["flows", &target, "-n", "2", "-c", "1", "--save", "day"]);
    assert_eq!(next.status, 0, "{}", next.err);
    let listed = folder.neph(["list"]);
    assert!(
        listed.out.contains("interrupted") && listed.out.contains("complete"),
        "{}",
        listed.out
    );
}

/// There is nothing to go on with, so that nobody is sent there.
fn what_is_kept_is_told(folder: &TestFolder) {
    let listed = folder.neph(["list"]).out;
    let way_on = listed.split_once("interrupted (neph report ");
    let (_, way_on) = way_on.unwrap_or_else(|| panic!("{listed}"));
    assert!(!listed.contains("resume"), "{listed}");
    let id = way_on.split(' ').next().unwrap_or_default();
    let ran = folder.neph(["report", id]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    let expected = format!(
        "{} messages of 1 experiment that did not end are kept: neph report {id} --everything",
        count_stored_messages(folder)
    );
    assert!(ran.err.contains(&expected), "{expected}: {}", ran.err);
    let ran = folder.neph(["report", id, "--everything"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(
        ran.err.is_empty() && ran.out.contains("1 experiment"),
        "{}",
        ran.out
    );
}

#[test]
fn a_disk_that_takes_no_more_ends_the_measurement_with_a_sentence() {
    let reflector = reflector();
    let folder = TestFolder::empty();
    let script = format!(
        "trap '' XFSZ; ulimit -f 400; exec \"$NEPH\" flows udp://{} -n 200 -i 20ms -w 60s --save night",
        reflector.address()
    );
    let output = process::command("bash")
        .args(["-c", &script])
        .env("NEPH", env!("CARGO_BIN_EXE_neph"))
        .env("NEPH_WORKSPACE", folder.workspace())
        .output();
    let ran = RunOutput::from(output.expect("bash"));
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert!(
        lines.len() == 1
            && lines[0].contains("the measurement ends here, and what was recorded is kept"),
        "{}",
        ran.err
    );
    let stored_messages = count_stored_messages(&folder);
    assert!(stored_messages > 1000, "{stored_messages}");
}

#[test]
fn a_fleet_that_cannot_start_is_not_saved_and_bad_names_fail() {
    let folder = TestFolder::empty();
    for (name, part) in [("last", "means the campaign"), ("", "not empty")] {
        let ran = folder.neph(["flows", "127.0.0.1", "-c", "1", "--save", name]);
        assert_eq!(ran.status, 2, "{}", ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    let ran = folder.neph([
        "flows",
        "127.0.0.1",
        "-c",
        "1",
        "--site",
        "nonesuch",
        "--save",
        "night",
    ]);
    assert_eq!(ran.status, 2, "{}", ran.err);
    assert!(!folder.neph(["list"]).out.contains("night"));
}

#[test]
fn a_reused_name_is_reported_and_an_unnamed_workspace_refused() {
    let reflector = reflector();
    let folder = TestFolder::empty();
    let target = format!("udp://{}", reflector.address());
    let base_args = ["flows", &target, "-n", "2", "-c", "2", "-i", "50ms"];
    for expected in [
        None,
        Some("neph: a campaign is called 'night' already: the name will mean this one"),
        Some("neph: 2 campaigns are called 'night' already: the name will mean this one"),
    ] {
        let ran = folder.neph(base_args.into_iter().chain(["--save", "night"]));
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert_eq!(
            ran.err.contains("'night' already"),
            expected.is_some(),
            "{}",
            ran.err
        );
        assert!(
            ran.err.contains(expected.unwrap_or_default()),
            "{}",
            ran.err
        );
    }
    let ran = folder.neph(base_args.into_iter().chain(["--workspace", "elsewhere"]));
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{}", ran.err);
    let expected = "--workspace elsewhere: nothing is kept there without --save NAME";
    assert!(ran.err.contains(expected), "{}", ran.err);
}
