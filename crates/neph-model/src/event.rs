//! Events: what happened to an experiment besides its messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FlowIndex;

/// What happened.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A connection was established.
    Connected,
    /// A connection was lost.
    ConnectionLost,
    /// A connection could not be established; tried again after a while.
    ConnectFailed,
    /// The wall clock stepped; kernel stamps around it were dropped.
    ClockStepped,
    /// A flow beside the main one could not run; told of the main flow if it never came to be.
    FlowFailed,
    /// A reply came after its message was counted lost.
    LateReply,
    /// The peer closed an idle connection as a request was on its way: the request was sent again
    /// on a new connection.
    Repeated,
    /// The endpoint's name led to another address than before.
    AddressChanged,
    /// The endpoint redirected to another target, which was measured instead.
    Redirected,
    /// The peer refused a message or a connection.
    Refused,
    /// The peer reported impossible times for a message; they were discarded.
    #[serde(alias = "disbelieved")]
    Implausible,
    /// A segment was sent again, as a packet capture saw it. Our own sockets tell retransmissions
    /// in [`crate::TcpState`] instead.
    Retransmitted,
    /// A rule of the plan's alarms was broken for as long as it says.
    AlarmRaised,
    /// What raised an alarm has been well for as long.
    AlarmOver,
}

impl EventKind {
    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::ConnectionLost => "connection_lost",
            Self::ConnectFailed => "connect_failed",
            Self::ClockStepped => "clock_stepped",
            Self::FlowFailed => "flow_failed",
            Self::LateReply => "late_reply",
            Self::Repeated => "repeated",
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
    pub fn named(name: &str) -> Option<Self> {
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
            Self::FlowFailed,
            Self::LateReply,
            Self::Repeated,
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
    /// The flow it concerns.
    pub flow: FlowIndex,
    /// Nanoseconds since the experiment's start, on our monotonic clock.
    pub at: i64,
    /// What happened.
    pub kind: EventKind,
    /// In words, for people.
    pub text: String,
}
