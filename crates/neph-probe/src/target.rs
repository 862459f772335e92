//! What a probe is aimed at: `scheme://host:port/path`.
//!
//! Owns the text and its meaning, and finding the address. Opens nothing.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use neph_model::ProbeKind;

use crate::kinds::{self, Scheme};

/// What an address is that stands for many hosts, in words; `None` of any other.
pub fn of_many_hosts(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(v4) if v4.is_broadcast() => Some("the broadcast address of a network"),
        any if any.is_multicast() => Some("a multicast address"),
        _ => None,
    }
}

/// Which version of the internet protocol to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// Whichever the resolver names first.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// A target that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No such scheme.
    #[error(
        "target '{text}': scheme '{scheme}' is not known; use one of {}",
        kinds::scheme_list()
    )]
    Scheme {
        /// The whole target.
        text: String,
        /// Its scheme.
        scheme: String,
    },
    /// There is no host.
    #[error("target '{text}' has no host; write it as scheme://host:port/path")]
    Host {
        /// The whole target.
        text: String,
    },
    /// The port is missing or no number from 1 to 65535.
    #[error("target '{text}': {what}; write it as {scheme}://host:port")]
    Port {
        /// The whole target.
        text: String,
        /// What is wrong with the port.
        what: String,
        /// Its scheme.
        scheme: &'static str,
    },
    /// The path has characters that a request line cannot carry.
    #[error("target '{text}': the path has a space or control character; percent-encode it")]
    Path {
        /// The whole target.
        text: String,
    },
    /// It has a part that its scheme knows nothing of.
    #[error("target '{text}': {scheme} has no {what}; drop '{part}'")]
    Superfluous {
        /// The whole target.
        text: String,
        /// Its scheme.
        scheme: &'static str,
        /// What the part would be.
        what: &'static str,
        /// The part.
        part: String,
    },
    /// The name has no address.
    #[error(
        "target '{host}' cannot be resolved{version}: {reason}; check the name, or give an address"
    )]
    Unresolved {
        /// The name.
        host: String,
        /// ` to IPv4` or ` to IPv6` where one was demanded.
        version: &'static str,
        /// What the resolver said.
        reason: String,
    },
    /// An address of the version that was not asked for.
    #[error("target '{host}' is an {is} address: drop {option}, or give an {asked} address")]
    OtherVersion {
        /// The address.
        host: String,
        /// Its version, in words.
        is: &'static str,
        /// The version that was asked for, in words.
        asked: &'static str,
        /// The option that asks for it.
        option: &'static str,
    },
}

/// A target whose text made sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    scheme: &'static Scheme,
    host: String,
    port: u16,
    path: String,
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
        let whole = || text.to_owned();
        let (name, rest) = text.split_once("://").unwrap_or(("", text));
        let scheme = kinds::scheme_named(name).ok_or_else(|| TargetError::Scheme {
            text: whole(),
            scheme: name.to_owned(),
        })?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (host, port) = split_authority(authority);
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TargetError::Host { text: whole() });
        }
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
            host: host.to_owned(),
            port,
            path,
        })
    }

    /// Finds the address.
    ///
    /// # Errors
    /// [`TargetError::Unresolved`] with what the resolver said, [`TargetError::OtherVersion`] where
    /// the host is an address already.
    pub fn resolve(&self, version: IpVersion) -> Result<SocketAddr, TargetError> {
        self.check_version(version)?;
        let unresolved = |reason: String| TargetError::Unresolved {
            host: self.host.clone(),
            version: match version {
                IpVersion::Any => "",
                IpVersion::V4 => " to IPv4",
                IpVersion::V6 => " to IPv6",
            },
            reason,
        };
        let found = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| unresolved(error.to_string()))?;
        found
            .into_iter()
            .find(|address| match version {
                IpVersion::Any => true,
                IpVersion::V4 => address.is_ipv4(),
                IpVersion::V6 => address.is_ipv6(),
            })
            .ok_or_else(|| unresolved("no address of that version".to_owned()))
    }

    fn check_version(&self, version: IpVersion) -> Result<(), TargetError> {
        let other = |is, asked, option| TargetError::OtherVersion {
            host: self.host.clone(),
            is,
            asked,
            option,
        };
        match (self.host.parse(), version) {
            (Ok(IpAddr::V6(_)), IpVersion::V4) => Err(other("IPv6", "IPv4", "-4")),
            (Ok(IpAddr::V4(_)), IpVersion::V6) => Err(other("IPv4", "IPv6", "-6")),
            _ => Ok(()),
        }
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
    /// What a Host header says: the port only where it is not the scheme's own.
    pub fn host_header(&self) -> String {
        let host = bracketed(&self.host);
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

/// A host as targets write it: an IPv6 address in brackets.
pub fn bracketed(host: &str) -> String {
    if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) {
        format!("[{host}]")
    } else {
        host.to_owned()
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
    use super::*;

    #[test]
    fn a_target_reads_back_as_it_was_meant() {
        for (text, shown) in [
            ("ws://h:8080/a?b=1", "ws://h:8080/a?b=1"),
            ("https://h", "https://h:443"),
            ("tcp://[::1]:9", "tcp://[::1]:9"),
            ("icmp://10.0.0.1", "icmp://10.0.0.1"),
            ("udp://h", "udp://h:862"),
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
            ("ws://\u{fc}.example", "'ws://\u{fc}.example'"),
        ] {
            let told = Target::parse(text).expect_err(text).to_string();
            assert!(told.contains(part) && told.contains(text), "{told}");
        }
    }
}
