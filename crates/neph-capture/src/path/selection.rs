//! A sample of the packets of a point. Every point of a path selects the same packets without coordination
//! (hash-based selection, RFC 5475, 6.2).
//!
//! Owns the hash and which packets are selected together. The hash uses fields that no hop and no NAT
//! changes. Packets with the smallest hashes are kept, so points with different rates share most samples.
//! Reads no capture.

use std::collections::{BTreeMap, HashSet};

use foldhash::quality::RandomState;
use neph_wire::dissect::{Dissected, Transport};
use neph_wire::ip::tcp_timestamps;

use crate::fragments::is_fragment;
use crate::identity::{COUNTED_PAYLOAD_BYTES, Digest, Identity};

/// Bytes of the shortest header that identifies a packet (ICMP), and of the payload that counts.
const HEAD_BYTES: usize = 8 + COUNTED_PAYLOAD_BYTES;
/// Packets with one hash, at most: a segment of 64 KiB has 46 pieces.
const MAX_GROUP: usize = 64;
/// Packets without a number that are remembered, in each of two parts.
const MAX_REMEMBERED: usize = 16_384;

/// A sample of about a given number of packets. Packets with one hash stay together.
#[derive(Debug)]
pub struct Selection<T> {
    max_packets: usize,
    /// Packets by hash, each with its place among all offered packets.
    groups: BTreeMap<u64, Vec<(u64, T)>>,
    sampled: usize,
    offered: u64,
    /// Packets with this hash or a larger one were excluded.
    hash_limit: u64,
    recent: RecentPackets,
}

/// A packet's data for the selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionKey {
    hash: u64,
    identity: Identity,
    /// No equal packet follows soon.
    is_distinguishable: bool,
}

/// Recent packets that others may equal.
#[derive(Debug, Default)]
struct RecentPackets {
    current: HashSet<Identity, RandomState>,
    previous: HashSet<Identity, RandomState>,
}

impl RecentPackets {
    /// Whether an equal packet was seen before; adds this one.
    fn is_repeat(&mut self, identity: Identity) -> bool {
        let is_new = self.current.insert(identity);
        let is_known = self.previous.contains(&identity) || !is_new;
        if self.current.len() >= MAX_REMEMBERED {
            self.previous = std::mem::take(&mut self.current);
        }
        is_known
    }
}

impl<T> Selection<T> {
    /// An empty sample, for about this many packets.
    pub fn of(max_packets: usize) -> Self {
        Self {
            max_packets,
            groups: BTreeMap::new(),
            sampled: 0,
            offered: 0,
            hash_limit: u64::MAX,
            recent: RecentPackets::default(),
        }
    }

    /// Offers a packet; `make` creates the kept value. Only the first of identical packets can be kept.
    /// Samples of two points begin at different moments, so they would keep different ones.
    pub fn offer(&mut self, key: SelectionKey, make: impl FnOnce() -> T) {
        if !key.is_distinguishable && self.recent.is_repeat(key.identity) {
            return;
        }
        self.keep(key.hash, make);
    }

    fn keep(&mut self, hash: u64, make: impl FnOnce() -> T) {
        self.offered += 1;
        if hash >= self.hash_limit {
            return;
        }
        let group = self.groups.entry(hash).or_default();
        if group.len() >= MAX_GROUP {
            return;
        }
        group.push((self.offered, make()));
        self.sampled += 1;
        while self.sampled > self.max_packets
            && self.groups.len() > 1
            && let Some((largest, group)) = self.groups.pop_last()
        {
            self.sampled -= group.len();
            self.hash_limit = largest;
        }
    }

    /// Removes and returns the kept values, in the order in which they were offered.
    pub fn take(&mut self) -> Vec<T> {
        let groups = std::mem::take(&mut self.groups);
        (self.sampled, self.offered, self.hash_limit) = (0, 0, u64::MAX);
        let mut sampled: Vec<(u64, T)> = groups.into_values().flatten().collect();
        sampled.sort_unstable_by_key(|(index, _)| *index);
        sampled.into_iter().map(|(_, value)| value).collect()
    }
}

impl SelectionKey {
    /// The selection key of a packet. `None` if too few bytes were captured. Packets that may have been one,
    /// as fragments or by segmentation offload, are selected together.
    pub fn of(packet: &Dissected<'_>) -> Option<Self> {
        let identity = Identity::from_packet(packet)?;
        let protocol = Digest::default().with_bytes(&[identity.protocol]);
        let key_with_digest = |digest| Self {
            hash: spread(digest),
            identity,
            is_distinguishable: true,
        };
        if is_fragment(packet) {
            let number = identity.number.unwrap_or_default();
            return Some(key_with_digest(protocol.with_bytes(&number.to_be_bytes())));
        }
        if let Transport::Tcp {
            header,
            payload_len: 1..,
        } = packet.transport
            && let Some((own_timestamp, echoed)) = tcp_timestamps(header.options)
        {
            // Offload that splits and merges segments does not change these.
            let common = [header.ack, own_timestamp, echoed];
            let with =
                |digest: Digest, timestamp: &u32| digest.with_bytes(&timestamp.to_be_bytes());
            return Some(key_with_digest(common.iter().fold(protocol, with)));
        }
        let number = identity.number.map_or(0, |number| u32::from(number) + 1);
        let digest = protocol.with_bytes(&number.to_be_bytes());
        Some(Self {
            is_distinguishable: identity.is_distinguishable(packet),
            ..key_with_digest(digest.with_bytes(&identity.content.to_be_bytes()))
        })
    }
}

