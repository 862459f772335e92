//! The units of systemd: without mistakes, without rights that they do not need, with arguments that neph
//! takes.

use std::fs;
use std::path::Path;

use neph_sys::process;

use crate::prerequisites::{has_programs, neph, root, run, try_run};

const UNITS: [&str; 3] = ["neph-agent", "neph-control", "neph-reflector"];

/// The exposure that a unit may have, of 10 (`systemd-analyze security`).
const MAX_EXPOSURE: f64 = 2.5;

fn unit(name: &str) -> String {
    let path = root().join(format!("deploy/systemd/{name}.service"));
    fs::read_to_string(path).expect("a unit")
}

#[test]
fn there_is_a_unit_for_each_service_and_no_other() {
    let folder = fs::read_dir(root().join("deploy/systemd")).expect("a folder");
    let mut names: Vec<String> = folder
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, UNITS.map(|name| format!("{name}.service")));
}

#[test]
fn systemd_finds_no_mistake_in_the_units() {
    if !has_programs(
        "systemd_finds_no_mistake_in_the_units",
        &["systemd-analyze"],
    ) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for name in UNITS {
        // The program is not installed here: the one that was built takes its place.
        let text = unit(name).replace("/usr/bin/neph", env!("CARGO_BIN_EXE_neph"));
        let path = folder.path().join(format!("{name}.service"));
        fs::write(&path, text).expect("writable");
        let mut verify = process::command("systemd-analyze");
        let (is_ok, printed) = try_run(verify.args(["verify", "--man=no"]).arg(&path));
        assert!(is_ok && printed.is_empty(), "{name}: {printed}");
    }
}

#[test]
fn the_exposure_level_of_the_units_is_low() {
    if !has_programs(
        "the_exposure_level_of_the_units_is_low",
        &["systemd-analyze"],
    ) {
        return;
    }
    for name in UNITS {
        let path = root().join(format!("deploy/systemd/{name}.service"));
        let arguments = ["security", "--offline=true", &path.display().to_string()];
        let printed = run("systemd-analyze", &arguments);
        let level = printed.split("exposure level for ").nth(1);
        let level = level.and_then(|rest| rest.split(' ').nth(1));
        let level: f64 = level.and_then(|level| level.parse().ok()).expect("a level");
        assert!(level <= MAX_EXPOSURE, "{name}: {level}");
    }
}

/// The arguments of a unit, with those of its file in /etc/default.
fn arguments(name: &str) -> Vec<String> {
    let unit = unit(name);
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/neph "));
    let default = root().join("deploy/debian").join(name);
    let default = fs::read_to_string(default).expect("a file for /etc/default");
    // What is a comment there is an example.
    let (variable, options) = default
        .lines()
        .filter_map(|line| line.trim_start_matches('#').split_once("=\""))
        .find(|(variable, _)| variable.ends_with("_OPTIONS"))
        .expect("options");
    line.expect("what it starts")
        .replace(&format!("${variable}"), options.trim_end_matches('"'))
        .replace("${STATE_DIRECTORY}", "/var/lib/x")
        .replace("${CREDENTIALS_DIRECTORY}", "/run/credentials/x")
        .split(' ')
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_arguments_in_units_are_accepted_by_the_program() {
    for name in UNITS {
        let arguments = arguments(name);
        assert!(
            !arguments.iter().any(|argument| argument.contains('$')),
            "{arguments:?}"
        );
        // Arguments are read before help is shown: wrong ones end it.
        let (is_ok, printed) = try_run(neph().args(&arguments).arg("--help"));
        assert!(is_ok, "{name}: {printed}");
    }
    let (is_ok, _) = try_run(neph().args(["reflect", "--no-such-option", "--help"]));
    assert!(!is_ok, "wrong arguments would not be seen");
}

#[test]
fn a_service_that_hangs_is_ended_and_one_with_wrong_options_is_not_started_for_ever() {
    for name in UNITS {
        let unit = unit(name);
        let has_line = |expected: &str| unit.lines().any(|line| line == expected);
        for line in [
            "Type=notify",
            "Restart=on-failure",
            "RestartPreventExitStatus=2",
        ] {
            assert!(has_line(line), "{name}: {line}");
        }
        assert!(unit.contains("\nWatchdogSec="), "{name}");
        // A user of its own: one for each run, or one that the package makes.
        let has_own_user = has_line("DynamicUser=yes") || has_line(&format!("User={name}"));
        assert!(has_own_user, "{name} runs as root");
    }
    let users = fs::read_to_string(root().join("deploy/debian/neph.sysusers")).expect("users");
    assert!(users.contains("\nu neph-control "), "{users}");
    assert!(Path::new(&root().join("deploy/debian/neph-control")).exists());
}
