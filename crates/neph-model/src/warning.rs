//! Warnings: a closed list of reasons to doubt a result.
//!
//! Owns the kinds. Their codes (`code`), texts (`text`) and remedies (`advice`) are in files of
//! their own.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod advice;
mod code;
mod text;

pub use code::WarningCode;

use crate::{Answer, ByteSize, LocalFault, Span};

/// A reason to doubt a result. `docs/warnings.md` explains each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "warning", rename_all = "snake_case")]
pub enum Warning {
    /// The client host sent messages later than scheduled.
    SenderLate {
        /// 99th percentile of lateness, nanoseconds.
        p99: Span,
        /// Limit of lateness, nanoseconds.
        bound: Span,
    },
    /// The hypervisor gave CPU time of the client host to other virtual machines.
    CpuStolen {
        /// Share of CPU time that other virtual machines got, percent.
        percent: f64,
    },
    /// The client host had hardly any idle CPU time.
    CpuSaturated {
        /// Share of CPU time that was not idle, percent.
        percent: f64,
    },
    /// The wall clock stepped during the experiment.
    ClockStepped {
        /// Number of steps.
        times: u32,
    },
    /// Many replies lack kernel timestamps, so stages are merged.
    #[serde(alias = "stamps_missing")]
    TimestampsMissing {
        /// Share of replies without a complete ledger, percent.
        percent: f64,
    },
    /// The connection was lost during the experiment.
    Reconnected {
        /// Number of lost connections.
        times: u32,
    },
    /// Answers were not as expected; they count as errors.
    UnexpectedAnswers {
        /// Number of these answers.
        messages: u64,
        /// Number of all messages.
        of: u64,
        /// The most frequent of these answers; null if the protocol has no name for it.
        #[serde(alias = "most")]
        most_frequent: Option<Answer>,
    },
    /// Messages could not be sent, by a fault of the client host.
    NotSentHere {
        /// Number of messages that were not sent.
        messages: u64,
        /// Number of all messages.
        of: u64,
        /// The most frequent fault.
        fault: LocalFault,
    },
    /// The endpoint's name resolved to another address than in the previous experiment.
    AddressChanged {
        /// Address in the previous experiment.
        before: IpAddr,
        /// Address in this experiment.
        now: IpAddr,
    },
    /// Several servers answer at the endpoint's address.
    SeveralBackends {
        /// Number of servers that their clocks distinguish.
        machines: u32,
        /// Largest difference between their clocks, nanoseconds.
        #[serde(alias = "apart")]
        clock_difference: Span,
    },
    /// There are fewer replies than the percentiles of the report need.
    FewMessages {
        /// Number of replies.
        replies: u64,
    },
    /// A third-party server answers, which does not apply the sizes of the plan.
    SizesNotApplied {
        /// Request size of the plan, bytes.
        request: ByteSize,
        /// Reply size of the plan, bytes.
        response: ByteSize,
    },
    /// ICMP echoes of the plan could not be sent.
    EchoMissing {
        /// Names of their destinations.
        names: Vec<String>,
        /// Why the first of them could not be sent.
        #[serde(alias = "why")]
        reason: String,
    },
    /// The kernel of the client host dropped replies that neph did not read in time.
    DroppedHere {
        /// Number of dropped packets.
        packets: u64,
    },
    /// The reflector refused messages beyond its limit; they count as lost.
    MessagesRefused {
        /// Number of refused messages, of all fleets at this address.
        messages: u64,
        /// Limit of the reflector: messages per second from one address.
        per_second: u32,
    },
    /// The reflector refused connections beyond its limit.
    ConnectionsRefused {
        /// Number of refused connections, of all fleets at this address.
        connections: u64,
        /// Limit of the reflector: concurrent connections from one address. It has another limit
        /// for all addresses.
        at_a_time: u32,
    },
    /// Requests stayed long at the reflector; beyond the timeout they count as lost.
    ReflectorSlow {
        /// 99th percentile of the residence time, nanoseconds, by the reflector's timestamps.
        p99: Span,
        /// Limit of the residence time, nanoseconds.
        bound: Span,
    },
    /// The reflector's kernel dropped requests that the reflector did not read in time.
    ReflectorDropped {
        /// Number of dropped packets, of all clients.
        packets: u64,
    },
    /// Network namespaces replaced guests of the lab, because the host cannot run them.
    #[serde(alias = "guests_stood_in")]
    NamespaceFallback {
        /// Sites of these guests.
        guests: Vec<String>,
        /// Why the host cannot run them.
        #[serde(alias = "why")]
        reason: String,
    },
    /// A background load of the plan missed its target.
    #[serde(alias = "load_not_held")]
    LoadTargetMissed {
        /// Site and target, as in the scenario.
        load: String,
        /// The achieved load: "worked 61.5 % of the time".
        #[serde(alias = "had")]
        achieved: String,
        /// Share of the target, percent; null if unknown. 0: no load was generated.
        #[serde(alias = "had_percent")]
        achieved_percent: Option<f64>,
        /// Why, as the load reports it; null if it reports no reason.
        #[serde(alias = "why")]
        reason: Option<String>,
    },
    /// An emulated link delayed packets longer than configured.
    LinkLate {
        /// Number of packets that left later than the tolerance (50 us, or 2 % of the delay).
        packets: u64,
        /// Largest excess, nanoseconds.
        worst: Span,
    },
    /// An emulated link lost packets in addition to its configured loss.
    #[serde(alias = "link_broke")]
    LinkLostPackets {
        /// Number of these packets.
        packets: u64,
    },
}

impl Warning {
    /// How severe it is, compared to other warnings with the same code.
    #[expect(clippy::cast_precision_loss, reason = "compared, not printed")]
    pub fn magnitude(&self) -> f64 {
        match self {
            Self::SenderLate { p99: span, .. }
            | Self::ReflectorSlow { p99: span, .. }
            | Self::LinkLate { worst: span, .. } => span.nanos() as f64,
            Self::CpuStolen { percent }
            | Self::CpuSaturated { percent }
            | Self::TimestampsMissing { percent } => *percent,
            Self::ClockStepped { times: count }
            | Self::Reconnected { times: count }
            | Self::SeveralBackends {
                machines: count, ..
            } => f64::from(*count),
            Self::FewMessages { replies } => -(*replies as f64),
            Self::LinkLostPackets { packets: count }
            | Self::DroppedHere { packets: count }
            | Self::ReflectorDropped { packets: count }
            | Self::MessagesRefused {
                messages: count, ..
            }
            | Self::UnexpectedAnswers {
                messages: count, ..
            }
            | Self::NotSentHere {
                messages: count, ..
            }
            | Self::ConnectionsRefused {
                connections: count, ..
            } => *count as f64,
            Self::EchoMissing { names, .. } | Self::NamespaceFallback { guests: names, .. } => {
                names.len() as f64
            }
            Self::LoadTargetMissed {
                achieved_percent, ..
            } => achieved_percent.map_or(0.0, |achieved| (100.0 - achieved).abs()),
            Self::SizesNotApplied { .. } | Self::AddressChanged { .. } => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
