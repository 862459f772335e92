//! A target: `scheme://host:port/path`, in plans and on the command line.
//!
//! Owns the text and its meaning. The host is in `host`; nothing is resolved or opened here.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::authority::{InvalidTargetPart, port_number, split_authority};
use crate::credentials::{Credentials, without_credentials};
use crate::host::{bare, bracketed};
use crate::kind::{PathRule, ProbeKind};
use crate::scheme::Scheme;

/// A valid target: `scheme://host:port/path`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct Target {
    /// The text as written.
    text: String,
    scheme: &'static Scheme,
    host: String,
    port: u16,
    path: String,
    credentials: Option<Credentials>,
}

/// Two spellings of one target are the same.
impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        let meaning = |target: &Self| (target.scheme, target.port);
        meaning(self) == meaning(other)
            && self.host == other.host
            && self.path == other.path
            && self.credentials == other.credentials
    }
}

impl Eq for Target {}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl Target {
    /// ICMP echo to a host: a name, or an address with or without brackets.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn icmp(host: &str) -> Result<Self, ParseTargetError> {
        Self::under("icmp", host)
    }

    /// neph's own framing on TCP, at a port of a host.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn tcp(host: &str, port: u16) -> Result<Self, ParseTargetError> {
        Self::parse(&format!("tcp://{}:{port}", bracketed(host)))
    }

    /// `host[:port][/path]` under this scheme; an IPv6 address alone needs no brackets.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn under(scheme: &str, text: &str) -> Result<Self, ParseTargetError> {
        Self::parse(&format!("{scheme}://{}", bracketed(text)))
    }

    /// `host[:port]` under this scheme, at `port` unless one is written.
    ///
    /// # Errors
    /// As [`Self::parse`], about the text without the scheme, which the user did not write.
    pub fn with_port(scheme: &str, text: &str, port: u16) -> Result<Self, ParseTargetError> {
        let wrong = |mistake| ParseTargetError {
            text: without_credentials(text),
            mistake,
        };
        let typed = bracketed(text);
        let (_, written) = split_authority(&typed).map_err(wrong)?;
        let port = written.map_or_else(|| format!(":{port}"), |_| String::new());
        Self::parse(&format!("{scheme}://{typed}{port}")).map_err(|error| wrong(error.mistake))
    }

    /// Reads `scheme://host[:port][/path]`.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, ParseTargetError> {
        let wrong = |mistake| ParseTargetError {
            text: without_credentials(text),
            mistake,
        };
        let Some((name, remaining)) = text.split_once("://") else {
            let shown = without_credentials(text);
            let remedy = format!("write for example ws://{shown} or icmp://{shown}");
            return Err(wrong(InvalidTargetPart::new("it has no scheme", remedy)));
        };
        let scheme = Scheme::from_name(name).ok_or_else(|| {
            let message = format!("scheme '{name}' is not known");
            wrong(InvalidTargetPart::new(
                message,
                format!("use one of {}", Scheme::list()),
            ))
        })?;
        let split = remaining.find(['/', '?', '#']).unwrap_or(remaining.len());
        let (authority, path) = remaining.split_at(split);
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        if user.is_some() && !scheme.kind.properties().has_credentials {
            let message = format!("{} has no user names", scheme.name);
            return Err(wrong(InvalidTargetPart::new(
                message,
                "drop the part before @",
            )));
        }
        let (host, port) = split_authority(authority).map_err(wrong)?;
        Ok(Self {
            text: text.to_owned(),
            scheme,
            host,
            port: port_of(scheme, port).map_err(wrong)?,
            path: path_of(scheme, path).map_err(wrong)?,
            credentials: user.map(Credentials::read),
        })
    }

    /// As it was written, without credentials.
    pub fn written(&self) -> String {
        without_credentials(&self.text)
    }
    /// The kind of probe of its scheme.
    pub const fn kind(&self) -> ProbeKind {
        self.scheme.kind
    }
    /// Whether its scheme asks for TLS.
    pub const fn is_secure(&self) -> bool {
        self.scheme.secure
    }
    /// Whether its messages run on a TCP connection.
    pub const fn uses_connection(&self) -> bool {
        self.kind().uses_connection()
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
    /// `host:port`, an IPv6 address in brackets; the host alone for ICMP.
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        match self.port {
            0 => host,
            port => format!("{host}:{port}"),
        }
    }
    /// The host as certificates name it: without the zone of a link-local address.
    pub fn certificate_name(&self) -> &str {
        bare(&self.host)
    }
    /// Whether it has a user name.
    pub const fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }
    /// The same at another host: a name, or an address without brackets.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn at_host(&self, host: &str) -> Result<Self, ParseTargetError> {
        let port = match self.port {
            0 => String::new(),
            port => format!(":{port}"),
        };
        let (scheme, host) = (self.scheme.name, bracketed(host));
        let moved = Self::parse(&format!("{scheme}://{host}{port}{}", self.path))?;
        Ok(Self {
            credentials: self.credentials.clone(),
            ..moved
        })
    }
    /// With the credentials of `other`, if it is at the same scheme, host and port.
    #[must_use]
    pub fn with_credentials_of(mut self, other: &Self) -> Self {
        let is_identical = self.scheme == other.scheme && self.authority() == other.authority();
        if self.credentials.is_none() && is_identical {
            self.credentials.clone_from(&other.credentials);
        }
        self
    }
    /// User name and password, if the URL had them.
    pub const fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
    /// The value of the Authorization header, if the URL had credentials.
    pub fn authorization(&self) -> Option<String> {
        self.credentials.as_ref().map(Credentials::header)
    }
    /// The value of a Host header: the port only if it is not the scheme's own, and no zone, which
    /// means nothing to another host (RFC 6874, section 3).
    pub fn host_header(&self) -> String {
        let host = bracketed(bare(&self.host));
        match self.scheme.default_port {
            Some(port) if port == self.port => host,
            _ => format!("{host}:{}", self.port),
        }
    }
}

