//! Commands that a topology names run only when somebody approved them.

use std::fs;

use neph_sys::process;

use crate::labs::{TWO_SITES, privileged};
use crate::neph::{RunOutput, TestFolder};

/// A service that leaves a trace when it runs.
fn service_entry(folder: &TestFolder) -> String {
    let trace = folder.text("trace");
    format!(
        "[[service]]\nname = \"web\"\nsite = \"b\"\ncommand = [\"sh\", \"-c\", \"touch {trace}; exec sleep 60\"]\n\
         ready = {{ command = [\"test\", \"-e\", \"{trace}\"] }}\n"
    )
}

/// A folder with a topology that runs a command, and a plan that uses it.
fn plan_folder() -> TestFolder {
    let folder = TestFolder::empty();
    fs::write(
        folder.path("lab.toml"),
        format!("{TWO_SITES}{}", service_entry(&folder)),
    )
    .expect("a file");
    let plan = "version = 1\nname = \"x\"\ninterval = \"1ms\"\nmessages = 1\n\n\
                [[endpoint]]\nname = \"b\"\nurl = \"ws://10.80.0.2:8080/\"\n\n\
                [lab]\ntopology = \"lab.toml\"\nprober = \"a\"\n";
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    folder
}

/// Runs neph with a state folder of its own.
fn neph(folder: &TestFolder, args: &[&str]) -> RunOutput {
    let mut command = folder.command(args.iter().copied());
    command.env("XDG_STATE_HOME", folder.path("state"));
    command.output().expect("neph runs").into()
}

#[test]
fn reading_a_topology_lists_the_commands_that_it_would_run() {
    let folder = plan_folder();
    for args in [
        &["lab", "check", "lab.toml"][..],
        &["lab", "plan", "lab.toml"],
        &["check", "plan.toml"],
        &["plan", "plan.toml"],
    ] {
        let ran = neph(&folder, args);
        assert_eq!(ran.status, 0, "{}", ran.err);
        let file = args[args.len() - 1];
        let listed = format!("neph: treat {file} as a script: it runs 2 commands as root\n");
        assert!(ran.err.contains(&listed), "{args:?}: {}", ran.err);
        assert!(
            ran.err
                .contains("  service 'web' at site 'b': sh -c 'touch "),
            "{}",
            ran.err
        );
    }
    assert!(!folder.path("trace").exists(), "nothing ran");
}

#[test]
fn unapproved_commands_do_not_run() {
    if !privileged("unapproved_commands_do_not_run") {
        return;
    }
    let folder = plan_folder();
    let lab = format!("y{}", std::process::id());
    for args in [
        &["lab", "up", "lab.toml", "--name", &lab][..],
        &["lab", "up", "lab.toml", "--detach", "--name", &lab],
        &["lab", "verify", "lab.toml"],
        &["run", "plan.toml"],
    ] {
        let ran = neph(&folder, args);
        assert_eq!(ran.status, 2, "{args:?}: {}", ran.err);
        let remedy = "these commands are not approved in this folder; read them, then add --yes to run them as root\n";
        assert!(ran.err.ends_with(remedy), "{args:?}: {}", ran.err);
    }
    assert!(!folder.path("trace").exists(), "nothing ran");
    assert!(!folder.path("ws").exists(), "nothing was written");
}

#[test]
fn an_approval_holds_until_the_commands_change() {
    if !privileged("an_approval_holds_until_the_commands_change") {
        return;
    }
    let folder = plan_folder();
    let lab = format!("x{}", std::process::id());
    let up = ["lab", "up", "lab.toml", "--detach", "--name", &lab];
    let down = || assert_eq!(neph(&folder, &["lab", "down", &lab]).status, 0);
    let ran = neph(&folder, &[&up[..], &["--yes"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(!ran.err.contains("as a script"), "{}", ran.err);
    down();
    fs::remove_file(folder.path("trace")).expect("it ran");
    let ran = neph(&folder, &up);
    assert_eq!(ran.status, 0, "{}", ran.err);
    down();
    let changed = fs::read_to_string(folder.path("lab.toml")).expect("ours");
    fs::write(
        folder.path("lab.toml"),
        changed.replace("sleep 60", "sleep 61"),
    )
    .expect("ours");
    assert_eq!(neph(&folder, &up).status, 2);
    // What a keeper is given holds for the commands that were approved, not for those of the file.
    let other = [&up[..], &["--approved", "00"]].concat();
    assert_eq!(neph(&folder, &other).status, 2);
}

#[test]
fn at_a_terminal_the_answer_decides() {
    if !privileged("at_a_terminal_the_answer_decides") {
        return;
    }
    let folder = plan_folder();
    let lab = format!("w{}", std::process::id());
    for (answer, status, runs) in [("n", 1, false), ("", 1, false), ("y", 0, true)] {
        let line = format!(
            "'{}' lab up lab.toml --detach --name {lab}",
            env!("CARGO_BIN_EXE_neph")
        );
        let script = format!("echo '{answer}' | script -qec \"{line}\" /dev/null");
        let mut command = process::command("sh");
        command.args(["-c", &script]).current_dir(folder.path(""));
        command.env("XDG_STATE_HOME", folder.path("state"));
        let ran: RunOutput = command.output().expect("util-linux").into();
        assert_eq!(ran.status, status, "{answer}: {}", ran.out);
        assert!(ran.out.contains("run these commands? [y/N]"), "{}", ran.out);
        assert_eq!(folder.path("trace").exists(), runs, "{answer}: {}", ran.out);
    }
    assert_eq!(neph(&folder, &["lab", "down", &lab]).status, 0);
}
