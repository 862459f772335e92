//! Packets that a capture shows more than once: at several interfaces, bare and in what a layer adds (a
//! VLAN, a tunnel), or twice by a mirror of both directions.
//!
//! Owns telling such a copy from a packet that was retransmitted. A copy is the same in its transport
//! header and the bytes behind it, and comes so soon that nobody had reason to send again. Its sender's
//! number in IP is the same; where that is 0, or there is none (IPv6), it is a copy at another interface
//! and in another layer. At the same one it is a copy where that host pair's packets nearly all come
//! twice (mirrored), or where nobody sends again so soon: a SYN, an echo.

use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use foldhash::fast::RandomState;
use neph_model::{Span, Wall};
use neph_wire::dissect::{Dissected, Transport};

mod mirrored;

use mirrored::{Kind, Mirrored, One};

/// Places of a set: a packet is remembered in one of those of the set that its hash names.
const WAYS: usize = 8;
/// Sets at first and at most. So many places as these are at most (8 MiB) remember the packets of 50 ms
/// at 2 million a second; of more, the oldest of a full set is forgotten.
const SETS: RangeInclusive<usize> = 512..=1 << 15;
/// Bytes of the transport header and behind that are compared.
const COMPARED: usize = 64;
/// No retransmission timer is shorter (RFC 6298 asks for 1 s, Linux has 200 ms).
const SOON: Span = Span::from_millis(50);
/// Mirrors show a packet again within this: what has no number and comes later was sent again, as it is by
/// a sender whom its receiver told of a gap.
const MIRRORED: Span = Span::from_millis(5);

/// More than one copy in so many packets is no accident of the network.
const SHARE: u64 = 20;

/// What of a packet is remembered.
#[derive(Debug, Clone, Copy)]
struct Seen {
    hash: u64,
    interface: u32,
    /// In what it travelled: a digest of its tunnel above that of its VLAN, each 0 where there is none.
    layers: u32,
    at: Wall,
}

impl Seen {
    /// Captures of several processors stand out of order: the copy may be stamped first.
    fn later(self, at: Wall) -> Span {
        let later = at.unix_nanos().saturating_sub(self.at.unix_nanos());
        Span::from_nanos(later.saturating_abs())
    }

    /// Whether both are the same packet but for what layers add: two VLANs, or two tunnels, are those of
    /// two networks.
    const fn is_alike(self, hash: u64, layers: u32) -> bool {
        const fn nests(a: u32, b: u32) -> bool {
            a == b || a == 0 || b == 0
        }
        let (vlan, tunnel) = (0x1fff, !0x1fff);
        self.hash == hash
            && nests(self.layers & vlan, layers & vlan)
            && nests(self.layers & tunnel, layers & tunnel)
    }
}

/// The latest packets.
#[derive(Debug, Default)]
pub struct Twice {
    hasher: RandomState,
    /// None before the first packet; whole sets, a power of two of them.
    places: Vec<Option<Seen>>,
    mirrored: Mirrored,
    looked: u64,
    again: u64,
    copies: u64,
}

impl Twice {
    /// Whether this packet was shown just before at another interface or in another layer: what it is at
    /// the same one is left to who follows packets over several points.
    pub fn is_copy(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>) -> bool {
        self.look(at, interface, packet) == Shown::Elsewhere
    }

    /// Whether this packet was shown just before, by a mirror of both directions too.
    pub fn is_duplicate(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>) -> bool {
        self.look(at, interface, packet) != Shown::First
    }

    /// The first passage is remembered.
    fn look(&mut self, at: Wall, interface: u32, packet: &Dissected<'_>) -> Shown {
        self.looked += 1;
        let hash = self.hash(packet);
        let this = Seen {
            hash,
            interface,
            layers: self.layers(packet),
            at,
        };
        let one = self.one(packet);
        let mut seen = self.set(hash).iter_mut().flatten();
        let found = seen.find(|seen| seen.is_alike(hash, this.layers));
        let Some(seen) = found else {
            self.remember(this);
            self.mirrored.once(one);
            return Shown::First;
        };
        let later = seen.later(at);
        if later >= SOON {
            *seen = this;
            self.mirrored.once(one);
            return Shown::First;
        }
        if seen.interface != interface || seen.layers != this.layers {
            self.copies += 1;
            return Shown::Elsewhere;
        }
        if later >= MIRRORED {
            // Sent again: the next may be its copy.
            seen.at = at;
        }
        if self.mirrored.again(one, later) {
            self.copies += 1;
            return Shown::Again;
        }
        self.again += u64::from(one.kind != Kind::Repeatable && later < MIRRORED);
        Shown::First
    }

    fn one(&self, packet: &Dissected<'_>) -> One {
        let (a, b) = (packet.ip.source, packet.ip.destination);
        One {
            hosts: self.hasher.hash_one((a.min(b), a.max(b))),
            is_upward: a < b,
            number: packet.ip.identification.unwrap_or(0),
            kind: Kind::of(packet),
        }
    }

    /// Of what is the same in all copies.
    fn hash(&self, packet: &Dissected<'_>) -> u64 {
        let ip = &packet.ip;
        let payload = &ip.payload[..ip.payload.len().min(COMPARED)];
        // A checksum may be left to the interface.
        let checksum = match packet.transport {
            Transport::Tcp { .. } => 16,
            Transport::Udp { .. } => 6,
            _ => payload.len(),
        };
        let (before, rest) = payload.split_at(checksum.min(payload.len()));
        let behind = rest.get(2..).unwrap_or_default();
        let name = (ip.source, ip.destination, ip.identification);
        let whole = (name, ip.fragment_offset, ip.total_len, before, behind);
        self.hasher.hash_one(whole)
    }

    fn layers(&self, packet: &Dissected<'_>) -> u32 {
        let vlan = packet.vlan.map_or(0, |vlan| 0x1000 | u32::from(vlan));
        let tunnel = packet.tunnel.map(|tunnel| self.hasher.hash_one(tunnel));
        let digest = |hash: u64| u32::try_from(hash >> 45).unwrap_or(0).max(1) << 13;
        tunnel.map_or(0, digest) | vlan
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
            if is_full_grown || !place.is_some_and(|seen| seen.later(this.at) < SOON) {
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

    /// Packets among them that were shown again at once and are no copies for certain.
    pub const fn again(&self) -> u64 {
        self.again
    }

    /// Whether so many of them are copies that there will be more.
    #[inline]
    pub const fn has_copies(&self) -> bool {
        self.copies * SHARE > self.looked
    }
}

/// What a packet is to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    First,
    /// It passed another interface, or another layer.
    Elsewhere,
    /// It stands there again.
    Again,
}

#[cfg(test)]
mod tests;
