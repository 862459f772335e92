//! ICMP echo, client side. Without root where `ping_group_range` permits it.

use std::io;
use std::net::SocketAddr;

use neph_model::{Outcome, Wall};
use neph_wire::icmp::{EchoRequest, Family, IcmpMessage, PAYLOAD_LEN_WITH_TOKEN, parse};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{Codec, Opened, ReplyOutcome};
use crate::ProbeError;
use crate::spec::FlowSpec;
use crate::unguessable::unguessable;

/// Bytes of an IPv4 header without options; a raw socket delivers it too.
const IPV4_HEADER: usize = 20;

#[derive(Debug)]
struct Icmp {
    family: Family,
    /// Raw sockets receive every echo reply of the host and need a separate identity.
    raw_ident: Option<u16>,
    payload: usize,
    /// Replies must return this, where there is room for it.
    token: u64,
}

/// The connected socket and its codec.
pub(crate) fn open(spec: &FlowSpec) -> Result<Opened, ProbeError> {
    let (family, protocol) = match spec.address {
        SocketAddr::V4(_) => (Family::V4, Protocol::ICMPV4),
        SocketAddr::V6(_) => (Family::V6, Protocol::ICMPV6),
    };
    let domain = Domain::for_address(spec.address);
    let fault = |source: io::Error| match source.kind() {
        io::ErrorKind::PermissionDenied => ProbeError::IcmpForbidden,
        _ => ProbeError::Socket {
            operation: "open an ICMP socket to",
            address: spec.address,
            source,
        },
    };
    let (socket, raw) = match Socket::new(domain, Type::DGRAM, Some(protocol)) {
        Ok(socket) => (socket, false),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (
            Socket::new(domain, Type::RAW, Some(protocol)).map_err(fault)?,
            true,
        ),
        Err(error) => return Err(fault(error)),
    };
    socket.set_nonblocking(true).map_err(fault)?;
    socket
        // The whole address: a link-local one is invalid without its zone.
        .connect(&SockAddr::from(without_port(spec.address)))
        .map_err(fault)?;
    let raw_ident = raw.then(|| identity(spec.index.0));
    let codec = Icmp {
        family,
        raw_ident,
        payload: spec.request_size,
        token: unguessable(),
    };
    Ok(Opened::plain(socket, codec))
}

const fn without_port(mut address: SocketAddr) -> SocketAddr {
    address.set_port(0);
    address
}

/// Distinct between flows of this process, and mostly between processes.
#[expect(clippy::cast_possible_truncation, reason = "an identity, not a number")]
fn identity(flow: u32) -> u16 {
    (std::process::id() as u16)
        .wrapping_mul(31)
        .wrapping_add(flow as u16)
}

impl Codec for Icmp {
    fn request(&mut self, seq: u64, _now: Wall, out: &mut Vec<u8>) {
        out.clear();
        let ident = self.raw_ident.unwrap_or(0);
        EchoRequest {
            ident,
            seq,
            payload: self.payload,
            token: self.token,
        }
        .encode(self.family, out);
    }

    fn answer(&mut self, datagram: &[u8], _latest_seq: u64) -> Option<ReplyOutcome> {
        let message = match (self.raw_ident, self.family) {
            (Some(_), Family::V4) => datagram.get(header_len(datagram)..)?,
            _ => datagram,
        };
        let IcmpMessage::EchoReply(echo) = parse(self.family, message).ok()? else {
            return None;
        };
        if self.raw_ident.is_some_and(|ident| ident != echo.ident) {
            return None;
        }
        if self.payload >= PAYLOAD_LEN_WITH_TOKEN && echo.token() != Some(self.token) {
            return None;
        }
        Some(ReplyOutcome {
            seq: echo.seq()?,
            marks: None,
            answer: None,
            outcome: Outcome::Reply,
        })
    }

    /// By the header's number alone: the quote may end after it.
    fn quoted(&self, quoted: &[u8], latest_seq: u64) -> Option<u64> {
        let low = u16::from_be_bytes(quoted.get(6..8)?.try_into().ok()?);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "numbers of the header wrap"
        )]
        let before = (latest_seq as u16).wrapping_sub(low);
        latest_seq.checked_sub(before.into())
    }
}

fn header_len(packet: &[u8]) -> usize {
    packet
        .first()
        .map_or(IPV4_HEADER, |first| usize::from(first & 0x0f) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icmp_echo_reply_matches_only_its_own_request() {
        let mut own_codec = Icmp {
            family: Family::V4,
            raw_ident: None,
            payload: 64,
            token: 7,
        };
        let mut request = Vec::new();
        own_codec.request(70_000, Wall::from_unix_nanos(0), &mut request);
        assert_eq!(request.len(), neph_wire::icmp::HEADER_LEN + 64);
        assert_eq!(
            own_codec.answer(&request, 70_000),
            None,
            "a request is no reply"
        );
        let reply = as_reply(&request);
        let answered = own_codec.answer(&reply, 70_000).map(|answer| answer.seq);
        assert_eq!(answered, Some(70_000));
        own_codec.token = 8;
        assert_eq!(own_codec.answer(&reply, 70_000), None, "another token");
    }

    /// The reply to an echo request of IPv4.
    fn as_reply(request: &[u8]) -> Vec<u8> {
        let mut reply = request.to_vec();
        reply[0] = 0;
        reply[2..4].fill(0);
        let sum = neph_wire::checksum::internet_checksum(&[&reply]);
        reply[2..4].copy_from_slice(&sum.to_be_bytes());
        reply
    }
}
