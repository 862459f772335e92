//! The identity of a packet: the fields by which it is recognized at another capture point.
//!
//! Owns the selection of fields. Fields that hops change do not count: link header, VLAN and tunnel (the
//! innermost packet counts), TTL, traffic class, checksums, and TCP options except timestamps. The captured
//! length does not count either, if it includes the headers and 16 bytes. Does not own rewritten packets:
//! after a NAT, or as split segments or reassembled fragments, they have another identity.

use std::net::SocketAddr;

use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::{TCP, tcp_timestamps};

/// Bytes of payload that count: enough to distinguish numbered messages, few enough to be in every capture.
pub(crate) const COUNTED_PAYLOAD_BYTES: usize = 16;
/// Bytes of a TCP header without options.
const TCP_HEADER_BYTES: usize = 20;

/// Two packets are equal, or are one packet, if these fields are equal. A capture may hold a packet twice,
/// and some packets have no number (bare acknowledgements over IPv6 without timestamps). So one identity may
/// occur more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Source; port 0 where it has none.
    pub source: SocketAddr,
    /// Destination; port 0 where it has none.
    pub destination: SocketAddr,
    /// Protocol number in IP.
    pub protocol: u8,
    /// Its identification in IP; IPv6 has none.
    pub number: Option<u16>,
    /// Offset of this fragment, in bytes; 0 for the first and for whole packets.
    pub fragment_offset: u16,
    /// Digest of its transport header and the beginning of its payload, the same on every machine.
    pub content: u64,
}

impl Identity {
    /// Whether no equal packet follows soon: its sender numbered it, or it is an echo. Many systems use
    /// number 0 for packets that they do not fragment.
    pub(crate) fn is_distinguishable(&self, packet: &Dissected<'_>) -> bool {
        let is_echo = matches!(packet.transport, Transport::Icmp([0 | 8 | 128 | 129, ..]));
        self.number.is_some_and(|number| number != 0) || is_echo
    }

    /// The part that is equal in all fragments of one packet.
    pub(crate) fn fragment_key(&self) -> Self {
        Self {
            source: SocketAddr::new(self.source.ip(), 0),
            destination: SocketAddr::new(self.destination.ip(), 0),
            fragment_offset: 0,
            content: 0,
            ..*self
        }
    }

    /// Identity of the innermost packet. `None` if the capture lacks bytes that count.
    pub fn from_packet(packet: &Dissected<'_>) -> Option<Self> {
        let (ports, content) = content(packet)?;
        let ip = &packet.ip;
        Some(Self {
            source: SocketAddr::new(ip.source, ports.0),
            destination: SocketAddr::new(ip.destination, ports.1),
            protocol: ip.protocol,
            number: ip.identification,
            fragment_offset: ip.fragment_offset,
            content,
        })
    }
}

/// The ports, and the digest of the other fields.
fn content(packet: &Dissected<'_>) -> Option<((u16, u16), u64)> {
    let ip = &packet.ip;
    let carried_bytes = ip.total_len.saturating_sub(ip.header_len);
    let digest = Digest::default();
    Some(match &packet.transport {
        Transport::Tcp {
            header,
            payload_len,
        } => {
            // Options that were cut off would look like absent options.
            if header.options.len() + 20 < header.header_len {
                return None;
            }
            let (timestamp, echo) = tcp_timestamps(header.options).unwrap_or_default();
            // These numbers identify the bytes, so the bytes themselves add nothing.
            let numbers = [header.seq, header.ack, timestamp, echo, *payload_len];
            let digest = numbers.iter().fold(digest, |digest, number| {
                digest.with_bytes(&number.to_be_bytes())
            });
            let digest = digest.with_bytes(&[header.flags]);
            ((header.source, header.destination), digest.0)
        }
        Transport::Udp {
            header,
            payload_len,
        } => {
            let counted = counted_bytes(header.payload, *payload_len as usize)?;
            let digest = digest
                .with_bytes(&payload_len.to_be_bytes())
                .with_bytes(counted);
            ((header.source, header.destination), digest.0)
        }
        Transport::Icmp(message) => {
            // Type and code; the checksum after them depends on the rest.
            let (header, body) = message.split_at_checked(4)?;
            let body = body.get(..body.len().min(4 + COUNTED_PAYLOAD_BYTES))?;
            if body.len()
                < carried_bytes
                    .saturating_sub(4)
                    .min(4 + COUNTED_PAYLOAD_BYTES)
            {
                return None;
            }
            (
                (0, 0),
                digest
                    .with_bytes(&header[..2])
                    .with_length(carried_bytes)
                    .with_bytes(body)
                    .0,
            )
        }
        Transport::Fragment | Transport::Other => {
            // A truncated TCP header is parsed as none; the whole one would give another identity.
            let is_cut = ip.payload.len() < carried_bytes.min(TCP_HEADER_BYTES);
            if matches!(packet.transport, Transport::Other) && ip.protocol == TCP && is_cut {
                return None;
            }
            let counted = counted_bytes(ip.payload, carried_bytes)?;
            (
                (0, 0),
                digest.with_length(carried_bytes).with_bytes(counted).0,
            )
        }
    })
}

