//! RTSP URLs, and URLs of a description relative to them.

use std::fmt;
use std::str::FromStr;

use super::RtspError;

/// The default port of RTSP (RFC 2326, section 3.2).
pub const PORT: u16 = 554;

/// `rtsp://host[:port][/path]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The port, if the URL has one.
    pub port: Option<u16>,
    /// From the first slash on; may be empty.
    pub path: String,
}

impl FromStr for Url {
    type Err = RtspError;

    fn from_str(text: &str) -> Result<Self, RtspError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RtspError::Url);
        }
        let (scheme, remaining) = text.split_at_checked(7).ok_or(RtspError::Url)?;
        if !scheme.eq_ignore_ascii_case("rtsp://") {
            return Err(RtspError::Url);
        }
        let end = remaining.find(['/', '?', '#']).unwrap_or(remaining.len());
        let (authority, path) = remaining.split_at(end);
        let (host, port) = match authority.strip_prefix('[') {
            Some(remaining) => {
                let (host, port) = remaining.split_once(']').ok_or(RtspError::Url)?;
                match port.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if port.is_empty() => (host, None),
                    None => return Err(RtspError::Url),
                }
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let is_host = !host.is_empty() && !host.contains(['@', '[', ']']);
        let is_v6 = authority.starts_with('[');
        if !is_host
            || (!is_v6 && host.contains(':'))
            || (!path.is_empty() && !path.starts_with('/'))
        {
            return Err(RtspError::Url);
        }
        let port = match port {
            None => None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                let port = port.parse().map_err(|_| RtspError::Url)?;
                Some(port)
                    .filter(|port| *port > 0)
                    .map(Some)
                    .ok_or(RtspError::Url)?
            }
            Some(_) => return Err(RtspError::Url),
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, path } = self;
        if host.contains(':') {
            write!(f, "rtsp://[{host}]")?;
        } else {
            write!(f, "rtsp://{host}")?;
        }
        if let Some(port) = port {
            write!(f, ":{port}")?;
        }
        write!(f, "{path}")
    }
}

impl Url {
    /// The URL of a control attribute in a description with this `base`.
    pub fn control(base: &str, control: &str) -> String {
        if control == "*" || control.is_empty() {
            return base.to_owned();
        }
        let is_absolute = control
            .get(..7)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("rtsp://"));
        if is_absolute {
            return control.to_owned();
        }
        let slash = if base.ends_with('/') { "" } else { "/" };
        format!("{base}{slash}{}", control.trim_start_matches('/'))
    }
}
