//! A message: a request and its reply, with outcome, timestamps and TCP states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Answer, FlowIndex, Ledger, Marks, Seq, TcpState};

/// The outcome of a message. Loss is an outcome, never a zero or a missing row.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The expected reply arrived within the timeout.
    Reply,
    /// An unexpected answer arrived: another HTTP status, a truncated reply, a WebSocket close, an
    /// ICMP error.
    Error,
    /// The request was sent, and no answer arrived within the timeout or before the connection was
    /// lost.
    Lost,
    /// The request could not be sent: no connection, or the kernel refused it.
    Failed,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 4] = [Self::Reply, Self::Error, Self::Lost, Self::Failed];

    /// The outcome of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// The name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}

/// A message: a request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Index of its flow within the experiment.
    pub flow: FlowIndex,
    /// Sequence number within the flow, from 0, without gaps.
    pub seq: Seq,
    /// Outcome of the message.
    pub outcome: Outcome,
    /// Timestamps of the message.
    pub marks: Marks,
    /// The peer's wall clock minus the peer's monotonic clock, nanoseconds; null if not reported.
    /// Added to a peer timestamp, it gives wall-clock time.
    pub peer_wall_offset: Option<i64>,
    /// Connection of the flow that carried it, from 0; each reconnection adds 1.
    pub connection: u32,
    /// Number of duplicate replies.
    pub duplicates: u16,
    /// Whether the reply arrived after the reply to a later message (RFC 4737).
    pub reordered: bool,
    /// The answer as its protocol names it, or the reason that there is none; null if unknown.
    pub answer: Option<Answer>,
    /// TCP state when the request's last byte departed; null if not read.
    pub tcp_at_send: Option<TcpState>,
    /// TCP state when the request's last byte was acknowledged; null if not read.
    pub tcp_at_ack: Option<TcpState>,
}

impl Message {
    /// A message that is only scheduled so far; its outcome is [`Outcome::Failed`] unless it is
    /// sent.
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

    /// The ledger of the message; `None` without the expected reply.
    pub fn ledger(&self) -> Option<Ledger> {
        match self.outcome {
            Outcome::Reply => Ledger::of(&self.marks),
            Outcome::Error | Outcome::Lost | Outcome::Failed => None,
        }
    }
}
