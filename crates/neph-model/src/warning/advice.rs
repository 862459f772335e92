//! What to do about each warning.

use super::Warning;

impl Warning {
    /// What to do about it.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::SenderLate { .. } => {
                "use a longer interval, or free a CPU core. If neph does not have CAP_SYS_NICE (real-time priority), give it this capability"
            }
            Self::CpuStolen { .. } => {
                "use a machine with dedicated cores, or measure more blocks (blocks in the plan)"
            }
            Self::CpuSaturated { .. } => "stop other programs, or use fewer or slower flows",
            Self::ClockStepped { .. } => {
                "configure the clock to slew (chrony: makestep only at start); do not use wall-clock times around the step"
            }
            Self::TimestampsMissing { .. } => {
                "use the merged stages (joined by '+' in tables and figures). The cause is an interface without kernel timestamps; or one system call has read several messages, and only one of them gets a timestamp"
            }
            Self::Reconnected { .. } => {
                "neph show EXPERIMENT (its id) prints the reason; firewalls often end long connections"
            }
            Self::UnexpectedAnswers { .. } => {
                "check that the server (or the agent) at the endpoint runs, and which program answers. A right HTTP status can be allowed: expect_status in the plan, or --expect-status"
            }
            Self::NotSentHere { fault, .. } => fault.remedy(),
            Self::SeveralBackends { .. } => {
                "measure each server at its own address; behind a load balancer neph estimates no clock offset and no one-way delay"
            }
            Self::AddressChanged { .. } => {
                "write the address instead of the name to measure one server; the report separates experiments by address"
            }
            Self::FewMessages { .. } => "measure longer: p99 needs 299 messages, p99.9 needs 2995",
            Self::SizesNotApplied { .. } => {
                "run neph reflect at the endpoint. Other servers limit the sizes: a message of ws:// has at most 125 bytes, a reply of http:// is the server's own page, and tcp:// only connects"
            }
            Self::EchoMissing { .. } => {
                "fix the problem (neph show prints it), or switch ICMP echoes off: enabled = false in the section [companion] of the plan"
            }
            Self::DroppedHere { .. } => {
                "use fewer flows or a longer interval; if neph does not run as root, let an administrator raise net.core.rmem_default and net.core.rmem_max. Part of the loss is local"
            }
            _ => self.advice_on_others(),
        }
    }

    /// What to do about a reflector, or about the lab.
    const fn advice_on_others(&self) -> &'static str {
        match self {
            Self::MessagesRefused { .. } => {
                "use fewer flows or a longer interval, or start neph reflect with a higher --max-rate. Part of the loss is the reflector's"
            }
            Self::ConnectionsRefused { .. } => {
                "use fewer flows, or start neph reflect with higher --max-connections-per-peer and --max-connections"
            }
            Self::ReflectorSlow { .. } => {
                "free a CPU core at the reflector, or send fewer messages per second. Round trips exclude this time, but requests beyond the timeout count as lost"
            }
            Self::ReflectorDropped { .. } => {
                "send fewer messages per second, free a CPU core at the reflector, or raise net.core.rmem_max there. Part of the loss is the reflector's"
            }
            Self::NamespaceFallback { .. } => {
                "fix the problem that the warning names; or read the result as the cost of other guests on one kernel, without a kernel for each guest"
            }
            Self::LoadTargetMissed { .. } => {
                "give the site of the load more CPU, check that neph reflect answers at the target of its traffic, or lower the target. The result is valid for the load that was achieved, not for the target"
            }
            Self::LinkLate { .. } => {
                "stop other programs, so that the emulated link has a CPU core, or reduce the packet rate. The delay of these packets was longer than the emulated one"
            }
            Self::LinkLostPackets { .. } => {
                "stop other programs, so that the emulated link has a CPU core, or reduce the packet rate. Part of the loss is the lab's"
            }
            _ => "",
        }
    }
}

/// At most so many loads are named.
const LOADS: usize = 3;

impl Warning {
    /// What to do about it in experiments in which the plan generates these loads (see
    /// [`generated_load`](crate::Experiment::generated_load)): a load that is part of the experiment must not
    /// be stopped.
    pub fn advice_under(&self, loads: &[&str]) -> String {
        let is_of_load = matches!(self, Self::SenderLate { .. } | Self::CpuSaturated { .. });
        let loads_text = match loads {
            [load] if is_of_load => format!("the load {load}"),
            [first, others @ ..] if is_of_load => {
                let names: Vec<&str> = others.iter().take(LOADS - 1).copied().collect();
                let more = match others.len() - names.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "a load in each of them ({first}; {}{more})",
                    names.join("; ")
                )
            }
            _ => return self.advice().to_owned(),
        };
        format!(
            "the plan generates {loads_text}, so this is part of the measurement. If the load should not reach the prober, keep a CPU core free for neph, or use fewer or slower flows"
        )
    }

    /// Whether the client host lacked CPU time.
    pub const fn is_of_a_busy_host(&self) -> bool {
        matches!(
            self,
            Self::SenderLate { .. } | Self::CpuStolen { .. } | Self::CpuSaturated { .. }
        )
    }
}
