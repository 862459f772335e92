//! Ctrl-C and its like while a lab comes up, and who waits for whom.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_sys::deadline::Stopwatch;
use neph_sys::process;

use crate::labs::{TWO_SITES, privileged};
use crate::neph::{
    RunOutput, TIMEOUT, TestFolder, command, eventually, neph, send_signal, start_and_read_line,
};

/// Does not become ready for a long time: the lab is coming up meanwhile.
const SLOW_SERVICE: &str = "[[service]]\nname = \"slow\"\nsite = \"b\"\ncommand = [\"sleep\", \"60\"]\n\
    ready = { command = [\"sleep\", \"60\"], timeout = \"50s\" }\n";

/// A lab that is coming up.
struct StartingLab {
    folder: TestFolder,
    lab: String,
    child: Option<Child>,
}

impl StartingLab {
    fn begin(letter: char, args: &[&str]) -> Self {
        let folder = TestFolder::empty();
        fs::write(
            folder.path("slow.toml"),
            format!("{TWO_SITES}{SLOW_SERVICE}"),
        )
        .expect("a file");
        let lab = format!("{letter}{}", std::process::id());
        let entries = ["lab", "up", "slow.toml", "--yes", "--name", &lab];
        let child = folder
            .command(entries.into_iter().chain(args.iter().copied()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("neph runs");
        Self {
            folder,
            lab,
            child: Some(child),
        }
    }

    /// Waits until all is there but the service's word.
    fn wait_for_service(&self) {
        let log = self.folder() + "/slow.log";
        eventually("its service has begun", TIMEOUT, || {
            Path::new(&log).exists()
        });
    }

    fn folder(&self) -> String {
        format!("/run/neph/{}", self.lab)
    }

    fn signal(&self, signal: &str) {
        send_signal(signal, self.child.as_ref().expect("it runs").id());
    }

    fn end(&mut self) -> RunOutput {
        let child = self.child.take().expect("it runs");
        child.wait_with_output().expect("it ends").into()
    }

    /// What is left of it on this machine.
    fn remaining(&self) -> Vec<String> {
        let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut remaining: Vec<String> = names.filter(|name| name.contains(&self.lab)).collect();
        remaining.extend(Path::new(&self.folder()).exists().then(|| self.folder()));
        remaining
    }
}

impl Drop for StartingLab {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.folder.neph(["lab", "down", &self.lab]);
    }
}

#[test]
fn a_lab_stopped_while_it_starts_leaves_nothing() {
    let test = "a_lab_stopped_while_it_starts_leaves_nothing";
    if !privileged(test) {
        return;
    }
    for (letter, signal, args) in [
        ('n', "INT", &[][..]),
        ('o', "TERM", &[]),
        ('p', "HUP", &[]),
        ('q', "INT", &["--detach"]),
    ] {
        assert_stop_leaves_nothing(StartingLab::begin(letter, args), signal);
    }
}

fn assert_stop_leaves_nothing(mut starting_lab: StartingLab, signal: &str) {
    starting_lab.wait_for_service();
    let stopwatch = Stopwatch::start();
    starting_lab.signal(signal);
    let ran = starting_lab.end();
    assert_eq!((ran.status, ran.out.as_str()), (130, ""), "{}", ran.err);
    assert!(ran.err.contains("while it came up"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert_eq!(starting_lab.remaining(), [""; 0], "{signal}");
    let elapsed = stopwatch.elapsed();
    assert!(
        elapsed < Duration::from_secs(20),
        "{elapsed:?} after {signal}"
    );
}

#[test]
fn a_campaign_whose_lab_comes_up_is_stopped_as_well() {
    if !privileged("a_campaign_whose_lab_comes_up_is_stopped_as_well") {
        return;
    }
    let folder = TestFolder::empty();
    fs::write(
        folder.path("slow.toml"),
        format!("{TWO_SITES}{SLOW_SERVICE}"),
    )
    .expect("a file");
    let plan = "version = 1\nname = \"x\"\ninterval = \"1ms\"\nmessages = 1\n\n\
                [[endpoint]]\nname = \"b\"\nurl = \"ws://10.80.0.2:8080/\"\n\n\
                [lab]\ntopology = \"slow.toml\"\nprober = \"a\"\n";
    fs::write(folder.path("plan.toml"), plan).expect("a file");
    let child = folder
        .command(["run", "plan.toml", "--yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("neph runs");
    let starting_lab = StartingLab {
        folder,
        lab: format!("run{}", child.id()),
        child: Some(child),
    };
    assert_stop_leaves_nothing(starting_lab, "TERM");
}

#[test]
fn lab_down_reports_the_start_that_it_waits_for() {
    if !privileged("lab_down_reports_the_start_that_it_waits_for") {
        return;
    }
    let mut starting_lab = StartingLab::begin('j', &[]);
    starting_lab.wait_for_service();
    let mut down = starting_lab
        .folder
        .command(["lab", "down", &starting_lab.lab]);
    let (mut down, _stderr, line) = start_and_read_line(&mut down);
    let up = starting_lab.child.as_ref().expect("it runs").id();
    let waits = format!("lab {} is just coming up (process {up})", starting_lab.lab);
    assert!(line.contains(&waits), "{line}");
    starting_lab.signal("INT");
    assert_eq!(starting_lab.end().status, 130);
    assert_eq!(down.wait().expect("it ends").code(), Some(0));
    assert_eq!(starting_lab.remaining(), [""; 0]);
}

#[test]
fn a_process_started_by_nohup_survives_a_hangup() {
    let args = [
        "-c",
        "trap '' HUP; exec \"$0\" reflect --listen 127.0.0.1:0",
    ];
    let mut shell = process::command("sh");
    shell.args(args).arg(command().get_program());
    let (mut child, _stderr, line) = start_and_read_line(&mut shell);
    assert!(line.contains("answers"), "{line}");
    send_signal("HUP", child.id());
    let address = line.split(' ').find(|word| word.starts_with("127.0.0.1:"));
    let target = format!("udp://{}", address.expect("it says where it answers"));
    let ran = neph(["ping", &target, "-c", "3", "-i", "100ms", "--no-icmp", "-q"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(child.try_wait().expect("ours"), None, "it goes on");
    send_signal("TERM", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
