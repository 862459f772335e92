//! Quality warnings: a closed list, each with its advice.

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod advice;

use crate::{Answer, ByteSize, LocalFault, Span};

/// What makes an experiment less trustworthy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "warning", rename_all = "snake_case")]
pub enum Warning {
    /// The sender kept its schedule badly.
    SenderLate {
        /// 99th percentile of lateness.
        p99: Span,
        /// What was allowed.
        bound: Span,
    },
    /// The hypervisor gave this machine's CPU to others.
    CpuStolen {
        /// Share of CPU time.
        percent: f64,
    },
    /// The host had no CPU left.
    CpuSaturated {
        /// Share of CPU time not idle.
        percent: f64,
    },
    /// The wall clock stepped during the experiment.
    ClockStepped {
        /// How many times.
        times: u32,
    },
    /// Kernel stamps are missing on many messages, so stages are merged.
    StampsMissing {
        /// Share of replied messages without a complete ledger, percent.
        percent: f64,
    },
    /// The connection was lost during the experiment.
    Reconnected {
        /// How many times.
        times: u32,
    },
    /// Messages were answered, but not as expected: they are errors, not replies.
    UnexpectedAnswers {
        /// How many.
        messages: u64,
        /// Of how many.
        of: u64,
        /// The most frequent of these answers, where the protocol has a word for it.
        most: Option<Answer>,
    },
    /// Messages were not sent because of a fault of this host.
    NotSentHere {
        /// How many.
        messages: u64,
        /// Of how many.
        of: u64,
        /// The most frequent fault.
        fault: LocalFault,
    },
    /// The endpoint's name led to another address than in the experiment before: maybe another
    /// machine.
    AddressChanged {
        /// The address before.
        before: IpAddr,
        /// The address of this experiment.
        now: IpAddr,
    },
    /// Several machines answer by turns behind the endpoint's one address.
    SeveralBackends {
        /// How many were told apart, by their clocks.
        machines: u32,
        /// How far their clocks are apart at most.
        apart: Span,
    },
    /// Fewer messages than the quantiles of the report need.
    FewMessages {
        /// Replied messages.
        replies: u64,
    },
    /// A stranger answers, from whom the sizes that the plan asks for cannot be had.
    SizesNotApplied {
        /// What the plan asks each request to carry.
        request: ByteSize,
        /// What it asks each reply to carry.
        response: ByteSize,
    },
    /// ICMP echo that the plan wants beside the main flow could not be sent.
    EchoMissing {
        /// To whom, by name.
        names: Vec<String>,
        /// Why not to the first of them.
        why: String,
    },
    /// Our own kernel dropped replies because they were not read in time.
    DroppedHere {
        /// How many.
        packets: u64,
    },
    /// The reflector got more messages than it takes: what it refused is among the lost.
    MessagesRefused {
        /// How many, of all fleets that asked it from the same address meanwhile.
        messages: u64,
        /// Its cap: messages a second from one address.
        per_second: u32,
    },
    /// The reflector got more connections than it takes.
    ConnectionsRefused {
        /// How many, of all fleets that asked it from the same address meanwhile.
        connections: u64,
        /// Its cap: connections at the same time from one address. It has another for all addresses.
        at_a_time: u32,
    },
    /// Requests stayed long at the reflector: what stayed longer than the timeout counts as lost.
    ReflectorSlow {
        /// 99th percentile of the stay, by the reflector's stamps.
        p99: Span,
        /// What is allowed.
        bound: Span,
    },
    /// The reflector's kernel dropped requests because they were not read in time.
    ReflectorDropped {
        /// How many, of all that asked it meanwhile.
        packets: u64,
    },
    /// This machine could not run the lab's guests: namespaces took their place.
    GuestsStoodIn {
        /// Which, by their sites.
        guests: Vec<String>,
        /// Why they could not run.
        why: String,
    },
    /// A load that the plan makes at a site of its lab was not what the plan asks for.
    LoadNotHeld {
        /// Which, as the scenario has it: its site and what was asked.
        load: String,
        /// What it did instead: "worked 61.5 % of the time".
        had: String,
        /// How much that is of what was asked, where that is known. 0: no load was made.
        had_percent: Option<f64>,
        /// Why, where the load told that.
        why: Option<String>,
    },
    /// The lab's link could not keep its word.
    LinkLate {
        /// Packets that left later than the link tolerates after they were due: 50 us, or 2 % of its delay.
        packets: u64,
        /// The worst of them.
        worst: Span,
    },
    /// The lab's link lost packets without being asked to.
    LinkBroke {
        /// How many.
        packets: u64,
    },
}

