//! Packets that a capture of several interfaces shows more than once: on the way in, over a bridge, on
//! the way out.
//!
//! Owns telling such a copy from a packet that was sent again: it is the same to the last byte looked
//! at, its sender's number of the packet included, passed another interface, and so soon after that
//! nobody had reason to send again.

use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use foldhash::fast::RandomState;
use neph_model::{Span, Wall};
use neph_wire::dissect::{Dissected, Transport};

/// Places of a set: a packet is remembered in one of those of the set that its hash names.
const WAYS: usize = 8;
/// Sets at first and at most. So many places as these are at most (8 MiB) remember the packets of 50 ms
/// at 2 million a second; of more, the oldest of a full set is forgotten.
const SETS: RangeInclusive<usize> = 512..=1 << 15;
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

impl Seen {
    /// Captures of several processors stand out of order: the copy may be stamped first.
    fn is_near(self, at: Wall) -> bool {
        let later = at.unix_nanos().saturating_sub(self.at.unix_nanos());
        later.saturating_abs() < SOON.nanos()
    }
}

/// The latest packets.
#[derive(Debug, Default)]
pub struct Twice {
    hasher: RandomState,
    /// None before the first packet; whole sets, a power of two of them.
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
        let this = Seen {
            hash,
            interface,
            at,
        };
        let mut seen = self.set(hash).iter_mut().flatten();
        match seen.find(|seen| seen.hash == hash) {
            Some(seen) if seen.is_near(at) => {
                let is_copy = seen.interface != interface;
                self.again += u64::from(!is_copy && is_named(packet));
                return is_copy;
            }
            Some(seen) => *seen = this,
            None => self.remember(this),
        }
        false
    }

    /// The places in which a packet may be remembered.
    fn set(&mut self, hash: u64) -> &mut [Option<Seen>] {
        if self.places.is_empty() {
            self.places.resize(SETS.start() * WAYS, None);
        }
        let sets = self.places.len() / WAYS;
        // As many bits as there are sets: it fits.
        let set = usize::try_from(hash & (sets as u64 - 1)).unwrap_or(0);
        &mut self.places[set * WAYS..][..WAYS]
    }

    /// In an empty place of its set, or that of the oldest; where that one may still have a copy, there
    /// are to be more places.
    fn remember(&mut self, this: Seen) {
        loop {
            let is_full_grown = self.places.len() >= SETS.end() * WAYS;
            let set = self.set(this.hash).iter_mut();
            let oldest = set.min_by_key(|place| place.map(|seen| seen.at));
            let Some(place) = oldest else { return };
            if is_full_grown || !place.is_some_and(|seen| seen.is_near(this.at)) {
                *place = Some(this);
                return;
            }
            self.grow();
        }
    }

    /// Twice the sets: each becomes two, so that none is fuller than it was.
    fn grow(&mut self) {
        let more = vec![None; self.places.len() * 2];
        let before = std::mem::replace(&mut self.places, more);
        for seen in before.into_iter().flatten() {
            let empty = self.set(seen.hash).iter_mut().find(|place| place.is_none());
            if let Some(place) = empty {
                *place = Some(seen);
            }
        }
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

    /// Segments of one sender, numbered, so many microseconds apart; each passes a second interface so
    /// many of them later. How many of the second passages are copies.
    fn copies(apart: i64, behind: u32, many: u32) -> u64 {
        let mut twice = Twice::default();
        let mut bytes = segment(0);
        let mut found = 0;
        for turn in 0..many + behind {
            let at = Wall::from_unix_nanos(at(0).unix_nanos() + i64::from(turn) * apart * 1_000);
            for (number, interface) in [(Some(turn), 1), (turn.checked_sub(behind), 2)] {
                let Some(number) = number.filter(|number| *number < many) else {
                    continue;
                };
                bytes[24..28].copy_from_slice(&number.to_be_bytes());
                let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
                found += u64::from(twice.is_copy(at, interface, &packet));
            }
        }
        assert!(twice.places.len() <= SETS.end() * WAYS);
        found
    }

    #[test]
    fn no_copy_within_its_time_is_missed_however_many_packets_lie_between() {
        for behind in [1, 100, 2_000, 4_900] {
            assert_eq!(copies(10, behind, 20_000), 20_000, "{behind}");
        }
    }

    #[test]
    fn memory_is_bounded_where_times_say_nothing() {
        // Each at the same moment: of so many some are forgotten.
        assert!(copies(0, 1, 600_000) > 599_000);
        assert!(copies(0, 500_000, 600_000) < 600_000);
    }

    #[test]
    fn a_copy_that_is_stamped_before_the_first_passage_is_one_too() {
        let mut twice = Twice::default();
        let bytes = segment(7);
        let packet = dissect(Link::Ip, &bytes, 40).expect("a packet");
        assert!(!twice.is_copy(at(3), 1, &packet));
        assert!(twice.is_copy(at(2), 2, &packet));
    }
}
