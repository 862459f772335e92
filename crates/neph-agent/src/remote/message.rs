//! What a controller and an agent send each other.
//!
//! Each message can be lost, and can come twice: what it asks for is done once, and its answer is a state
//! and not a step.

use std::collections::BTreeMap;

use neph_model::{
    Labels, OrderFailed, OrderId, OrderResult, PacketSample, Prepared, Progress, Span, Wall,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FileLength, Grant};

/// The version of these messages. Both sides must have the same.
pub const PROTOCOL: u32 = 5;

/// What a controller sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToAgent {
    /// To carry an order out. One that the agent has had is not begun a second time. The answer is its state.
    Begin {
        /// Which.
        id: OrderId,
        /// What it is, signed.
        grant: Box<Grant>,
    },
    /// How does this order stand? The answer is its state.
    Ask {
        /// Which.
        id: OrderId,
    },
    /// To end an order early.
    Cancel {
        /// Which.
        id: OrderId,
    },
    /// To send a part of a file of its result, from this byte on. There is no answer while the agent
    /// measures.
    Fetch {
        /// Which.
        id: OrderId,
        /// The file, by its place in [`Ended::files`].
        file: u32,
        /// The first byte that is wanted.
        from: u64,
        /// How many at the most; never more than [`PART_BYTES`](super::PART_BYTES).
        most: u32,
    },
    /// The answer to a sign of life.
    Beat {
        /// When the agent sent it, by the agent's clock: names the one that is answered.
        #[serde(rename = "sent_unix_ns")]
        sent: Wall,
        /// When it came, by the controller's clock.
        #[serde(rename = "received_unix_ns")]
        received: Wall,
    },
    /// Its result is stored: the agent may forget it. The answer is its state.
    Stored {
        /// Which.
        id: OrderId,
    },
}

/// What an agent sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromAgent {
    /// First on each connection.
    Hello(Hello),
    /// How an order stands.
    State {
        /// Which.
        id: OrderId,
        /// How.
        state: OrderState,
    },
    /// How far an order is.
    Progress {
        /// Which.
        id: OrderId,
        /// How far.
        progress: Progress,
    },
    /// Some of the packets of a capture, while it is made.
    Sample {
        /// Of which order.
        id: OrderId,
        /// The packets; their bytes travel behind the message, not in it.
        sample: PacketSample,
    },
    /// A part of a file of a result.
    Part(Part),
    /// A sign of life, every few seconds.
    Beat(Beat),
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Beat {
    /// When it was sent, by the agent's clock.
    #[serde(rename = "sent_unix_ns")]
    pub sent: Wall,
    /// Orders that run.
    pub running: u32,
    /// How far the agent's clock is from the controller's, once that is known.
    pub clock: Option<ClockApart>,
    /// How often something was refused since the agent's start, by the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refusals: BTreeMap<String, u64>,
}

/// How far an agent's clock is from its controller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockApart {
    /// The agent's clock minus the controller's.
    #[serde(rename = "offset_ns")]
    pub offset: Span,
    /// How far that may be wrong, either way.
    #[serde(rename = "bound_ns")]
    pub bound: Span,
}

impl ClockApart {
    /// How fast two clocks may drift, ppm: an offset that was good is worth less as it gets older.
    const DRIFT_PPM: i64 = 100;

    /// What is still known so much later: the bound grows.
    #[must_use]
    pub fn after(self, age: Span) -> Self {
        let drifted = Span::from_nanos(age.nanos().max(0) / 1_000_000 * Self::DRIFT_PPM);
        Self {
            bound: self.bound + drifted,
            ..self
        }
    }
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of its messages.
    pub protocol: u32,
    /// The version of the program.
    pub version: String,
    /// Orders whose result it keeps, those that run included.
    pub holds: Vec<OrderId>,
    /// Its policy in short, by the keys of `agent.toml`.
    #[serde(default)]
    pub policy: BTreeMap<String, String>,
    /// What its site is, in the words of who runs it.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Of which order's result.
    pub id: OrderId,
    /// The file, by its place in [`Ended::files`].
    pub file: u32,
    /// The place of its first byte.
    pub from: u64,
    /// The bytes; they travel behind the message, not in it.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// How an order stands at an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OrderState {
    /// The agent has never had it.
    Unknown,
    /// It is being carried out.
    Running {
        /// Of each experiment, once that is known.
        prepared: Option<Vec<Result<Prepared, OrderFailed>>>,
    },
    /// It is over, and its result is kept until it is stored.
    Ended(Box<Ended>),
    /// It is over, and its result was stored: nothing is kept of it.
    Forgotten,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// Of each experiment, where the order came so far.
    pub prepared: Option<Vec<Result<Prepared, OrderFailed>>>,
    /// The result, or why there is none.
    pub result: Result<OrderResult, OrderFailed>,
    /// What was recorded.
    pub files: Vec<FileLength>,
}
