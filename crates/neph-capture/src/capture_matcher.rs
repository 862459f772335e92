//! Two captures of one path: the packets that passed both points, with both timestamps and the direction.
//!
//! Owns matching. Does not own packet identities ([`Identity`]), directions ([`crate::directions`]), the
//! limits that packets give for the clocks (proofs), and the fit of the clocks (neph-stats).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::quality::RandomState;
use neph_wire::dissect::Dissected;

use crate::directions::{Direction, Directions};
use crate::fragments::{FragmentPassage, Fragments, is_fragment};
use crate::identity::Identity;
use crate::steady_time::{SteadyClock, StepBack, added_at};

mod proofs;

pub use proofs::ClockSetBack;

/// Matches the packets of two captures: first all of one, then all of the other. Takes about 90 bytes for
/// each packet in both, and 50 for each other packet of the first.
#[derive(Debug, Default)]
pub struct CaptureMatcher {
    hasher: RandomState,
    /// By a digest of 64 bits with a random seed: among ten million packets, two collide once in 400,000
    /// meetings.
    first_packets: HashMap<u64, FirstPacket, RandomState>,
    pairs: HashMap<(IpAddr, IpAddr), u32>,
    matched_packets: Vec<MatchedPacket>,
    first: CaptureCounts,
    second: CaptureCounts,
    times: [SteadyClock; 2],
    /// Fragments of each capture.
    fragments: [Fragments; 2],
    identical: u64,
    ambiguous_in_both: u64,
}

/// Counts of one capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Packets with a time.
    pub packets: u64,
    /// Packets that were cut too short to be recognized.
    pub truncated: u64,
    /// Resolution of its timestamps, in nanoseconds: 1, 1,000 or 1,000,000.
    pub resolution: i64,
    /// Duplicates in the capture, from a mirror or another interface. The first copy counts.
    pub capture_duplicates: u64,
}

impl Default for CaptureCounts {
    fn default() -> Self {
        Self {
            packets: 0,
            truncated: 0,
            resolution: 1_000_000,
            capture_duplicates: 0,
        }
    }
}

/// An equal packet within this many nanoseconds is a duplicate in the capture: no retransmission timer is
/// shorter.
pub(crate) const MAX_DUPLICATE_NANOS: i64 = 25_000_000;

/// A packet of the first capture.
#[derive(Debug, Clone, Copy)]
struct FirstPacket {
    at: i64,
    /// Its index in the matched packets, or a value for none.
    match_index: u32,
}

impl FirstPacket {
    const UNMATCHED: u32 = u32::MAX;
    const IDENTICAL: u32 = u32::MAX - 1;
}

/// A packet, compared with the earlier ones of its capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketMatch {
    /// The first with this identity.
    New,
    /// A duplicate in the capture.
    Duplicate,
    /// Another packet that equals it.
    Ambiguous,
}

/// A packet of both captures, whose direction is not known yet.
#[derive(Debug, Clone, Copy)]
struct MatchedPacket {
    first_at: i64,
    second_at: i64,
    pair: u32,
    /// From the lower address to the higher.
    is_upward: bool,
    is_identical: bool,
}

/// A packet that passed both points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// When it passed the first point, in nanoseconds since 1970 by its clock in steady time: without the
    /// steps back in [`MatchedCaptures::clock_set_backs`].
    pub first_at: i64,
    /// The same at the second point, by its clock.
    pub second_at: i64,
    /// Its direction.
    pub direction: Direction,
    /// Number of its host pair.
    pub pair: u32,
}

/// Result of matching two captures.
#[derive(Debug)]
pub struct MatchedCaptures {
    /// In the order of the second capture.
    pub crossings: Vec<Crossing>,
    /// The first capture.
    pub first: CaptureCounts,
    /// The second.
    pub second: CaptureCounts,
    /// Packets with several equal ones in one capture: none of them is used.
    pub identical: u64,
    /// Of these, packets of the second capture that the first has too.
    pub ambiguous_in_both: u64,
    /// Packets of both captures between hosts of which only one was seen: their direction is not known.
    pub one_direction: u64,
    /// Packets of both captures between hosts of which both were seen, but whose votes for the direction tie.
    pub direction_ties: u64,
    /// Of `crossings`, packets without any delay in either direction. The order of the points is not known,
    /// so their `direction` is arbitrary.
    pub without_delay: u64,
    /// Packets with the same timestamp in both captures.
    pub same_timestamp: u64,
    /// Where the time of each capture steps back.
    pub(crate) steps_back: [Vec<StepBack>; 2],
}

