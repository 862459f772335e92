//! Warnings: a closed list of reasons to doubt a result.
//!
//! Owns the kinds. Their codes (`code`), texts (`text`) and remedies (`advice`) are in files of their own.

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
        /// 99th percentile of lateness.
        p99: Span,
        /// The limit.
        bound: Span,
    },
    /// The hypervisor gave CPU time of the client host to other virtual machines.
    CpuStolen {
        /// Share of CPU time.
        percent: f64,
    },
    /// The client host had hardly any idle CPU time.
    CpuSaturated {
        /// Share of CPU time not idle.
        percent: f64,
    },
    /// The wall clock stepped during the experiment.
    ClockStepped {
        /// How many times.
        times: u32,
    },
    /// Many replies lack kernel timestamps, so stages are merged.
    StampsMissing {
        /// Share of replies without a complete ledger, percent.
        percent: f64,
    },
    /// The connection was lost during the experiment.
    Reconnected {
        /// How many times.
        times: u32,
    },
    /// Answers were not as expected; they count as errors.
    UnexpectedAnswers {
        /// How many.
        messages: u64,
        /// Of how many.
        of: u64,
        /// The most frequent of these answers, where the protocol names it.
        most: Option<Answer>,
    },
    /// Messages could not be sent, by a fault of the client host.
    NotSentHere {
        /// How many.
        messages: u64,
        /// Of how many.
        of: u64,
        /// The most frequent fault.
        fault: LocalFault,
    },
    /// The endpoint's name resolved to another address than in the experiment before.
    AddressChanged {
        /// The address before.
        before: IpAddr,
        /// The address of this experiment.
        now: IpAddr,
    },
    /// Several servers answer at the endpoint's address.
    SeveralBackends {
        /// How many were distinguished, by their clocks.
        machines: u32,
        /// The largest difference between their clocks.
        apart: Span,
    },
    /// There are fewer replies than the percentiles of the report need.
    FewMessages {
        /// Replied messages.
        replies: u64,
    },
    /// A third-party server answers, which does not apply the sizes of the plan.
    SizesNotApplied {
        /// Request size of the plan.
        request: ByteSize,
        /// Reply size of the plan.
        response: ByteSize,
    },
    /// ICMP echo that the plan asks for could not be sent.
    EchoMissing {
        /// To whom, by name.
        names: Vec<String>,
        /// Why not to the first of them.
        why: String,
    },
    /// The kernel of the client host dropped replies that neph did not read in time.
    DroppedHere {
        /// How many.
        packets: u64,
    },
    /// The reflector refused messages beyond its limit; they count as lost.
    MessagesRefused {
        /// How many, of all fleets at this address.
        messages: u64,
        /// Its limit: messages per second from one address.
        per_second: u32,
    },
    /// The reflector refused connections beyond its limit.
    ConnectionsRefused {
        /// How many, of all fleets at this address.
        connections: u64,
        /// Its limit: concurrent connections from one address. It has another for all addresses.
        at_a_time: u32,
    },
    /// Requests stayed long at the reflector; beyond the timeout they count as lost.
    ReflectorSlow {
        /// 99th percentile of the residence time, by the reflector's timestamps.
        p99: Span,
        /// The limit.
        bound: Span,
    },
    /// The reflector's kernel dropped requests that the reflector did not read in time.
    ReflectorDropped {
        /// How many, of all clients.
        packets: u64,
    },
    /// Network namespaces replaced guests of the lab, because the host cannot run them.
    GuestsStoodIn {
        /// Their sites.
        guests: Vec<String>,
        /// Why they could not run.
        why: String,
    },
    /// A background load of the plan missed its target.
    LoadNotHeld {
        /// Site and target, as in the scenario.
        load: String,
        /// What it achieved: "worked 61.5 % of the time".
        had: String,
        /// Share of the target, percent, where known. 0: no load was generated.
        had_percent: Option<f64>,
        /// Why, where the load reports it.
        why: Option<String>,
    },
    /// An emulated link delayed packets longer than configured.
    LinkLate {
        /// Packets that left later than the tolerance (50 us, or 2 % of the delay).
        packets: u64,
        /// The largest excess.
        worst: Span,
    },
    /// An emulated link lost packets beyond its configured loss.
    LinkBroke {
        /// How many.
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
            | Self::StampsMissing { percent } => *percent,
            Self::ClockStepped { times: count }
            | Self::Reconnected { times: count }
            | Self::SeveralBackends {
                machines: count, ..
            } => f64::from(*count),
            Self::FewMessages { replies } => -(*replies as f64),
            Self::LinkBroke { packets: count }
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
            Self::EchoMissing { names, .. } | Self::GuestsStoodIn { guests: names, .. } => {
                names.len() as f64
            }
            Self::LoadNotHeld { had_percent, .. } => {
                had_percent.map_or(0.0, |had| (100.0 - had).abs())
            }
            Self::SizesNotApplied { .. } | Self::AddressChanged { .. } => 0.0,
        }
    }
}

#[cfg(test)]
mod tests;
