//! A whole UDP packet, for senders without a socket for each source port.
//!
//! Owns the IP and UDP headers and the checksum (RFC 768, 791, 1071, 8200). Does not own options,
//! extension headers or fragments.

use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

use super::UDP;
use crate::checksum::{PseudoHeader, internet_checksum};

/// Bytes of an IPv4 header without options.
const V4_LEN: usize = 20;
/// Bytes of a UDP header.
const UDP_HEADER_LEN: usize = 8;
/// `DF`, as in the kernel's datagrams: routers do not fragment it.
const DONT_FRAGMENT: u16 = 0x4000;

/// Addresses and hop limit of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpHeaders {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination; of the same IP version.
    pub destination: SocketAddr,
    /// TTL or hop limit.
    pub hop_limit: u8,
}

/// Why a packet cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// One address is IPv4, the other IPv6.
    #[error("write UDP packet: its addresses are of different IP versions")]
    MixedIpVersions,
    /// More than a packet can contain.
    #[error("write UDP packet: {0} bytes of payload do not fit")]
    PayloadTooLong(usize),
}

/// Appends the packet with `payload`. An IPv4 header has no identification, because a packet that
/// is never fragmented needs none (RFC 6864).
///
/// # Errors
/// When the addresses are of different versions, or the payload is longer than 65,507 bytes
/// (IPv4) or 65,527 bytes (IPv6).
pub fn encode_udp(
    datagram: &UdpHeaders,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), PacketError> {
    let too_long = || PacketError::PayloadTooLong(payload.len());
    let length_with =
        |header_len: usize| u16::try_from(payload.len() + header_len).map_err(|_| too_long());
    let udp_len = length_with(UDP_HEADER_LEN)?;
    let (source, destination) = (datagram.source.ip(), datagram.destination.ip());
    let pseudo = PseudoHeader::new(source, destination, UDP, usize::from(udp_len))
        .ok_or(PacketError::MixedIpVersions)?;
    match (source, destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = length_with(V4_LEN + UDP_HEADER_LEN)?;
            let start = out.len();
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&total.to_be_bytes());
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&DONT_FRAGMENT.to_be_bytes());
            out.extend_from_slice(&[datagram.hop_limit, UDP, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let sum = internet_checksum(&[&out[start..]]);
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&udp_len.to_be_bytes());
            out.extend_from_slice(&[UDP, datagram.hop_limit]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        _ => return Err(PacketError::MixedIpVersions),
    }
    push_udp(datagram, udp_len, payload, &pseudo, out);
    Ok(())
}

/// Appends the UDP header, with its checksum over `pseudo`, header and payload, and the payload.
fn push_udp(
    datagram: &UdpHeaders,
    len: u16,
    payload: &[u8],
    pseudo: &PseudoHeader,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&datagram.source.port().to_be_bytes());
    out.extend_from_slice(&datagram.destination.port().to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(payload);
    // 0 means "no checksum".
    let checksum = match internet_checksum(&[pseudo.as_bytes(), &out[start..]]) {
        0 => u16::MAX,
        checksum => checksum,
    };
    out[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::super::{FiveTuple, parse_ip, parse_udp};
    use super::*;

    /// Written in Python with `struct.pack` and its own checksum: DF, TTL 64, "neph" from
    /// 192.0.2.1:40000 to 198.51.100.2:862.
    const EXPECTED_PACKET: [u8; 32] = [
        0x45, 0x00, 0x00, 0x20, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x4e, 0x96, 0xc0, 0x00, 0x02,
        0x01, 0xc6, 0x33, 0x64, 0x02, 0x9c, 0x40, 0x03, 0x5e, 0x00, 0x0c, 0x95, 0x32, 0x6e, 0x65,
        0x70, 0x68,
    ];

    #[test]
    fn a_packet_equals_that_of_another_implementation() {
        let datagram = UdpHeaders {
            source: ([192, 0, 2, 1], 40_000).into(),
            destination: ([198, 51, 100, 2], 862).into(),
            hop_limit: 64,
        };
        let mut packet = Vec::new();
        encode_udp(&datagram, b"neph", &mut packet).expect("it fits");
        assert_eq!(packet, EXPECTED_PACKET);
    }

    #[test]
    fn invalid_datagrams_are_refused() {
        let v4: SocketAddr = (Ipv4Addr::LOCALHOST, 1).into();
        let v6: SocketAddr = (Ipv6Addr::LOCALHOST, 1).into();
        let datagram = |source, destination| UdpHeaders {
            source,
            destination,
            hop_limit: 1,
        };
        let encode =
            |datagram: UdpHeaders, len| encode_udp(&datagram, &vec![0; len], &mut Vec::new());
        assert_eq!(
            encode(datagram(v4, v6), 0),
            Err(PacketError::MixedIpVersions)
        );
        assert_eq!(encode(datagram(v4, v4), 65_507), Ok(()));
        assert_eq!(
            encode(datagram(v4, v4), 65_508),
            Err(PacketError::PayloadTooLong(65_508))
        );
        assert_eq!(encode(datagram(v6, v6), 65_527), Ok(()));
    }

    fn any_pair() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
        let v4 = || any::<(Ipv4Addr, u16)>().prop_map(SocketAddr::from);
        let v6 = || any::<(Ipv6Addr, u16)>().prop_map(SocketAddr::from);
        prop_oneof![(v4(), v4()), (v6(), v6())]
    }

    proptest! {
        #[test]
        fn an_encoded_datagram_is_parsed_back_with_valid_checksums(
            (source, destination) in any_pair(),
            hop_limit in any::<u8>(),
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = Vec::new();
            encode_udp(&UdpHeaders { source, destination, hop_limit }, &payload, &mut bytes).expect("fits");
            let packet = parse_ip(&bytes).expect("a packet");
            let udp = parse_udp(packet.payload).expect("a datagram");
            prop_assert_eq!(udp.payload, &payload[..]);
            prop_assert_eq!(udp.payload_len, payload.len());
            let expected = FiveTuple {
                protocol: UDP,
                source: source.ip(),
                destination: destination.ip(),
                source_port: source.port(),
                destination_port: destination.port(),
            };
            prop_assert_eq!(FiveTuple::of(&packet), expected);
            // A receiver's sum of all words, checksum included, is all ones.
            let addresses = match source {
                SocketAddr::V4(_) => &bytes[12..20],
                SocketAddr::V6(_) => &bytes[8..40],
            };
            let length = &bytes[bytes.len() - payload.len() - 4..][..2];
            let checksummed = [addresses, &[0, UDP], length, packet.payload];
            prop_assert_eq!(internet_checksum(&checksummed), 0);
            if source.is_ipv4() {
                prop_assert_eq!(internet_checksum(&[&bytes[..V4_LEN]]), 0);
            }
        }
    }
}
