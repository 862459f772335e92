//! What a packet belongs to: its flow, by what names it.
//!
//! Owns what counts as a flow: addresses, protocol and ports of TCP and UDP; addresses, protocol
//! and identifier of an ICMP echo; addresses and protocol of anything else that is IP, fragments
//! included, because only the first of them has ports. IPv6 extension headers are not followed.

use super::frame::ETHERNET;

pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
pub(super) const ICMP: u8 = 1;
pub(super) const ICMP_V6: u8 = 58;

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// All of its packets have it; packets of another flow hardly ever do.
    pub number: u64,
    /// Its protocol, if that is one that paths are reserved for.
    pub protocol: Option<Reserved>,
}

/// A protocol that a path can be reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// ICMP and `ICMPv6`.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The flow that an Ethernet frame belongs to; none when it is not IP.
pub(crate) fn flow(frame: &[u8]) -> Option<Flow> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET as usize)?;
    match [ethernet[12], ethernet[13]] {
        [0x08, 0x00] => {
            let header = usize::from(packet.first()? & 0x0f) * 4;
            let fragment = packet.get(6)? & 0x3f != 0 || *packet.get(7)? != 0;
            let behind = if fragment { None } else { packet.get(header..) };
            Some(of(packet.get(12..20)?, *packet.get(9)?, behind))
        }
        [0x86, 0xdd] => Some(of(packet.get(8..40)?, *packet.get(6)?, packet.get(40..))),
        _ => None,
    }
}

fn of(addresses: &[u8], protocol: u8, behind: Option<&[u8]>) -> Flow {
    let behind = behind.unwrap_or_default();
    let named = match (protocol, behind.first()) {
        (TCP | UDP, _) => behind.get(..4),
        (ICMP, Some(0 | 8)) | (ICMP_V6, Some(128 | 129)) => behind.get(4..6),
        _ => None,
    };
    let bytes = addresses.iter().chain([&protocol]);
    // FNV-1a; the seed comes in when a path is chosen.
    let number = bytes
        .chain(named.unwrap_or_default())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    let protocol = match protocol {
        ICMP | ICMP_V6 => Some(Reserved::Icmp),
        TCP => Some(Reserved::Tcp),
        UDP => Some(Reserved::Udp),
        _ => None,
    };
    Flow { number, protocol }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A UDP packet over IPv4 or IPv6 from a port.
    pub(in crate::gate) fn udp(kind: [u8; 2], port: u16) -> Vec<u8> {
        let mut frame = vec![0; 80];
        frame[12..14].copy_from_slice(&kind);
        let ports = if kind == [8, 0] {
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
    fn a_flow_is_known_by_what_stays_the_same_in_all_its_packets() {
        let one = udp([8, 0], 7);
        let with = |at: usize, value: u8| {
            let mut other = one.clone();
            other[at] = value;
            flow(&other)
        };
        let same = flow(&one);
        for (at, what) in [
            (18, "identification"),
            (22, "time to live"),
            (60, "payload"),
        ] {
            assert_eq!(with(at, 9), same, "{what}");
        }
        for (at, what) in [
            (26, "source"),
            (33, "destination"),
            (34, "port"),
            (23, "protocol"),
        ] {
            assert_ne!(with(at, 9), same, "{what}");
        }
        let mut ping = one.clone();
        (ping[23], ping[34]) = (ICMP, 8);
        let first = flow(&ping);
        ping[41] = 3;
        assert_eq!(flow(&ping), first, "sequence number");
        ping[39] = 3;
        assert_ne!(flow(&ping), first, "identifier");
        let mut fragment = one.clone();
        fragment[20] = 0x20;
        let first = flow(&fragment);
        (fragment[20], fragment[21], fragment[34]) = (0, 9, 77);
        assert_eq!(flow(&fragment), first, "fragments have no ports");
        for length in 0..one.len() {
            flow(&one[..length]);
        }
    }
}
