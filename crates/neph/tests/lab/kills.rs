//! kill -9 at random moments of up, run and down: one `neph lab down` afterwards, and nothing is
//! left of the lab.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use neph_sys::clock;
use neph_sys::deadline::{Stopwatch, poll, wait_until};
use neph_sys::process;

/// Kills of an ordinary test run; `NEPH_KILLS=100` is what the issue asks to be shown.
const KILLS: u64 = 8;
/// Set in the environment of everything that a lab starts, and so of what is left of it.
const MARK: &str = "NEPH_KILLED_LAB";

/// Four sites, six links, a switch, rules, traffic, and a service whose child leaves its group
/// and does not hear SIGTERM.
const TOPOLOGY: &str = r#"
version = 1
[[generate]]
shape = "mesh"
sites = 4
link = { delay = "1ms" }
[[switch]]
name = "sw"
[[link]]
a = "s1"
b = "sw"
[[traffic]]
from = "s1"
to = "s2"
until = "60s"
[[service]]
name = "stubborn"
site = "s2"
grace = "50ms"
command = ["sh", "-c", "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 120' & sleep 120"]
"#;

struct KilledLab {
    folder: PathBuf,
    lab: String,
}

impl KilledLab {
    fn new(number: u64, with_groups: &str) -> Self {
        let lab = format!("z{}x{number}", std::process::id());
        let folder = std::env::temp_dir().join(format!("neph-lab-kill-{lab}"));
        fs::create_dir_all(&folder).expect("a folder");
        let text = format!("{TOPOLOGY}{with_groups}");
        fs::write(folder.join("lab.toml"), text).expect("a file");
        Self { folder, lab }
    }

    fn neph(&self, args: &[&str]) -> Child {
        process::command(env!("CARGO_BIN_EXE_neph"))
            .arg("lab")
            .args(args)
            .env(MARK, &self.lab)
            .env("XDG_STATE_HOME", "/dev/null")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("neph starts")
    }

    fn up(&self, detached: &[&str]) -> Child {
        let args = ["up", "lab.toml", "--yes", "--name", &self.lab];
        self.neph(&[&args, detached].concat())
    }

    /// Everything of the lab that can be found on this machine.
    fn leftovers(&self) -> BTreeSet<String> {
        let prefix = format!("neph-{}-", self.lab);
        let mut leftovers = BTreeSet::new();
        let folders = [
            "/run/netns",
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/cpu",
            "/sys/fs/cgroup/cpuset",
        ];
        for folder in folders {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path().display().to_string();
                leftovers.extend(path.contains(&prefix).then_some(path));
            }
        }
        let lab_folder = Path::new("/run/neph").join(&self.lab);
        leftovers.extend(
            lab_folder
                .exists()
                .then(|| lab_folder.display().to_string()),
        );
        for entry in fs::read_dir("/sys/class/net").expect("sysfs").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // The names that this topology gives to interfaces.
            let is_ours = name.starts_with("s1-") || name.starts_with("w0");
            leftovers.extend(is_ours.then_some(name));
        }
        leftovers.extend(self.processes().into_iter().map(|(_, line)| line));
        leftovers
    }

    /// Those that carry the mark, with their command lines.
    fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}", self.lab);
        let dirs = fs::read_dir("/proc").expect("proc").flatten();
        let pids = dirs.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid: u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let is_ours = environment
                .split(|byte| *byte == 0)
                .any(|environment| environment == mark.as_bytes());
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            is_ours.then(|| (pid, format!("process {pid}: {line}")))
        })
        .collect()
    }

    fn keeper(&self) -> Option<u32> {
        let journal = fs::read_to_string(format!("/run/neph/{}/journal", self.lab)).ok()?;
        journal.split(' ').nth(1)?.parse().ok()
    }
}

impl Drop for KilledLab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// splitmix64: the moments differ from kill to kill, and are the same in every test run.
fn random(mut seed: u64) -> u64 {
    seed = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x1234_5678_9abc_def1);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed ^ (seed >> 27)
}

/// A number from 0 up to, not including, 1.
fn share(chance: u64) -> f64 {
    let bits = u16::try_from((chance >> 8) & 0xffff).expect("16 bits");
    f64::from(bits) / 65_536.0
}

/// Kills `child` after this time; whether it was still running.
fn kill_after(mut child: Child, moment: Duration) -> bool {
    let is_hit = !poll(Duration::from_millis(1), moment, || {
        child.try_wait().expect("told").is_some()
    });
    child.kill().expect("SIGKILL can be sent");
    child.wait().expect("it ends");
    is_hit
}

