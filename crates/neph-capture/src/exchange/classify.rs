//! Assignment of a packet to a client, a server and an event of their exchange.

use std::net::{IpAddr, SocketAddr};

use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::UdpHeader;

use super::quic::QuicPorts;
use super::{ExchangeEvent, ExchangeKey, ExchangeProtocol, MessageId};
use crate::tcp::Side;

const DNS_PORT: u16 = 53;
/// Types of ICMP and `ICMPv6`. They differ, so the IP version need not be checked.
const ECHO_REQUEST_TYPES: [u8; 2] = [8, 128];
const ECHO_REPLY_TYPES: [u8; 2] = [0, 129];
/// Bytes of a DNS message before its question.
const DNS_HEADER_BYTES: usize = 12;

/// Client and server, without VLAN and tunnel.
type Parties = (ExchangeProtocol, SocketAddr, SocketAddr);

/// The exchange that a packet belongs to; `is_known` returns whether earlier packets belong to it.
pub(super) fn classify(
    packet: &Dissected<'_>,
    quic: &mut QuicPorts,
    is_known: impl Fn(&ExchangeKey) -> bool,
) -> Option<(ExchangeKey, ExchangeEvent)> {
    let exchange_key = |(protocol, client, server): Parties| ExchangeKey {
        protocol,
        client,
        server,
        vlan: packet.vlan,
        tunnel: packet.tunnel,
    };
    let addresses = (packet.ip.source, packet.ip.destination);
    let (parties, event) = match &packet.transport {
        Transport::Icmp(message) => classify_echo(addresses, message)?,
        Transport::Udp { header, .. }
            if header.source == DNS_PORT || header.destination == DNS_PORT =>
        {
            classify_dns(addresses, header)?
        }
        Transport::Udp { header, .. } => {
            let (from, to) = (
                SocketAddr::new(addresses.0, header.source),
                SocketAddr::new(addresses.1, header.destination),
            );
            let is_known =
                |client, server| is_known(&exchange_key((ExchangeProtocol::Quic, client, server)));
            let side = quic.sender((from, to), header.payload, is_known)?;
            let (client, server) = match side {
                Side::Client => (from, to),
                Side::Server => (to, from),
            };
            let first_byte = *header.payload.first()?;
            (
                (ExchangeProtocol::Quic, client, server),
                ExchangeEvent::SpinBit(side, first_byte),
            )
        }
        _ => return None,
    };
    Some((exchange_key(parties), event))
}

fn classify_echo(
    (source, destination): (IpAddr, IpAddr),
    message: &[u8],
) -> Option<(Parties, ExchangeEvent)> {
    let [kind, 0, _, _, a, b, c, d, content @ ..] = message else {
        return None;
    };
    let id = MessageId {
        id: u32::from_be_bytes([*a, *b, *c, *d]),
        content: digest(content),
    };
    let parties = |client: IpAddr, server: IpAddr| {
        let without_port = |address| SocketAddr::new(address, 0);
        (
            ExchangeProtocol::Ping,
            without_port(client),
            without_port(server),
        )
    };
    match (
        ECHO_REQUEST_TYPES.contains(kind),
        ECHO_REPLY_TYPES.contains(kind),
    ) {
        (true, _) => Some((parties(source, destination), ExchangeEvent::Request(id))),
        (_, true) => Some((parties(destination, source), ExchangeEvent::Answer(id))),
        _ => None,
    }
}

fn classify_dns(
    (source, destination): (IpAddr, IpAddr),
    header: &UdpHeader<'_>,
) -> Option<(Parties, ExchangeEvent)> {
    let [a, b, flags, ..] = header.payload else {
        return None;
    };
    let message_id = |port: u16| MessageId {
        id: u32::from(port) << 16 | u32::from_be_bytes([0, 0, *a, *b]),
        content: question_id(header.payload),
    };
    let parties = |client: IpAddr, server: IpAddr| {
        let (client, server) = (
            SocketAddr::new(client, 0),
            SocketAddr::new(server, DNS_PORT),
        );
        (ExchangeProtocol::Dns, client, server)
    };
    match (flags & 0x80 != 0, header.destination, header.source) {
        (false, DNS_PORT, port) => Some((
            parties(source, destination),
            ExchangeEvent::Request(message_id(port)),
        )),
        (true, port, DNS_PORT) => Some((
            parties(destination, source),
            ExchangeEvent::Answer(message_id(port)),
        )),
        _ => None,
    }
}

/// Digest of the first question of a DNS message, which answers repeat. 0 without a question, or where it is
/// cut off.
fn question_id(message: &[u8]) -> u32 {
    let Some((header, questions)) = message.split_at_checked(DNS_HEADER_BYTES) else {
        return 0;
    };
    if header[4..6] == [0, 0] {
        return 0;
    }
    let mut name_length = 0;
    while let Some(&label) = questions.get(name_length) {
        name_length += 1 + usize::from(label);
        if label == 0 {
            // Type and class follow the name.
            return questions.get(..name_length + 4).map_or(0, digest);
        }
    }
    0
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u32 {
    let mix = |digest: u32, byte: &u8| (digest ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, mix)
}
