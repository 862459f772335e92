//! Determines the CPU time of this process: from the CPUs that it may use, and from the quotas of
//! its control groups.
//!
//! Owns reading both. Does not compare them to a load (`overcommit`).

use std::fmt;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use neph_sys::sched;

/// CPU time per second of wall-clock time, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CpuTime(pub(crate) u64);

impl CpuTime {
    /// CPU time of this many CPUs.
    pub(crate) const fn of_cpus(cpus: u64) -> Self {
        Self(cpus.saturating_mul(1_000_000))
    }

    /// CPU time of each of `threads` that share it, in percent of a CPU.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub(crate) fn percent_of_each(self, threads: u64) -> f64 {
        self.0 as f64 / 1e4 / threads.max(1) as f64
    }
}

/// In CPUs: `1 CPU`, `1.5 CPUs`, `0.35 CPUs`.
impl fmt::Display for CpuTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, hundredths) = (self.0 / 1_000_000, self.0 % 1_000_000 / 10_000);
        match (hundredths / 10, hundredths % 10) {
            (0, 0) if units == 1 => write!(f, "1 CPU"),
            (0, 0) => write!(f, "{units} CPUs"),
            (tenths, 0) => write!(f, "{units}.{tenths} CPUs"),
            _ => write!(f, "{units}.{hundredths:02} CPUs"),
        }
    }
}

/// Limits of the CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of usable CPUs.
    pub(crate) cpus: u64,
    /// The smallest quota of a control group, if there is one.
    pub(crate) quota: Option<CpuTime>,
}

impl Room {
    /// The limits of this process, from the kernel.
    pub fn here() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let folders = folders(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
        let read = |file: PathBuf| fs::read_to_string(file).ok();
        let quotas = folders.iter().filter_map(|folder| quota(folder, read));
        let cpus = sched::permitted_cpus().unwrap_or_else(|_| {
            // This count is already rounded down to a quota.
            thread::available_parallelism().map_or(1, NonZeroUsize::get)
        });
        Self {
            cpus: cpus as u64,
            quota: quotas.min(),
        }
    }
}

/// Folders of a process's control groups that may have a quota: its own and their visible
/// ancestors. The arguments are /proc/self/cgroup and /proc/self/mountinfo.
fn folders(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut cgroup_paths = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        // Version 2 names no controllers.
        let is_meant = |mount: &Mount<'_>| match controllers {
            "" => mount.kind == "cgroup2",
            _ => mount.kind == "cgroup" && has(mount.options, "cpu") && has(controllers, "cpu"),
        };
        let mut mounts = mounts.lines().filter_map(mount);
        let Some(mount) = mounts.find(is_meant) else {
            continue;
        };
        // A container's mount shows only groups below its root.
        let below = Path::new(group).strip_prefix(mount.root);
        let below = below.unwrap_or_else(|_| Path::new(""));
        let own_path = Path::new(mount.at).join(below);
        let above = own_path.ancestors();
        let observed = above.take_while(|folder| folder.starts_with(mount.at));
        cgroup_paths.extend(observed.map(Path::to_owned));
    }
    cgroup_paths
}

fn has(list: &str, word: &str) -> bool {
    list.split(',').any(|entry| entry == word)
}

/// A line of mountinfo.
struct Mount<'a> {
    root: &'a str,
    at: &'a str,
    kind: &'a str,
    options: &'a str,
}

fn mount(line: &str) -> Option<Mount<'_>> {
    let (mount_fields, system) = line.split_once(" - ")?;
    let mut fields = mount_fields.split(' ').skip(3);
    let mut system = system.split(' ');
    Some(Mount {
        root: fields.next()?,
        at: fields.next()?,
        kind: system.next()?,
        options: system.nth(1)?,
    })
}

/// The quota of a group, from the files of either version; `None` without one.
fn quota(folder: &Path, read: impl Fn(PathBuf) -> Option<String>) -> Option<CpuTime> {
    let file = |name: &str| read(folder.join(name));
    let (time, period) = match file("cpu.max") {
        Some(content) => {
            let mut fields = content.split_whitespace().map(str::to_owned);
            (fields.next()?, fields.next()?)
        }
        None => (file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?),
    };
    // "max" and -1 mean no quota.
    let time: u64 = time.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok()?;
    let in_a_second = time.checked_mul(1_000_000)?.checked_div(period)?;
    Some(CpuTime(in_a_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_texts(folders: &[PathBuf]) -> Vec<String> {
        let candidates = folders.iter();
        candidates
            .map(|folder| folder.display().to_string())
            .collect()
    }

    #[test]
    fn cgroups_of_both_versions_are_found_with_their_parents() {
        let mounts = "25 20 0:22 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                      26 20 0:23 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                      27 20 0:24 / /sys/fs/cgroup/unified rw shared:7 - cgroup2 cgroup2 rw\n";
        let groups = "4:cpuset:/x\n3:cpu,cpuacct:/a/b\n0::/c\n";
        let cpu = ["/a/b", "/a", ""].map(|group| format!("/sys/fs/cgroup/cpu{group}"));
        let unified = ["/c", ""].map(|group| format!("/sys/fs/cgroup/unified{group}"));
        assert_eq!(
            path_texts(&folders(groups, mounts)),
            [&cpu[..], &unified].concat()
        );
        // A container sees its group at another mount point than that of all groups.
        let inside = "30 20 0:24 /docker/7 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let observed = folders("0::/docker/7/web\n", inside);
        assert_eq!(
            path_texts(&observed),
            ["/sys/fs/cgroup/web", "/sys/fs/cgroup"]
        );
        assert!(folders("", inside).is_empty() && folders(groups, "").is_empty());
    }

    #[test]
    fn a_cpu_quota_may_be_a_fraction_or_unlimited() {
        let of = |files: &[(&str, &str)]| {
            let read = |path: PathBuf| {
                let is_it = |(name, _): &&(&str, &str)| path == Path::new("/g").join(name);
                files.iter().find(is_it).map(|(_, text)| (*text).to_owned())
            };
            quota(Path::new("/g"), read)
        };
        assert_eq!(
            of(&[("cpu.max", "150000 100000\n")]),
            Some(CpuTime(1_500_000))
        );
        assert_eq!(of(&[("cpu.max", "max 100000\n")]), None);
        let quota_of = |quota| {
            of(&[
                ("cpu.cfs_quota_us", quota),
                ("cpu.cfs_period_us", "50000\n"),
            ])
        };
        assert_eq!(quota_of("17500\n"), Some(CpuTime(350_000)));
        assert_eq!(quota_of("-1\n"), None);
        assert_eq!(of(&[]), None);
        let shown = [1_000_000, 2_000_000, 1_500_000, 1_050_000];
        assert_eq!(
            shown.map(|time| CpuTime(time).to_string()),
            ["1 CPU", "2 CPUs", "1.5 CPUs", "1.05 CPUs"]
        );
    }
}
