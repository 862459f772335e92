//! The Transport header (RFC 2326, section 12.39).

use std::fmt;

/// Two adjacent ports: RTP and RTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPair {
    /// The RTP port.
    pub rtp: u16,
    /// The RTCP port, if specified.
    pub rtcp: Option<u16>,
}

impl PortPair {
    fn parse(text: &str) -> Option<Self> {
        let port = |text: &str| text.parse().ok().filter(|port| *port > 0);
        match text.split_once('-') {
            Some((first, second)) => Some(Self {
                rtp: port(first)?,
                rtcp: Some(port(second)?),
            }),
            None => Some(Self {
                rtp: port(text)?,
                rtcp: None,
            }),
        }
    }
}

impl fmt::Display for PortPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rtcp {
            Some(rtcp) => write!(f, "{}-{rtcp}", self.rtp),
            None => write!(f, "{}", self.rtp),
        }
    }
}

/// One transport of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// RTP/AVP over UDP.
    pub is_udp: bool,
    /// Unicast.
    pub is_unicast: bool,
    /// The destination of the stream, if it is not the sender of the request.
    pub destination: Option<String>,
    /// The source of the stream, if it is not the server.
    pub source: Option<String>,
    /// The client's ports.
    pub client_port: Option<PortPair>,
    /// The server's ports.
    pub server_port: Option<PortPair>,
    /// The synchronisation source that the server will use.
    pub ssrc: Option<u32>,
}

impl Transport {
    /// The transports of a header, in order of preference. Ignores parameters that are unknown or
    /// not valid.
    pub fn parse_all(header: &str) -> Vec<Self> {
        header.split(',').map(Self::parse).collect()
    }

    fn parse(text: &str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let profile = parts.next().unwrap_or_default();
        let mut transport = Self {
            is_udp: ["RTP/AVP", "RTP/AVP/UDP"]
                .iter()
                .any(|known| profile.eq_ignore_ascii_case(known)),
            ..Self::default()
        };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
            match name.to_ascii_lowercase().as_str() {
                "unicast" => transport.is_unicast = true,
                "destination" => transport.destination = text(),
                "source" => transport.source = text(),
                "client_port" => transport.client_port = PortPair::parse(value),
                "server_port" => transport.server_port = PortPair::parse(value),
                "ssrc" => transport.ssrc = u32::from_str_radix(value, 16).ok(),
                _ => {}
            }
        }
        transport
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_udp {
            "RTP/AVP"
        } else {
            "RTP/AVP/TCP"
        })?;
        if self.is_unicast {
            f.write_str(";unicast")?;
        }
        if let Some(destination) = &self.destination {
            write!(f, ";destination={destination}")?;
        }
        if let Some(source) = &self.source {
            write!(f, ";source={source}")?;
        }
        if let Some(ports) = self.client_port {
            write!(f, ";client_port={ports}")?;
        }
        if let Some(ports) = self.server_port {
            write!(f, ";server_port={ports}")?;
        }
        if let Some(ssrc) = self.ssrc {
            write!(f, ";ssrc={ssrc:08X}")?;
        }
        Ok(())
    }
}
