//! Provenance: what is needed to doubt a result.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ExperimentId, Span};

/// The host, as it was when the experiment started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Host name.
    pub host: String,
    /// Kernel release and version.
    pub kernel: String,
    /// CPU model, and how many cores are online.
    pub cpu: String,
    /// Number of cores online.
    pub cores: u32,
    /// The kernel's current clock source.
    pub clock_source: String,
    /// Whether the kernel believes its clock synchronised (`adjtimex`), and its estimated error.
    pub clock_sync: String,
    /// Offload features by interface that the flows use, `interface.feature` to `on` or `off`.
    pub offloads: BTreeMap<String, String>,
    /// Relevant settings of the kernel by name: sysctls, and `cpu_dma_latency`, how long a core may
    /// take to wake.
    pub sysctls: BTreeMap<String, String>,
    /// Congestion control of the main flow's socket, if it is TCP.
    pub congestion_control: Option<String>,
}

/// How busy the host was during an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// CPU time not idle over the cores that the experiment may use, percent.
    pub busy_percent: f64,
    /// Their CPU time that the hypervisor gave to others, percent.
    pub steal_percent: f64,
    /// One-minute load average at the end.
    pub load_average: f64,
}

/// Everything about one experiment that is not its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The experiment.
    pub experiment: ExperimentId,
    /// Version of `neph`.
    pub version: String,
    /// Commit it was built from.
    pub commit: String,
    /// SHA-256 of the plan, hex.
    pub plan_hash: String,
    /// The namespace (lab site) it ran in, if any.
    pub site: Option<String>,
    /// The host.
    pub host: HostFacts,
    /// How busy it was.
    pub load: Load,
    /// Sender lateness: median, if a message was sent.
    pub lateness_p50: Option<Span>,
    /// Sender lateness: 99th percentile, or the greatest where there are too few for one.
    pub lateness_p99: Option<Span>,
}
