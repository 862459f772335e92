//! The probe parameters that a plan may fix or vary: one row each.
//!
//! Intervals, sizes and lengths are not here: they have types of their own in a scenario.

use neph_model::{ExpectedStatus, ProbeKind, Span};
use neph_text::{Fault, Nanos, Node, Port, Take, Value, is_hidden};

use super::{Target, fleet, trust};

/// A parameter of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its key in plans and in [`neph_model::Scenario::parameters`].
    pub name: &'static str,
    /// What it does, for documentation.
    pub about: &'static str,
    /// Whether an endpoint can have it.
    pub fits: fn(&Target) -> bool,
    /// Why not, if it does not fit.
    pub unfit: &'static str,
    /// Its value as the scenario keeps it; times as [`Span`] displays them.
    pub read: fn(&Node) -> Result<String, Fault>,
}

/// Every parameter.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "ca_file",
        about: "a file (PEM) with certificate authorities that are trusted beside the public ones",
        fits: |target| target.secure,
        unfit: "only wss:// and https:// have a certificate",
        read: word,
    },
    Parameter {
        name: "congestion",
        about: "the sender's TCP congestion control: cubic, bbr, reno or another the kernel has",
        fits: Target::on_tcp,
        unfit: "only TCP has congestion control",
        read: algorithm,
    },
    Parameter {
        name: "distance_km",
        about: "how far the endpoint is on the map, in kilometres: compared with what is measured",
        fits: |_| true,
        unfit: "",
        read: distance,
    },
    Parameter {
        name: "expect_status",
        about: "the HTTP statuses that count as a reply, as \"2xx,304\"; others count as errors (2xx if absent)",
        fits: |target| matches!(target.probe, ProbeKind::Http),
        unfit: "only http:// and https:// have a status",
        read: expect_status,
    },
    Parameter {
        name: "flows",
        about: "how many flows ask at a time, each from a source port of its own: a fleet",
        fits: fleet::fits,
        unfit: "only udp://, tcp:// and syn:// carry a fleet",
        read: fleet::flows,
    },
    Parameter {
        name: "follow",
        about: "true: HTTP redirects are followed before each experiment; the last target is measured",
        fits: |target| matches!(target.probe, ProbeKind::Http),
        unfit: "only http:// and https:// redirect",
        read: switch,
    },
    Parameter {
        name: "from",
        about: "the lab site that the prober runs in, instead of the lab's prober site",
        fits: |_| true,
        unfit: "",
        read: site,
    },
    Parameter {
        name: "insecure",
        about: "true: the server's certificate is not verified",
        fits: |target| target.secure,
        unfit: "only wss:// and https:// have a certificate",
        read: switch,
    },
    Parameter {
        name: "ip_version",
        about: "4 or 6: which of a host's addresses is taken",
        fits: |_| true,
        unfit: "",
        read: ip_version,
    },
    Parameter {
        name: "key_file",
        about: "a file with the key of authenticated STAMP (HMAC-SHA-256)",
        fits: |target| matches!(target.probe, ProbeKind::Udp),
        unfit: "only udp:// (STAMP) is authenticated by a key",
        read: word,
    },
    Parameter {
        name: "new_connection",
        about: "true: each message has a connection of its own, as a REST client without keep-alive",
        fits: Target::on_tcp,
        unfit: "only TCP has connections",
        read: switch,
    },
    Parameter {
        name: "pin",
        about: "the SHA-256 fingerprint of the only certificate that is accepted, by any issuer; several with commas",
        fits: |target| target.secure,
        unfit: "only wss:// and https:// have a certificate",
        read: pin,
    },
    Parameter {
        name: "rate_cap",
        about: "how many SYNs a second a fleet may send, where more than 200 are wanted",
        fits: |target| matches!(target.probe, ProbeKind::Syn),
        unfit: "only syn:// may be taken for an attack",
        read: fleet::rate_cap,
    },
    Parameter {
        name: "renewal",
        about: "how long a flow of a fleet lives before another source port takes its place",
        fits: fleet::fits,
        unfit: "only udp://, tcp:// and syn:// carry a fleet",
        read: fleet::renewal,
    },
    Parameter {
        name: "season",
        about: "the seasons in which it is measured, by name; absent: in all of them",
        fits: |_| true,
        unfit: "",
        read: word,
    },
    Parameter {
        name: "source_port",
        about: "the local port of the flow, or the first of a fleet's; free choice of the kernel if absent",
        fits: |target| !matches!(target.probe, ProbeKind::Icmp),
        unfit: "ICMP knows no ports",
        read: port,
    },
    Parameter {
        name: "spin",
        about: "how long the sender spins before a send: longer is more punctual and costs CPU",
        fits: |_| true,
        unfit: "",
        read: spin,
    },
    Parameter {
        name: "stress",
        about: "the load at sites of the lab meanwhile, such as \"vm1 80%\", or { name = \"busy\", load = \"vm1 80%\" }, whose labels are its name; \"none\" for none",
        fits: |_| true,
        unfit: "",
        read: crate::stress::read,
    },
    Parameter {
        name: "tcp_stats",
        about: "when all that the kernel reports of the connection (TCP_INFO) is read: \"message\" (sent, and answered), or an interval such as \"100ms\"",
        fits: Target::on_tcp,
        unfit: "only TCP has TCP statistics",
        read: tcp_stats,
    },
    Parameter {
        name: "tls",
        about: "1.2 or 1.3: that version of TLS and no other",
        fits: |target| target.secure,
        unfit: "only wss:// and https:// carry TLS",
        read: tls,
    },
];

