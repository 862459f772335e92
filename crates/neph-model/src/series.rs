//! Series: values over time of an experiment that belong to no message.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Quantity, TcpField};

/// The name of a series, with its unit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
pub enum SeriesName {
    /// Share of the time of all cores since the last sample, percent.
    Cpu(CpuUse),
    /// Share of the time of the core with this number since the last sample, percent.
    Core(u16, CpuUse),
    /// Counter of all interfaces except loopback in the sender's network namespace, per second.
    Net(NetCount),
    /// A TCP statistic of the main flow's connection.
    Tcp(TcpField),
    /// A result of a transfer within one second.
    Quantity(Quantity),
    /// Payload of a background load, bits per second: its number, from 1 in the order of `stress`,
    /// and the end.
    Load(u16, LoadEnd),
    /// Share of the time that the processors of the guest at that end of a background load are
    /// busy, percent.
    LoadCpu(u16, LoadEnd),
}

/// An end of a background load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadEnd {
    /// What the sender sent, without retransmissions.
    Sent,
    /// What the receiver received.
    Received,
}

impl LoadEnd {
    /// All.
    pub const ALL: [Self; 2] = [Self::Sent, Self::Received];

    /// The name: `sent`, `received`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }

    /// The name of the counted items.
    const fn role(self) -> &'static str {
        match self {
            Self::Sent => "sender",
            Self::Received => "receiver",
        }
    }
}

/// The use of a processor's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuUse {
    /// Not idle; stolen time included.
    Busy,
    /// Given to other guests by the hypervisor.
    Steal,
    /// Kernel work after interrupts, mostly packets.
    Softirq,
}

/// A counter of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetCount {
    /// Bytes received.
    ReceivedBytes,
    /// Packets received.
    ReceivedPackets,
    /// Packets received and dropped.
    ReceivedDrops,
    /// Bytes sent.
    SentBytes,
    /// Packets sent.
    SentPackets,
    /// Packets dropped before sending.
    SentDrops,
}

impl CpuUse {
    /// All.
    pub const ALL: [Self; 3] = [Self::Busy, Self::Steal, Self::Softirq];

    const fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Steal => "steal",
            Self::Softirq => "softirq",
        }
    }
}

impl NetCount {
    /// All, in the order of /proc/net/dev.
    pub const ALL: [Self; 6] = [
        Self::ReceivedBytes,
        Self::ReceivedPackets,
        Self::ReceivedDrops,
        Self::SentBytes,
        Self::SentPackets,
        Self::SentDrops,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::ReceivedBytes => "received_bytes",
            Self::ReceivedPackets => "received_packets",
            Self::ReceivedDrops => "received_drops",
            Self::SentBytes => "sent_bytes",
            Self::SentPackets => "sent_packets",
            Self::SentDrops => "sent_drops",
        }
    }
}

/// The word for it in files: `cpu_busy_percent`, `cpu1_steal_percent`, `net_sent_bytes_per_second`,
/// `tcp_rtt_us`, `up_goodput_bit_s`, `load1_sent_bit_s`.
impl fmt::Display for SeriesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(of) => write!(f, "cpu_{}_percent", of.word()),
            Self::Core(core, of) => write!(f, "cpu{core}_{}_percent", of.word()),
            Self::Net(of) => write!(f, "net_{}_per_second", of.word()),
            Self::Tcp(field) => write!(f, "tcp_{field}"),
            Self::Quantity(quantity) => quantity.fmt(f),
            Self::Load(load, end) => write!(f, "load{load}_{}_bit_s", end.word()),
            Self::LoadCpu(load, end) => write!(f, "load{load}_{}_cpu_percent", end.role()),
        }
    }
}

impl SeriesName {
    /// The series of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(count) = name.strip_prefix("net_") {
            let word = count.strip_suffix("_per_second")?;
            let mut counts = NetCount::ALL.into_iter();
            return counts.find(|count| count.word() == word).map(Self::Net);
        }
        if let Some(field) = name.strip_prefix("tcp_") {
            return TcpField::from_name(field).map(Self::Tcp);
        }
        if let Some(quantity) = Quantity::from_name(name) {
            return Some(Self::Quantity(quantity));
        }
        if let Some(load) = name.strip_prefix("load") {
            let (load, suffix) = load.split_once('_')?;
            let load = number(load)?;
            let mut load_ends = LoadEnd::ALL.into_iter();
            if let Some(role) = suffix.strip_suffix("_cpu_percent") {
                let end = load_ends.find(|end| end.role() == role)?;
                return Some(Self::LoadCpu(load, end));
            }
            let word = suffix.strip_suffix("_bit_s")?;
            let end = load_ends.find(|end| end.word() == word)?;
            return Some(Self::Load(load, end));
        }
        let (core, remaining) = name.strip_prefix("cpu")?.split_once('_')?;
        let word = remaining.strip_suffix("_percent")?;
        let of = CpuUse::ALL.into_iter().find(|of| of.word() == word)?;
        match core {
            "" => Some(Self::Cpu(of)),
            core => number(core).map(|core| Self::Core(core, of)),
        }
    }
}

/// A number in a name. There is one word for each series: neither cpu01 nor cpu+1.
fn number(text: &str) -> Option<u16> {
    let number: u16 = text.parse().ok()?;
    (text == number.to_string()).then_some(number)
}

impl From<SeriesName> for String {
    fn from(series: SeriesName) -> Self {
        series.to_string()
    }
}

impl TryFrom<String> for SeriesName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("there is no series '{name}'"))
    }
}

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Name of the series.
    pub series: SeriesName,
    /// Nanoseconds since the experiment's start, on the client's monotonic clock.
    pub at: i64,
    /// The value, in the series' unit.
    pub value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_found_by_its_name_and_only_by_it() {
        let of_cpu = CpuUse::ALL.into_iter();
        let of_cpu = of_cpu.flat_map(|of| {
            [
                SeriesName::Cpu(of),
                SeriesName::Core(0, of),
                SeriesName::Core(17, of),
            ]
        });
        let of_net = NetCount::ALL.map(SeriesName::Net);
        let of_loads = LoadEnd::ALL.map(|end| SeriesName::Load(12, end));
        let of_cpu_of_loads = LoadEnd::ALL.map(|end| SeriesName::LoadCpu(3, end));
        let quantities = Quantity::ALL.iter().copied().map(SeriesName::Quantity);
        for series in of_cpu
            .chain(of_net)
            .chain(of_loads)
            .chain(of_cpu_of_loads)
            .chain(quantities)
            .chain(TcpField::all_fields().map(SeriesName::Tcp))
        {
            assert_eq!(SeriesName::from_name(&series.to_string()), Some(series));
        }
        assert_eq!(
            SeriesName::from_name("cpu_busy_percent"),
            Some(SeriesName::Cpu(CpuUse::Busy)),
            "as it was called before cores had their own"
        );
        for name in [
            "",
            "cpu",
            "cpu01_busy_percent",
            "cpu_idle_percent",
            "net_sent_bytes",
            "tcp_rtt",
            "load_sent_bit_s",
            "load01_sent_bit_s",
            "load1_lost_bit_s",
            "x",
        ] {
            assert_eq!(SeriesName::from_name(name), None, "{name}");
        }
    }
}
