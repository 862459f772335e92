//! The flow of a packet.
//!
//! Owns the definition of a flow. TCP and UDP: addresses, protocol and ports. ICMP echo: addresses, protocol
//! and identifier. Other IP packets: addresses and protocol. Fragments belong to the last group, because only
//! the first has ports. IPv6 extension headers are not followed.

use super::frame::ETHERNET_HEADER_BYTES;

pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMP_V6: u8 = 58;

/// The flow of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Equal for all of its packets; packets of another flow rarely have it.
    pub hash: u64,
    /// Its protocol, if paths can be reserved for it.
    pub protocol: Option<ReservedProtocol>,
}

/// A protocol that a path can be reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedProtocol {
    /// ICMP and `ICMPv6`.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The flow of an Ethernet frame; `None` if it is not IP.
pub(crate) fn flow_of_frame(frame: &[u8]) -> Option<Flow> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_HEADER_BYTES as usize)?;
    match [ethernet[12], ethernet[13]] {
        [0x08, 0x00] => {
            let header_length = usize::from(packet.first()? & 0x0f) * 4;
            let is_fragment = packet.get(6)? & 0x3f != 0 || *packet.get(7)? != 0;
            let transport = if is_fragment {
                None
            } else {
                packet.get(header_length..)
            };
            Some(flow_of_ip_packet(
                packet.get(12..20)?,
                *packet.get(9)?,
                transport,
            ))
        }
        [0x86, 0xdd] => Some(flow_of_ip_packet(
            packet.get(8..40)?,
            *packet.get(6)?,
            packet.get(40..),
        )),
        _ => None,
    }
}

fn flow_of_ip_packet(addresses: &[u8], protocol: u8, transport: Option<&[u8]>) -> Flow {
    let transport = transport.unwrap_or_default();
    let ports = match (protocol, transport.first()) {
        (TCP | UDP, _) => transport.get(..4),
        (ICMP, Some(0 | 8)) | (ICMP_V6, Some(128 | 129)) => transport.get(4..6),
        _ => None,
    };
    let bytes = addresses.iter().chain([&protocol]);
    // FNV-1a; the choice of a path adds the seed.
    let hash = bytes
        .chain(ports.unwrap_or_default())
        .fold(0xcbf2_9ce4_8422_2325, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    let protocol = match protocol {
        ICMP | ICMP_V6 => Some(ReservedProtocol::Icmp),
        TCP => Some(ReservedProtocol::Tcp),
        UDP => Some(ReservedProtocol::Udp),
        _ => None,
    };
    Flow { hash, protocol }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A UDP packet over IPv4 or IPv6 from a port.
    pub(in crate::gate) fn udp(ethertype: [u8; 2], port: u16) -> Vec<u8> {
        let mut frame = vec![0; 80];
        frame[12..14].copy_from_slice(&ethertype);
        let ports = if ethertype == [8, 0] {
            frame[14] = 0x45;
            frame[23] = UDP;
            34
        } else {
            frame[20] = UDP;
            54
        };
        frame[ports..ports + 2].copy_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn a_flow_is_identified_by_fields_that_all_its_packets_share() {
        let datagram = udp([8, 0], 7);
        let flow_with_byte = |at: usize, value: u8| {
            let mut other = datagram.clone();
            other[at] = value;
            flow_of_frame(&other)
        };
        let flow_of_datagram = flow_of_frame(&datagram);
        for (at, field) in [
            (18, "identification"),
            (22, "time to live"),
            (60, "payload"),
        ] {
            assert_eq!(flow_with_byte(at, 9), flow_of_datagram, "{field}");
        }
        for (at, field) in [
            (26, "source"),
            (33, "destination"),
            (34, "port"),
            (23, "protocol"),
        ] {
            assert_ne!(flow_with_byte(at, 9), flow_of_datagram, "{field}");
        }
        let mut ping = datagram.clone();
        (ping[23], ping[34]) = (ICMP, 8);
        let first_flow = flow_of_frame(&ping);
        ping[41] = 3;
        assert_eq!(flow_of_frame(&ping), first_flow, "sequence number");
        ping[39] = 3;
        assert_ne!(flow_of_frame(&ping), first_flow, "identifier");
        let mut fragment = datagram.clone();
        fragment[20] = 0x20;
        let first_flow = flow_of_frame(&fragment);
        (fragment[20], fragment[21], fragment[34]) = (0, 9, 77);
        assert_eq!(
            flow_of_frame(&fragment),
            first_flow,
            "fragments have no ports"
        );
        for length in 0..datagram.len() {
            flow_of_frame(&datagram[..length]);
        }
    }
}