/// As it is meant: with its port, and without credentials.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path == "/" { "" } else { &self.path };
        write!(f, "{}://{}{path}", self.scheme.name, self.authority())
    }
}

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, ParseTargetError> {
        Self::parse(text)
    }
}

/// With its credentials: an order that is sent must be able to use them.
impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.text
    }
}

impl TryFrom<String> for Target {
    type Error = ParseTargetError;

    fn try_from(text: String) -> Result<Self, ParseTargetError> {
        Self::parse(&text)
    }
}

/// A text that is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("target '{text}': {mistake}")]
pub struct ParseTargetError {
    /// The whole text, without credentials.
    pub text: String,
    /// What is wrong with it.
    pub mistake: InvalidTargetPart,
}

fn port_of(scheme: &Scheme, text: Option<&str>) -> Result<u16, InvalidTargetPart> {
    match (scheme.kind.has_ports(), text, scheme.default_port) {
        (false, None, _) => Ok(0),
        (false, Some(text), _) => {
            let message = format!("{} has no ports", scheme.name);
            Err(InvalidTargetPart::new(message, format!("drop ':{text}'")))
        }
        (true, Some(text), _) => port_number(text),
        (true, None, Some(port)) => Ok(port),
        (true, None, None) => {
            let remedy = format!("write it as {}://host:port", scheme.name);
            Err(InvalidTargetPart::new("the port is missing", remedy))
        }
    }
}

fn path_of(scheme: &Scheme, text: &str) -> Result<String, InvalidTargetPart> {
    let rule = scheme.kind.properties().path;
    if matches!(rule, PathRule::None) && !text.trim_start_matches('/').is_empty() {
        let message = format!("{} has no paths", scheme.name);
        return Err(InvalidTargetPart::new(message, format!("drop '{text}'")));
    }
    if text.contains('#') {
        let message = "the part behind # is never sent";
        return Err(InvalidTargetPart::new(message, "drop it, or write %23"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "the path has a character that an address cannot have";
        return Err(InvalidTargetPart::new(message, "percent-encode it"));
    }
    let slash = if text.starts_with('/') { "" } else { "/" };
    let path = format!("{slash}{text}");
    if let PathRule::Checked { check, .. } = rule {
        check(&path)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests;
