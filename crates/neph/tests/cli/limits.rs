//! What measures at a lab's sites has the sites' share of the machine, and a load knows of such a limit.
//! Needs root.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use neph_sys::process;

use crate::labs::privileged;
use crate::neph::{RunOutput, TestFolder, command, eventually};

const LAB: &str = "version = 1\n\
    [[site]]\nname = \"a\"\naddress = \"10.83.0.1/24\"\ncpus = [0]\ncpu_share = \"60%\"\n\
    [[site]]\nname = \"b\"\naddress = \"10.83.0.2/24\"\ncpus = [0]\n\
    [[link]]\nname = \"path\"\na = \"a\"\nb = \"b\"\n";

const PLAN: &str = "version = 1\nname = \"limits\"\nblocks = 1\ninterval = \"50ms\"\n\
    duration = \"2s\"\n\n[[endpoint]]\nname = \"b\"\nurl = \"ws://10.83.0.2:8080/\"\n\n\
    [lab]\ntopology = \"lab.toml\"\nprober = \"a\"\n\n[[lab.reflector]]\nsite = \"b\"\n";

/// Of each thread of a process, by its name: the controllers whose group is a lab's, and the site
/// that this group is of; and whether the thread has real-time priority.
fn threads(pid: u32) -> BTreeMap<String, (Vec<String>, bool)> {
    let folder = format!("/proc/{pid}/task");
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let groups = text("cgroup");
        let groups = groups.lines().filter_map(|line| {
            let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
            let site = group.strip_prefix(&format!("/neph-run{pid}-"))?;
            // Of the CPU's controller, which may share its mount with the one that only counts.
            let controller = controllers.split(',').next()?;
            Some(format!("{controller} {site}"))
        });
        let mut groups: Vec<String> = groups.collect();
        groups.sort();
        // proc(5): the policy is field 41, the 39th behind the name; 0 is the ordinary one.
        let stat = text("stat");
        let policy = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(38));
        let is_real_time = policy.is_some_and(|policy| policy != "0");
        threads.insert(text("comm").trim().to_owned(), (groups, is_real_time));
    }
    threads
}

/// A control group of version 1 for CPU time; goes again with this.
struct Group(PathBuf);

impl Group {
    /// `None` where there are none.
    fn with_name(name: &str) -> Option<Self> {
        let folder = format!("/sys/fs/cgroup/cpu/neph-{name}-{}", std::process::id());
        fs::create_dir(&folder).ok()?;
        Some(Self(folder.into()))
    }

    fn set(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).expect("a group of our own");
    }

    /// Runs neph in it.
    fn neph(&self, args: &str) -> RunOutput {
        let shell = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
        let mut within = process::command("sh");
        within.args(["-c", shell]).arg(&self.0);
        within.arg(command().get_program()).args(args.split(' '));
        within.output().expect("a shell").into()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_load_names_the_quota_that_leaves_it_a_part_of_a_cpu() {
    let test = "a_load_names_the_quota_that_leaves_it_a_part_of_a_cpu";
    if !privileged(test) {
        return;
    }
    let Some(group) = Group::with_name("quota") else {
        println!("SKIP {test}: no control groups of version 1");
        return;
    };
    group.set("cpu.cfs_period_us", "20000");
    group.set("cpu.cfs_quota_us", "9000");
    let within = Group(group.0.join("within"));
    fs::create_dir(&within.0).expect("a group within ours");
    for group in [&group, &within] {
        let ran = group.neph("stress cpu --target 90% --cpus 0 -w 500ms");
        assert_eq!(ran.status, 1, "{}", ran.err);
        let quota = "the quota of a control group leaves";
        let expected = format!(
            "neph stress: {quota} 1 thread the time of 0.45 CPUs, so that each can work 45.0 % of the time \
             at most, not 90 %; --target 45% has room\n"
        );
        assert!(ran.err.starts_with(&expected), "{}", ran.err);
        let why = format!("90 % was requested: {quota} the time of 0.45 CPUs");
        assert!(ran.err.contains(&why), "{}", ran.err);
    }
    let ran = group.neph("stress cpu --target 5% --cores 2 -w 100ms");
    assert!(!ran.err.contains("2 threads the time"), "{}", ran.err);
}

#[test]
fn prober_and_reflector_have_their_sites_share_of_the_machine() {
    if !privileged("prober_and_reflector_have_their_sites_share_of_the_machine") {
        return;
    }
    if Group::with_name("probe").is_none() {
        println!(
            "SKIP prober_and_reflector_have_their_sites_share: no control groups of version 1"
        );
        return;
    }
    let folder = TestFolder::empty();
    fs::write(folder.path("lab.toml"), LAB).expect("a file");
    fs::write(folder.path("plan.toml"), PLAN).expect("a file");
    let mut child = folder
        .command(["run", "plan.toml", "--no-report", "--quiet"])
        .stdout(Stdio::null())
        .spawn()
        .expect("neph runs");
    let at = |groups: &[&str]| {
        let groups = groups.iter().map(|group| (*group).to_owned());
        (groups.collect::<Vec<String>>(), false)
    };
    let wanted = BTreeMap::from([
        ("neph-ws", at(&["cpu a", "cpuset a"])),
        ("neph-accept", at(&["cpuset b"])),
        ("neph-stamp", at(&["cpuset b"])),
    ]);
    eventually("they have their share", Duration::from_secs(30), || {
        let observed = threads(child.id());
        let has_ended = child.try_wait().expect("our own").is_some();
        let has_limits = wanted
            .iter()
            .all(|(name, at)| observed.get(*name) == Some(at));
        assert!(has_limits || !has_ended, "{observed:?}");
        has_limits
    });
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status:?}");
}
