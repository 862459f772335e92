//! What the tests share: privilege, one at a time, names, and looking for what was left behind.

#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use neph_lab::{Lab, Topology, UpOptions};
use neph_sys::netns::with_namespace;
use neph_text::Source;

static LAB_LOCK: Mutex<()> = Mutex::new(());

/// The lock of the tests that use labs; `None` without root. Labs that measure must not overlap.
pub(crate) fn lab_lock(test: &str) -> Option<MutexGuard<'static, ()>> {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !root {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{test} needs root"
        );
        println!("SKIP {test}: labs need root");
        return None;
    }
    Some(LAB_LOCK.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A lab name that no other process of these tests uses.
pub(crate) fn lab_name(letter: char) -> String {
    format!("{letter}{}", std::process::id())
}

/// Whether control groups for CPUs and CPU time can be made here, by whichever version.
pub(crate) fn can_have_groups() -> bool {
    let has = |folder: &str, file: &str| {
        let probe = format!("neph-probe-{}", std::process::id());
        let group = Path::new("/sys/fs/cgroup").join(folder).join(probe);
        let has = std::fs::create_dir(&group).is_ok() && group.join(file).exists();
        // Nobody is in it; where it could not be made there is nothing to remove.
        let _ = std::fs::remove_dir(&group);
        has
    };
    let first = has("cpu", "cpu.cfs_quota_us") && has("cpuset", "cpuset.cpus");
    first || (has("", "cpu.max") && has("", "cpuset.cpus"))
}

/// Everything of the lab called `lab` that can be found on this machine.
pub(crate) fn leftovers(lab: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let prefix = format!("neph-{lab}-");
    for entry in std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) {
            names.insert(name);
        }
    }
    for controller in ["", "cpu", "cpuset"] {
        let groups = Path::new("/sys/fs/cgroup").join(controller);
        for entry in std::fs::read_dir(groups).into_iter().flatten().flatten() {
            let path = entry.path().display().to_string();
            if path.contains(&prefix) {
                names.insert(path);
            }
        }
    }
    let folder = Path::new("/run/neph").join(lab);
    if folder.exists() {
        names.insert(folder.display().to_string());
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    names.extend(
        mounts
            .lines()
            .filter(|line| line.contains(&prefix))
            .map(str::to_owned),
    );
    let links = std::fs::read_dir("/sys/class/net").expect("sysfs");
    for entry in links.flatten() {
        let link = entry.file_name().to_string_lossy().into_owned();
        if link.starts_with("w0") || link.starts_with("path") {
            names.insert(link);
        }
    }
    names
}

/// Two sites, and a link between them that is described by `features`.
pub(crate) fn two_sites(features: &str) -> Topology {
    chain(&[features])
}

/// Sites `s0`, `s1`, ... in a row, with a link `path0`, `path1`, ... for each of `features`.
pub(crate) fn chain(features: &[&str]) -> Topology {
    let mut text = "version = 1\n".to_owned();
    for site in 0..=features.len() {
        text += &format!(
            "[[site]]\nname = \"s{site}\"\naddress = \"10.9.0.{}/24\"\naddress_v6 = \"fd09::{}/64\"\n",
            site + 1,
            site + 1
        );
    }
    for (link, features) in features.iter().enumerate() {
        let (a, b) = (link, link + 1);
        text +=
            &format!("[[link]]\nname = \"path{link}\"\na = \"s{a}\"\nb = \"s{b}\"\n{features}\n");
    }
    let source = Source::new("chain", text);
    Topology::parse(&source).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{}", source.text()))
}

/// A topology that is shipped.
pub(crate) fn parse_shipped(text: &str) -> Topology {
    Topology::parse(&Source::new("shipped", text)).expect("shipped")
}

/// Brings a lab up that must come up.
pub(crate) fn up(topology: &Topology, name: &str) -> Lab {
    Lab::up(topology, &UpOptions::with_name(name)).expect("the lab comes up")
}

/// Of five datagrams from `from` to `to`, how many came back, within a second each.
pub(crate) fn echo_round_trips(
    lab: &Lab,
    from: &str,
    to: &str,
    family: fn(&IpAddr) -> bool,
) -> usize {
    let address = |site| {
        *lab.addresses(site)
            .expect("there")
            .iter()
            .find(|a| family(a))
            .expect("")
    };
    let socket = |site| {
        with_namespace(&lab.namespace(site).expect("there"), || {
            let socket = UdpSocket::bind(SocketAddr::new(address(site), 0)).expect("bind");
            socket
                .set_read_timeout(Some(Duration::from_secs(1)))
                .expect("timeout");
            socket
        })
        .expect("enter")
    };
    let (client, answering) = (socket(from), socket(to));
    let target = answering.local_addr().expect("address");
    let mut buffer = [0; 64];
    (0..5)
        .filter(|_| {
            client.send_to(b"there", target).expect("send");
            let Ok((length, source)) = answering.recv_from(&mut buffer) else {
                return false;
            };
            answering.send_to(&buffer[..length], source).expect("send");
            client.recv_from(&mut buffer).is_ok()
        })
        .count()
}
