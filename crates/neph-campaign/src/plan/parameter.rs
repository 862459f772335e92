//! The parameters that a plan may fix or vary: one row each.
//!
//! Owns how a plan writes their values, and which endpoints have them. Intervals, sizes and lengths are
//! not here: they are fields of their own in a scenario.

use std::num::NonZeroU16;
use std::str::FromStr;

use neph_model::{
    ExpectedStatus, InvalidTargetPart, IpVersion, Kilometres, Known, Parameter, ParameterName,
    Span, Target, TcpStatsSchedule, TlsVersion,
};
use neph_text::{Fault, FromNode, Nanos, Node, Port, Value};

use super::single_line_text::single_line_text;
use super::{fleet, measure};

/// A parameter that a plan may write.
#[derive(Clone, Copy, Debug)]
pub struct PlanParameter {
    /// Its key in plans.
    pub name: ParameterName,
    /// Its meaning, with its values, for the table of plans/README.md.
    pub about: &'static str,
    /// Its default, for the same table.
    pub default: &'static str,
    /// Whether an endpoint can have it.
    pub is_supported_by: fn(&Target) -> bool,
    /// Why not, if it does not fit.
    pub unsupported_reason: &'static str,
    /// Reads its value.
    pub read: fn(&Node) -> Result<Parameter, Fault>,
}

