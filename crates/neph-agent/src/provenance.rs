//! The host as it is, from `/proc` and `/sys`: what is needed to doubt a result.
//!
//! Reads files and nothing else. Call it in the namespace that sends: `/proc/sys/net` shows the
//! network namespace of the opening thread. What cannot be read is left empty, never invented.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use neph_model::{CpuUse, HostFacts, Load};
use neph_probe::{Placement, ProbeError};

/// Directory of settings below `/proc/sys`, and which names of it matter; an empty list: all that
/// begin with `tcp_`.
const SETTINGS: [(&str, &[&str]); 3] = [
    ("net/ipv4", &[]),
    ("net/ipv4", &["ip_local_port_range", "ping_group_range"]),
    (
        "net/core",
        &[
            "busy_poll",
            "busy_read",
            "default_qdisc",
            "netdev_max_backlog",
            "rmem_default",
            "rmem_max",
            "wmem_default",
            "wmem_max",
        ],
    ),
];
/// A secret.
const SECRET_SETTING: &str = "tcp_fastopen_key";

/// The facts about this host. `clock_sync` comes from `adjtimex`, a system call that is not this
/// crate's to make; `offloads` likewise (`interface.feature` to `on` or `off`).
pub fn host_facts(clock_sync: String, offloads: BTreeMap<String, String>) -> HostFacts {
    facts_below(Path::new("/"), clock_sync, offloads)
}

fn facts_below(root: &Path, clock_sync: String, offloads: BTreeMap<String, String>) -> HostFacts {
    let read = |path: &str| {
        let text = fs::read_to_string(root.join(path)).unwrap_or_default();
        text.trim().to_owned()
    };
    let (cpu, cores) = parse_cpuinfo(&read("proc/cpuinfo"));
    let release = read("proc/sys/kernel/osrelease");
    let version = read("proc/sys/kernel/version");
    HostFacts {
        host: read("proc/sys/kernel/hostname"),
        kernel: format!("{release} {version}").trim().to_owned(),
        cpu,
        cores,
        clock_source: read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_sync,
        offloads,
        sysctls: sysctls(&root.join("proc/sys")),
        congestion_control: None,
    }
}

/// Model of the first core, and how many there are.
fn parse_cpuinfo(text: &str) -> (String, u32) {
    let field = |line: &str, name: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    let model = text.lines().find_map(|line| field(line, "model name"));
    let cores = text
        .lines()
        .filter(|line| field(line, "processor").is_some())
        .count();
    (
        model.unwrap_or_default(),
        u32::try_from(cores).unwrap_or(u32::MAX),
    )
}

fn sysctls(root: &Path) -> BTreeMap<String, String> {
    let mut sysctls = BTreeMap::new();
    for (folder, names) in SETTINGS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_relevant = if names.is_empty() {
                name.starts_with("tcp_")
            } else {
                names.contains(&name.as_str())
            };
            if !is_relevant || name == SECRET_SETTING {
                continue;
            }
            if let Ok(text) = fs::read_to_string(entry.path()) {
                let value = text.split_whitespace().collect::<Vec<_>>().join(" ");
                sysctls.insert(format!("{}.{name}", folder.replace('/', ".")), value);
            }
        }
    }
    sysctls
}

/// The shares that a core's time had, by what it went into.
pub(crate) type CpuShares = [(CpuUse, f64); CpuUse::ALL.len()];

/// CPU time of all cores since boot, in ticks, from the first line of `/proc/stat` (proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Neither idle nor waiting for a disk, nor stolen.
    pub busy: u64,
    /// Given to others by the hypervisor.
    pub stolen: u64,
    /// The kernel's work behind interrupts; within busy.
    pub softirq: u64,
    /// Everything.
    pub total: u64,
}

