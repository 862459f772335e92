//! What to do about each warning.

use super::Warning;

impl Warning {
    /// What to do about it.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::SenderLate { .. } => {
                "use a longer interval, free a core, or give neph CAP_SYS_NICE so that it may use real-time priority"
            }
            Self::CpuStolen { .. } => {
                "repeat on a machine with dedicated cores, or add blocks so that the median outlives the bursts"
            }
            Self::CpuSaturated { .. } => "stop other programs, or use fewer or slower flows",
            Self::ClockStepped { .. } => {
                "let the clock be slewed, not stepped (chrony: makestep only at start); wall-clock times around the step are unsafe"
            }
            Self::StampsMissing { .. } => {
                "messages that one call reads together have no stamp of their own, and some interfaces and proxies give none: read the merged stages as one"
            }
            Self::Reconnected { .. } => {
                "see the events for the reason; a firewall that ends long connections is a common one"
            }
            Self::UnexpectedAnswers { .. } => {
                "look at what answers there; where these answers are the expected ones, say so (HTTP: expect_status in the plan, --expect-status)"
            }
            Self::NotSentHere { fault, .. } => fault.remedy(),
            Self::SeveralBackends { .. } => {
                "measure each machine at an address of its own; behind a balancer no clock offset and no one-way delay is estimated"
            }
            Self::AddressChanged { .. } => {
                "write the address instead of the name to measure one machine; experiments at different addresses are kept apart in the report"
            }
            Self::FewMessages { .. } => "measure longer: p99 needs 299 messages, p99.9 needs 2995",
            Self::SizesNotApplied { .. } => {
                "run neph reflect at the endpoint; else a ws:// request carries at most 125 bytes and comes back as it is, http:// gets what is there, and tcp:// only connects"
            }
            Self::EchoMissing { .. } => {
                "mend the reason (the events tell each), or switch it off in the plan: [companion] enabled = false"
            }
            Self::DroppedHere { .. } => {
                "use fewer flows or a longer interval, or, without root, raise net.core.rmem_default and net.core.rmem_max: losses of this experiment are partly our own"
            }
            Self::MessagesRefused { .. } => {
                "ask for fewer flows or at a longer interval, or start neph reflect with a higher --max-rate: losses of this experiment are partly the reflector's own"
            }
            Self::ConnectionsRefused { .. } => {
                "ask for fewer flows, or start neph reflect with a higher --max-connections-per-peer and --max-connections"
            }
            Self::ReflectorSlow { .. } => {
                "free a core at the reflector, or ask it for fewer messages a second: round trips leave out how long requests stayed there, but what stayed longer than the timeout is among the losses of this experiment"
            }
            Self::ReflectorDropped { .. } => {
                "ask for fewer messages a second, free a core at the reflector, or, where it runs without root, raise net.core.rmem_max there: losses of this experiment are partly the reflector's own"
            }
            Self::GuestsStoodIn { .. }
            | Self::LoadNotHeld { .. }
            | Self::LinkLate { .. }
            | Self::LinkBroke { .. } => self.advice_on_the_lab(),
        }
    }

    /// What to do about the lab that it was measured in.
    const fn advice_on_the_lab(&self) -> &'static str {
        match self {
            Self::GuestsStoodIn { .. } => {
                "mend the reason, or read it as what neighbours cost and not as what a kernel of a guest's own does: there was one kernel"
            }
            Self::LoadNotHeld { .. } => {
                "read it as measured beside what the load did, not beside what its scenario says; give the load's site the CPU that it asks for, see that neph reflect answers where its traffic goes, or ask for less"
            }
            Self::LinkLate { .. } => {
                "lower the rate through the lab's link, or free a core: the emulated delay was exceeded"
            }
            Self::LinkBroke { .. } => {
                "lower the rate through the lab's link, or free a core: losses of this experiment are partly the lab's own"
            }
            _ => "",
        }
    }
}

/// So many loads are named in an advice.
const LOADS: usize = 3;

impl Warning {
    /// What to do about it in experiments in which the plan itself makes these loads (and did, see
    /// [`load_made`](crate::Experiment::load_made)), each in one or more of them: what is part of an
    /// experiment is not to be stopped.
    pub fn advice_under(&self, loads: &[&str]) -> String {
        let is_of_load = matches!(self, Self::SenderLate { .. } | Self::CpuSaturated { .. });
        let made = match loads {
            [load] if is_of_load => format!("the load {load}"),
            [first, rest @ ..] if is_of_load => {
                let named: Vec<&str> = rest.iter().take(LOADS - 1).copied().collect();
                let more = match rest.len() - named.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "a load in each of them ({first}; {}{more})",
                    named.join("; ")
                )
            }
            _ => return self.advice().to_owned(),
        };
        format!(
            "the plan itself makes {made}, so this is part of what is measured; where the load is not meant to reach the prober, keep a core free for neph, or use fewer or slower flows"
        )
    }

    /// Whether it says that the host was short of CPU: busy itself, or robbed by its hypervisor.
    pub const fn is_of_a_busy_host(&self) -> bool {
        matches!(
            self,
            Self::SenderLate { .. } | Self::CpuStolen { .. } | Self::CpuSaturated { .. }
        )
    }
}
