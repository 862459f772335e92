//! The part of a target between its scheme and its path: host and port.
//!
//! Owns how host and port are separated, and what is wrong with a part of a target.

use std::net::Ipv6Addr;

use crate::host::{ascii_host, bare};

/// What is wrong with a part of a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {remedy}")]
pub struct InvalidTargetPart {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

impl InvalidTargetPart {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { message, remedy }
    }
}

const BRACKETS: &str = "write an IPv6 address in brackets, as [fd00::1]:8080";

/// `host`, `host:port`, `[v6]` and `[v6]:port`, as a host in its one form and the text of a port.
///
/// # Errors
/// There is no host, or it can be none.
pub fn split_authority(text: &str) -> Result<(String, Option<&str>), InvalidTargetPart> {
    let (host, port) = match text.strip_prefix('[') {
        Some(remaining) => bracketed_host(remaining)?,
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                let message = format!("'{text}' has more than one colon");
                return Err(InvalidTargetPart::new(message, BRACKETS));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        let remedy = "write it as scheme://host:port/path";
        return Err(InvalidTargetPart::new("it has no host", remedy));
    }
    let form = ascii_host(host).filter(|host| !host.starts_with(['-', '.']));
    let form = form.ok_or_else(|| {
        let message = format!("'{host}' is no host name or address");
        InvalidTargetPart::new(
            message,
            "write for example example.com, 192.0.2.1 or [2001:db8::1]",
        )
    })?;
    Ok((form, port))
}

/// Of `v6]` and `v6]:port`.
fn bracketed_host(remaining: &str) -> Result<(&str, Option<&str>), InvalidTargetPart> {
    let Some((host, after)) = remaining.split_once(']') else {
        return Err(InvalidTargetPart::new(
            "its bracket is not closed",
            BRACKETS,
        ));
    };
    let port = after.strip_prefix(':');
    let is_v6 = bare(host).parse::<Ipv6Addr>().is_ok();
    if !is_v6 || (port.is_none() && !after.is_empty()) {
        let message = format!("'[{remaining}' is no IPv6 address in brackets");
        return Err(InvalidTargetPart::new(message, BRACKETS));
    }
    Ok((host, port))
}

/// A port from 1 to 65535.
///
/// # Errors
/// It is none.
pub fn port_number(text: &str) -> Result<u16, InvalidTargetPart> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| *port > 0 && is_number);
    port.ok_or_else(|| {
        let message = format!("'{text}' is no port");
        InvalidTargetPart::new(message, "write a number from 1 to 65535")
    })
}