impl CaptureCounts {
    /// Counts a packet.
    pub(crate) const fn count(&mut self, at: i64) {
        self.packets += 1;
        while self.resolution > 1 && at % self.resolution != 0 {
            self.resolution /= 1_000;
        }
    }

    /// Counts a packet of which too few bytes were captured.
    pub(crate) const fn count_truncated(&mut self, at: i64) {
        self.count(at);
        self.truncated += 1;
    }
}

/// Whether a packet that equals one at `first` is a duplicate of it in the capture.
pub(crate) const fn is_repeated(first: i64, at: i64, is_distinguishable: bool) -> bool {
    is_distinguishable && at.saturating_sub(first).saturating_abs() < MAX_DUPLICATE_NANOS
}

impl CaptureMatcher {
    /// Counts a packet of the first capture of which too few bytes were captured.
    pub fn count_cut_first(&mut self, at: i64) {
        self.first.count_truncated(at);
        self.times[0].next(at);
    }

    /// The same for the second capture.
    pub fn count_cut_second(&mut self, at: i64) {
        self.second.count_truncated(at);
        self.times[1].next(at);
    }

    /// Adds a packet of the first capture.
    pub fn add_first(&mut self, at: i64, packet: &Dissected<'_>) {
        let Some(identity) = Identity::from_packet(packet) else {
            self.count_cut_first(at);
            return;
        };
        self.first.count(at);
        let is_distinguishable = identity.is_distinguishable(packet);
        match self.match_in_first(at, identity, is_distinguishable) {
            PacketMatch::New => {}
            PacketMatch::Duplicate => self.first.capture_duplicates += 1,
            PacketMatch::Ambiguous => self.identical += 1,
        }
        if let Some(complete) = self.complete_packet(0, at, identity, packet) {
            self.match_in_first(at, complete, is_distinguishable);
        }
    }

    fn match_in_first(
        &mut self,
        at: i64,
        identity: Identity,
        is_distinguishable: bool,
    ) -> PacketMatch {
        let time = &mut self.times[0];
        match self.first_packets.entry(self.hasher.hash_one(identity)) {
            Entry::Vacant(vacant) => {
                let at = time.next(at);
                vacant.insert(FirstPacket {
                    at,
                    match_index: FirstPacket::UNMATCHED,
                });
                PacketMatch::New
            }
            Entry::Occupied(mut occupied) => {
                let first = occupied.get().at;
                // If both captures have duplicates, the first copies are paired: the first at the far point
                // is never earlier than its departure.
                if is_repeated(
                    first,
                    time.correct(at, (first, MAX_DUPLICATE_NANOS)),
                    is_distinguishable,
                ) {
                    return PacketMatch::Duplicate;
                }
                occupied.get_mut().match_index = FirstPacket::IDENTICAL;
                PacketMatch::Ambiguous
            }
        }
    }

    /// Identity of the whole packet of a fragment, if this was the last missing one.
    fn complete_packet(
        &mut self,
        point: usize,
        at: i64,
        identity: Identity,
        packet: &Dissected<'_>,
    ) -> Option<Identity> {
        if !is_fragment(packet) {
            return None;
        }
        let passing = FragmentPassage {
            point,
            at,
            number: 0,
            identity,
        };
        let complete = self.fragments[point].add_fragment(passing, packet)?;
        Some(complete.identity)
    }

    /// Adds a packet of the second capture, once the first is over.
    pub fn add_second(&mut self, at: i64, packet: &Dissected<'_>) {
        let Some(identity) = Identity::from_packet(packet) else {
            self.count_cut_second(at);
            return;
        };
        self.second.count(at);
        let is_distinguishable = identity.is_distinguishable(packet);
        let packet_match = self.match_in_second(at, identity, is_distinguishable);
        match packet_match {
            Some(PacketMatch::New) | None => {}
            Some(PacketMatch::Duplicate) => self.second.capture_duplicates += 1,
            Some(PacketMatch::Ambiguous) => {
                self.identical += 1;
                self.ambiguous_in_both += 1;
            }
        }
        // A packet with the same fragments in both captures is recognized by these.
        if let Some(complete) = self.complete_packet(1, at, identity, packet)
            && packet_match.is_none()
        {
            self.match_in_second(at, complete, is_distinguishable);
        }
    }

