//! The table of probe kinds: which scheme asks for which kind of exchange.
//!
//! Plans and the command line read their schemes here. A new kind needs more than a line here: the
//! places are counted in docs/add-a-probe.md.

use neph_model::{ByteSize, ProbeKind};

/// One way of writing a target.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    /// What stands before `://`.
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
pub const KINDS: &[Scheme] = &[
    Scheme { name: "ws",    kind: ProbeKind::Ws,   secure: false, default_port: Some(80),  summary: "WebSocket messages on one connection" },
    Scheme { name: "wss",   kind: ProbeKind::Ws,   secure: true,  default_port: Some(443), summary: "the same over TLS" },
    Scheme { name: "http",  kind: ProbeKind::Http, secure: false, default_port: Some(80),  summary: "HTTP requests, kept alive or a connection each" },
    Scheme { name: "https", kind: ProbeKind::Http, secure: true,  default_port: Some(443), summary: "the same over TLS" },
    Scheme { name: "tcp",   kind: ProbeKind::Tcp,  secure: false, default_port: None,      summary: "framed messages on TCP; against other servers, connection attempts" },
    Scheme { name: "udp",   kind: ProbeKind::Udp,  secure: false, default_port: Some(862), summary: "STAMP packets (RFC 8762)" },
    Scheme { name: "icmp",  kind: ProbeKind::Icmp, secure: false, default_port: Some(0),   summary: "ICMP echo" },
    Scheme { name: "syn",   kind: ProbeKind::Syn,  secure: false, default_port: None,      summary: "TCP SYNs, answered by SYN-ACK or RST and never completed" },
];

/// The longest payload of a WebSocket ping (RFC 6455, section 5.5), which a server that is no
/// reflector returns as it is.
pub const LONGEST_WS_PING: usize = 125;

/// Request and reply payloads that a kind can carry: UDP and ICMP in one unfragmented-by-us
/// datagram (RFC 768: 65,535 less the IPv4 and UDP headers), TCP what a reflector takes by default.
/// A SYN carries none, so that no size is too large for it.
pub const fn most_payload(kind: ProbeKind) -> ByteSize {
    match kind {
        ProbeKind::Udp | ProbeKind::Icmp => ByteSize(65_507),
        ProbeKind::Ws | ProbeKind::Http | ProbeKind::Tcp | ProbeKind::Syn => ByteSize(64 << 20),
    }
}

/// The scheme of that name, in any case (RFC 3986, 3.1).
pub fn scheme_named(name: &str) -> Option<&'static Scheme> {
    KINDS
        .iter()
        .find(|scheme| scheme.name.eq_ignore_ascii_case(name))
}

/// `ws, wss, http ...`, for sentences.
pub(crate) fn scheme_list() -> String {
    let names: Vec<&str> = KINDS.iter().map(|scheme| scheme.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_scheme_and_one_without_tls() {
        for kind in ProbeKind::ALL {
            let mut schemes = KINDS.iter().filter(|scheme| scheme.kind == kind);
            assert!(schemes.any(|scheme| !scheme.secure), "{kind} has no scheme");
        }
    }
}