/// The parameter of that name.
pub fn parameter(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

fn switch(node: &Node) -> Result<String, Fault> {
    bool::take(node).map(|on| on.to_string())
}

fn pin(node: &Node) -> Result<String, Fault> {
    let text = String::take(node)?;
    let pins = trust::pins(&text).map_err(|error| {
        let (what, remedy) = (error.to_string(), "copy what neph reflect --tls prints");
        Fault::new(what, remedy)
    })?;
    Ok(trust::written(&pins))
}

fn port(node: &Node) -> Result<String, Fault> {
    Port::take(node).map(|Port(port)| port.to_string())
}

/// `"message"`, or an interval of a millisecond at least.
fn tcp_stats(node: &Node) -> Result<String, Fault> {
    if let Value::Text(text) = &node.value
        && text == "message"
    {
        return Ok(text.clone());
    }
    match Nanos::take(node) {
        Ok(Nanos(nanos)) if nanos >= 1_000_000 => Ok(Span::from_nanos(nanos).to_string()),
        _ => Err(Fault::new(
            "this does not say when TCP statistics are read",
            "write \"message\", or an interval of at least \"1ms\"",
        )),
    }
}

/// At most 1 ms: a spin as long as the interval would burn a core.
fn spin(node: &Node) -> Result<String, Fault> {
    match Nanos::take(node)? {
        Nanos(nanos @ 0..=1_000_000) => Ok(Span::from_nanos(nanos).to_string()),
        _ => Err(Fault::new("this spin is too long", "write at most \"1ms\"")),
    }
}

/// `200`, `"2xx"`, `"200-204,304"` or `"any"`.
fn expect_status(node: &Node) -> Result<String, Fault> {
    let text = match node.value {
        Value::Integer(status) => status.to_string(),
        _ => String::take(node)?,
    };
    let expected: Result<ExpectedStatus, _> = text.parse();
    expected.map(|expected| expected.to_string()).map_err(|_| {
        Fault::new(
            format!("\"{text}\" is no HTTP status"),
            "write 200, \"2xx\", \"200-204\", several with commas, or \"any\"",
        )
    })
}

/// Kilometres up to the other end of the Earth, as the plan writes them.
fn distance(node: &Node) -> Result<String, Fault> {
    let km = f64::take(node)
        .ok()
        .filter(|km| (0.0..=20_040.0).contains(km));
    km.map(|km| km.to_string()).ok_or_else(|| {
        Fault::new(
            "this is no distance on the Earth in kilometres",
            "write a number from 0 to 20040",
        )
    })
}

fn ip_version(node: &Node) -> Result<String, Fault> {
    match node.value {
        Value::Integer(version @ (4 | 6)) => Ok(version.to_string()),
        _ => Err(Fault::new("this is no version of IP", "write 4 or 6")),
    }
}

/// `"1.3"`, or 1.3 without quotes, which everybody writes once.
fn tls(node: &Node) -> Result<String, Fault> {
    let written = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Real(number) => number.to_string(),
        _ => String::new(),
    };
    match written.as_str() {
        "1.2" | "1.3" => Ok(written),
        _ => Err(Fault::new(
            "this is no version of TLS that can be forced",
            "write \"1.2\" or \"1.3\"; without TLS, write ws:// or http:// in the url",
        )),
    }
}

/// The kernel's own names, `TCP_CA_NAME_MAX` is 16 with the ending zero.
fn algorithm(node: &Node) -> Result<String, Fault> {
    let name = String::take(node)?;
    let fine = (1..16).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if fine {
        return Ok(name);
    }
    let what = format!("\"{name}\" is no congestion control");
    Err(Fault::new(
        what,
        "write for example \"cubic\", \"bbr\" or \"reno\"",
    ))
}

fn site(node: &Node) -> Result<String, Fault> {
    word(node)
}

/// A text of one line.
pub(crate) fn word(node: &Node) -> Result<String, Fault> {
    let text = String::take(node)?;
    if text.trim().is_empty() {
        return Err(Fault::new("this text is empty", "write a name"));
    }
    if text.contains(is_hidden) || text.len() > 200 {
        let what =
            "this text has line breaks, control or invisible characters, or more than 200 bytes";
        return Err(Fault::new(what, "write one short line"));
    }
    Ok(text)
}
