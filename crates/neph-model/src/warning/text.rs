//! Texts of warnings: the code, then what happened, with its numbers.

use std::fmt;

use super::Warning;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.without_why())?;
        self.why().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

impl Warning {
    /// The text without the reason, so that a place can follow. Where the reason is a sentence of
    /// its own, see [`why`](Self::why).
    pub fn without_why(&self) -> String {
        format!("{}: {}", self.code(), self.fact())
    }

    /// The reason, where it is a sentence of its own.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::LoadTargetMissed { reason, .. } => reason.as_deref(),
            Self::EchoMissing { reason, .. } | Self::NamespaceFallback { reason, .. } => {
                Some(reason)
            }
            _ => None,
        }
    }

    /// What happened, with its numbers, without the code and the reason.
    pub fn fact(&self) -> String {
        match self {
            Self::SenderLate { p99, bound } => {
                format!("messages were sent late: p99 of the lateness {p99} (limit {bound})")
            }
            Self::CpuStolen { percent } => {
                format!("the hypervisor gave {percent:.1} % of the CPU time to other VMs")
            }
            Self::CpuSaturated { percent } => format!("CPU {percent:.0} % busy"),
            Self::ClockStepped { times } => {
                format!(
                    "the wall clock stepped {}",
                    counted((*times).into(), "time", "times")
                )
            }
            Self::TimestampsMissing { percent } => {
                format!("{percent:.0} % of the replies lack kernel timestamps")
            }
            Self::Reconnected { times } => {
                format!(
                    "the connection was lost {}",
                    counted((*times).into(), "time", "times")
                )
            }
            Self::AddressChanged { before, now } => {
                format!("the endpoint's address changed from {before} to {now}")
            }
            Self::FewMessages { replies: 1 } => "only 1 reply".to_owned(),
            Self::FewMessages { replies } => format!("only {replies} replies"),
            Self::SizesNotApplied { request, response } => format!(
                "no reflector answers, so the sizes of the plan were not applied (request {request}, reply \
                 {response})"
            ),
            Self::EchoMissing { names, .. } => format!("no ICMP echo to {}", names.join(", ")),
            Self::UnexpectedAnswers { .. }
            | Self::NotSentHere { .. }
            | Self::SeveralBackends { .. }
            | Self::DroppedHere { .. } => self.about_answers(),
            Self::MessagesRefused { .. }
            | Self::ConnectionsRefused { .. }
            | Self::ReflectorSlow { .. }
            | Self::ReflectorDropped { .. } => self.about_a_reflector(),
            Self::NamespaceFallback { .. }
            | Self::LoadTargetMissed { .. }
            | Self::LinkLate { .. }
            | Self::LinkLostPackets { .. } => self.about_the_lab(),
        }
    }

    fn about_answers(&self) -> String {
        match self {
            Self::UnexpectedAnswers {
                messages,
                of,
                most_frequent,
            } => {
                let max = most_frequent
                    .map_or_else(String::new, |max| format!(", mostly {}", max.description()));
                format!("{messages} of {of} messages were not answered as expected{max}")
            }
            Self::NotSentHere {
                messages,
                of,
                fault,
            } => format!(
                "{messages} of {of} messages were not sent ({})",
                crate::Answer::Local(*fault).description()
            ),
            Self::SeveralBackends {
                machines,
                clock_difference,
            } => format!(
                "{machines} servers answer at the endpoint's address (their clocks differ by up to {clock_difference})"
            ),
            Self::DroppedHere { packets } => format!(
                "the client host dropped {} that neph did not read in time",
                counted(*packets, "reply", "replies")
            ),
            _ => String::new(),
        }
    }

    fn about_a_reflector(&self) -> String {
        match self {
            Self::MessagesRefused {
                messages,
                per_second,
            } => format!(
                "the reflector refused {} from this address (limit {per_second} per second)",
                counted(*messages, "message", "messages")
            ),
            Self::ConnectionsRefused {
                connections,
                at_a_time,
            } => format!(
                "the reflector refused {} from this address (limit {at_a_time} at the same time, or the limit \
                 for all addresses)",
                counted(*connections, "connection", "connections")
            ),
            Self::ReflectorSlow { p99, bound } => {
                format!("requests stayed at the reflector for {p99} at p99 (limit {bound})")
            }
            Self::ReflectorDropped { packets } => format!(
                "the reflector's host dropped {} of all clients",
                counted(*packets, "request", "requests")
            ),
            _ => String::new(),
        }
    }

    fn about_the_lab(&self) -> String {
        match self {
            Self::NamespaceFallback { guests, .. } => {
                format!(
                    "network namespaces replaced the guests {}",
                    guests.join(", ")
                )
            }
            Self::LoadTargetMissed { load, achieved, .. } => {
                format!("background load {load} missed its target (it {achieved})")
            }
            Self::LinkLate { packets, worst } => format!(
                "an emulated link delivered {} too late (by up to {worst})",
                counted(*packets, "packet", "packets")
            ),
            Self::LinkLostPackets { packets } => format!(
                "emulated links lost {} beyond their configured loss",
                counted(*packets, "packet", "packets")
            ),
            _ => String::new(),
        }
    }
}

fn counted(many: u64, singular: &str, more: &str) -> String {
    let noun = if many == 1 { singular } else { more };
    format!("{many} {noun}")
}
