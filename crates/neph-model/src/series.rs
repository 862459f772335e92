//! Series: values over time that belong to an experiment but to no message.

use serde::{Deserialize, Serialize};

/// Which series a sample belongs to. The unit is in the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesName {
    /// Share of CPU time not idle over all cores since the last sample, percent.
    CpuBusyPercent,
    /// Share of CPU time that the hypervisor gave to others, percent.
    CpuStealPercent,
}

impl SeriesName {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CpuBusyPercent => "cpu_busy_percent",
            Self::CpuStealPercent => "cpu_steal_percent",
        }
    }
    /// The series of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::CpuBusyPercent, Self::CpuStealPercent]
            .into_iter()
            .find(|series| series.name() == name)
    }
}

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Which series.
    pub series: SeriesName,
    /// Nanoseconds since the experiment's start, on our monotonic clock.
    pub at: i64,
    /// The value, in the series' unit.
    pub value: f64,
}
