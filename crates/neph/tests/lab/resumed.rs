//! A plan whose two seasons have a topology each: stopped in the one, killed in the other, and gone
//! on with each time. Nothing is measured twice, nothing that was safe is lost, no lab is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use neph_model::{CampaignStatus, Experiment, ExperimentId, ExperimentStatus, FleetReply, Span};
use neph_store::{Access, SentWithin, Store, open};
use neph_sys::deadline::poll;
use neph_sys::process;
use tempfile::TempDir;

use crate::setup::is_privileged;

const BLOCKS: u32 = 2;
const FLOWS: u64 = 8;
const MESSAGES: u64 = 30;
const PLAN: &str = r#"
version = 1
name = "two topologies"
order = "sequential"
blocks = 2
interval = "100ms"
messages = 30
flows = 8
[companion]
enabled = false
[[endpoint]]
name = "server"
url = "udp://10.86.7.2:8080"
[[season]]
name = "low"
[[season]]
name = "high"
topology = "high.toml"
[lab]
topology = "low.toml"
prober = "client"
[[lab.reflector]]
site = "server"
"#;
/// How long a season's link takes each way, milliseconds.
const DELAYS: [(&str, i64); 2] = [("low", 5), ("high", 20)];
/// The longest wait for an expected state.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Where each complete experiment's flow and message are.
type MessageKeys = BTreeSet<(String, String)>;

struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (season, delay) in DELAYS {
            let text = format!(
                "version = 1\n[[site]]\nname = \"client\"\naddress = \"10.86.7.1/24\"\n\
                 [[site]]\nname = \"server\"\naddress = \"10.86.7.2/24\"\n\
                 [[link]]\na = \"client\"\nb = \"server\"\ndelay = \"{delay}ms\"\n"
            );
            fs::write(folder.path(&format!("{season}.toml")), text).expect("written");
        }
        fs::write(folder.path("p.toml"), PLAN).expect("written");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Begins to carry the plan out, or goes on with it.
    fn neph(&self, args: &[&str]) -> Child {
        process::command(env!("CARGO_BIN_EXE_neph"))
            .args(args)
            .args(["--quiet", "--no-report", "--acknowledge", "safe"])
            .env("NEPH_WORKSPACE", self.path("kept"))
            .current_dir(self.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("neph starts")
    }

    fn store(&self) -> Option<Box<dyn Store>> {
        open(&self.path("kept").to_string_lossy(), Access::Read).ok()
    }

    /// Every experiment with its season.
    fn experiments(&self) -> Option<Vec<(String, Experiment)>> {
        let store = self.store()?;
        let campaign = store.campaigns().ok()?.first()?.id;
        let seasons: BTreeMap<_, _> = store
            .scenarios(campaign)
            .ok()?
            .into_iter()
            .map(|scenario| (scenario.id, scenario.season().expect("a season").to_owned()))
            .collect();
        let experiments = store.experiments(campaign).ok()?.into_iter();
        Some(
            experiments
                .map(|experiment| (seasons[&experiment.scenario].clone(), experiment))
                .collect(),
        )
    }

    /// Waits until messages of an experiment of the season are safe.
    fn wait_for(&self, season: &str, child: &mut Child) {
        let is_safe = poll(Duration::from_millis(20), TIMEOUT, || {
            let running =
                self.experiments()
                    .into_iter()
                    .flatten()
                    .find(|(experiment_season, experiment)| {
                        experiment_season == season
                            && experiment.status == ExperimentStatus::Running
                            && experiment.ended.is_none()
                    });
            let safe = fs::read_to_string(self.path("safe")).unwrap_or_default();
            if running.is_some_and(|(_, experiment)| safe.contains(&experiment.id.to_string())) {
                return true;
            }
            let ended = child.try_wait().expect("told");
            assert!(ended.is_none(), "it ended before {season}: {ended:?}");
            false
        });
        assert!(is_safe, "{season} never came");
    }
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Namespaces and the folder of the lab of a process.
fn lab_remains(pid: u32) -> Vec<String> {
    let names = ["/run/netns", "/run/neph"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
    });
    let (lab, sites) = (format!("run{pid}"), format!("neph-run{pid}-"));
    names
        .filter(|name| *name == lab || name.starts_with(&sites))
        .collect()
}

