//! A sample of the packets of a point: at every point of a path the same ones are chosen, without a word between
//! them (hash-based selection, RFC 5475, 6.2).
//!
//! Owns the hash and which packets have to be chosen together. It is of what no hop and no translator changes. Those
//! with the smallest hashes are kept, so that points of different rates have most of their samples in common. Reads
//! no capture.

use std::collections::BTreeMap;

use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::tcp_timestamps;

use crate::fragments::is_fragment;
use crate::identity::{COUNTED, Digest, Identity};

/// Bytes of the shortest header that a packet is known again by (ICMP), and of the payload that counts behind it.
const HEAD: usize = 8 + COUNTED;

/// A sample of at most so many packets.
#[derive(Debug)]
pub struct Selection<T> {
    most: usize,
    /// Those with one hash, each with its place among all that were offered.
    groups: BTreeMap<u64, Vec<(u64, T)>>,
    kept: usize,
    offered: u64,
    /// Packets of this hash, or of a larger one, were left out.
    below: u64,
}

impl<T> Selection<T> {
    /// Nothing yet; of all packets that are offered at most so many are kept, at least 2.
    pub fn of(most: usize) -> Self {
        Self {
            most: most.max(2),
            groups: BTreeMap::new(),
            kept: 0,
            offered: 0,
            below: u64::MAX,
        }
    }

    /// One more packet, with the hash of [`selector`]; `make` is what is kept of it.
    pub fn offer(&mut self, hash: u64, make: impl FnOnce() -> T) {
        self.offered += 1;
        if hash >= self.below {
            return;
        }
        let group = self.groups.entry(hash).or_default();
        // Packets that are alike leave room for others.
        if group.len() >= self.most / 2 {
            return;
        }
        group.push((self.offered, make()));
        self.kept += 1;
        if self.kept > self.most
            && let Some((largest, group)) = self.groups.pop_last()
        {
            self.kept -= group.len();
            self.below = largest;
        }
    }

    /// What is kept, in the order in which it was offered; then nothing is.
    pub fn take(&mut self) -> Vec<T> {
        let groups = std::mem::replace(self, Self::of(self.most)).groups;
        let mut all: Vec<(u64, T)> = groups.into_values().flatten().collect();
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, kept)| kept).collect()
    }
}

/// The hash by which a packet is chosen; `None` where too little of it was kept. Packets that may have been one, as
/// fragments and what segmentation offload cuts, have the same.
pub fn selector(packet: &Dissected<'_>) -> Option<u64> {
    let identity = Identity::of(packet)?;
    let protocol = Digest::default().with(&[identity.protocol]);
    if is_fragment(packet) {
        let number = identity.number.unwrap_or_default();
        return Some(spread(protocol.with(&number.to_be_bytes())));
    }
    if let Transport::Tcp {
        header,
        payload_len: 1..,
    } = packet.transport
        && let Some((own, echoed)) = tcp_timestamps(header.options)
    {
        // What cuts and joins segments leaves these alone.
        let common = [header.ack, own, echoed];
        let digest = common
            .iter()
            .fold(protocol, |digest, one| digest.with(&one.to_be_bytes()));
        return Some(spread(digest));
    }
    let number = identity.number.map_or(0, |number| u32::from(number) + 1);
    let digest = protocol.with(&number.to_be_bytes());
    Some(spread(digest.with(&identity.content.to_be_bytes())))
}

/// How many of a packet's bytes, which begin at `bytes`, it is known again by.
pub fn needed(bytes: &[u8], packet: &Dissected<'_>) -> usize {
    let before = packet.ip.payload.as_ptr().addr() - bytes.as_ptr().addr();
    let header = match packet.transport {
        Transport::Tcp { header, .. } => header.header_len,
        _ => 0,
    };
    bytes.len().min(before + header.max(HEAD))
}

