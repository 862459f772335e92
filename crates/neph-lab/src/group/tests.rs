use neph_text::Source;

use super::*;
use crate::topology::Topology;

const V1: &str = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
                  cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                  cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
const V2: &str = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";

fn site(features: &str) -> Site {
    let text = format!("version = 1\nsite = [{{name = \"a\", {features}}}]\n");
    let topology = Topology::parse(&Source::new("one", text)).expect("fine");
    topology.sites.into_iter().next().expect("one")
}

#[test]
fn cgroup_v1_has_a_group_for_each_controller() {
    let mounts = CgroupMounts::parse(V1, |_| "hugetlb".to_owned());
    let groups = mounts.groups_for("neph-x-a", &site("cpu_share = \"50%\", cpus = [0, 2]"));
    let groups = groups.expect("both are mounted");
    let folders: Vec<_> = groups
        .iter()
        .map(|group| group.folder.display().to_string())
        .collect();
    assert_eq!(
        folders,
        [
            "/sys/fs/cgroup/cpu,cpuacct/neph-x-a",
            "/sys/fs/cgroup/cpuset/neph-x-a"
        ]
    );
    let period = ("cpu.cfs_period_us", "10000".to_owned());
    assert_eq!(
        groups[0].settings,
        [period, ("cpu.cfs_quota_us", "5000".to_owned())]
    );
    assert_eq!(groups[1].settings[0], ("cpuset.cpus", "0,2".to_owned()));
}

#[test]
fn cgroup_v2_has_one_group_and_a_longer_period_for_a_small_share() {
    let mounts = CgroupMounts::parse(V2, |_| "cpuset cpu io memory".to_owned());
    let groups = mounts.groups_for("neph-x-a", &site("cpu_share = \"2%\", cpus = [1]"));
    let groups = groups.expect("both are there");
    assert_eq!(groups.len(), 1);
    let cpus = ("cpuset.cpus", "1".to_owned());
    assert_eq!(
        groups[0].settings,
        [("cpu.max", "1000 50000".to_owned()), cpus]
    );
}

#[test]
fn a_missing_cgroup_controller_is_an_error_only_if_requested() {
    let mounts = CgroupMounts::parse("", |_| String::new());
    let error = mounts
        .groups_for("x", &site("cpu_share = \"50%\""))
        .expect_err("nowhere");
    let message = error.to_string();
    assert!(
        message.starts_with("cpu_share of site 'a': the kernel's controller"),
        "{message}"
    );
    assert_eq!(
        mounts
            .groups_for("x", &site("labels = {}"))
            .expect("nothing"),
        []
    );
}

#[test]
fn a_missing_cpu_is_reported_with_the_existing_ones() {
    assert!(check_cpus("s", "0,1", "0-1").is_ok());
    assert!(check_cpus("s", "4,6", "0-1,4,6-7").is_ok());
    assert!(check_cpus("s", "99", "").is_ok(), "the kernel decides");
    let message = check_cpus("s", "1,99", "0-1").expect_err("99").to_string();
    let expected =
        "cpus of site 's': there is no CPU 99 here; write CPUs of 0-1, or leave cpus out";
    assert_eq!(message, expected);
}
