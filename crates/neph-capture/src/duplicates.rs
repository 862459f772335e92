//! Duplicates in the capture: packets captured at several interfaces, both bare and inside a layer (a VLAN, a
//! tunnel), or twice by a mirror of both directions.
//!
//! Owns distinguishing such a copy from a retransmission. A copy has the same transport header and payload,
//! and follows sooner than any retransmission. It has the same identification in IP. Where that is 0 or
//! missing (IPv6), it is a copy only at another interface and in another layer. At the same interface it is a
//! copy where nearly all packets of that host pair come twice (mirrored), or where no sender repeats so soon.

use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use foldhash::fast::RandomState;
use neph_model::{Span, Wall};
use neph_wire::dissect::{Dissected, Transport};

mod mirrored;

use mirrored::{MirrorDetector, MirroredPacket, PacketKind};

/// Places of a set. A packet is remembered in one place of the set that its hash selects.
const SLOTS_PER_SET: usize = 8;
/// Number of sets, at first and at most. At most 8 MiB of places hold 50 ms at 2 million packets per second.
/// Beyond that, the oldest packet of a full set is forgotten.
const SET_COUNTS: RangeInclusive<usize> = 512..=1 << 15;
/// Compared bytes of the transport header and of the payload.
const COMPARED_BYTES: usize = 64;
/// No retransmission timer is shorter (RFC 6298 requires 1 s, Linux has 200 ms).
const MAX_DUPLICATE_DELAY: Span = Span::from_millis(50);
/// Mirrors show the copy within this time. A later packet without a number is a retransmission, as after
/// duplicate acknowledgements.
const MAX_MIRROR_DELAY: Span = Span::from_millis(5);

/// More than one copy per this many packets is no accident of the network.
const COPY_SHARE_DIVISOR: u64 = 20;

/// A packet that was captured.
#[derive(Debug, Clone, Copy)]
struct SeenPacket {
    hash: u64,
    interface: u32,
    /// Digest of its tunnel in the upper half, of its VLAN in the lower half; 0 where there is none.
    layers: u32,
    at: Wall,
}

impl SeenPacket {
    /// Time until `at`. Captures of several processors are not in order: the copy may have the earlier
    /// timestamp.
    fn time_until(self, at: Wall) -> Span {
        let delay = at.unix_nanos().saturating_sub(self.at.unix_nanos());
        Span::from_nanos(delay.saturating_abs())
    }

    /// Whether both are the same packet apart from added layers. Two VLANs, or two tunnels, belong to two
    /// networks.
    const fn is_identical(self, hash: u64, layers: u32) -> bool {
        const fn is_equal_or_absent(a: u32, b: u32) -> bool {
            a == b || a == 0 || b == 0
        }
        let (vlan_mask, tunnel_mask) = (0x1fff, !0x1fff);
        self.hash == hash
            && is_equal_or_absent(self.layers & vlan_mask, layers & vlan_mask)
            && is_equal_or_absent(self.layers & tunnel_mask, layers & tunnel_mask)
    }
}

/// The latest packets.
#[derive(Debug, Default)]
pub struct DuplicateFilter {
    hasher: RandomState,
    /// Empty before the first packet, then whole sets; their number is a power of two.
    slots: Vec<Option<SeenPacket>>,
    mirror_detector: MirrorDetector,
    examined: u64,
    repeats: u64,
    copies: u64,
}

impl DuplicateFilter {
    /// Whether this packet was just captured at another interface or in another layer. A repetition at the
    /// same one is decided where packets are followed over several points.
    pub fn is_copy(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>) -> bool {
        self.classify(at, interface, packet) == Occurrence::OtherInterface
    }

    /// Whether this packet was just captured, by a mirror of both directions too.
    pub fn is_duplicate(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>) -> bool {
        self.classify(at, interface, packet) != Occurrence::First
    }

    /// Compares with the packets before; the first passage is remembered.
    fn classify(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>) -> Occurrence {
        self.examined += 1;
        let hash = self.hash(packet);
        let current = SeenPacket {
            hash,
            interface,
            layers: self.layers(packet),
            at,
        };
        let mirrored = self.mirrored_packet(packet);
        let mut seen_packets = self.slots_of_set(hash).iter_mut().flatten();
        let identical = seen_packets.find(|seen| seen.is_identical(hash, current.layers));
        let Some(seen) = identical else {
            self.insert(current);
            self.mirror_detector.add_first(mirrored);
            return Occurrence::First;
        };
        let delay = seen.time_until(at);
        if delay >= MAX_DUPLICATE_DELAY {
            *seen = current;
            self.mirror_detector.add_first(mirrored);
            return Occurrence::First;
        }
        if seen.interface != interface || seen.layers != current.layers {
            self.copies += 1;
            return Occurrence::OtherInterface;
        }
        if delay >= MAX_MIRROR_DELAY {
            // A retransmission: the next packet may be its copy.
            seen.at = at;
        }
        if self.mirror_detector.add_repetition(mirrored, delay) {
            self.copies += 1;
            return Occurrence::SameInterface;
        }
        let is_repeat = mirrored.kind != PacketKind::Repeatable && delay < MAX_MIRROR_DELAY;
        self.repeats += u64::from(is_repeat);
        Occurrence::First
    }

