//! Recognition of QUIC datagrams and of the server.
//!
//! Owns the ports that are known for QUIC. On other ports the handshake shows it: long headers carry a
//! version of 32 bits (RFC 8999, 5.1).

use std::collections::HashSet;
use std::net::SocketAddr;

use foldhash::fast::RandomState;

use crate::tcp::Side;

/// The port of HTTP/3.
const HTTPS: u16 = 443;
/// Ports below this are those of system services.
const FIRST_USER_PORT: u16 = 1_024;
/// The form bit and the fixed bit. A long header has both, a short one only the latter.
const LONG_HEADER_BIT: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;
/// Longest connection ID of these versions, in bytes.
const MAX_ID_LENGTH: u8 = 20;
/// Ports at which handshakes were seen, at most.
const MAX_LEARNED_PORTS: usize = 4_096;

/// Ports at which servers use QUIC.
#[derive(Debug)]
pub(super) struct QuicPorts {
    /// Ports on which everything is QUIC, even without a captured handshake.
    known_ports: Vec<u16>,
    /// Ports with a captured handshake.
    learned_ports: HashSet<u16, RandomState>,
}

impl Default for QuicPorts {
    fn default() -> Self {
        Self {
            known_ports: vec![HTTPS],
            learned_ports: HashSet::default(),
        }
    }
}

impl QuicPorts {
    pub(super) fn add_ports(&mut self, ports: &[u16]) {
        self.known_ports.extend_from_slice(ports);
    }

    /// The sender of a QUIC datagram. `None` if it is no QUIC. `is_known` returns whether a connection
    /// between a client and a server exists.
    pub(super) fn sender(
        &mut self,
        (from, to): (SocketAddr, SocketAddr),
        payload: &[u8],
        is_known: impl Fn(SocketAddr, SocketAddr) -> bool,
    ) -> Option<Side> {
        let first = *payload.first()?;
        if self.known_ports.contains(&to.port()) {
            return Some(Side::Client);
        }
        if self.known_ports.contains(&from.port()) {
            return Some(Side::Server);
        }
        let is_handshake = has_known_long_header(payload);
        let may_be_quic = first & FIXED_BIT != 0 && !self.learned_ports.is_empty();
        if !is_handshake && !may_be_quic {
            return None;
        }
        if self.learned_ports.contains(&to.port()) && is_known(from, to) {
            return Some(Side::Client);
        }
        if self.learned_ports.contains(&from.port()) && is_known(to, from) {
            return Some(Side::Server);
        }
        if !is_handshake {
            return None;
        }
        // The client sends first, except in a capture that begins later.
        let is_service = |end: SocketAddr| {
            end.port() < FIRST_USER_PORT || self.learned_ports.contains(&end.port())
        };
        let side = if is_service(from) && !is_service(to) {
            Side::Server
        } else {
            Side::Client
        };
        let server = if side == Side::Client { to } else { from };
        if self.learned_ports.len() >= MAX_LEARNED_PORTS
            && !self.learned_ports.contains(&server.port())
        {
            return None;
        }
        self.learned_ports.insert(server.port());
        Some(side)
    }
}

/// Whether a datagram begins with a long header of a known QUIC version: 1 (RFC 9000), 2 (RFC 9369) or a
/// draft.
fn has_known_long_header(payload: &[u8]) -> bool {
    let [first, a, b, c, d, length, rest @ ..] = payload else {
        return false;
    };
    let version = u32::from_be_bytes([*a, *b, *c, *d]);
    let is_known = matches!(version, 1 | 0x6b33_43cf | 0xff00_0001..=0xff00_00ff);
    let second_id_length = rest.get(usize::from(*length));
    first & (LONG_HEADER_BIT | FIXED_BIT) == LONG_HEADER_BIT | FIXED_BIT
        && is_known
        && *length <= MAX_ID_LENGTH
        && second_id_length.is_none_or(|length| *length <= MAX_ID_LENGTH)
}
