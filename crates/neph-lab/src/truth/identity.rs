//! What a packet can be recognised by on both sides of a link and at other points of its path.
//!
//! Owns the few header fields read for that. Does not validate packets: what is too short or
//! unknown has zeros.

const ETHERNET_HEADER_BYTES: usize = 14;
/// Bytes of the packet, from the IP header on, that the hash covers.
const HASHED_BYTES: usize = 96;

/// Fields and a hash that stay the same along a path of routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// IP protocol: 6 TCP, 17 UDP, 1 ICMP, 58 `ICMPv6`; 0 when it is not IP.
    pub protocol: u8,
    /// The IPv4 identification; 0 for IPv6.
    pub ip_id: u16,
    /// The TCP or UDP source port.
    pub source_port: u16,
    /// The TCP or UDP destination port.
    pub destination_port: u16,
    /// The TCP sequence number.
    pub tcp_seq: u32,
    /// FNV-1a over the first 96 bytes from the IP header on, with what routers change (time to
    /// live and header checksum) taken as zero.
    pub hash: u64,
}

impl Identity {
    /// The identity of an Ethernet frame. IPv6 extension headers are not followed.
    pub fn from_frame(frame: &[u8]) -> Self {
        let Some((ethernet, packet)) = frame.split_at_checked(ETHERNET_HEADER_BYTES) else {
            return Self::default();
        };
        match [ethernet[12], ethernet[13]] {
            [0x08, 0x00] if packet.len() >= 20 => {
                let header_bytes = usize::from(packet[0] & 0x0f) * 4;
                let ip_id = u16::from_be_bytes([packet[4], packet[5]]);
                let hash = hash(packet, &[8, 10, 11]);
                Self {
                    ip_id,
                    hash,
                    ..Self::transport(packet[9], packet.get(header_bytes..))
                }
            }
            [0x86, 0xdd] if packet.len() >= 40 => Self {
                hash: hash(packet, &[7]),
                ..Self::transport(packet[6], packet.get(40..))
            },
            _ => Self {
                hash: hash(packet, &[]),
                ..Self::default()
            },
        }
    }

    fn transport(protocol: u8, header: Option<&[u8]>) -> Self {
        let without_ports = Self {
            protocol,
            ..Self::default()
        };
        match header {
            Some(header) if matches!(protocol, 6 | 17) && header.len() >= 8 => Self {
                source_port: u16::from_be_bytes([header[0], header[1]]),
                destination_port: u16::from_be_bytes([header[2], header[3]]),
                tcp_seq: match protocol {
                    6 => u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
                    _ => 0,
                },
                ..without_ports
            },
            _ => without_ports,
        }
    }
}

fn hash(packet: &[u8], zeroed_offsets: &[usize]) -> u64 {
    packet.iter().take(HASHED_BYTES).enumerate().fold(
        0xcbf2_9ce4_8422_2325,
        |hash, (offset, byte)| {
            let byte = if zeroed_offsets.contains(&offset) {
                0
            } else {
                *byte
            };
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        },
    )
}
