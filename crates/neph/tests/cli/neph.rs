//! Running neph, and a workspace that holds something.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

use neph_sys::deadline::wait_until;
use neph_sys::process;
use tempfile::TempDir;

/// What a run of neph left.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for RunOutput {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().expect("it was not killed"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// The program, with a clean environment as far as it matters.
pub(crate) fn command() -> Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_neph"));
    command.env_remove("NEPH_WORKSPACE").env("NO_COLOR", "1");
    // What one test approves no other one has approved.
    command.env("XDG_STATE_HOME", "/dev/null");
    command
}

/// Runs it to its end.
pub(crate) fn neph<'a>(args: impl IntoIterator<Item = &'a str>) -> RunOutput {
    command().args(args).output().expect("neph runs").into()
}

/// Sends a signal, as ctrl-C and `kill` do.
pub(crate) fn send_signal(signal: &str, pid: u32) {
    let sent = process::command("kill")
        .args(["-s", signal, &pid.to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

/// Starts a program of which neph is the last part, and waits for the first line of its messages;
/// what comes after can be read on.
pub(crate) fn start_and_read_line(
    command: &mut Command,
) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("neph runs");
    let mut printed = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    printed.read_line(&mut line).expect("it says something");
    (child, printed, line)
}

/// How long what needs a moment may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until something is so, and fails where it does not become so in time.
pub(crate) fn eventually(message: &str, within: Duration, condition: impl FnMut() -> bool) {
    assert!(wait_until(within, condition), "{message}");
}

/// A folder that goes away, with a workspace in it.
pub(crate) struct TestFolder {
    folder: TempDir,
}

impl TestFolder {
    /// With nothing in it.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder }
    }

    /// With a campaign of two experiments, imported: no network is needed to have one.
    pub(crate) fn with_campaign() -> Self {
        let folder = Self::empty();
        let old = folder.path("raw-data");
        fs::create_dir(&old).expect("a folder");
        for (size, start) in [
            (64, 1_600_000_000_000_000_000_i64),
            (10_240, 1_600_000_600_000_000_000),
        ] {
            fs::write(
                old.join(format!("1-metro.i100.x{size}.csv")),
                latency_tester_csv(start),
            )
            .expect("a file");
        }
        let ran = folder.neph(["import", &old.display().to_string()]);
        assert_eq!(ran.status, 0, "{}", ran.err);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The workspace's folder.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("ws")
    }

    /// Runs neph with this workspace, in this folder.
    pub(crate) fn neph<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> RunOutput {
        self.command(args).output().expect("neph runs").into()
    }

    pub(crate) fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = command();
        command
            .args(args)
            .env("NEPH_WORKSPACE", self.workspace())
            .current_dir(self.folder.path());
        command
    }

    /// The files beside the workspace: what a command wrote where its user would look.
    pub(crate) fn files(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name != "ws" && name != "raw-data")
        .collect();
    names.sort();
    names
}

/// Forty messages of the Latency Tester, 100 ms apart, round trips from 40.0 to 43.9 ms.
pub(crate) fn latency_tester_csv(start: i64) -> String {
    let mut text = "#client-send-timestamp,server-timestamp,e2e-rtt\n".to_owned();
    for n in 0..40 {
        let sent = start + n * 100_000_000;
        let tenths = 400 + n;
        let (ms, tenth) = (tenths / 10, tenths % 10);
        text.push_str(&format!("{sent},{},{ms}.{tenth}00000\n", sent + 20_000_000));
    }
    text
}

/// What the `ip` program does of these words, for tests that need root.
pub(crate) fn run_ip(line: &str) {
    let done = process::command("ip").args(line.split(' ')).status();
    assert!(done.expect("the ip program").success(), "ip {line}");
}