#[test]
fn a_campaign_of_two_topologies_resumes_after_a_stop_and_a_kill() {
    if !is_privileged("a campaign of two topologies") {
        return;
    }
    let folder = TestFolder::new();
    let mut stopped = folder.neph(&["run", "p.toml"]);
    folder.wait_for("low", &mut stopped);
    let pid = stopped.id();
    assert!(!lab_remains(pid).is_empty(), "its lab is up");
    let mut kill = process::command("kill");
    let sent = kill.args(["-s", "INT", &pid.to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let output = stopped.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr_text(&output));
    assert_eq!(lab_remains(pid), [""; 0]);

    let mut killed = folder.neph(&["resume"]);
    folder.wait_for("high", &mut killed);
    let pid = killed.id();
    killed.kill().expect("SIGKILL can be sent");
    killed.wait().expect("it ends");
    assert!(!lab_remains(pid).is_empty(), "a kill leaves a lab");

    let last = folder.neph(&["resume"]);
    let last_pid = last.id();
    let output = last.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr_text(&output));
    assert_eq!(lab_remains(pid), [""; 0], "who goes on takes it down");
    assert_eq!(lab_remains(last_pid), [""; 0]);
    assert_campaign_is_complete(&folder);
}

/// Each scenario is complete once in each block and has every message once; the two that were cut
/// off keep what was safe.
fn assert_campaign_is_complete(folder: &TestFolder) {
    let store = folder.store().expect("a workspace");
    let status = store.campaigns().expect("campaigns")[0].status;
    assert_eq!(status, CampaignStatus::Complete);
    let experiments = folder.experiments().expect("experiments");
    let mut complete = BTreeSet::new();
    let mut cut_off = Vec::new();
    let mut stored = MessageKeys::new();
    let mut spans: BTreeMap<&str, BTreeSet<Span>> = BTreeMap::new();
    for (season, experiment) in &experiments {
        let (keys, span) = messages_of(store.as_ref(), experiment);
        spans.entry(season.as_str()).or_default().extend(span);
        match experiment.status {
            ExperimentStatus::Complete => {
                assert_eq!(keys.len() as u64, FLOWS * MESSAGES);
                assert!(
                    complete.insert((season, experiment.block)),
                    "measured twice"
                );
            }
            ExperimentStatus::Interrupted => cut_off.push((season.as_str(), experiment.block)),
            status => panic!("{season} in block {}: {status:?}", experiment.block),
        }
        stored.extend(keys);
    }
    assert_eq!(complete.len() as u64, 2 * u64::from(BLOCKS));
    assert_eq!(cut_off, [("low", 0), ("high", 0)]);
    let acknowledged = acknowledged_messages(folder);
    let lost: Vec<_> = acknowledged.difference(&stored).collect();
    assert!(!acknowledged.is_empty() && lost.is_empty(), "{lost:?}");
    // Each season was measured in its own topology, after every change of them.
    let min_rtt = DELAYS.map(|(season, delay)| {
        let min_rtt = *spans[season].first().expect("a reply");
        assert!(
            min_rtt >= Span::from_millis(2 * delay),
            "{season}: {min_rtt}"
        );
        min_rtt
    });
    assert!(min_rtt[0] < min_rtt[1], "{min_rtt:?}");
}

/// Where the messages of an experiment are, each there once, and the least round trip.
fn messages_of(store: &dyn Store, experiment: &Experiment) -> (MessageKeys, Option<Span>) {
    let mut keys = MessageKeys::new();
    let mut spans = Vec::new();
    let mut visit = |batch: &[neph_model::FleetMessage]| {
        for message in batch {
            let flow = format!("{}/{}", message.slot.0, message.source_port);
            let key = (experiment.id.to_string(), format!("{flow} {}", message.seq));
            assert!(keys.insert(key), "{message:?} is there twice");
            spans.extend(message.reply().map(FleetReply::network));
        }
        Ok(())
    };
    let visited = store.visit_fleet(experiment.id, SentWithin::ALL, &mut visit);
    visited.expect("its messages");
    (keys, spans.into_iter().min())
}

/// What neph acknowledged as safe. A line that the kill tore is none, nor is what was written behind it.
fn acknowledged_messages(folder: &TestFolder) -> MessageKeys {
    let text = fs::read_to_string(folder.path("safe")).expect("what is safe");
    let texts = text.lines().filter(|line| {
        let args: Vec<&str> = line.split(' ').collect();
        args.len() == 3 && args[0].parse::<ExperimentId>().is_ok()
    });
    let places = texts.filter_map(|line| line.split_once(' '));
    places.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}
