//! A load as an order.

use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitRate, ByteSize, CpuShare, LoadSpec, Span};

/// A load to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadOrder {
    /// What it does.
    pub work: LoadWork,
    /// After how long it ends, if nothing ends it before.
    #[serde(rename = "duration_ns")]
    pub duration: Span,
}

/// What a load does, with all that `neph stress` can fix; what plans can write of it is a [`LoadSpec`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadWork {
    /// Keeps cores busy.
    Cpu {
        /// The share of the time that each thread works.
        share: CpuShare,
        /// How many threads, and where.
        threads: CpuThreads,
    },
    /// TCP to a reflector.
    Flow {
        /// The reflector, `host[:port]`.
        to: String,
        /// What all connections send together at most; `None`: as fast as it goes.
        #[serde(rename = "bits_per_second")]
        rate: Option<BitRate>,
        /// How many connections: [`Self::MOST_CONNECTIONS`] at most.
        connections: NonZeroU16,
        /// Requests and replies in turn, of these sizes; bulk if absent.
        turns: Option<TurnSizes>,
    },
    /// UDP to a reflector, in frames as a video has them.
    Stream {
        /// The reflector, `host[:port]`.
        to: String,
        /// The rate.
        #[serde(rename = "bits_per_second")]
        rate: BitRate,
    },
}

impl LoadWork {
    /// The most connections of a flow.
    pub const MOST_CONNECTIONS: u16 = 256;
}

/// The threads of a load of the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CpuThreads {
    /// One for each core that may be used.
    EachCore,
    /// So many, wherever the kernel puts them: [`Self::MOST`] at most.
    Anywhere(NonZeroU16),
    /// One on each of these CPUs.
    Pinned(Vec<u32>),
}

impl CpuThreads {
    /// More threads than this are a mistake, and take minutes to begin.
    pub const MOST: u16 = 1024;
}

/// Payload of requests and replies that go in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnSizes {
    /// Of each request.
    #[serde(rename = "request_bytes")]
    pub request: ByteSize,
    /// Of each reply.
    #[serde(rename = "reply_bytes")]
    pub reply: ByteSize,
}

impl TurnSizes {
    /// The largest of either, as the smallest reflector's cap allows.
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
                turns: None,
            },
            LoadSpec::Stream { to, rate } => Self::Stream { to, rate },
        }
    }
}
