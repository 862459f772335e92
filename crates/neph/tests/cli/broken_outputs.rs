//! The edges: who reads the output goes away, help, version, completions, man pages.

use std::fs;
use std::process::Stdio;

use neph_sys::process;

use crate::neph::{TestFolder, command, neph};

/// Every command, in the order of `--help`.
pub(crate) const COMMANDS: [&str; 35] = [
    "demo",
    "gallery",
    "ping",
    "flows",
    "trace",
    "read",
    "watch",
    "clock",
    "hops",
    "reflect",
    "health",
    "check",
    "plan",
    "run",
    "resume",
    "report",
    "diagnose",
    "list",
    "show",
    "tidy",
    "export",
    "import",
    "lab",
    "throughput",
    "rr",
    "load",
    "size",
    "media",
    "stress",
    "control",
    "agents",
    "agent",
    "explain",
    "completions",
    "man",
];

#[test]
fn a_reader_that_goes_away_ends_neph_quietly() {
    let folder = TestFolder::with_campaign();
    for arguments in [
        vec!["list"],
        vec!["show"],
        vec!["export", "--format", "csv", "--output", "-"],
        vec!["completions", "bash"],
        vec!["man"],
        vec!["--help"],
    ] {
        let mut child = folder
            .command(arguments.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("neph runs");
        // As `| head -0` does.
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("Broken pipe"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let folder = TestFolder::with_campaign();
    for arguments in [
        vec!["list"],
        vec!["show"],
        vec!["list", "last"],
        vec!["completions", "bash"],
        vec!["man"],
    ] {
        let full = fs::File::create("/dev/full").expect("Linux has it");
        let mut command = folder.command(arguments.iter().copied());
        let output = command.stdout(full).output().expect("neph runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(
            stderr.contains("write the output"),
            "{arguments:?}: {stderr}"
        );
    }
}

#[test]
fn an_output_that_is_closed_is_one_that_cannot_be_written() {
    let folder = TestFolder::with_campaign();
    let fleet = "flows udp://127.0.0.1:9 -n 2 -c 2 -i 50ms --timeout 100ms --format json";
    let ping = "ping udp://127.0.0.1:9 --no-icmp -c 1 --format json";
    for args in ["list", "show", "completions bash", "man", fleet, ping] {
        let arguments = args.split(' ');
        let mut closed = process::command("sh");
        closed
            .args(["-c", "exec \"$0\" \"$@\" >&-"])
            .arg(folder.command([]).get_program())
            .args(arguments)
            .env("NEPH_WORKSPACE", folder.workspace());
        let output = closed.output().expect("sh runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args}: {stderr}");
        let sentence = "neph: write the output: standard output is closed";
        assert!(stderr.contains(sentence), "{args}: {stderr}");
    }
}

#[test]
fn help_names_every_command_and_every_command_helps() {
    let help = neph(["--help"]);
    assert_eq!((help.status, help.err.as_str()), (0, ""));
    let listed: Vec<&str> = help
        .out
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| !word.is_empty() && *word != "help")
        .collect();
    assert_eq!(listed, COMMANDS);
    for name in COMMANDS {
        let ran = neph([name, "--help"]);
        assert_eq!(ran.status, 0, "{name}");
        assert!(
            ran.out.contains(&format!("Usage: neph {name}")),
            "{}",
            ran.out
        );
    }
}

#[test]
fn help_is_without_colour_where_colour_is_not_wanted() {
    let ran = neph(["ping", "--help"]);
    assert!(!ran.out.contains('\u{1b}'));
}

#[test]
fn the_long_version_contains_its_commit() {
    let short = neph(["-V"]).out;
    assert_eq!(short.trim(), format!("neph {}", env!("CARGO_PKG_VERSION")));
    let long = neph(["--version"]).out;
    let commit = long.trim().rsplit('(').next().unwrap_or_default();
    let commit = commit.trim_end_matches(')');
    let hex = commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(hex || commit == "unknown", "{long}");
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = neph(["completions", shell]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{shell}");
        for name in COMMANDS {
            assert!(ran.out.contains(name), "{shell} does not know {name}");
        }
    }
}

#[test]
fn there_is_a_man_page_for_every_command() {
    let folder = TestFolder::empty();
    let ran = command()
        .args(["man", "--output", &folder.text("man")])
        .output()
        .expect("neph runs");
    assert!(ran.status.success());
    for name in COMMANDS {
        let path = folder.path("man").join(format!("neph-{name}.1"));
        let page = fs::read_to_string(&path).expect("a page for each");
        assert!(page.contains(".TH"), "{name}");
    }
    for name in ["neph-lab-up.1", "neph.1"] {
        assert!(folder.path("man").join(name).exists(), "{name}");
    }
    let pages = fs::read_dir(folder.path("man")).expect("a folder");
    let names = pages.map(|page| page.expect("an entry").file_name());
    let about_help = names.filter(|name| name.to_string_lossy().contains("help"));
    assert_eq!(about_help.count(), 0);
}
