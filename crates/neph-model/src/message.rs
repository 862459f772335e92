//! A message: one exchange of a probe, with its outcome, timestamps and TCP states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Answer, FlowIndex, Ledger, Marks, Seq, TcpState};

/// How a message ended. Loss is an outcome, never a zero or a missing row.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The expected reply came within the timeout.
    Reply,
    /// Something else came instead: an HTTP status that is not expected, a reply that was cut off, a
    /// WebSocket close, an ICMP error.
    Error,
    /// The request left, and nothing came within the timeout or before the connection was lost.
    Lost,
    /// The request could not be sent: no connection, or the kernel refused it.
    Failed,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Reply, Self::Error, Self::Lost, Self::Failed];

    /// The outcome of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// The word for it in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}

/// One exchange of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The flow it belongs to, within its experiment.
    pub flow: FlowIndex,
    /// Its number within the flow, from 0, without gaps.
    pub seq: Seq,
    /// How it ended.
    pub outcome: Outcome,
    /// When it passed which point.
    pub marks: Marks,
    /// Peer's wall clock minus the peer's monotonic clock, nanoseconds, where the peer told it:
    /// turns peer marks into wall-clock time.
    pub peer_wall_offset: Option<i64>,
    /// Which connection of its flow carried it, from 0; a reconnect counts up.
    pub connection: u32,
    /// How many more times the reply came.
    pub duplicates: u16,
    /// The reply came after the reply of a later message (RFC 4737).
    pub reordered: bool,
    /// The answer in its protocol's words, or why there is none, where that is known.
    pub answer: Option<Answer>,
    /// The connection's state when the request's last byte left.
    pub tcp_at_send: Option<TcpState>,
    /// The connection's state when the request's last byte was acknowledged.
    pub tcp_at_ack: Option<TcpState>,
}

impl Message {
    /// A message that exists so far only in the schedule; becomes [`Outcome::Failed`] unless sent.
    pub const fn new(flow: FlowIndex, seq: Seq, marks: Marks) -> Self {
        Self {
            flow,
            seq,
            outcome: Outcome::Failed,
            marks,
            peer_wall_offset: None,
            connection: 0,
            duplicates: 0,
            reordered: false,
            answer: None,
            tcp_at_send: None,
            tcp_at_ack: None,
        }
    }

    /// Where its time went; `None` unless the expected reply came.
    pub fn ledger(&self) -> Option<Ledger> {
        match self.outcome {
            Outcome::Reply => Ledger::of(&self.marks),
            Outcome::Error | Outcome::Lost | Outcome::Failed => None,
        }
    }
}