/// All bits of a digest count for its order among others (the finish of `SplitMix64`).
const fn spread(digest: Digest) -> u64 {
    let mut hash = digest.0;
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

#[cfg(test)]
mod tests {
    use neph_wire::dissect::{Link, dissect};
    use proptest::prelude::*;

    use super::*;

    /// A datagram of these hosts and this number.
    fn datagram(hosts: [u8; 2], ttl: u8, number: u16, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(28 + payload.len()).expect("short");
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend(number.to_be_bytes());
        packet.extend([
            0x40, 0, ttl, 17, 0, 0, 10, 0, 0, hosts[0], 10, 0, 0, hosts[1],
        ]);
        packet.extend([0, 9, 0, 9]);
        packet.extend((length - 20).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        packet
    }

    /// Data of TCP with this time stamp.
    fn segment(seq: u32, stamp: u32, payload: usize) -> Vec<u8> {
        let length = u16::try_from(52 + payload).expect("short");
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([
            0, 5, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 80,
        ]);
        packet.extend(seq.to_be_bytes());
        packet.extend(7_u32.to_be_bytes());
        packet.extend([0x80, 0x18, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        packet.extend(stamp.to_be_bytes());
        packet.extend(9_u32.to_be_bytes());
        packet.resize(packet.len() + payload, 3);
        packet
    }

    fn hash(packet: &[u8]) -> u64 {
        let length = u32::try_from(packet.len()).expect("short");
        let packet = dissect(Link::Ip, packet, length).expect("a packet");
        selector(&packet).expect("whole headers")
    }

    #[test]
    fn hops_and_translators_leave_the_hash_alone() {
        let before = hash(&datagram([1, 2], 64, 5, b"question"));
        assert_eq!(hash(&datagram([9, 2], 61, 5, b"question")), before);
        assert_ne!(hash(&datagram([1, 2], 64, 6, b"question")), before);
        assert_ne!(hash(&datagram([1, 2], 64, 5, b"questiom")), before);
    }

    #[test]
    fn pieces_of_a_large_segment_are_chosen_with_it() {
        let large = hash(&segment(1_000, 77, 4_000));
        for seq in [1_000, 2_448, 3_896] {
            assert_eq!(hash(&segment(seq, 77, 1_104)), large);
        }
        assert_ne!(hash(&segment(1_000, 78, 1_448)), large);
        assert_ne!(hash(&segment(1_000, 77, 0)), large, "an acknowledgement");
    }

    #[test]
    fn fragments_of_a_datagram_are_chosen_together() {
        let mut first = datagram([1, 2], 64, 5, &[1; 40]);
        first[6] = 0x20;
        let mut last = datagram([1, 2], 64, 5, &[2; 40]);
        last[7] = 6;
        assert_eq!(hash(&first), hash(&last));
    }

    #[test]
    fn what_is_needed_of_a_packet_has_its_hash_and_its_identity() {
        for packet in [
            segment(1_000, 77, 900),
            datagram([1, 2], 64, 5, &[4; 900]),
            datagram([1, 2], 64, 5, b"short"),
        ] {
            let length = u32::try_from(packet.len()).expect("short");
            let whole = dissect(Link::Ip, &packet, length).expect("a packet");
            let cut = &packet[..needed(&packet, &whole)];
            assert!(cut.len() <= 96);
            let cut = dissect(Link::Ip, cut, length).expect("a packet");
            assert_eq!(selector(&cut), selector(&whole));
            assert_eq!(Identity::of(&cut), Identity::of(&whole));
        }
    }

    #[test]
    fn of_packets_that_are_alike_half_of_the_room_is_left_for_others() {
        let mut selection = Selection::of(8);
        (0..100).for_each(|_| selection.offer(0, || 'a'));
        (1..100).for_each(|hash| selection.offer(hash, || 'b'));
        let kept = selection.take();
        assert_eq!(kept, ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b']);
        assert!(selection.take().is_empty());
    }

    proptest! {
        #[test]
        fn the_smallest_hashes_are_kept_in_the_order_of_their_packets(
            hashes in prop::collection::hash_set(any::<u64>(), 0..200),
            most in 2_usize..40,
        ) {
            let mut selection = Selection::of(most);
            for hash in &hashes {
                selection.offer(*hash, || *hash);
            }
            let mut smallest: Vec<u64> = hashes.iter().copied().collect();
            smallest.sort_unstable();
            smallest.truncate(most);
            let kept = selection.take();
            let expected: Vec<u64> = hashes.iter().copied().filter(|hash| smallest.contains(hash)).collect();
            prop_assert_eq!(kept, expected);
        }

        /// The second point has other traffic beside that of the path, as much as it likes.
        #[test]
        fn two_points_of_one_path_choose_the_same_packets(
            numbers in prop::collection::hash_set(any::<u16>(), 200..300),
            others in 0_usize..1_000,
        ) {
            let (mut near, mut far) = (Selection::of(32), Selection::of(32));
            for number in &numbers {
                near.offer(hash(&datagram([1, 2], 64, *number, b"a")), || *number);
                far.offer(hash(&datagram([7, 2], 60, *number, b"a")), || *number);
            }
            for other in 0..others {
                let payload = other.to_be_bytes();
                far.offer(hash(&datagram([3, 4], 64, 1, &payload)), || 0);
            }
            let near = near.take();
            // All of the path's packets that the far one has, the near one has too.
            for number in far.take().into_iter().filter(|number| *number != 0) {
                prop_assert!(near.contains(&number));
            }
        }
    }
}