/// How long things take on this machine: moments are drawn from that, so that a kill meets them.
struct StepDurations {
    up: Duration,
    down: Duration,
}

impl StepDurations {
    /// Of one lab that nobody kills.
    fn measured(killed_lab: &KilledLab) -> Self {
        let duration_of = |child: Child| {
            let (stopwatch, mut child) = (Stopwatch::start(), child);
            assert!(child.wait().expect("it ends").success());
            stopwatch.elapsed()
        };
        Self {
            up: duration_of(killed_lab.up(&["--detach"])),
            down: duration_of(killed_lab.neph(&["down", &killed_lab.lab])),
        }
    }
}

/// Kills a process of the lab; whether the kill hit the intended step.
fn kill_during_step(killed_lab: &KilledLab, durations: &StepDurations, number: u64) -> bool {
    let chance = random(number);
    let random_time_below = |millis: u64| Duration::from_millis((chance >> 8) % millis);
    // The first one of its kind, which was measured, takes longer than those that follow.
    let random_moment_of = |step: Duration| step.mul_f64(share(chance) * 0.6);
    match number % 4 {
        0 => kill_after(killed_lab.up(&[]), random_moment_of(durations.up)),
        1 => kill_after(killed_lab.up(&["--detach"]), random_moment_of(durations.up)),
        2 => {
            killed_lab.up(&["--detach"]).wait().expect("it comes up");
            let args = ["run", "s1", "--lab", &killed_lab.lab, "--", "sleep", "120"];
            let run = killed_lab.neph(&args);
            clock::nap(random_time_below(100));
            let keeper = killed_lab.keeper().expect("it is up").to_string();
            let killed = process::command("sh")
                .args(["-c", &format!("kill -9 {keeper}")])
                .status();
            kill_after(run, random_time_below(100)) && killed.expect("a shell").success()
        }
        _ => {
            killed_lab.up(&["--detach"]).wait().expect("it comes up");
            kill_after(
                killed_lab.neph(&["down", &killed_lab.lab]),
                random_moment_of(durations.down),
            )
        }
    }
}

/// What the topology may ask of control groups on this machine.
fn groups() -> &'static str {
    let probe = format!("/sys/fs/cgroup/cpu/neph-probe-{}", std::process::id());
    match fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)) {
        Ok(()) => {
            "[[site]]\nname = \"s9\"\ncpu_share = \"50%\"\ncpus = [0]\n\
                   [[link]]\na = \"s9\"\nb = \"sw\"\n"
        }
        Err(_) => "",
    }
}

#[test]
fn one_down_leaves_nothing_of_a_lab_that_was_killed_at_any_moment() {
    let status = fs::read_to_string("/proc/self/status").expect("proc is mounted");
    if !status.lines().any(|line| line.starts_with("Uid:\t0\t")) {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "labs need root");
        println!("SKIP one_down_leaves_nothing: labs need root");
        return;
    }
    let requested = std::env::var("NEPH_KILLS").ok();
    let kills = requested.and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let groups = groups();
    let durations = StepDurations::measured(&KilledLab::new(kills, groups));
    let mut kill_counts = [0; 4];
    for number in 0..kills {
        let killed_lab = KilledLab::new(number, groups);
        let kind = usize::try_from(number % 4).expect("four kinds");
        kill_counts[kind] += u32::from(kill_during_step(&killed_lab, &durations, number));
        // A keeper whose starter was killed goes on by itself: wait until its journal is there.
        let is_kept = wait_until(Duration::from_secs(30), || {
            killed_lab.processes().is_empty() || killed_lab.keeper().is_some()
        });
        assert!(is_kept, "kill {number}: {:?}", killed_lab.leftovers());
        let down = killed_lab
            .neph(&["down", &killed_lab.lab])
            .wait()
            .expect("it ends");
        let is_down = !Path::new("/run/neph").join(&killed_lab.lab).exists();
        assert!(
            is_down,
            "kill {number}: {down}: {:?}",
            killed_lab.leftovers()
        );
        // A keeper whose lab was taken down by a killed down notices within 50 ms.
        wait_until(Duration::from_secs(20), || {
            killed_lab.leftovers().is_empty()
        });
        assert_eq!(killed_lab.leftovers(), BTreeSet::new(), "kill {number}");
    }
    println!("{kills} kills; of up, up --detach, run, down met while they ran: {kill_counts:?}");
    assert!(
        kill_counts.iter().all(|times| *times > 0),
        "each was met: {kill_counts:?}"
    );
}