    fn mirrored_packet(&self, packet: &Dissected<'_>) -> MirroredPacket {
        let (a, b) = (packet.ip.source, packet.ip.destination);
        MirroredPacket {
            hosts: self.hasher.hash_one((a.min(b), a.max(b))),
            is_upward: a < b,
            number: packet.ip.identification.unwrap_or(0),
            kind: PacketKind::from_packet(packet),
        }
    }

    /// Hash of the fields that are equal in all copies.
    fn hash(&self, packet: &Dissected<'_>) -> u64 {
        let ip = &packet.ip;
        let payload = &ip.payload[..ip.payload.len().min(COMPARED_BYTES)];
        // The interface may compute the checksum later.
        let checksum_offset = match packet.transport {
            Transport::Tcp { .. } => 16,
            Transport::Udp { .. } => 6,
            _ => payload.len(),
        };
        let (before_checksum, later) = payload.split_at(checksum_offset.min(payload.len()));
        let after_checksum = later.get(2..).unwrap_or_default();
        let addresses = (ip.source, ip.destination, ip.identification);
        let hashed_fields = (
            addresses,
            ip.fragment_offset,
            ip.total_len,
            before_checksum,
            after_checksum,
        );
        self.hasher.hash_one(hashed_fields)
    }

    fn layers(&self, packet: &Dissected<'_>) -> u32 {
        let vlan = packet.vlan.map_or(0, |vlan| 0x1000 | u32::from(vlan));
        let tunnel = packet.tunnel.map(|tunnel| self.hasher.hash_one(tunnel));
        let digest = |hash: u64| u32::try_from(hash >> 45).unwrap_or(0).max(1) << 13;
        tunnel.map_or(0, digest) | vlan
    }

    /// The places in which a packet may be remembered.
    fn slots_of_set(&mut self, hash: u64) -> &mut [Option<SeenPacket>] {
        if self.slots.is_empty() {
            self.slots.resize(SET_COUNTS.start() * SLOTS_PER_SET, None);
        }
        let sets = self.slots.len() / SLOTS_PER_SET;
        // At most as many bits as there are sets, so it fits.
        let set = usize::try_from(hash & (sets as u64 - 1)).unwrap_or(0);
        &mut self.slots[set * SLOTS_PER_SET..][..SLOTS_PER_SET]
    }

    /// Stores the packet in an empty place of its set, or in that of the oldest packet. If a copy of that one
    /// may still come, the sets grow.
    fn insert(&mut self, packet: SeenPacket) {
        loop {
            let has_max_size = self.slots.len() >= SET_COUNTS.end() * SLOTS_PER_SET;
            let set = self.slots_of_set(packet.hash).iter_mut();
            let oldest = set.min_by_key(|packet| packet.map(|observed| observed.at));
            let Some(slot) = oldest else { return };
            if has_max_size
                || !slot
                    .is_some_and(|observed| observed.time_until(packet.at) < MAX_DUPLICATE_DELAY)
            {
                *slot = Some(packet);
                return;
            }
            self.grow();
        }
    }

    /// Doubles the sets: each one becomes two.
    fn grow(&mut self) {
        let doubled = vec![None; self.slots.len() * 2];
        let previous = std::mem::replace(&mut self.slots, doubled);
        for observed in previous.into_iter().flatten() {
            let empty = self
                .slots_of_set(observed.hash)
                .iter_mut()
                .find(|packet| packet.is_none());
            if let Some(slot) = empty {
                *slot = Some(observed);
            }
        }
    }

    /// Packets that were examined.
    pub const fn examined(&self) -> u64 {
        self.examined
    }

    /// Of these, packets that were repeated at once but are not certainly copies.
    pub const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Whether there are so many copies that more will follow.
    #[inline]
    pub const fn has_copies(&self) -> bool {
        self.copies * COPY_SHARE_DIVISOR > self.examined
    }
}

/// A packet, compared with those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    First,
    /// A copy at another interface or in another layer.
    OtherInterface,
    /// A copy at the same interface and in the same layer.
    SameInterface,
}

#[cfg(test)]
mod tests;
