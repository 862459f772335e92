//! The messages between a controller and an agent.
//!
//! A message can be lost or arrive twice. Therefore each request takes effect once, and its answer
//! is a state and not a step.

use std::collections::BTreeMap;

use neph_model::{
    Labels, OrderFailed, OrderId, OrderResult, PacketSample, Prepared, Progress, Span, Wall,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FileLength, Grant};

/// The version of these messages. Both sides must have the same.
pub const PROTOCOL: u32 = 6;

/// A message of a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToAgent {
    /// Carry out an order. An order that the agent knows already does not begin a second time. The
    /// answer is its state.
    Begin {
        /// Id of the order.
        id: OrderId,
        /// The signed order.
        grant: Box<Grant>,
    },
    /// Query the state of an order. The answer is its state.
    Ask {
        /// Id of the order.
        id: OrderId,
    },
    /// End an order early.
    Cancel {
        /// Id of the order.
        id: OrderId,
    },
    /// Send a part of a result file, from this byte on. There is no answer while the agent
    /// measures.
    Fetch {
        /// Id of the order.
        id: OrderId,
        /// Index of the file in [`Ended::files`].
        file: u32,
        /// Offset of the first byte.
        from: u64,
        /// Maximum number of bytes; never more than [`MAX_PART_BYTES`](super::MAX_PART_BYTES).
        most: u32,
    },
    /// The answer to a heartbeat.
    Beat {
        /// Send time of the heartbeat on the agent's clock: identifies the heartbeat.
        #[serde(rename = "sent_unix_ns")]
        sent: Wall,
        /// Arrival time of the heartbeat on the controller's clock.
        #[serde(rename = "received_unix_ns")]
        received: Wall,
    },
    /// The result of an order is stored: the agent may delete it. The answer is its state.
    Stored {
        /// Id of the order.
        id: OrderId,
    },
}

/// A message of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromAgent {
    /// The first message on each connection.
    Hello(Hello),
    /// The state of an order.
    State {
        /// Id of the order.
        id: OrderId,
        /// State of the order.
        state: OrderState,
    },
    /// The progress of an order.
    Progress {
        /// Id of the order.
        id: OrderId,
        /// Progress of the order.
        progress: Progress,
    },
    /// Some packets of a running capture.
    Sample {
        /// Id of the order.
        id: OrderId,
        /// The packets; their bytes follow after the message.
        sample: PacketSample,
    },
    /// A part of a result file.
    Part(Part),
    /// A heartbeat, every few seconds.
    Beat(Beat),
}

/// A heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Beat {
    /// Send time, on the agent's clock.
    #[serde(rename = "sent_unix_ns")]
    pub sent: Wall,
    /// Number of running orders.
    pub running: u32,
    /// Clock offset between the agent and the controller; null until it is known.
    pub clock: Option<AgentClockOffset>,
    /// Number of refusals since the agent's start, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refusals: BTreeMap<String, u64>,
}

/// The clock offset between an agent and its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentClockOffset {
    /// The agent's clock minus the controller's.
    #[serde(rename = "offset_ns")]
    pub offset: Span,
    /// Error bound of the offset.
    #[serde(rename = "bound_ns")]
    pub bound: Span,
}

impl AgentClockOffset {
    /// Maximum drift between two clocks, ppm: the error bound of an offset grows with its age.
    const DRIFT_PPM: i64 = 100;

    /// The offset after this time, with a larger error bound.
    #[must_use]
    pub fn after(self, age: Span) -> Self {
        let drifted = Span::from_nanos(age.nanos().max(0) / 1_000_000 * Self::DRIFT_PPM);
        Self {
            bound: self.bound + drifted,
            ..self
        }
    }
}

/// The identity of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of its messages.
    pub protocol: u32,
    /// Version of neph.
    pub version: String,
    /// Orders that it has: running ones, and those whose result is not stored yet.
    pub holds: Vec<OrderId>,
    /// Number of those with a result.
    pub results: usize,
    /// Summary of its policy, by the keys of `agent.toml`.
    #[serde(default)]
    pub policy: BTreeMap<String, String>,
    /// Labels of its site.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// A part of a result file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Id of the order.
    pub id: OrderId,
    /// Index of the file in [`Ended::files`].
    pub file: u32,
    /// Offset of the first byte.
    pub from: u64,
    /// The bytes; they follow after the message.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// The state of an order at an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OrderState {
    /// The agent does not know the order.
    Unknown,
    /// The order runs.
    Running {
        /// For each experiment, what was prepared or why it cannot begin; null until that is known.
        prepared: Option<Vec<Result<Prepared, OrderFailed>>>,
    },
    /// The order ended; the agent has its result until it is stored.
    Ended(Box<Ended>),
    /// The order ended and its result was stored; the agent has deleted it.
    Forgotten,
}

/// The end of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// For each experiment, what was prepared or why it cannot begin; null if the order ended
    /// before.
    pub prepared: Option<Vec<Result<Prepared, OrderFailed>>>,
    /// The result, or why there is none.
    pub result: Result<OrderResult, OrderFailed>,
    /// Files with the measurements.
    pub files: Vec<FileLength>,
}
