//! The cores that an experiment's threads may use, and how busy those were.
//!
//! The mean over all cores of a machine hides one that is busy where the experiment is bound to that
//! one.

use std::collections::BTreeSet;
use std::fs;

use neph_model::Load;

use crate::provenance::{CpuTimes, load_average};

/// Cores by number; all where nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowedCores(BTreeSet<u32>);

impl AllowedCores {
    /// Those that the calling thread may use: its affinity within its control group.
    pub(crate) fn of_thread() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let mut lines = status.lines();
        let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.map_or_else(Self::default, Self::of_list)
    }

    /// From a list of the kernel's: `0-2,7`. What is no number counts as nothing.
    fn of_list(text: &str) -> Self {
        let ranges = text.trim().split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        });
        Self(ranges.flatten().collect())
    }

    /// Their CPU time together, from the text of `/proc/stat`; that of all cores where none of them is
    /// in it.
    pub(crate) fn times(&self, stat: &str) -> Option<CpuTimes> {
        let cpu_lines = stat.lines().filter(|line| {
            let name = line.split_whitespace().next().unwrap_or_default();
            let number = name.strip_prefix("cpu").and_then(|text| text.parse().ok());
            number.is_some_and(|number: u32| self.0.contains(&number))
        });
        let cpu_times = cpu_lines.filter_map(CpuTimes::parse_line);
        cpu_times
            .reduce(CpuTimes::plus)
            .or_else(|| CpuTimes::parse(stat))
    }

    /// Their load between two texts of `/proc/stat`; `None` without one of them.
    pub(crate) fn load(&self, (before, after): (&str, &str)) -> Option<Load> {
        let (before, after) = (self.times(before)?, self.times(after)?);
        Some(before.load_until(after, load_average()))
    }
}

/// The load of the cores that the calling thread may use, from now on.
#[derive(Clone, Debug)]
pub struct LoadMeter {
    cores: AllowedCores,
    stat_before: String,
}

impl LoadMeter {
    /// From now on.
    pub fn begin() -> Self {
        Self {
            cores: AllowedCores::of_thread(),
            stat_before: read_stat(),
        }
    }

    /// Until now; `None` without `/proc/stat`.
    pub fn load(&self) -> Option<Load> {
        self.cores.load((&self.stat_before, &read_stat()))
    }
}

/// The text of `/proc/stat` now; empty where there is none.
pub(crate) fn read_stat() -> String {
    fs::read_to_string("/proc/stat").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_cpu_list_is_parsed() {
        let cores = |text: &str| {
            AllowedCores::of_list(text)
                .0
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(cores("\t0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(cores("3"), [3]);
        assert_eq!(cores(""), [] as [u32; 0]);
        assert!(!AllowedCores::of_thread().0.is_empty());
    }

    #[test]
    fn the_load_counts_only_permitted_cores() {
        let before = "cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n\
            cpu11 0 0 0 0 0 0 0 0\n";
        // The second core works 99 of 100 ticks, the others none.
        let after = "cpu  99 0 0 201 0 0 0 0\ncpu0 0 0 0 100 0 0 0 0\ncpu1 99 0 0 1 0 0 0 0\n\
            cpu11 0 0 0 100 0 0 0 0\n";
        let busy = |list: &str| {
            AllowedCores::of_list(list)
                .load((before, after))
                .map_or(f64::NAN, |load| load.busy_percent)
        };
        let close = |list: &str, percent: f64| (busy(list) - percent).abs() < 1e-9;
        assert!(close("1", 99.0) && close("0,11", 0.0) && close("0-1", 49.5));
        // All of them, where nothing is known or the text has none of them.
        assert!(close("", 33.0) && close("5", 33.0));
        assert_eq!(AllowedCores::default().load(("", "")), None);
    }
}