impl CpuTimes {
    /// Of several cores together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            busy: self.busy.saturating_add(other.busy),
            stolen: self.stolen.saturating_add(other.stolen),
            softirq: self.softirq.saturating_add(other.softirq),
            total: self.total.saturating_add(other.total),
        }
    }

    /// From the text of `/proc/stat`.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?;
        line.starts_with("cpu ").then(|| Self::parse_line(line))?
    }

    /// From one of its lines, whichever processor it is about.
    pub(crate) fn parse_line(line: &str) -> Option<Self> {
        let fields = line.split_whitespace().skip(1);
        // user nice system idle iowait irq softirq steal; guest time is within user.
        let ticks: Vec<u64> = fields
            .take(8)
            .map(|word| word.parse().ok())
            .collect::<Option<_>>()?;
        let ticks_at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        let total = ticks.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let (idle, stolen) = (ticks_at(3).saturating_add(ticks_at(4)), ticks_at(7));
        Some(Self {
            busy: total.saturating_sub(idle).saturating_sub(stolen),
            stolen,
            softirq: ticks_at(6),
            total,
        })
    }

    /// What the time from `self` to `later` went into, each as a share in percent; all zero if no tick
    /// passed. Shares overlap as those of [`Self::load_until`].
    pub(crate) fn shares_until(self, later: Self) -> CpuShares {
        let load = self.load_until(later, 0.0);
        let total = later.total.saturating_sub(self.total);
        let softirq = percent(later.softirq.saturating_sub(self.softirq), total);
        [
            (CpuUse::Busy, load.busy_percent),
            (CpuUse::Steal, load.steal_percent),
            (CpuUse::Softirq, softirq),
        ]
    }

    /// The load from `self` to `later`. Busy time counts what was stolen: this host had no use of
    /// it either. Zero if no tick passed.
    pub fn load_until(self, later: Self, load_average: f64) -> Load {
        let total = later.total.saturating_sub(self.total);
        let stolen = later.stolen.saturating_sub(self.stolen);
        let busy = later.busy.saturating_sub(self.busy);
        Load {
            busy_percent: percent(busy.saturating_add(stolen), total),
            steal_percent: percent(stolen, total),
            load_average,
        }
    }
}

/// Zero of nothing.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn percent(ticks: u64, total: u64) -> f64 {
    if total == 0 {
        return 0.0;
    }
    ticks as f64 * 100.0 / total as f64
}

/// The one-minute load average; 0 where there is no `/proc/loadavg`.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// The host as it is where a site's flows are sent from.
pub(crate) fn host_facts_at_site(site: Option<&Placement>) -> Result<HostFacts, ProbeError> {
    let mut host = neph_probe::at_site(site, || {
        host_facts(neph_probe::clock_sync(), neph_probe::offloads())
    })?;
    host.sysctls.extend(neph_probe::core_wake());
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_busy_are_shares_of_the_elapsed_ticks() {
        let parse = |line: &str| CpuTimes::parse(line).expect("a cpu line");
        let before = parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
        let after = parse("cpu  150 0 130 900 10 0 5 5 0 0\n");
        assert_eq!((before.total, before.busy), (1_000, 200));
        // 200 ticks passed: 85 busy, 110 idle or waiting, 5 stolen.
        let load = before.load_until(after, 0.7);
        assert_eq!((load.steal_percent, load.busy_percent), (2.5, 45.0));
        assert_eq!(before.load_until(before, 0.0), Load::default());
    }

    #[test]
    fn invalid_cpu_lines_are_refused() {
        for text in ["", "cpu0 1 2 3", "cpu a b", "intr 1"] {
            assert_eq!(CpuTimes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn host_facts_exclude_secrets() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        write("proc/sys/kernel/hostname", "probe-1\n");
        write("proc/sys/kernel/osrelease", "6.18.0\n");
        write("proc/sys/kernel/version", "#1 SMP\n");
        write(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Fast CPU\n\nprocessor\t: 1\nmodel name\t: Fast CPU\n",
        );
        write("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
        write("proc/sys/net/ipv4/tcp_fastopen_key", "secret\n");
        write("proc/sys/net/ipv4/ip_forward", "1\n");
        write("proc/sys/net/core/default_qdisc", "pfifo_fast\n");
        let facts = facts_below(folder.path(), "unsynchronised".to_owned(), BTreeMap::new());
        assert_eq!(
            (facts.host.as_str(), facts.kernel.as_str()),
            ("probe-1", "6.18.0 #1 SMP")
        );
        assert_eq!((facts.cpu.as_str(), facts.cores), ("Fast CPU", 2));
        let sysctls: Vec<(&str, &str)> = facts
            .sysctls
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            sysctls,
            [
                ("net.core.default_qdisc", "pfifo_fast"),
                ("net.ipv4.tcp_rmem", "4096 131072 6291456")
            ]
        );
        assert_eq!(facts.clock_source, "");
    }

    #[test]
    fn host_facts_are_read_on_this_host() {
        let facts = host_facts(String::new(), BTreeMap::new());
        assert!(facts.cores > 0 && !facts.kernel.is_empty(), "{facts:?}");
        assert!(
            facts
                .sysctls
                .contains_key("net.ipv4.tcp_slow_start_after_idle"),
            "{facts:?}"
        );
        let stat = fs::read_to_string("/proc/stat").expect("Linux");
        assert!(CpuTimes::parse(&stat).expect("a cpu line").total > 0);
    }
}
