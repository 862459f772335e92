//! The schemes of targets: which scheme means which kind of probe.
//!
//! Plans and the command line read their schemes here.

use crate::ProbeKind;

/// One way of writing a target.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The text before `://`.
    pub name: &'static str,
    /// The kind of exchange.
    pub kind: ProbeKind,
    /// Whether it runs over TLS.
    pub secure: bool,
    /// The port where none is written; `None` where one must be.
    pub default_port: Option<u16>,
    /// In a few words, for help texts.
    pub summary: &'static str,
}

/// Every scheme.
#[rustfmt::skip]
pub const SCHEMES: &[Scheme] = &[
    Scheme { name: "ws",    kind: ProbeKind::Ws,   secure: false, default_port: Some(80),  summary: "WebSocket messages on one connection" },
    Scheme { name: "wss",   kind: ProbeKind::Ws,   secure: true,  default_port: Some(443), summary: "the same over TLS" },
    Scheme { name: "http",  kind: ProbeKind::Http, secure: false, default_port: Some(80),  summary: "HTTP requests, kept alive or a connection each" },
    Scheme { name: "https", kind: ProbeKind::Http, secure: true,  default_port: Some(443), summary: "the same over TLS" },
    Scheme { name: "tcp",   kind: ProbeKind::Tcp,  secure: false, default_port: None,      summary: "framed messages on TCP; against other servers, connection attempts" },
    Scheme { name: "udp",   kind: ProbeKind::Udp,  secure: false, default_port: Some(862), summary: "STAMP packets (RFC 8762)" },
    Scheme { name: "icmp",  kind: ProbeKind::Icmp, secure: false, default_port: None,      summary: "ICMP echo" },
    Scheme { name: "syn",   kind: ProbeKind::Syn,  secure: false, default_port: None,      summary: "TCP SYNs, answered by SYN-ACK or RST and never completed" },
    Scheme { name: "dns",   kind: ProbeKind::Dns,  secure: false, default_port: Some(53),  summary: "DNS queries over UDP: resolver/name?type=A" },
    Scheme { name: "dns-tcp", kind: ProbeKind::DnsTcp, secure: false, default_port: Some(53), summary: "DNS queries over TCP" },
    Scheme { name: "mqtt",  kind: ProbeKind::Mqtt, secure: false, default_port: Some(1883), summary: "MQTT 3.1.1 PINGREQ and PINGRESP" },
    Scheme { name: "mqtts", kind: ProbeKind::Mqtt, secure: true,  default_port: Some(8883), summary: "the same over TLS" },
];

impl Scheme {
    /// The scheme of that name, in any case (RFC 3986, 3.1).
    pub fn from_name(name: &str) -> Option<&'static Self> {
        let mut schemes = SCHEMES.iter();
        schemes.find(|scheme| scheme.name.eq_ignore_ascii_case(name))
    }

    /// `ws, wss, http ...`, for sentences.
    pub fn list() -> String {
        let names: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        names.join(", ")
    }
}
