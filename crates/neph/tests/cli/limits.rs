//! What measures at a lab's sites has the sites' share of the machine. Needs root.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::labs::privileged;
use crate::neph::Place;

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

#[test]
fn prober_and_reflector_have_their_sites_share_of_the_machine() {
    if !privileged("prober_and_reflector_have_their_sites_share_of_the_machine") {
        return;
    }
    let probe = format!("/sys/fs/cgroup/cpu/neph-probe-{}", std::process::id());
    if fs::create_dir(&probe)
        .and_then(|()| fs::remove_dir(&probe))
        .is_err()
    {
        println!(
            "SKIP prober_and_reflector_have_their_sites_share: no control groups of version 1"
        );
        return;
    }
    let place = Place::empty();
    fs::write(place.path("lab.toml"), LAB).expect("a file");
    fs::write(place.path("plan.toml"), PLAN).expect("a file");
    let mut child = place
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
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let seen = threads(child.id());
        if wanted.iter().all(|(name, at)| seen.get(*name) == Some(at)) {
            break;
        }
        let has_ended = child.try_wait().expect("our own").is_some();
        assert!(!has_ended && Instant::now() < deadline, "{seen:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status:?}");
}
