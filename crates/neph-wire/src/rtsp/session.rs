//! The headers Session and RTP-Info (RFC 2326, sections 12.37 and 12.33).

use std::fmt;

/// A session and its timeout without requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionId {
    /// Opaque.
    pub id: String,
    /// Seconds; the default is 60.
    pub timeout: Option<u32>,
}

impl SessionId {
    /// Reads the header; `None` if it has no session ID.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split(';').map(str::trim);
        let id = parts.next().filter(|id| !id.is_empty())?.to_owned();
        let timeout = parts.find_map(|part| part.strip_prefix("timeout=")?.trim().parse().ok());
        Some(Self { id, timeout })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        match self.timeout {
            Some(timeout) => write!(f, ";timeout={timeout}"),
            None => Ok(()),
        }
    }
}

/// The start of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtpInfo {
    /// The URL of the stream.
    pub url: String,
    /// The sequence number of its first packet.
    pub sequence: Option<u16>,
    /// The timestamp of its first packet.
    pub timestamp: Option<u32>,
}

impl RtpInfo {
    /// Reads the header: one entry for each stream.
    pub fn parse_all(header: &str) -> Vec<Self> {
        let entries = header.split(',').map(|entry| {
            let mut info = Self::default();
            for part in entry.split(';').map(str::trim) {
                match part.split_once('=') {
                    Some(("url", url)) => url.clone_into(&mut info.url),
                    Some(("seq", number)) => info.sequence = number.parse().ok(),
                    Some(("rtptime", number)) => info.timestamp = number.parse().ok(),
                    _ => {}
                }
            }
            info
        });
        entries.collect()
    }
}

impl fmt::Display for RtpInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "url={}", self.url)?;
        if let Some(sequence) = self.sequence {
            write!(f, ";seq={sequence}")?;
        }
        if let Some(timestamp) = self.timestamp {
            write!(f, ";rtptime={timestamp}")?;
        }
        Ok(())
    }
}
