//! How busy the sending host is while it measures: its processors, core by core, and the
//! interfaces where the sender is.
//!
//! Owns reading the kernel's counters and the shares and rates between two readings. Decides
//! neither how often nor what becomes of them.

use std::fs::{self, File};
use std::io::{Read, Seek};

use neph_model::{NetCount, SeriesName, Span};

use crate::provenance::CpuTimes;

/// What is read again and again.
#[derive(Debug, Default)]
pub(crate) struct HostSampler {
    /// The interfaces' counters. Opened where the sender is: they belong to that network namespace,
    /// for any thread that reads them.
    net_dev: Option<File>,
    last: Option<Reading>,
}

/// Everything at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reading {
    /// All cores together, then each by its number.
    total: Option<CpuTimes>,
    cores: Vec<(u16, CpuTimes)>,
    net: Option<[u64; NetCount::ALL.len()]>,
}

impl HostSampler {
    /// Of this host, and of the interfaces in the calling thread's network namespace.
    pub(crate) fn open() -> Self {
        Self {
            net_dev: File::open("/proc/thread-self/net/dev").ok(),
            last: None,
        }
    }

    /// The values since the last call, which was `elapsed` ago; none at the first.
    pub(crate) fn sample(&mut self, elapsed: Span) -> Vec<(SeriesName, f64)> {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let net = self.net_dev.as_mut().and_then(reread);
        let current = Reading::parse(&stat, net.as_deref());
        let values = self
            .last
            .as_ref()
            .map(|last| shares_and_rates(last, &current, elapsed));
        self.last = Some(current);
        values.unwrap_or_default()
    }
}

fn reread(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

impl Reading {
    fn parse(stat: &str, net: Option<&str>) -> Self {
        let cores = stat.lines().skip(1).filter_map(|line| {
            let number = line.strip_prefix("cpu")?.split(' ').next()?;
            Some((number.parse().ok()?, CpuTimes::parse_line(line)?))
        });
        Self {
            total: CpuTimes::parse(stat),
            cores: cores.collect(),
            net: net.map(sum_interface_counters),
        }
    }
}

/// The counters of all interfaces but loopback, added up: proc(5).
fn sum_interface_counters(text: &str) -> [u64; NetCount::ALL.len()] {
    /// Which column each count is in.
    const COLUMNS: [usize; NetCount::ALL.len()] = [0, 1, 3, 8, 9, 11];
    let mut sums = [0_u64; COLUMNS.len()];
    for (name, counts) in text.lines().filter_map(|line| line.split_once(':')) {
        if name.trim() == "lo" {
            continue;
        }
        let counts: Vec<u64> = counts
            .split_whitespace()
            .map(|count| count.parse().unwrap_or(0))
            .collect();
        for (sum, column) in sums.iter_mut().zip(COLUMNS) {
            *sum = sum.wrapping_add(counts.get(column).copied().unwrap_or(0));
        }
    }
    sums
}

#[expect(clippy::cast_precision_loss, reason = "rates for people")]
fn shares_and_rates(
    previous: &Reading,
    current: &Reading,
    elapsed: Span,
) -> Vec<(SeriesName, f64)> {
    let mut values = Vec::new();
    if let (Some(before), Some(after)) = (previous.total, current.total) {
        let shares = before.shares_until(after);
        values.extend(shares.map(|(state, value)| (SeriesName::Cpu(state), value)));
    }
    for (core, after) in &current.cores {
        let before = previous.cores.iter().find(|(other, _)| other == core);
        if let Some((_, before)) = before {
            let shares = before.shares_until(*after);
            values.extend(shares.map(|(state, value)| (SeriesName::Core(*core, state), value)));
        }
    }
    let seconds = elapsed.nanos() as f64 / 1e9;
    if let (Some(before), Some(after)) = (&previous.net, &current.net)
        && seconds > 0.0
    {
        for (count, (before, after)) in NetCount::ALL.into_iter().zip(before.iter().zip(after)) {
            // An interface that went away took its counts along.
            let rate = after.saturating_sub(*before) as f64 / seconds;
            values.push((SeriesName::Net(count), rate));
        }
    }
    debug_assert!(values.iter().all(|(_, value)| value.is_finite()));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const NET_DEV: &str = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop\n\
        \x20   lo: 999 9 0 0 0 0 0 0 999 9 0 0 0 0 0 0\n\
        \x20 eth0: 1000 10 0 1 0 0 0 0 200 2 0 0 0 0 0 0\n\
        \x20 eth1:5000 50 0 0 0 0 0 0 0 0 0 4 0 0 0 0\n";

    #[test]
    fn each_core_has_a_load_and_loopback_is_excluded_from_the_rate() {
        let before =
            "cpu  10 0 10 80 0 0 0 0\ncpu0 5 0 5 40 0 0 0 0\ncpu1 5 0 5 40 0 0 0 0\nintr 7\n";
        let after =
            "cpu  60 0 10 130 0 0 0 0\ncpu0 45 0 5 40 0 0 10 0\ncpu1 5 0 5 80 0 0 0 10\nintr 8\n";
        let first = Reading::parse(before, Some(NET_DEV));
        let later_net = NET_DEV
            .replace("1000 10", "3000 30")
            .replace("200 2 ", "300 3 ");
        let samples = shares_and_rates(
            &first,
            &Reading::parse(after, Some(&later_net)),
            Span::from_secs(2),
        );
        let value = |name: &str| {
            let sample = samples
                .iter()
                .find(|(series, _)| series.to_string() == name);
            sample.expect(name).1
        };
        // What was stolen was of no use to this host either.
        let expected = vec![
            ("cpu_busy_percent", 50.0),
            ("cpu0_busy_percent", 100.0),
            ("cpu0_softirq_percent", 20.0),
            ("cpu1_busy_percent", 20.0),
            ("cpu1_steal_percent", 20.0),
            ("net_received_bytes_per_second", 1000.0),
            ("net_received_packets_per_second", 10.0),
            ("net_sent_bytes_per_second", 50.0),
            ("net_sent_drops_per_second", 0.0),
        ];
        let actual: Vec<(&str, f64)> = expected
            .iter()
            .map(|(name, _)| (*name, value(name)))
            .collect();
        assert_eq!(actual, expected);
        assert_eq!(samples.len(), 3 * 3 + 6);
    }

    #[test]
    fn interface_counters_are_reread_from_the_same_open_file() {
        let mut host = HostSampler::open();
        assert_eq!(host.sample(Span::from_secs(1)), []);
        let samples = host.sample(Span::from_secs(1));
        let has = |name: &str| samples.iter().any(|(series, _)| series.to_string() == name);
        assert!(
            has("cpu_busy_percent") && has("net_received_bytes_per_second"),
            "{samples:?}"
        );
    }
}
