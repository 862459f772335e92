//! Ctrl-C and its like while a lab comes up, and who waits for whom.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_sys::deadline::Stopwatch;
use neph_sys::process;

use crate::labs::{TWO, privileged};
use crate::neph::{Ran, SOON, TestFolder, begin, command, eventually, neph, send};

/// Does not become ready for a long time: the lab is coming up meanwhile.
const SLOW: &str = "[[service]]\nname = \"slow\"\nsite = \"b\"\ncommand = [\"sleep\", \"60\"]\n\
    ready = { command = [\"sleep\", \"60\"], timeout = \"50s\" }\n";

/// A lab that is coming up.
struct Coming {
    folder: TestFolder,
    lab: String,
    child: Option<Child>,
}

impl Coming {
    fn begin(letter: char, args: &[&str]) -> Self {
        let folder = TestFolder::empty();
        fs::write(folder.path("slow.toml"), format!("{TWO}{SLOW}")).expect("a file");
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
    fn has_begun(&self) {
        let log = self.folder() + "/slow.log";
        eventually("its service has begun", SOON, || Path::new(&log).exists());
    }

    fn folder(&self) -> String {
        format!("/run/neph/{}", self.lab)
    }

    fn signal(&self, signal: &str) {
        send(signal, self.child.as_ref().expect("it runs").id());
    }

    fn end(&mut self) -> Ran {
        let child = self.child.take().expect("it runs");
        child.wait_with_output().expect("it ends").into()
    }

    /// What is left of it on this machine.
    fn left(&self) -> Vec<String> {
        let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut left: Vec<String> = names.filter(|name| name.contains(&self.lab)).collect();
        left.extend(Path::new(&self.folder()).exists().then(|| self.folder()));
        left
    }
}

impl Drop for Coming {
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
        stop_and_look(Coming::begin(letter, args), signal);
    }
}

fn stop_and_look(mut coming: Coming, signal: &str) {
    coming.has_begun();
    let begun = Stopwatch::start();
    coming.signal(signal);
    let ran = coming.end();
    assert_eq!((ran.status, ran.out.as_str()), (130, ""), "{}", ran.err);
    assert!(ran.err.contains("while it came up"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert_eq!(coming.left(), [""; 0], "{signal}");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?} after {signal}");
}

#[test]
fn a_campaign_whose_lab_comes_up_is_stopped_as_well() {
    if !privileged("a_campaign_whose_lab_comes_up_is_stopped_as_well") {
        return;
    }
    let folder = TestFolder::empty();
    fs::write(folder.path("slow.toml"), format!("{TWO}{SLOW}")).expect("a file");
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
    let coming = Coming {
        folder,
        lab: format!("run{}", child.id()),
        child: Some(child),
    };
    stop_and_look(coming, "TERM");
}

#[test]
fn lab_down_reports_the_start_that_it_waits_for() {
    if !privileged("lab_down_reports_the_start_that_it_waits_for") {
        return;
    }
    let mut coming = Coming::begin('j', &[]);
    coming.has_begun();
    let mut down = coming.folder.command(["lab", "down", &coming.lab]);
    let (mut down, _said, line) = begin(&mut down);
    let up = coming.child.as_ref().expect("it runs").id();
    let waits = format!("lab {} is just coming up (process {up})", coming.lab);
    assert!(line.contains(&waits), "{line}");
    coming.signal("INT");
    assert_eq!(coming.end().status, 130);
    assert_eq!(down.wait().expect("it ends").code(), Some(0));
    assert_eq!(coming.left(), [""; 0]);
}

#[test]
fn a_process_started_by_nohup_survives_a_hangup() {
    let args = [
        "-c",
        "trap '' HUP; exec \"$0\" reflect --listen 127.0.0.1:0",
    ];
    let mut shell = process::command("sh");
    shell.args(args).arg(command().get_program());
    let (mut child, _said, line) = begin(&mut shell);
    assert!(line.contains("answers"), "{line}");
    send("HUP", child.id());
    let address = line.split(' ').find(|word| word.starts_with("127.0.0.1:"));
    let target = format!("udp://{}", address.expect("it says where it answers"));
    let ran = neph(["ping", &target, "-c", "3", "-i", "100ms", "--no-icmp", "-q"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(child.try_wait().expect("ours"), None, "it goes on");
    send("TERM", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