/// Number of bytes, from the start of `bytes`, that identify a packet.
pub fn identifying_length(bytes: &[u8], packet: &Dissected<'_>) -> usize {
    let before = packet.ip.payload.as_ptr().addr() - bytes.as_ptr().addr();
    let header = match packet.transport {
        Transport::Tcp { header, .. } => header.header_len,
        _ => 0,
    };
    bytes.len().min(before + header.max(HEAD_BYTES))
}

/// Spreads a digest, so that all bits count for its order (the finish of `SplitMix64`).
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

    /// A datagram with these hosts and this number.
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

    /// TCP data with this timestamp option.
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

    fn selection_key(packet: &[u8]) -> SelectionKey {
        let length = u32::try_from(packet.len()).expect("short");
        let packet = dissect(Link::Ip, packet, length).expect("a packet");
        SelectionKey::of(&packet).expect("whole headers")
    }

    fn hash(packet: &[u8]) -> u64 {
        selection_key(packet).hash
    }

    #[test]
    fn hops_and_nat_do_not_change_the_hash() {
        let before = hash(&datagram([1, 2], 64, 5, b"question"));
        assert_eq!(hash(&datagram([9, 2], 61, 5, b"question")), before);
        assert_ne!(hash(&datagram([1, 2], 64, 6, b"question")), before);
        assert_ne!(hash(&datagram([1, 2], 64, 5, b"questiom")), before);
    }

    #[test]
    fn pieces_of_a_large_segment_are_selected_with_it() {
        let large = hash(&segment(1_000, 77, 4_000));
        for seq in [1_000, 2_448, 3_896] {
            assert_eq!(hash(&segment(seq, 77, 1_104)), large);
        }
        assert_ne!(hash(&segment(1_000, 78, 1_448)), large);
        assert_ne!(hash(&segment(1_000, 77, 0)), large, "an acknowledgement");
    }

    #[test]
    fn fragments_of_a_datagram_are_selected_together() {
        let mut first = datagram([1, 2], 64, 5, &[1; 40]);
        first[6] = 0x20;
        let mut last = datagram([1, 2], 64, 5, &[2; 40]);
        last[7] = 6;
        assert_eq!(hash(&first), hash(&last));
    }

    #[test]
    fn selected_packets_have_a_hash_and_an_identity() {
        for packet in [
            segment(1_000, 77, 900),
            datagram([1, 2], 64, 5, &[4; 900]),
            datagram([1, 2], 64, 5, b"short"),
        ] {
            let length = u32::try_from(packet.len()).expect("short");
            let full = dissect(Link::Ip, &packet, length).expect("a packet");
            let cut = &packet[..identifying_length(&packet, &full)];
            assert!(cut.len() <= 96);
            let cut = dissect(Link::Ip, cut, length).expect("a packet");
            assert_eq!(SelectionKey::of(&cut), SelectionKey::of(&full));
        }
    }

    #[test]
    fn pieces_of_the_largest_segment_are_selected_together() {
        let mut selection = Selection::of(8);
        (100..200).for_each(|hash| selection.keep(hash, || 0));
        (0..46).for_each(|piece| selection.keep(1, || piece));
        (100..200).for_each(|hash| selection.keep(hash, || 0));
        assert_eq!(selection.take(), (0..46).collect::<Vec<i32>>());
        assert!(selection.take().is_empty());
    }

    proptest! {
        #[test]
        fn the_smallest_hashes_are_selected_in_packet_order(
            hashes in prop::collection::hash_set(any::<u64>(), 0..200),
            maximum in 2_usize..40,
        ) {
            let mut selection = Selection::of(maximum);
            for hash in &hashes {
                selection.keep(*hash, || *hash);
            }
            let mut smallest: Vec<u64> = hashes.iter().copied().collect();
            smallest.sort_unstable();
            smallest.truncate(maximum);
            let selected = selection.take();
            let expected: Vec<u64> = hashes.iter().copied().filter(|hash| smallest.contains(hash)).collect();
            prop_assert_eq!(selected, expected);
        }

        /// The second point has other traffic too, in any amount.
        #[test]
        fn two_points_of_one_path_select_the_same_packets(
            numbers in prop::collection::hash_set(any::<u16>(), 200..300),
            others in 0_usize..1_000,
        ) {
            let (mut near, mut far) = (Selection::of(32), Selection::of(32));
            for number in &numbers {
                near.offer(selection_key(&datagram([1, 2], 64, *number, b"a")), || *number);
                far.offer(selection_key(&datagram([7, 2], 60, *number, b"a")), || *number);
            }
            for other in 0..others {
                let payload = other.to_be_bytes();
                far.offer(selection_key(&datagram([3, 4], 64, 1, &payload)), || 0);
            }
            let near = near.take();
            // All packets of the path in the far sample are in the near one too.
            for number in far.take().into_iter().filter(|number| *number != 0) {
                prop_assert!(near.contains(&number));
            }
        }

        /// Datagrams without a number, some identical. Samples of the two points begin at different moments.
        #[test]
        fn all_points_select_the_same_of_identical_packets(
            payloads in prop::collection::vec(0_u8..60, 100..400),
            shift in 1_usize..50,
        ) {
            let selected_by = |first: usize| {
                let mut selection = Selection::of(8);
                let mut selected = Vec::new();
                for (index, payload) in payloads.iter().enumerate() {
                    if index % 50 == first {
                        selected.extend(selection.take());
                    }
                    let packet = datagram([1, 2], 64, 0, &[*payload]);
                    selection.offer(selection_key(&packet), || (*payload, index));
                }
                selected.extend(selection.take());
                selected
            };
            let (near, far) = (selected_by(0), selected_by(shift));
            for (payload, index) in &near {
                for (other, far_index) in &far {
                    prop_assert!(payload != other || index == far_index);
                }
            }
        }
    }
}