/// The bytes of a payload that count. `None` if some were not captured.
fn counted_bytes(captured: &[u8], length: usize) -> Option<&[u8]> {
    captured.get(..length.min(COUNTED_PAYLOAD_BYTES))
}

/// FNV-1a hash with 64 bits, finished so that all bits depend on all bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digest(pub(crate) u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(crate) fn with_bytes(self, bytes: &[u8]) -> Self {
        let mixed = bytes.iter().fold(self.0, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(mixed ^ mixed >> 32)
    }

    fn with_length(self, length: usize) -> Self {
        self.with_bytes(&u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use neph_wire::dissect::{Link, dissect};
    use proptest::prelude::*;

    use super::*;

    const UDP: u8 = 17;
    const ICMP: u8 = 1;

    /// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
    fn ipv4(protocol: u8, number: u16, ttl: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(20 + body.len()).unwrap();
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend(number.to_be_bytes());
        packet.extend([0x40, 0, ttl, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(body);
        packet
    }

    fn udp(payload: &[u8], checksum: u16) -> Vec<u8> {
        let mut datagram = vec![0x30, 0x39, 0, 53];
        datagram.extend(u16::try_from(8 + payload.len()).unwrap().to_be_bytes());
        datagram.extend(checksum.to_be_bytes());
        datagram.extend(payload);
        datagram
    }

    /// A segment with a timestamp option.
    fn tcp(seq: u32, stamp: u32, payload: &[u8]) -> Vec<u8> {
        let mut segment = vec![0x30, 0x39, 0, 80];
        segment.extend(seq.to_be_bytes());
        segment.extend(7_u32.to_be_bytes());
        segment.extend([0x80, 0x18, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        segment.extend(stamp.to_be_bytes());
        segment.extend(9_u32.to_be_bytes());
        segment.extend(payload);
        segment
    }

    fn identity_of(packet: &[u8]) -> Option<Identity> {
        identity_if_truncated(packet, packet.len())
    }

    /// The identity where a capture keeps only this many bytes.
    fn identity_if_truncated(packet: &[u8], captured: usize) -> Option<Identity> {
        let length = u32::try_from(packet.len()).unwrap();
        Identity::from_packet(&dissect(Link::Ip, &packet[..captured], length)?)
    }

    #[test]
    fn fields_that_routers_change_do_not_affect_packet_identity() {
        let before = identity_of(&ipv4(UDP, 5, 64, &udp(b"question", 0))).unwrap();
        let mut routed = ipv4(UDP, 5, 63, &udp(b"question", 0x1234));
        routed[1] = 0x03;
        assert_eq!(identity_of(&routed), Some(before));
        assert_eq!(before.source.to_string(), "10.0.0.1:12345");
        assert_eq!(before.destination.to_string(), "10.0.0.2:53");
    }

    #[test]
    fn link_header_and_vlan_do_not_affect_packet_identity() {
        let packet = ipv4(ICMP, 5, 64, &[8, 0, 1, 2, 0, 9, 0, 1, 3, 3, 3, 3]);
        let mut tagged = vec![2; 12];
        tagged.extend([0x81, 0, 0, 42, 8, 0]);
        tagged.extend(&packet);
        let length = u32::try_from(tagged.len()).unwrap();
        let observed = dissect(Link::Ethernet, &tagged, length).unwrap();
        assert_eq!(Identity::from_packet(&observed), identity_of(&packet));
    }

    #[test]
    fn a_retransmitted_segment_is_another_packet() {
        let first = identity_of(&ipv4(TCP, 5, 64, &tcp(1000, 1, b"data")));
        assert_ne!(
            identity_of(&ipv4(TCP, 6, 64, &tcp(1000, 1, b"data"))),
            first
        );
        assert_ne!(
            identity_of(&ipv4(TCP, 5, 64, &tcp(1000, 2, b"data"))),
            first
        );
        assert_ne!(
            identity_of(&ipv4(TCP, 5, 64, &tcp(1004, 1, b"data"))),
            first
        );
        assert_eq!(
            identity_of(&ipv4(TCP, 5, 60, &tcp(1000, 1, b"data"))),
            first
        );
    }

    #[test]
    fn the_captured_length_matters_only_if_it_is_too_short() {
        let long = ipv4(UDP, 5, 64, &udp(&[7; 500], 0));
        assert_eq!(
            identity_if_truncated(&long, 20 + 8 + 16),
            identity_of(&long)
        );
        assert_eq!(identity_if_truncated(&long, 20 + 8 + 15), None);
        let segment = ipv4(TCP, 5, 64, &tcp(1000, 1, &[7; 500]));
        assert_eq!(
            identity_if_truncated(&segment, 20 + 32),
            identity_of(&segment)
        );
        assert_eq!(
            identity_if_truncated(&segment, 20 + 31),
            None,
            "its timestamps are cut"
        );
        assert_eq!(
            identity_if_truncated(&segment, 20 + 19),
            None,
            "its header is cut"
        );
        let echo: Vec<u8> = [8, 0, 1, 2, 0, 9, 0, 1].into_iter().chain(0..56).collect();
        let echo = ipv4(ICMP, 5, 64, &echo);
        assert_eq!(
            identity_if_truncated(&echo, 20 + 8 + 16),
            identity_of(&echo)
        );
        assert_eq!(identity_if_truncated(&echo, 20 + 8 + 15), None);
    }

    #[test]
    fn the_digest_is_the_same_on_every_machine() {
        // Computed by another implementation of FNV-1a with 64 bits: over the length, folded, over the bytes,
        // folded.
        let packet_identity = identity_of(&ipv4(UDP, 5, 64, &udp(b"question", 0))).unwrap();
        assert_eq!(packet_identity.content, 7_673_577_793_798_268_786);
    }

    proptest! {
        #[test]
        fn a_different_ip_identification_or_payload_is_another_packet(
            number in any::<u16>(),
            payload in prop::collection::vec(any::<u8>(), 1..40),
            position in 0..16_usize,
            flipped in 1..=255_u8,
        ) {
            let packet = |number, payload: &[u8]| identity_of(&ipv4(UDP, number, 64, &udp(payload, 0)));
            let original = packet(number, &payload);
            prop_assert_ne!(packet(number.wrapping_add(1), &payload), original);
            let mut other = payload.clone();
            other[position % payload.len().min(16)] ^= flipped;
            prop_assert_ne!(packet(number, &other), original);
            other.push(0);
            prop_assert_ne!(packet(number, &other), original);
        }

        #[test]
        fn any_captured_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            for link in [Link::Ip, Link::Ethernet] {
                if let Some(packet) = dissect(link, &bytes, 120) {
                    let _ = Identity::from_packet(&packet);
                }
            }
        }
    }
}
