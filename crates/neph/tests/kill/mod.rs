use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_model::{ByteSize, ExperimentStatus, ReflectorCaps, ReflectorSpec};
use neph_probe::Reflector;
use neph_store::{Access, open};
use neph_sys::deadline::poll;
use neph_sys::process;

/// Kills of an ordinary test run; `NEPH_KILLS=200` is what the issue asks to be shown.
const KILLS: u64 = 6;
const BLOCKS: u32 = 2;
const SCENARIOS: usize = 4;
const MESSAGES: u64 = 100;

struct KillTest {
    folder: PathBuf,
    plan: PathBuf,
    _reflector: Reflector,
}

impl KillTest {
    fn new(number: u64) -> Self {
        let folder =
            std::env::temp_dir().join(format!("neph-kill-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let spec = ReflectorSpec {
            caps: ReflectorCaps {
                reply_size: ByteSize(1 << 20),
                ..ReflectorCaps::default()
            },
            ..ReflectorSpec::at(SocketAddr::from(([127, 0, 0, 1], 0)))
        };
        let reflector = Reflector::start(&spec).expect("loopback has a free port");
        let port = reflector.address().port();
        let plan = folder.join("plan.toml");
        let text = format!(
            "version = 1\nname = \"kill\"\nseed = 5\nblocks = {BLOCKS}\nmessages = {MESSAGES}\n\
             interval = [\"1ms\", \"2ms\"]\nrequest_size = [64, 2000]\n\
             [[endpoint]]\nname = \"here\"\nurl = \"ws://127.0.0.1:{port}/\"\n"
        );
        fs::write(&plan, text).expect("the plan is written");
        Self {
            folder,
            plan,
            _reflector: reflector,
        }
    }

    fn acknowledged_file(&self) -> PathBuf {
        self.folder.join("acknowledged")
    }

    fn neph(&self, arguments: &[&str]) -> Child {
        process::command(env!("CARGO_BIN_EXE_neph"))
            .args(arguments)
            .arg("--workspace")
            .arg(self.folder.join("store"))
            .arg("--acknowledge")
            .arg(self.acknowledged_file())
            .args(["--quiet", "--no-report"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("neph starts")
    }
}

impl Drop for KillTest {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// splitmix64: the moments differ from run to run of the loop, and are the same in every test run.
fn random(mut seed: u64) -> u64 {
    seed = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x1234_5678_9abc_def1);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed ^ (seed >> 27)
}

type MessageKeys = BTreeMap<String, BTreeSet<(u32, u64)>>;

/// What neph said is safe. A last line that the kill tore is no acknowledgement.
fn acknowledged(path: &Path) -> MessageKeys {
    let text = fs::read_to_string(path).unwrap_or_default();
    let complete_text = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut keys = MessageKeys::new();
    for line in complete_text.lines() {
        let mut lines = line.split(' ');
        let (Some(experiment), Some(flow), Some(seq)) = (lines.next(), lines.next(), lines.next())
        else {
            panic!("a line of three words, not '{line}'");
        };
        let position = (
            flow.parse().expect("a flow"),
            seq.parse().expect("a number"),
        );
        let is_new = keys
            .entry(experiment.to_owned())
            .or_default()
            .insert(position);
        assert!(is_new, "{line} is acknowledged twice");
    }
    keys
}

/// What the store holds, with each message checked to be there once; and complete experiments.
fn stored(folder: &Path) -> (MessageKeys, BTreeMap<(String, u32), u32>) {
    let store = open(&folder.join("store").display().to_string(), Access::Read).expect("a store");
    let mut keys = MessageKeys::new();
    let mut complete = BTreeMap::new();
    for campaign in store.campaigns().expect("campaigns") {
        for experiment in store.experiments(campaign.id).expect("experiments") {
            let messages = store.messages(experiment.id).expect("messages");
            let places = keys.entry(experiment.id.to_string()).or_default();
            for message in &messages {
                assert!(
                    message.seq.0 < MESSAGES,
                    "message {} was never asked for",
                    message.seq
                );
                let is_new = places.insert((message.flow.0, message.seq.0));
                assert!(
                    is_new,
                    "{} of {} is there twice",
                    message.seq, experiment.id
                );
            }
            if experiment.status == ExperimentStatus::Complete {
                let main = messages
                    .iter()
                    .filter(|message| message.flow.0 == 0)
                    .count();
                assert_eq!(main as u64, MESSAGES);
                let key = (experiment.scenario.to_string(), experiment.block);
                *complete.entry(key).or_insert(0) += 1;
            }
        }
    }
    (keys, complete)
}

#[test]
fn acknowledged_messages_survive_a_kill_at_any_moment() {
    let kills = std::env::var("NEPH_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(KILLS);
    let mut killed_while_running = 0;
    for number in 0..kills {
        let kill_test = KillTest::new(number);
        let plan = kill_test.plan.display().to_string();
        let mut child = kill_test.neph(&["run", &plan]);
        let moment = Duration::from_millis(random(number) % 1_600);
        let has_ended = poll(Duration::from_millis(1), moment, || {
            child.try_wait().expect("told").is_some()
        });
        killed_while_running += u32::from(!has_ended);
        child.kill().expect("SIGKILL can be sent");
        child.wait().expect("it ends");
        let before = acknowledged(&kill_test.acknowledged_file());
        let created = kill_test
            .folder
            .join("store")
            .join("catalog.sqlite")
            .exists();
        let output = kill_test
            .neph(&["resume"])
            .wait_with_output()
            .expect("resume ends");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            // Killed before the campaign was in the catalog: there is nothing to go on with.
            assert!(
                before.is_empty(),
                "kill {number} at {moment:?}, store {created}: {printed}"
            );
            continue;
        }
        let (keys, complete) = stored(&kill_test.folder);
        for (experiment, places) in &before {
            let stored_keys = keys.get(experiment).unwrap_or_else(|| {
                panic!("kill {number} at {moment:?}: experiment {experiment} is gone")
            });
            let lost: Vec<_> = places.difference(stored_keys).collect();
            assert!(
                lost.is_empty(),
                "kill {number} at {moment:?}: lost {lost:?}"
            );
        }
        let expected = SCENARIOS * usize::try_from(BLOCKS).expect("small");
        assert_eq!(
            complete.len(),
            expected,
            "kill {number}: a scenario was skipped"
        );
        assert!(
            complete.values().all(|times| *times == 1),
            "kill {number}: {complete:?}"
        );
    }
    println!("{kills} kills, {killed_while_running} of them while neph ran");
    assert!(killed_while_running > 0, "no kill met a running campaign");
}