/// Every parameter.
pub const PARAMETERS: &[PlanParameter] = &[
    PlanParameter {
        name: ParameterName::CaFile,
        about: "PEM file of certificate authorities, trusted in addition to the public ones",
        default: "none",
        is_supported_by: Target::is_secure,
        unsupported_reason: "only targets over TLS have a certificate",
        read: |node| single_line_text(node).map(Parameter::CaFile),
    },
    PlanParameter {
        name: ParameterName::Circuit,
        about: "in an endpoint: the two sites of its circuit, the same name over each `network` (`\"ams-lju\"`); see [throughput in plans](../docs/throughput.md#in-plans)",
        default: "none",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: |node| single_line_text(node).map(Parameter::Circuit),
    },
    PlanParameter {
        name: ParameterName::CongestionControl,
        about: "the sender's TCP congestion control, `\"cubic\"`, `\"bbr\"`, `\"reno\"` ...",
        default: "the system's",
        is_supported_by: Target::uses_connection,
        unsupported_reason: "only TCP has congestion control",
        read: congestion_control,
    },
    PlanParameter {
        name: ParameterName::Distance,
        about: "distance to the endpoint; the report shows where a nearer endpoint is slower",
        default: "none",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: distance,
    },
    PlanParameter {
        name: ParameterName::ExpectStatus,
        about: "HTTP statuses that count as a reply: `200`, `\"2xx\"`, `\"200-204\"`, or several with commas; `\"any\"`: all statuses. Others count as errors",
        default: "\"2xx\"",
        is_supported_by: |target| target.kind().properties().has_status,
        unsupported_reason: "only http:// and https:// have an HTTP status",
        read: expect_status,
    },
    PlanParameter {
        name: ParameterName::Flows,
        about: "number of concurrent flows, each from its own source port: the scenario is a [fleet](#fleets-and-seasons). Interval and messages are per flow. 1 to 50,000, at most 100,000 messages a second; `udp://` (STAMP), `tcp://` (established connections) and `syn://` (handshakes that are never completed)",
        default: "one flow",
        is_supported_by: fleet::is_supported_by,
        unsupported_reason: "only udp://, tcp:// and syn:// carry a fleet",
        read: fleet::flows,
    },
    PlanParameter {
        name: ParameterName::FollowRedirects,
        about: "true: follow at most 20 HTTP redirects before each experiment and measure the last target; each is an event",
        default: "false",
        is_supported_by: |target| target.kind().properties().has_status,
        unsupported_reason: "only http:// and https:// redirect",
        read: |node| bool::from_node(node).map(Parameter::FollowRedirects),
    },
    PlanParameter {
        name: ParameterName::Site,
        about: "the lab site of the prober",
        default: "the lab's `prober`",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: |node| single_line_text(node).map(Parameter::Site),
    },
    PlanParameter {
        name: ParameterName::Insecure,
        about: "`true`: certificates are not verified",
        default: "false",
        is_supported_by: Target::is_secure,
        unsupported_reason: "only targets over TLS have a certificate",
        read: |node| bool::from_node(node).map(Parameter::Insecure),
    },
    PlanParameter {
        name: ParameterName::IpVersion,
        about: "4 or 6",
        default: "the resolver's first",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: ip_version,
    },
    PlanParameter {
        name: ParameterName::KeyFile,
        about: "file with the key of authenticated STAMP, readable by its owner only (mode 0600)",
        default: "none",
        is_supported_by: |target| target.kind().properties().has_key,
        unsupported_reason: "only udp:// (STAMP) is authenticated by a key",
        read: |node| single_line_text(node).map(Parameter::KeyFile),
    },
    PlanParameter {
        name: ParameterName::Measure,
        about: "`\"messages\"`, `\"tcp throughput\"`, `\"udp throughput 100Mbit/s\"` (or `max`), `\"udp rr\"`, `\"tcp rr\"`, `\"tcp crr\"`, `\"media 3 clients\"`. Optional at the end: `4 streams`; for throughput also `up`, `down` or `both`. All except `\"messages\"` need a `duration` in whole seconds, at least 1 s. See [throughput in plans](../docs/throughput.md#in-plans)",
        default: "`\"messages\"`",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: measure::measure,
    },
    PlanParameter {
        name: ParameterName::MediaPort,
        about: "port of media streams at the endpoint's host; a `[[site]]` with a `reflector` uses its own port",
        default: "8554",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: measure::media_port,
    },
    PlanParameter {
        name: ParameterName::Network,
        about: "in an endpoint: the underlay or overlay of its path; the report compares each with the plan's first, per circuit",
        default: "none",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: |node| single_line_text(node).map(Parameter::Network),
    },
    PlanParameter {
        name: ParameterName::NewConnection,
        about: "`true`: a connection per message",
        default: "false",
        is_supported_by: Target::uses_connection,
        unsupported_reason: "only TCP has connections",
        read: |node| bool::from_node(node).map(Parameter::NewConnection),
    },
    PlanParameter {
        name: ParameterName::Pin,
        about: "SHA-256 fingerprint of the only accepted certificate, with any issuer, name and validity; several with commas. Replaces `ca_file` and `insecure`",
        default: "none",
        is_supported_by: Target::is_secure,
        unsupported_reason: "only targets over TLS have a certificate",
        read: pin,
    },
    PlanParameter {
        name: ParameterName::RateCap,
        about: "SYNs per second of a fleet to its endpoint; higher rates may look like an attack",
        default: "200",
        is_supported_by: |target| target.kind().properties().may_look_like_attack,
        unsupported_reason: "only syn:// may be taken for an attack",
        read: fleet::rate_cap,
    },
    PlanParameter {
        name: ParameterName::FlowLifetime,
        about: "flow lifetime in a fleet: afterwards the slot uses another source port",
        default: "never replaced",
        is_supported_by: fleet::is_supported_by,
        unsupported_reason: "only udp://, tcp:// and syn:// carry a fleet",
        read: fleet::lifetime,
    },
    PlanParameter {
        name: ParameterName::Season,
        about: "in an endpoint only: names of the seasons in which it is measured",
        default: "all of them",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: |node| single_line_text(node).map(Parameter::Season),
    },
    PlanParameter {
        name: ParameterName::SourcePort,
        about: "the flow's local port, or the first of a fleet's",
        default: "the kernel's choice",
        is_supported_by: |target| target.kind().has_ports(),
        unsupported_reason: "ICMP knows no ports",
        read: port,
    },
    PlanParameter {
        name: ParameterName::Spin,
        about: "how long the sender spins before a send, at most 1 ms",
        default: "the probe's",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: spin,
    },
    PlanParameter {
        name: ParameterName::Stress,
        about: "[background load](#background-load) at sites of the lab",
        default: "no load",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: |node| crate::stress::read(node).map(Parameter::Stress),
    },
    PlanParameter {
        name: ParameterName::TcpStats,
        about: "when `TCP_INFO` of the main flow is read: `\"message\"` (at each request and reply) or an interval of at least 1 ms, `\"100ms\"`; [the series](../docs/schema.md#tcp-statistics)",
        default: "not read",
        is_supported_by: Target::uses_connection,
        unsupported_reason: "only TCP has TCP statistics",
        read: tcp_stats,
    },
    PlanParameter {
        name: ParameterName::ThroughputPort,
        about: "port of throughput tests at the endpoint's host; a `[[site]]` with a `reflector` uses its own port",
        default: "7420",
        is_supported_by: |_| true,
        unsupported_reason: "",
        read: measure::throughput_port,
    },
    PlanParameter {
        name: ParameterName::Tls,
        about: "`\"1.2\"` or `\"1.3\"` and no other",
        default: "the best of both",
        is_supported_by: Target::is_secure,
        unsupported_reason: "only wss:// and https:// carry TLS",
        read: tls,
    },
];