impl Warning {
    /// How bad it is, beside others of its kind only.
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

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SenderLate { p99, bound } => {
                write!(f, "sender late: p99 {p99}, allowed {bound}")
            }
            Self::CpuStolen { percent } => {
                write!(f, "the hypervisor took {percent:.1} % of the CPU")
            }
            Self::CpuSaturated { percent } => write!(f, "CPU {percent:.0} % busy"),
            Self::ClockStepped { times } => write!(f, "the wall clock stepped {}", often(*times)),
            Self::StampsMissing { percent } => {
                write!(f, "{percent:.0} % of the messages lack kernel stamps")
            }
            Self::Reconnected { times } => write!(f, "the connection was lost {}", often(*times)),
            Self::UnexpectedAnswers { .. }
            | Self::NotSentHere { .. }
            | Self::SeveralBackends { .. }
            | Self::AddressChanged { .. } => self.of_the_answers(f),
            Self::FewMessages { replies: 1 } => f.write_str("only 1 reply"),
            Self::FewMessages { replies } => write!(f, "only {replies} replies"),
            Self::SizesNotApplied { request, response } => write!(
                f,
                "no reflector answers: requests of {request} and replies of {response} are not what was measured"
            ),
            Self::EchoMissing { names, why } => {
                write!(f, "no ICMP echo to {}: {why}", names.join(", "))
            }
            Self::DroppedHere { packets: 1 } => f.write_str("this host dropped 1 reply unread"),
            Self::DroppedHere { packets } => {
                write!(f, "this host dropped {packets} replies unread")
            }
            Self::MessagesRefused { .. }
            | Self::ConnectionsRefused { .. }
            | Self::ReflectorSlow { .. }
            | Self::ReflectorDropped { .. } => self.of_a_reflector(f),
            Self::LoadNotHeld { why, .. } => {
                f.write_str(&self.without_why())?;
                why.iter().try_for_each(|why| write!(f, ": {why}"))
            }
            Self::GuestsStoodIn { why, .. } => write!(f, "guests as namespaces: {why}"),
            Self::LinkBroke { packets: 1 } => {
                f.write_str("the lab's link lost 1 packet that it should have carried")
            }
            Self::LinkBroke { packets } => write!(
                f,
                "the lab's links lost {packets} packets that they should have carried"
            ),
            Self::LinkLate { packets: 1, worst } => {
                write!(f, "the lab's link sent 1 packet late, by {worst}")
            }
            Self::LinkLate { packets, worst } => {
                write!(
                    f,
                    "the lab's link sent {packets} packets late, the worst by {worst}"
                )
            }
        }
    }
}

impl Warning {
    /// In words that a place can follow: a reason that is a sentence of its own is left out.
    pub fn without_why(&self) -> String {
        match self {
            Self::LoadNotHeld { load, had, .. } => {
                format!("the load {load} was not held (it {had})")
            }
            Self::EchoMissing { names, .. } => {
                format!("ICMP echo to {} could not be sent", names.join(", "))
            }
            Self::GuestsStoodIn { guests, .. } => {
                format!("namespaces stood in for the guests {}", guests.join(", "))
            }
            _ => self.to_string(),
        }
    }

    /// The reason that is a sentence of its own.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::LoadNotHeld { why, .. } => why.as_deref(),
            Self::EchoMissing { why, .. } | Self::GuestsStoodIn { why, .. } => Some(why),
            _ => None,
        }
    }

    /// In words, if it is about what was answered, by whom, or not asked at all.
    fn of_the_answers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedAnswers { messages, of, most } => {
                let most =
                    most.map_or_else(String::new, |most| format!(": mostly {}", most.words()));
                write!(
                    f,
                    "{messages} of {of} messages were not answered as expected{most}"
                )
            }
            Self::NotSentHere {
                messages,
                of,
                fault,
            } => write!(
                f,
                "{messages} of {of} messages were not sent: {}",
                Answer::Local(*fault).words()
            ),
            Self::SeveralBackends { machines, apart } => write!(
                f,
                "{machines} machines answer by turns at the endpoint's address (their clocks are up to {apart} apart)"
            ),
            Self::AddressChanged { before, now } => {
                write!(f, "the endpoint's address changed from {before} to {now}")
            }
            _ => Ok(()),
        }
    }

    /// In words, if it is about a reflector.
    fn of_a_reflector(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MessagesRefused {
                messages,
                per_second,
            } => write!(
                f,
                "the reflector refused {messages} message{} in all from this address, beyond its cap of {per_second} a second from one address",
                plural(*messages)
            ),
            Self::ConnectionsRefused {
                connections,
                at_a_time,
            } => write!(
                f,
                "the reflector refused {connections} connection{} in all from this address, beyond its cap of {at_a_time} at a time from one address, or of all",
                plural(*connections)
            ),
            Self::ReflectorSlow { p99, bound } => write!(
                f,
                "the reflector was slow: requests stayed there for {p99} (p99), allowed {bound}"
            ),
            Self::ReflectorDropped { packets } => write!(
                f,
                "the reflector's host dropped {packets} request{} unread, of all that it was sent",
                plural(*packets)
            ),
            _ => Ok(()),
        }
    }
}

/// How often, as one says it.
fn often(times: u32) -> String {
    match times {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests;
