//! Why an agent does not carry an order out, each with the word under which it is counted.

use neph_model::{AgentName, Span};

/// An order that is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// It is not signed by the controller of this agent.
    #[error("its signature is not of this agent's controller")]
    Signature,
    /// It is for another agent.
    #[error("it is for agent {0}")]
    OtherAgent(AgentName),
    /// The time in which it may be begun is over.
    #[error("the time in which it may be carried out ended {0} ago")]
    Expired(Span),
    /// The clock offset to the controller is not measured yet.
    #[error("this host's clock is not compared with the controller's yet")]
    Clock,
    /// Too many run already.
    #[error("{0} orders run already")]
    Busy(usize),
    /// Too many captures run already.
    #[error("{0} captures run already, and an agent makes no more at a time")]
    Captures(usize),
    /// Its result is stored: it came a second time.
    #[error("it was carried out already")]
    Replay,
    /// The policy does not allow its kind of work.
    #[error(
        "this agent's policy does not allow '{0}'; add it to kinds in its policy file, and restart the agent"
    )]
    Kind(&'static str),
    /// The plan also sends ICMP echoes, and their kind is not allowed.
    #[error(
        "this agent's policy does not allow 'icmp', which the ICMP echoes of the plan need. Add it to kinds in its \
         policy file and restart the agent, or set enabled = false in [companion] of the plan"
    )]
    Echoes,
    /// More messages or bytes a second than are allowed.
    #[error("it asks for {requested}, {}", rate_text(limit, *key))]
    Rate {
        /// The requested rate or size.
        requested: String,
        /// The most.
        limit: String,
        /// The key of `agent.toml` that limits it; absent if no key does.
        key: Option<&'static str>,
    },
    /// A rate without a limit, where the policy has one: no higher limit would allow it.
    #[error("it asks for {requested}, {}", no_limit_text(key, *can_have_rate))]
    Unlimited {
        /// The requested rate.
        requested: &'static str,
        /// The key of `agent.toml` that is a limit.
        key: &'static str,
        /// Whether a plan can give such a test a rate.
        can_have_rate: bool,
    },
    /// More bytes than are left of today's.
    #[error("{}", bytes_text(*requested, *left))]
    Bytes {
        /// Bytes that it sends.
        requested: u64,
        /// Bytes that are left today.
        left: u64,
    },
    /// A budget cannot limit the traffic of another program.
    #[error(
        "iperf3 or a server of media streams would send, and no budget limits these; this agent \
         carries it out if budget.rate and budget.bytes_per_day are removed from its policy"
    )]
    Unmetered,
    /// It lasts too long.
    #[error(
        "it can last {requested}, and this agent's policy allows {limit}; shorten it, or raise longest in its \
         policy file, and restart the agent"
    )]
    Length {
        /// The longest that it lasts.
        requested: Span,
        /// The most.
        limit: Span,
    },
    /// Not at this hour.
    #[error("this agent's policy allows nothing at this hour (UTC)")]
    Hours,
    /// It reads a file of this host.
    #[error("it reads {0}, which is not among the files that this agent's policy allows")]
    File(String),
    /// It listens.
    #[error(
        "it listens at port {0}, which this agent's policy does not allow. Add it to listen in its policy file and restart \
         the agent; or change the port in the plan, and start the plan with neph run"
    )]
    Port(u16),
    /// It names a site, a load at sites or a season of a lab.
    #[error("it needs a lab, and this agent is at one host")]
    Lab,
}

fn rate_text(limit: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!(
            "and {key} of this agent's policy allows {limit}; request less, or raise it in its policy file, \
             and restart the agent"
        ),
        None => format!("and an agent allows {limit}; request less"),
    }
}

fn no_limit_text(key: &str, can_have_rate: bool) -> String {
    let rate = if can_have_rate { "set a rate, or " } else { "" };
    format!(
        "which {key} of this agent's policy does not allow; {rate}remove this key from its policy file, \
         and restart the agent"
    )
}

fn bytes_text(requested: u64, left: u64) -> String {
    let budget = "budget.bytes_per_day of this agent's policy";
    match left {
        0 => format!("{budget} is used up for today (until 00:00 UTC)"),
        _ => format!(
            "the order may send {requested} bytes, and {left} bytes are left today of {budget}"
        ),
    }
}

impl Refusal {
    /// More than every agent allows, whatever its policy.
    pub(super) const fn above_limit(requested: String, limit: String) -> Self {
        let key = None;
        Self::Rate {
            requested,
            limit,
            key,
        }
    }

    /// Whether the same order would be refused at every other time, too.
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Kind(_)
            | Self::Echoes
            | Self::Rate { .. }
            | Self::Unlimited { .. }
            | Self::Unmetered
            | Self::Length { .. }
            | Self::File(_)
            | Self::Port(_)
            | Self::Lab => true,
            Self::Signature
            | Self::OtherAgent(_)
            | Self::Expired(_)
            | Self::Clock
            | Self::Busy(_)
            | Self::Captures(_)
            | Self::Replay
            | Self::Bytes { .. }
            | Self::Hours => false,
        }
    }

    /// The word under which it is counted.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::OtherAgent(_) => "other agent",
            Self::Expired(_) => "expired",
            Self::Clock => "clock",
            Self::Busy(_) => "busy",
            Self::Captures(_) => "captures",
            Self::Replay => "replay",
            Self::Kind(_) | Self::Echoes => "kind",
            Self::Rate { .. } | Self::Unlimited { .. } => "rate",
            Self::Bytes { .. } => "bytes a day",
            Self::Unmetered => "unmetered",
            Self::Length { .. } => "length",
            Self::Hours => "hours",
            Self::File(_) => "file",
            Self::Port(_) => "port",
            Self::Lab => "lab",
        }
    }
}