fn pin(node: &Node) -> Result<Parameter, Fault> {
    let pins = String::from_node(node)?.parse();
    pins.map(Parameter::Pin).map_err(|error| {
        let error: neph_model::InvalidFingerprint = error;
        Fault::new(error.to_string(), "copy what neph reflect --tls prints")
    })
}

fn port(node: &Node) -> Result<Parameter, Fault> {
    let Port(port) = Port::from_node(node)?;
    let port = NonZeroU16::new(port).expect("port 0 is refused");
    Ok(Parameter::SourcePort(port))
}

/// `"message"`, or an interval of a millisecond at least.
fn tcp_stats(node: &Node) -> Result<Parameter, Fault> {
    if let Value::Text(text) = &node.value
        && text == TcpStatsSchedule::MESSAGE
    {
        return Ok(Parameter::TcpStats(TcpStatsSchedule::Message));
    }
    let interval = Nanos::from_node(node).map(|Nanos(nanos)| Span::from_nanos(nanos));
    match interval {
        Ok(interval) if interval >= TcpStatsSchedule::MIN_INTERVAL => {
            Ok(Parameter::TcpStats(TcpStatsSchedule::Every(interval)))
        }
        _ => Err(Fault::new(
            "this does not say when TCP statistics are read",
            "write \"message\", or an interval of at least \"1ms\"",
        )),
    }
}

/// At most 1 ms: a spin as long as the interval would burn a core.
fn spin(node: &Node) -> Result<Parameter, Fault> {
    match Nanos::from_node(node)? {
        Nanos(nanos @ 0..=1_000_000) => Ok(Parameter::Spin(Span::from_nanos(nanos))),
        _ => Err(Fault::new("this spin is too long", "write at most \"1ms\"")),
    }
}

/// `200`, `"2xx"`, `"200-204,304"` or `"any"`.
fn expect_status(node: &Node) -> Result<Parameter, Fault> {
    let text = match node.value {
        Value::Integer(status) => status.to_string(),
        _ => String::from_node(node)?,
    };
    let expected = ExpectedStatus::from_str(&text);
    expected.map(Parameter::ExpectStatus).map_err(|_| {
        Fault::new(
            format!("\"{text}\" is no HTTP status"),
            "write 200, \"2xx\", \"200-204\", several with commas, or \"any\"",
        )
    })
}

fn distance(node: &Node) -> Result<Parameter, Fault> {
    let distance = f64::from_node(node).ok().and_then(Kilometres::new);
    distance.map(Parameter::Distance).ok_or_else(|| {
        Fault::new(
            "this is no distance on the Earth in kilometres",
            "write a number from 0 to 20040",
        )
    })
}

fn ip_version(node: &Node) -> Result<Parameter, Fault> {
    match node.value {
        Value::Integer(4) => Ok(Parameter::IpVersion(IpVersion::V4)),
        Value::Integer(6) => Ok(Parameter::IpVersion(IpVersion::V6)),
        _ => Err(Fault::new("this is no version of IP", "write 4 or 6")),
    }
}

/// `"1.3"`, or 1.3 without quotes, which everybody writes once.
fn tls(node: &Node) -> Result<Parameter, Fault> {
    let written = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Real(number) => number.to_string(),
        _ => String::new(),
    };
    let version = TlsVersion::from_str(&written).map(Known::Known);
    version.map(Parameter::Tls).map_err(|_| {
        Fault::new(
            "this is no version of TLS that can be forced",
            "write \"1.2\" or \"1.3\"; without TLS, write ws:// or http:// in the url",
        )
    })
}

/// The kernel's own names, `TCP_CA_NAME_MAX` is 16 with the ending zero.
fn congestion_control(node: &Node) -> Result<Parameter, Fault> {
    let name = String::from_node(node)?;
    let is_valid = (1..16).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_valid {
        return Ok(Parameter::CongestionControl(name));
    }
    let message = format!("\"{name}\" is no congestion control");
    Err(Fault::new(
        message,
        "write for example \"cubic\", \"bbr\" or \"reno\"",
    ))
}

/// A target, without the credentials that a plan must not have.
pub(crate) fn target(text: &str) -> Result<Target, Fault> {
    let target = Target::parse(text).map_err(|error| {
        let message = format!("target '{}': {}", error.text, error.mistake.message);
        Fault::new(message, error.mistake.remedy)
    })?;
    if target.has_credentials() {
        let message =
            "a plan takes no user names and passwords, since it is stored with the results";
        return Err(Fault::new(message, "write only host and port"));
    }
    Ok(target)
}

/// A mistake in a part of a target.
pub(crate) fn target_fault(mistake: InvalidTargetPart) -> Fault {
    Fault::new(mistake.message, mistake.remedy)
}
