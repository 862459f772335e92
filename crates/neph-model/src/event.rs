//! Events of an experiment that are not messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FlowIndex;

/// The kind of an event.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A connection was established.
    Connected,
    /// A connection was lost.
    ConnectionLost,
    /// A connection could not be established; neph retries after a pause.
    ConnectFailed,
    /// The wall clock stepped; kernel timestamps near the step were dropped.
    ClockStepped,
    /// A flow other than the main flow failed. If it was never created, the event has the main
    /// flow's index.
    #[serde(rename = "flow_failed")]
    SecondaryFlowFailed,
    /// A reply arrived after its message was counted as lost.
    LateReply,
    /// The peer closed an idle connection while a request was in transit; the request was repeated
    /// on a new connection.
    #[serde(rename = "repeated")]
    RequestRetried,
    /// The endpoint's name resolved to another address than before.
    AddressChanged,
    /// The endpoint redirected to another target, which was measured instead.
    Redirected,
    /// The peer refused a message or a connection.
    Refused,
    /// The peer reported impossible times for a message; the times were discarded.
    #[serde(alias = "disbelieved")]
    Implausible,
    /// A packet capture contains a retransmission. Retransmissions of neph's own sockets are
    /// counted in [`crate::TcpState`].
    Retransmitted,
    /// An alarm was raised: its rule was violated for its duration.
    AlarmRaised,
    /// An alarm ended: values were normal for the rule's duration.
    AlarmOver,
}

impl EventKind {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::ConnectionLost => "connection_lost",
            Self::ConnectFailed => "connect_failed",
            Self::ClockStepped => "clock_stepped",
            Self::SecondaryFlowFailed => "flow_failed",
            Self::LateReply => "late_reply",
            Self::RequestRetried => "repeated",
            Self::AddressChanged => "address_changed",
            Self::Redirected => "redirected",
            Self::Refused => "refused",
            Self::Implausible => "implausible",
            Self::Retransmitted => "retransmitted",
            Self::AlarmRaised => "alarm_raised",
            Self::AlarmOver => "alarm_over",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        // Its name in older stores.
        let name = if name == "disbelieved" {
            "implausible"
        } else {
            name
        };
        [
            Self::Connected,
            Self::ConnectionLost,
            Self::ConnectFailed,
            Self::ClockStepped,
            Self::SecondaryFlowFailed,
            Self::LateReply,
            Self::RequestRetried,
            Self::AddressChanged,
            Self::Redirected,
            Self::Refused,
            Self::Implausible,
            Self::Retransmitted,
            Self::AlarmRaised,
            Self::AlarmOver,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }
}

/// One event of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Index of the flow that the event belongs to.
    pub flow: FlowIndex,
    /// Nanoseconds since the experiment's start, on the client's monotonic clock.
    pub at: i64,
    /// Kind of the event.
    pub kind: EventKind,
    /// Description with details.
    pub text: String,
}
