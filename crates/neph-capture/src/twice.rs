//! Packets that a capture of several interfaces shows more than once: on the way in, over a bridge, on
//! the way out.
//!
//! Owns telling such a copy from a packet that was sent again: it is the same to the last byte looked
//! at, its sender's number of the packet included, passed another interface, and so soon after that
//! nobody had reason to send again.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use neph_model::{Span, Wall};
use neph_wire::dissect::{Dissected, Transport};

/// Packets that are remembered at most; fewer where two fall on the same place.
const PLACES: usize = 4096;
/// Bytes of the transport header and behind that are compared.
const COMPARED: usize = 64;
/// No retransmission timer is shorter (RFC 6298 asks for 1 s, Linux has 200 ms).
const SOON: Span = Span::from_millis(50);

/// What of a packet is remembered.
#[derive(Debug, Clone, Copy)]
struct Seen {
    hash: u64,
    interface: u32,
    at: Wall,
}

/// The latest packets.
#[derive(Debug, Default)]
pub struct Twice {
    hasher: RandomState,
    /// None before the first packet.
    places: Vec<Option<Seen>>,
    looked: u64,
    again: u64,
}

impl Twice {
    /// Whether this packet passed another interface just before; the first passage is remembered.
    pub fn is_copy(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>) -> bool {
        self.looked += 1;
        let ip = &packet.ip;
        let payload = &ip.payload[..ip.payload.len().min(COMPARED)];
        let name = (ip.source, ip.destination, ip.identification);
        let whole = (name, ip.fragment_offset, ip.total_len, payload);
        let hash = self.hasher.hash_one((whole, packet.vlan, packet.tunnel));
        self.places.resize(PLACES, None);
        let place = usize::try_from(hash % PLACES as u64).unwrap_or(0);
        let found = self.places[place].filter(|seen| {
            let later = at.unix_nanos().saturating_sub(seen.at.unix_nanos());
            seen.hash == hash && (0..SOON.nanos()).contains(&later)
        });
        if let Some(seen) = found {
            let is_copy = seen.interface != interface;
            self.again += u64::from(!is_copy && is_named(packet));
            return is_copy;
        }
        self.places[place] = Some(Seen {
            hash,
            interface,
            at,
        });
        false
    }

    /// Packets that were looked at.
    pub const fn looked(&self) -> u64 {
        self.looked
    }

    /// Packets among them that passed the same interface again.
    pub const fn again(&self) -> u64 {
        self.again
    }
}

/// Whether its sender numbered it, in IP or above: another one is not the same to the last byte. Many
/// number 0 what they do not cut.
const fn is_named(packet: &Dissected<'_>) -> bool {
    match packet.ip.identification {
        Some(number) => number != 0,
        None => match packet.transport {
            Transport::Tcp { payload_len, .. } => payload_len > 0,
            Transport::Icmp(_) => true,
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use neph_wire::dissect::{Link, dissect};

    use super::*;

    /// A TCP segment in raw IPv4 whose sender gave the packet this number.
    fn segment(identification: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 40, 0, identification, 0x40, 0, 64, 6, 0, 0];
        packet.extend([192, 0, 2, 1, 198, 51, 100, 2, 0x9c, 0x40, 1, 0xbb]);
        packet.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 16, 1, 0, 0, 0, 0, 0]);
        packet
    }

    fn at(milliseconds: i64) -> Wall {
        Wall::from_unix_nanos(1_700_000_000_000_000_000 + milliseconds * 1_000_000)
    }

    #[test]
    fn a_copy_is_the_same_packet_at_another_interface_at_once() {
        let mut twice = Twice::default();
        let bytes = segment(7);
        let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
        assert!(!twice.is_copy(at(0), 1, &packet));
        assert!(twice.is_copy(at(0), 2, &packet));
        assert!(twice.is_copy(at(1), 3, &packet));
        // A duplicate that the network made.
        assert!(!twice.is_copy(at(1), 1, &packet));
        assert!(!twice.is_copy(at(400), 2, &packet));
        assert_eq!((twice.looked(), twice.again()), (5, 1));
    }

    #[test]
    fn what_has_no_number_of_its_own_is_not_the_same_packet_again() {
        let mut twice = Twice::default();
        let bytes = segment(0);
        let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
        assert!(!twice.is_copy(at(0), 1, &packet) && !twice.is_copy(at(1), 1, &packet));
        assert_eq!((twice.looked(), twice.again()), (2, 0));
    }

    #[test]
    fn what_was_sent_again_has_another_number_and_is_no_copy() {
        let mut twice = Twice::default();
        for (number, interface) in [(7, 1), (8, 2)] {
            let bytes = segment(number);
            let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
            assert!(!twice.is_copy(at(0), interface, &packet));
        }
    }

    #[test]
    fn a_router_in_between_lowers_the_hops_left_of_the_same_packet() {
        let mut twice = Twice::default();
        let (before, mut after) = (segment(7), segment(7));
        after[8] = 63;
        let before = dissect(Link::Ip, &before, 40).expect("a packet");
        let after = dissect(Link::Ip, &after, 40).expect("a packet");
        assert!(!twice.is_copy(at(0), 1, &before));
        assert!(twice.is_copy(at(0), 2, &after));
    }
}
