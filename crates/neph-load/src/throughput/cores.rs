//! Measures the load of this host's cores, and its kernel's drops at full receive buffers.

use std::collections::BTreeMap;
use std::fs;

use neph_model::Span;
use neph_sys::clock;
use neph_wire::throughput::{CoreShare, CpuInterval};

use super::course::positive;

/// Maximum number of reported cores: they must fit into a line of the control connection.
const MAX_CORES: usize = 1024;

/// CPU time of one core since boot, in ticks (`/proc/stat`, proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    total: u64,
    idle: u64,
    softirq: u64,
    steal: u64,
}

/// The times of each core, from the text of `/proc/stat`.
fn times(text: &str) -> BTreeMap<u32, Times> {
    let cores = text.lines().filter_map(|line| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        // The first line, the sum of all cores, has no number.
        let number = line.as_bytes().get(3).filter(|byte| byte.is_ascii_digit());
        number?;
        let core = fields.next()?.parse().ok()?;
        let ticks: Vec<u64> = fields.map_while(|word| word.parse().ok()).collect();
        let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; guest times are part of the first two.
        let times = Times {
            total: (0..8).map(tick).fold(0, u64::saturating_add),
            idle: tick(3).saturating_add(tick(4)),
            softirq: tick(6),
            steal: tick(7),
        };
        Some((core, times))
    });
    cores.take(MAX_CORES).collect()
}

/// `RcvbufErrors` of UDP, from the texts of /proc/net/snmp and /proc/net/snmp6.
fn rcvbuf_errors(snmp: &str, snmp6: &str) -> u64 {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let names = lines.next().unwrap_or_default().split_ascii_whitespace();
    let values = lines.next().unwrap_or_default().split_ascii_whitespace();
    let of_four = names.zip(values).find(|(name, _)| *name == "RcvbufErrors");
    let mut six = snmp6.lines().filter_map(|line| {
        let value = line.strip_prefix("Udp6RcvbufErrors")?;
        value.trim().parse::<u64>().ok()
    });
    let of_four = of_four.and_then(|(_, value)| value.parse::<u64>().ok());
    of_four.unwrap_or(0).saturating_add(six.next().unwrap_or(0))
}

/// All counters at one moment.
#[derive(Clone, Debug)]
struct State {
    cores: BTreeMap<u32, Times>,
    process_ns: i64,
    rcvbuf_errors: u64,
}

impl State {
    fn now() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        // Of the thread's network namespace.
        let snmp = text("/proc/thread-self/net/snmp");
        let snmp6 = text("/proc/thread-self/net/snmp6");
        Self {
            cores: times(&text("/proc/stat")),
            process_ns: clock::process_cpu(),
            rcvbuf_errors: rcvbuf_errors(&snmp, &snmp6),
        }
    }
}

/// Measures host and process between two readings.
#[derive(Debug)]
pub(super) struct CpuMeter {
    before: State,
    index: u32,
    from: Span,
}

impl CpuMeter {
    /// Starts now.
    pub(super) fn begin() -> Self {
        Self {
            before: State::now(),
            index: 0,
            from: Span::ZERO,
        }
    }

    /// The interval until `now`, which is relative to the start.
    pub(super) fn pass(&mut self, now: Span) -> CpuInterval {
        let state = State::now();
        let process = Span::from_nanos(state.process_ns - self.before.process_ns);
        let interval = CpuInterval {
            index: self.index,
            from_ns: positive(self.from),
            to_ns: positive(now),
            process_ns: positive(process),
            rcvbuf_errors: state
                .rcvbuf_errors
                .saturating_sub(self.before.rcvbuf_errors),
            cores: shares(&self.before.cores, &state.cores),
        };
        (self.before, self.from) = (state, now);
        self.index += 1;
        interval
    }
}

/// Shares of each core's time between two moments. A core without an elapsed tick is left out.
fn shares(before: &BTreeMap<u32, Times>, now: &BTreeMap<u32, Times>) -> Vec<CoreShare> {
    let shares = now.iter().filter_map(|(core, now)| {
        let before = before.get(core)?;
        let more = |of: fn(&Times) -> u64| of(now).saturating_sub(of(before));
        let total_ticks = more(|times| times.total);
        // The idle time of a core may decrease by a tick (proc(5)).
        let permille = |part: u64| {
            let share = part
                .saturating_mul(1000)
                .checked_div(total_ticks)?
                .min(1000);
            u16::try_from(share).ok()
        };
        Some(CoreShare {
            core: *core,
            busy_permille: permille(total_ticks.saturating_sub(more(|times| times.idle)))?,
            softirq_permille: permille(more(|times| times.softirq))?,
            steal_permille: permille(more(|times| times.steal))?,
        })
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  900 0 0 900 0 0 0 0 0 0\n\
                          cpu0 100 10 50 1000 5 0 20 3 0 0\n\
                          cpu1 100 10 50 1000 5 0 20 3 0 0\nintr 5\n";
    const AFTER: &str = "cpu  990 0 0 990 0 0 0 0 0 0\n\
                         cpu0 120 10 80 1010 5 0 60 3 0 0\n\
                         cpu1 100 10 50 1095 5 0 20 8 0 0\nintr 5\n";

    #[test]
    fn core_busy_time_excludes_idle_and_iowait() {
        let core_shares = shares(&times(BEFORE), &times(AFTER));
        let share = |core, busy_permille, softirq_permille, steal_permille| CoreShare {
            core,
            busy_permille,
            softirq_permille,
            steal_permille,
        };
        assert_eq!(core_shares, [share(0, 900, 400, 0), share(1, 50, 0, 50)]);
        assert_eq!(shares(&times(BEFORE), &times(BEFORE)), []);
        assert_eq!(times("cpux 1 2\ncpu\nnonsense"), BTreeMap::new());
    }

    #[test]
    fn receive_buffer_errors_include_both_ip_versions() {
        let snmp = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts RcvbufErrors\nUdp: 10 2 7\n\
                    UdpLite: RcvbufErrors\nUdpLite: 99\n";
        assert_eq!(rcvbuf_errors(snmp, "Udp6RcvbufErrors  \t5\n"), 12);
        assert_eq!(rcvbuf_errors("", ""), 0);
        assert_eq!(rcvbuf_errors("Udp: RcvbufErrors", "Udp6RcvbufErrors x"), 0);
    }

    #[test]
    fn this_host_has_cores() {
        let mut meter = CpuMeter::begin();
        assert!(!meter.before.cores.is_empty());
        let interval = meter.pass(Span::from_secs(1));
        assert_eq!((interval.index, interval.to_ns), (0, 1_000_000_000));
        assert_eq!(meter.index, 1);
    }
}