    /// `None` if the first capture has no equal packet.
    fn match_in_second(
        &mut self,
        at: i64,
        identity: Identity,
        is_distinguishable: bool,
    ) -> Option<PacketMatch> {
        let time = &mut self.times[1];
        let Some(first_packet) = self.first_packets.get_mut(&self.hasher.hash_one(identity)) else {
            time.next(at);
            return None;
        };
        if first_packet.match_index != FirstPacket::UNMATCHED {
            if let Some(matched) = self
                .matched_packets
                .get_mut(first_packet.match_index as usize)
            {
                let at = time.correct(at, (matched.second_at, MAX_DUPLICATE_NANOS));
                if is_repeated(matched.second_at, at, is_distinguishable) {
                    return Some(PacketMatch::Duplicate);
                }
                matched.is_identical = true;
                first_packet.match_index = FirstPacket::IDENTICAL;
            }
            return Some(PacketMatch::Ambiguous);
        }
        let at = time.next(at);
        first_packet.match_index =
            u32::try_from(self.matched_packets.len()).map_or(FirstPacket::IDENTICAL, |index| index);
        let (source, destination) = (identity.source, identity.destination);
        let is_upward = source < destination;
        let ends = (source.ip(), destination.ip());
        let ends = if is_upward { ends } else { (ends.1, ends.0) };
        let next = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        self.matched_packets.push(MatchedPacket {
            first_at: first_packet.at,
            second_at: at,
            pair: *self.pairs.entry(ends).or_insert(next),
            is_upward,
            is_identical: false,
        });
        Some(PacketMatch::New)
    }

    /// Ends both captures.
    pub fn end(mut self) -> MatchedCaptures {
        // The largest part, no longer needed.
        drop(std::mem::take(&mut self.first_packets));
        self.matched_packets.retain(|matched| !matched.is_identical);
        let mut directions = Directions::with_pairs(self.pairs.len());
        for matched in &self.matched_packets {
            let difference = matched.second_at.saturating_sub(matched.first_at);
            directions.add(matched.pair, matched.is_upward, difference);
        }
        let [first, second] = self.times.each_ref().map(SteadyClock::steps_back);
        let has_equal_stamps = |matched: &&MatchedPacket| {
            let first_stamp = matched.first_at - added_at(first, matched.first_at);
            first_stamp == matched.second_at - added_at(second, matched.second_at)
        };
        let same_timestamp = self.matched_packets.iter().filter(has_equal_stamps).count() as u64;
        let mut captures = MatchedCaptures {
            crossings: Vec::with_capacity(self.matched_packets.len()),
            first: self.first,
            second: self.second,
            identical: self.identical,
            ambiguous_in_both: self.ambiguous_in_both,
            one_direction: 0,
            direction_ties: 0,
            without_delay: 0,
            same_timestamp,
            steps_back: self.times.map(|time| time.steps_back().to_vec()),
        };
        for matched in &self.matched_packets {
            captures.add_crossing(
                (matched.first_at, matched.second_at),
                matched.pair,
                matched.is_upward,
                &directions,
            );
        }
        captures
    }
}

impl MatchedCaptures {
    /// Adds a packet of both captures, by its timestamps and its sender.
    pub(crate) fn add_crossing(
        &mut self,
        (first, second): (i64, i64),
        pair: u32,
        is_upward: bool,
        directions: &Directions,
    ) {
        let known_direction = directions.direction(pair, is_upward);
        let Some(direction) =
            known_direction.or_else(|| directions.arbitrary_direction(pair, is_upward))
        else {
            let excluded_count = if directions.is_compared(pair) {
                &mut self.direction_ties
            } else {
                &mut self.one_direction
            };
            *excluded_count += 1;
            return;
        };
        self.without_delay += u64::from(known_direction.is_none());
        self.crossings.push(Crossing {
            first_at: first,
            second_at: second,
            direction,
            pair,
        });
    }

    /// Whether one capture, or a part of it, was given twice: all common packets have equal timestamps.
    /// Timestamps of milliseconds do not show that: a short path takes less.
    pub fn is_one_capture(&self) -> bool {
        let shared = self.crossings.len() as u64 + self.one_direction + self.direction_ties;
        let resolution = self.first.resolution.max(self.second.resolution);
        self.same_timestamp > 0 && self.same_timestamp == shared && resolution < 1_000_000
    }
}

#[cfg(test)]
mod tests;
