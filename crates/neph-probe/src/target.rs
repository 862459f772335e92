//! What a probe is aimed at: `scheme://host:port/path`.
//!
//! Owns the text and its meaning. Its host is [`crate::host`]'s, its addresses are
//! [`crate::resolver`]'s. Opens nothing.

use std::fmt;
use std::net::IpAddr;

use neph_model::ProbeKind;

use crate::credentials::{Credentials, without_credentials};
use crate::host::{ascii_host, bare, bracketed};
use crate::kinds::{self, Scheme};
use crate::target_error::TargetError;

/// What an address is that stands for many hosts, in words; `None` of any other.
pub fn of_many_hosts(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address of a network"),
        any if any.is_multicast() => Some("a multicast address"),
        _ => None,
    }
}

/// A target whose text made sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    scheme: &'static Scheme,
    host: String,
    port: u16,
    path: String,
    credentials: Option<Credentials>,
}

impl Target {
    /// ICMP echo to a host: a name, or an address with or without brackets.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn icmp(host: &str) -> Result<Self, TargetError> {
        Self::parse(&format!("icmp://{}", bracketed(host)))
    }

    /// Our framing on TCP, at a port of a host.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn tcp(host: &str, port: u16) -> Result<Self, TargetError> {
        Self::parse(&format!("tcp://{}:{port}", bracketed(host)))
    }

    /// Reads `scheme://host[:port][/path]`.
    ///
    /// # Errors
    /// One sentence that quotes the target and says what to write instead.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let whole = || without_credentials(text);
        let (name, rest) = text.split_once("://").unwrap_or(("", text));
        let scheme = kinds::scheme_named(name).ok_or_else(|| TargetError::Scheme {
            text: whole(),
            scheme: name.to_owned(),
        })?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        let (host, port) = split_authority(authority);
        let host = ascii_host(host).ok_or_else(|| TargetError::Host { text: whole() })?;
        let bad_port = |what: String| TargetError::Port {
            text: whole(),
            what,
            scheme: scheme.name,
        };
        let superfluous = |what, part: String| TargetError::Superfluous {
            text: whole(),
            scheme: scheme.name,
            what,
            part,
        };
        if let (Some(digits), ProbeKind::Icmp) = (port, scheme.kind) {
            return Err(superfluous("ports", format!(":{digits}")));
        }
        if user.is_some() && scheme.kind != ProbeKind::Http {
            return Err(superfluous("user names", "the part before @".to_owned()));
        }
        let has_paths = matches!(scheme.kind, ProbeKind::Ws | ProbeKind::Http);
        if !has_paths && !path.trim_start_matches('/').is_empty() {
            return Err(superfluous("paths", path.to_owned()));
        }
        let port = match (port, scheme.default_port) {
            (Some(digits), _) => match digits.parse::<u16>() {
                Ok(port) if port > 0 => port,
                _ => return Err(bad_port(format!("'{digits}' is no port (1 to 65535)"))),
            },
            (None, Some(port)) => port,
            (None, None) => return Err(bad_port("the port is missing".to_owned())),
        };
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TargetError::Path { text: whole() });
        }
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Ok(Self {
            scheme,
            host,
            port,
            path,
            credentials: user.map(Credentials::read),
        })
    }

    /// The kind of exchange its scheme stands for.
    pub const fn kind(&self) -> ProbeKind {
        self.scheme.kind
    }
    /// Whether its scheme asks for TLS.
    pub const fn is_secure(&self) -> bool {
        self.scheme.secure
    }
    /// Name or address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }
    /// The port; 0 for ICMP.
    pub const fn port(&self) -> u16 {
        self.port
    }
    /// Path and query, beginning with a slash.
    pub fn path(&self) -> &str {
        &self.path
    }
    /// The host as certificates name it: without the zone of a link-local address.
    pub fn certificate_name(&self) -> &str {
        bare(&self.host)
    }
    /// With the credentials of `other`, if it is at the same scheme, host and port.
    pub(crate) fn with_credentials_of(mut self, other: &Self) -> Self {
        let origin = |target: &Self| (target.scheme.name, target.host.clone(), target.port);
        if self.credentials.is_none() && origin(&self) == origin(other) {
            self.credentials.clone_from(&other.credentials);
        }
        self
    }
    /// The value of the Authorization header, if the URL had credentials.
    pub(crate) fn authorization(&self) -> Option<String> {
        let credentials = self.credentials.as_ref()?;
        Some(credentials.header())
    }
    /// What a Host header says: the port only where it is not the scheme's own, and no zone, which
    /// means nothing to another host (RFC 6874, section 3).
    pub fn host_header(&self) -> String {
        let host = bracketed(bare(&self.host));
        match self.scheme.default_port {
            Some(port) if port == self.port => host,
            _ => format!("{host}:{}", self.port),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name, bracketed(&self.host))?;
        if self.port != 0 {
            write!(f, ":{}", self.port)?;
        }
        if self.path == "/" {
            Ok(())
        } else {
            f.write_str(&self.path)
        }
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`; a bare IPv6 address has more than one colon.
fn split_authority(authority: &str) -> (&str, Option<&str>) {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').unwrap_or((rest, ""));
        return (host, after.strip_prefix(':'));
    }
    match authority.split_once(':') {
        Some((_, more)) if more.contains(':') => (authority, None),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::Strategy;

    use super::*;
    use crate::KINDS;

    #[test]
    fn a_target_reads_back_as_it_was_meant() {
        for (text, shown) in [
            ("ws://h:8080/a?b=1", "ws://h:8080/a?b=1"),
            ("https://h", "https://h:443"),
            ("tcp://[::1]:9", "tcp://[::1]:9"),
            ("icmp://10.0.0.1", "icmp://10.0.0.1"),
            ("udp://h", "udp://h:862"),
            ("HTTP://h", "http://h:80"),
            (
                "https://b\u{fc}cher.example",
                "https://xn--bcher-kva.example:443",
            ),
            ("icmp://[fe80::1%eth0]", "icmp://[fe80::1%eth0]"),
            ("udp://[fe80::1%25eth0]:9", "udp://[fe80::1%eth0]:9"),
            ("https://me:secret@h/", "https://h:443"),
        ] {
            assert_eq!(Target::parse(text).expect(text).to_string(), shown);
        }
        let target = Target::parse("http://h:8080?x").expect("a query may follow the port");
        assert_eq!(
            (target.path(), target.host_header().as_str()),
            ("/?x", "h:8080")
        );
    }

    #[test]
    fn a_bad_target_is_quoted_with_a_remedy() {
        for (text, part) in [
            ("ftp://h", "scheme 'ftp' is not known; use one of ws, wss"),
            ("ws://:80", "has no host"),
            (
                "tcp://h",
                "the port is missing; write it as tcp://host:port",
            ),
            ("udp://h:9191/path", "udp has no paths; drop '/path'"),
            ("syn://h:80?x", "syn has no paths; drop '?x'"),
            ("icmp://h:80", "icmp has no ports; drop ':80'"),
            ("icmp://[::1]:80", "icmp has no ports; drop ':80'"),
            ("ws://h:0", "'0' is no port"),
            ("ws://h:99999", "'99999' is no port"),
            ("http://h/a b", "percent-encode"),
            ("http://h/\u{fc}", "percent-encode"),
            ("ws://a\u{7f}b.example", "has no host"),
            ("udp://me:secret@h", "udp has no user names"),
        ] {
            let told = Target::parse(text).expect_err(text).to_string();
            let quoted = without_credentials(text);
            assert!(told.contains(part) && told.contains(&quoted), "{told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_form_of_a_target_reads_back_as_itself(
            scheme in 0..KINDS.len(),
            host in proptest::prop_oneof![
                "[a-z][a-z0-9-]{0,20}(\\.[a-z]{1,5}){0,2}",
                proptest::prelude::any::<std::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
                proptest::prelude::any::<std::net::Ipv6Addr>().prop_map(|ip| format!("[{ip}]")),
                (proptest::prelude::any::<u64>(), "[a-z][a-z0-9.]{0,9}")
                    .prop_map(|(low, zone)| format!("[fe80::{:x}%{zone}]", low & 0xffff)),
            ],
            port in 1_u16..,
            path in "(/[a-z0-9]{0,5}){0,3}(\\?[a-z]=[0-9])?",
        ) {
            let scheme = &KINDS[scheme];
            let port = if scheme.kind == ProbeKind::Icmp { String::new() } else { format!(":{port}") };
            let has_path = matches!(scheme.kind, ProbeKind::Ws | ProbeKind::Http);
            let path = if has_path { path } else { String::new() };
            let text = format!("{}://{host}{port}{path}", scheme.name);
            let target = Target::parse(&text).expect(&text);
            let shown = target.to_string();
            proptest::prop_assert_eq!(Target::parse(&shown).expect(&shown), target.clone());
            let again = Target::icmp(target.host()).expect("its host is one");
            proptest::prop_assert_eq!(again.host(), target.host());
        }
    }
}
