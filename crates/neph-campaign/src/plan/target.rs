//! Where an endpoint is reached: `ws://host:port/path` and its sisters.
//!
//! Own code because the schemes `tcp`, `udp` and `icmp` have rules of their own and every mistake
//! needs a remedy; which schemes there are is [`KINDS`]'s to say. Resolves nothing.

use std::fmt;
use std::net::Ipv6Addr;

use neph_model::ProbeKind;
use neph_probe::{KINDS, Scheme, ascii_host, scheme_named};
use neph_text::{Fault, did_you_mean};

/// A parsed address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As the plan writes it.
    pub text: String,
    /// The kind of exchange that the scheme names.
    pub probe: ProbeKind,
    /// Whether TLS carries it (`wss`, `https`).
    pub secure: bool,
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// The port, the scheme's own if none is written; absent for ICMP.
    pub port: Option<u16>,
    /// Path and query; `/` if none is written. Empty for schemes without one.
    pub path: String,
}

impl Target {
    /// Reads an address.
    ///
    /// # Errors
    /// No or an unknown scheme, a bad host or port, a path where none can be, user names.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let Some((name, rest)) = text.split_once("://") else {
            let what = format!("\"{text}\" has no scheme");
            let remedy = format!("write for example \"ws://{text}\" or \"icmp://{text}\"");
            return Err(Fault::new(what, remedy));
        };
        let Some(scheme) = scheme_named(name) else {
            let names: Vec<&str> = KINDS.iter().map(|scheme| scheme.name).collect();
            let what = format!("'{name}' is no scheme of ours");
            return Err(Fault::new(what, did_you_mean(name, &names)));
        };
        let split = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        let (host, port) = authority_of(authority)?;
        Ok(Self {
            text: text.to_owned(),
            probe: scheme.kind,
            secure: scheme.secure,
            host: ascii_host(host).unwrap_or_else(|| host.to_owned()),
            port: port_of(scheme, port)?,
            path: path_of(scheme, path)?,
        })
    }

    /// `host:port` as sockets and servers write it; just the host for ICMP.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }

    /// Whether the exchange runs on TCP.
    pub const fn on_tcp(&self) -> bool {
        matches!(self.probe, ProbeKind::Ws | ProbeKind::Http | ProbeKind::Tcp)
    }
}

/// As the plan writes it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Host and port text of `host`, `host:port`, `[v6]` or `[v6]:port`.
pub(crate) fn authority_of(text: &str) -> Result<(&str, Option<&str>), Fault> {
    if text.contains('@') {
        let what = "a plan takes no user names and passwords, since it is stored with the results";
        return Err(Fault::new(what, "write only host and port"));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(|| {
            Fault::new(
                "the bracket is not closed",
                "write for example [fd00::1]:8080",
            )
        })?;
        let port = rest.strip_prefix(':');
        let address = host.split('%').next().unwrap_or(host);
        if address.parse::<Ipv6Addr>().is_err() || (port.is_none() && !rest.is_empty()) {
            let what = format!("\"{text}\" is no IPv6 address in brackets");
            return Err(Fault::new(what, "write for example [fd00::1]:8080"));
        }
        return Ok((host, port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    if port.is_some_and(|port| port.contains(':')) {
        let what = format!("\"{text}\" has more than one colon");
        return Err(Fault::new(
            what,
            "write an IPv6 address in brackets: [fd00::1]:8080",
        ));
    }
    check_host(host)?;
    Ok((host, port))
}

/// An address, or a name of letters, digits, hyphens, points and underscores in its ASCII form.
fn check_host(host: &str) -> Result<(), Fault> {
    if ascii_host(host).is_some() && !host.starts_with(['-', '.']) {
        return Ok(());
    }
    let what = format!("\"{host}\" is no host name or address");
    Err(Fault::new(
        what,
        "write for example example.com or 192.0.2.1",
    ))
}

/// A port from 1 to 65535.
pub(crate) fn port_number(text: &str) -> Result<u16, Fault> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if port > 0 && digits => Ok(port),
        _ => {
            let what = format!("\"{text}\" is no port");
            Err(Fault::new(what, "write a number from 1 to 65535"))
        }
    }
}

fn port_of(scheme: &Scheme, text: Option<&str>) -> Result<Option<u16>, Fault> {
    match (scheme.kind, text) {
        (ProbeKind::Icmp, None) => Ok(None),
        (ProbeKind::Icmp, Some(_)) => {
            let what = "ICMP knows no ports";
            Err(Fault::new(what, "write icmp:// and the host alone"))
        }
        (_, Some(text)) => port_number(text).map(Some),
        (_, None) if scheme.default_port.is_some() => Ok(scheme.default_port),
        (_, None) => {
            let what = format!(
                "the port is missing, and {} has none of its own",
                scheme.name
            );
            let remedy = format!("write for example {}://host:8080", scheme.name);
            Err(Fault::new(what, remedy))
        }
    }
}

fn path_of(scheme: &Scheme, text: &str) -> Result<String, Fault> {
    if !matches!(scheme.kind, ProbeKind::Ws | ProbeKind::Http) {
        if matches!(text, "" | "/") {
            return Ok(String::new());
        }
        let what = format!("{} knows no paths", scheme.name);
        return Err(Fault::new(what, format!("remove \"{text}\"")));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains('#') {
        let what = "the path holds a character that an address cannot";
        return Err(Fault::new(what, "write it percent-encoded"));
    }
    if text.starts_with('/') {
        return Ok(text.to_owned());
    }
    Ok(format!("/{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_with_their_defaults() {
        let read = |text: &str| {
            let target = Target::parse(text).expect(text);
            (
                target.host.clone(),
                target.port,
                target.path.clone(),
                target.authority(),
            )
        };
        let host = || "h.example".to_owned();
        assert_eq!(
            read("ws://h.example"),
            (host(), Some(80), "/".into(), "h.example:80".into())
        );
        assert_eq!(
            read("https://h.example/a?b"),
            (host(), Some(443), "/a?b".into(), "h.example:443".into())
        );
        assert_eq!(
            read("icmp://h.example"),
            (host(), None, String::new(), "h.example".into())
        );
        assert_eq!(
            read("tcp://[fd00::1]:90"),
            (
                "fd00::1".into(),
                Some(90),
                String::new(),
                "[fd00::1]:90".into()
            )
        );
        assert!(Target::parse("wss://a").expect("fine").secure);
    }

    #[test]
    fn a_plan_takes_every_scheme_that_a_probe_has() {
        for scheme in KINDS {
            let port = if scheme.kind == ProbeKind::Icmp {
                ""
            } else {
                ":7"
            };
            let text = format!("{}://h{port}", scheme.name);
            let target = Target::parse(&text).expect(&text);
            assert_eq!(
                (target.probe, target.secure),
                (scheme.kind, scheme.secure),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_remedy() {
        for (text, clue) in [
            ("h.example:80", "no scheme"),
            ("wz://h", "no scheme of ours"),
            ("ws://", "no host name"),
            ("ws://a:0", "no port"),
            ("ws://a:+1", "no port"),
            ("tcp://a", "port is missing"),
            ("icmp://a:1", "no ports"),
            ("ws://fd00::1", "more than one colon"),
            ("ws://[fd00::1", "not closed"),
            ("ws://[1.2.3.4]:1", "no IPv6"),
            ("udp://a/path", "no paths"),
            ("http://a/b c", "character"),
            ("http://me@a/", "user names"),
        ] {
            let fault = Target::parse(text).expect_err(text);
            assert!(fault.what.contains(clue), "{text}: {fault:?}");
        }
    }
}
