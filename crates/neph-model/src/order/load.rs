//! An order to generate load.

use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitRate, ByteSize, CpuShare, LoadSpec, Span};

/// A load to generate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadOrder {
    /// Kind of load.
    pub work: LoadWork,
    /// Maximum duration.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
}

/// A load, with all options of `neph stress`. Plans have fewer options: [`LoadSpec`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadWork {
    /// CPU load.
    Cpu {
        /// Share of the time that each thread works, percent.
        share: CpuShare,
        /// Number and placement of the threads.
        threads: CpuThreads,
    },
    /// TCP load to a reflector.
    Flow {
        /// The reflector, `host[:port]`.
        to: String,
        /// Limit of the rate of all connections together; null: none.
        #[serde(rename = "bits_per_second")]
        rate: Option<BitRate>,
        /// Number of connections, 1 to 256.
        connections: NonZeroU16,
        /// Sizes of requests and replies that alternate; null: bulk transfer.
        #[serde(alias = "turns")]
        request_reply_sizes: Option<TurnSizes>,
    },
    /// UDP load to a reflector, in frames like a video.
    Stream {
        /// The reflector, `host[:port]`.
        to: String,
        /// Rate of the load.
        #[serde(rename = "bits_per_second")]
        rate: BitRate,
    },
}

impl LoadWork {
    /// The most connections of a flow.
    pub const MAX_CONNECTIONS: u16 = 256;
}

/// The threads of a CPU load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuThreads {
    /// One thread per core that may be used.
    EachCore,
    /// This number of threads, 1 to 1024, placed by the kernel.
    Anywhere(NonZeroU16),
    /// One thread pinned to each of these CPUs.
    Pinned(Vec<u32>),
}

impl CpuThreads {
    /// Maximum number of threads; more take minutes to begin.
    pub const MAXIMUM: u16 = 1024;
}

/// Payload sizes of alternating requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnSizes {
    /// Payload of each request.
    #[serde(rename = "request_bytes")]
    pub request: ByteSize,
    /// Payload of each reply.
    #[serde(rename = "reply_bytes")]
    pub reply: ByteSize,
}

impl TurnSizes {
    /// Maximum of both sizes: the smallest cap of a reflector allows it.
    pub const LARGEST: ByteSize = ByteSize(16 << 20);
}

/// A thread for each core; bulk on one connection.
impl From<LoadSpec> for LoadWork {
    fn from(load: LoadSpec) -> Self {
        match load {
            LoadSpec::Cpu(share) => Self::Cpu {
                share,
                threads: CpuThreads::EachCore,
            },
            LoadSpec::Flow { to, rate } => Self::Flow {
                to,
                rate,
                connections: NonZeroU16::MIN,
                request_reply_sizes: None,
            },
            LoadSpec::Stream { to, rate } => Self::Stream { to, rate },
        }
    }
}
