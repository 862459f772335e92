//! What a packet is part of: who asks whom, and what it says.

use std::net::{IpAddr, SocketAddr};

use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::UdpHeader;

use super::quic::QuicPorts;
use super::{Between, Numbered, Question, Said};
use crate::tcp::Side;

const DNS: u16 = 53;
/// Types of ICMP and of `ICMPv6`: they differ, so that the version need not be asked.
const ECHO: [u8; 2] = [8, 128];
const ECHO_REPLY: [u8; 2] = [0, 129];
/// Bytes of DNS before its question.
const DNS_HEADER: usize = 12;

/// Who asks whom, but for what it travels in.
type Parties = (Question, SocketAddr, SocketAddr);

/// What a packet is part of; `is_known` says whether others of it came before.
pub(super) fn part_of(
    packet: &Dissected<'_>,
    quic: &mut QuicPorts,
    is_known: impl Fn(&Between) -> bool,
) -> Option<(Between, Said)> {
    let between = |(question, client, server): Parties| Between {
        question,
        client,
        server,
        vlan: packet.vlan,
        tunnel: packet.tunnel,
    };
    let ends = (packet.ip.source, packet.ip.destination);
    let (parties, said) = match &packet.transport {
        Transport::Icmp(message) => echo(ends, message)?,
        Transport::Udp { header, .. } if header.source == DNS || header.destination == DNS => {
            dns(ends, header)?
        }
        Transport::Udp { header, .. } => {
            let (from, to) = (
                SocketAddr::new(ends.0, header.source),
                SocketAddr::new(ends.1, header.destination),
            );
            let is_known = |client, server| is_known(&between((Question::Quic, client, server)));
            let side = quic.sender((from, to), header.payload, is_known)?;
            let (client, server) = match side {
                Side::Client => (from, to),
                Side::Server => (to, from),
            };
            let first = *header.payload.first()?;
            ((Question::Quic, client, server), Said::Spins(side, first))
        }
        _ => return None,
    };
    Some((between(parties), said))
}

fn echo((source, destination): (IpAddr, IpAddr), message: &[u8]) -> Option<(Parties, Said)> {
    let [kind, 0, _, _, a, b, c, d, content @ ..] = message else {
        return None;
    };
    let of = Numbered {
        id: u32::from_be_bytes([*a, *b, *c, *d]),
        content: digest(content),
    };
    let parties = |client: IpAddr, server: IpAddr| {
        let end = |address| SocketAddr::new(address, 0);
        (Question::Ping, end(client), end(server))
    };
    match (ECHO.contains(kind), ECHO_REPLY.contains(kind)) {
        (true, _) => Some((parties(source, destination), Said::Asks(of))),
        (_, true) => Some((parties(destination, source), Said::Answers(of))),
        _ => None,
    }
}

fn dns((source, destination): (IpAddr, IpAddr), header: &UdpHeader<'_>) -> Option<(Parties, Said)> {
    let [a, b, flags, ..] = header.payload else {
        return None;
    };
    let of = |port: u16| Numbered {
        id: u32::from(port) << 16 | u32::from_be_bytes([0, 0, *a, *b]),
        content: asked(header.payload),
    };
    let parties = |client: IpAddr, server: IpAddr| {
        let (client, server) = (SocketAddr::new(client, 0), SocketAddr::new(server, DNS));
        (Question::Dns, client, server)
    };
    match (flags & 0x80 != 0, header.destination, header.source) {
        (false, DNS, port) => Some((parties(source, destination), Said::Asks(of(port)))),
        (true, port, DNS) => Some((parties(destination, source), Said::Answers(of(port)))),
        _ => None,
    }
}

/// A digest of the first question of a message of DNS: answers repeat it. 0 where it has none, or was cut
/// off.
fn asked(message: &[u8]) -> u32 {
    let Some((header, rest)) = message.split_at_checked(DNS_HEADER) else {
        return 0;
    };
    if header[4..6] == [0, 0] {
        return 0;
    }
    let mut length = 0;
    while let Some(&label) = rest.get(length) {
        length += 1 + usize::from(label);
        if label == 0 {
            // Behind the name stand its type and class.
            return rest.get(..length + 4).map_or(0, digest);
        }
    }
    0
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u32 {
    let mix = |digest: u32, byte: &u8| (digest ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, mix)
}
