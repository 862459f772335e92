//! Provenance: the facts needed to judge a result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExperimentId, Span};

/// The client host at the start of the experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Host name.
    pub host: String,
    /// Kernel release and version.
    pub kernel: String,
    /// CPU model and number of online cores.
    pub cpu: String,
    /// Number of online cores.
    pub cores: u32,
    /// Current clock source of the kernel.
    pub clock_source: String,
    /// Whether the kernel considers its clock synchronised (`adjtimex`), and its estimated error.
    pub clock_sync: String,
    /// Offload features of the interfaces that the flows use: `interface.feature` to `on` or `off`.
    pub offloads: BTreeMap<String, String>,
    /// Relevant kernel settings by name: sysctls, and `cpu_dma_latency`, the time that a core may
    /// take to wake.
    pub sysctls: BTreeMap<String, String>,
    /// Congestion control of the main flow's socket; null without TCP.
    pub congestion_control: Option<String>,
}

/// The CPU load of the host during an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// CPU time that was not idle, of the cores that the experiment may use, percent.
    pub busy_percent: f64,
    /// CPU time of these cores that the hypervisor gave to other guests, percent.
    pub steal_percent: f64,
    /// One-minute load average at the end.
    pub load_average: f64,
}

/// All facts about an experiment except its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// Id of the experiment.
    pub experiment: ExperimentId,
    /// Version of neph.
    pub version: String,
    /// Commit of neph.
    pub commit: String,
    /// SHA-256 of the plan, hexadecimal.
    pub plan_hash: String,
    /// Lab site (network namespace) that measured; null for the host itself.
    pub site: Option<String>,
    /// The client host.
    pub host: HostFacts,
    /// CPU load of the client host; null if not known.
    pub load: Option<Load>,
    /// Median lateness of the sender, nanoseconds; null if no message was sent.
    pub lateness_p50: Option<Span>,
    /// 99th percentile of lateness, or the largest with too few messages, nanoseconds; null if no
    /// message was sent.
    pub lateness_p99: Option<Span>,
}
