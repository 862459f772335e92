//! Captures of two or more points of one path: each packet's passage from point to point.
//!
//! Owns recognizing a packet at each point, its direction, duplicates, segments that were split or merged,
//! and the assignment of answers. Does not own the clocks: a passage has timestamps, and the delay between
//! two of them needs an offset and its error bound.
//!
//! Memory: per packet 28 bytes, 8 for each point and 4 for each timestamp, and 24 to 48 until all captures
//! are read; per flow 160 bytes.

mod capture_duplicates;
mod clients;
mod combine;
mod copies;
mod followed;
mod fragments;
mod initiators;
mod mapping;
mod order;
mod packet;
mod packet_of_piece;
mod point_order;
mod round_trip_pairs;
mod split_datagrams;
mod split_segments;
#[cfg(test)]
mod tests;
mod times;
mod translated_flows;
mod translation;
mod unmatched;

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::SocketAddr;

use foldhash::quality::RandomState;
use neph_wire::dissect::Dissected;

pub use followed::{Followed, Passage};
pub use mapping::{Mapping, MappingError};
pub use packet::FiveTuple;
pub use round_trip_pairs::RoundTripPair;
pub use translated_flows::TranslatedAddress;
pub use unmatched::UnmatchedPackets;

use fragments::Fragmented;

use crate::capture_matcher::{CaptureCounts, MAX_DUPLICATE_NANOS};
use crate::fragments::{FragmentPassage, Piece, is_fragment};
use crate::identity::Identity;
use crate::steady_time::SteadyClock;
use packet::{Flows, NO_NUMBER, Packet, Packets};

/// Reads captures one after the other, in the order of the path.
#[derive(Debug)]
pub struct Hops {
    hasher: RandomState,
    identical: HashMap<u64, IdenticalPackets, RandomState>,
    flows: Flows,
    packets: Packets,
    points: Vec<CapturePoint>,
    fragments: Fragmented,
    /// Fragments at all points, once all captures are read.
    fragmented: Vec<Vec<Piece>>,
    /// Number of rules of all points.
    rule_count: usize,
}

/// A capture point.
#[derive(Debug, Default)]
struct CapturePoint {
    counts: CaptureCounts,
    steady_clock: SteadyClock,
    rules: Vec<NatRule>,
    /// First and last packet, in steady time.
    packet_extent: Option<(i64, i64)>,
    /// Begin and end of its capture as far as known, with or without packets, in steady time.
    capture_extent: Option<(i64, i64)>,
    /// Packets in the order of the capture, later in the order of passage.
    order: Vec<u32>,
}

/// A NAT rule.
#[derive(Debug)]
struct NatRule {
    mapping: Mapping,
    /// Its number among all rules, in the order of input.
    number: usize,
    has_changed_address: bool,
}

impl CapturePoint {
    /// Records the time of a packet in its capture.
    fn extend_to(&mut self, at: i64) {
        self.packet_extent = Some(extend_range(self.packet_extent, at));
        self.capture_extent = Some(extend_range(self.capture_extent, at));
    }

    /// An address of this point as the other points show it.
    fn translate(&mut self, address: SocketAddr) -> SocketAddr {
        for rule in &mut self.rules {
            let translated = rule.mapping.apply(address);
            if translated != address {
                rule.has_changed_address = true;
                return translated;
            }
        }
        address
    }
}

/// Packets of one identity.
#[derive(Debug, Clone, Copy)]
struct IdenticalPackets {
    first: u32,
    /// The packet that was seen last, and its point.
    last: u32,
    point: u8,
}

impl Hops {
    /// Most points that are followed.
    pub const MAX_POINTS: usize = 8;

    /// For this number of capture points, at most [`Self::MAX_POINTS`].
    pub fn with_points(points: usize) -> Self {
        let points = points.min(Self::MAX_POINTS);
        Self {
            hasher: RandomState::default(),
            identical: HashMap::default(),
            flows: Flows::default(),
            packets: Packets::with_points(points),
            points: (0..points).map(|_| CapturePoint::default()).collect(),
            fragments: Fragmented::default(),
            fragmented: Vec::new(),
            rule_count: 0,
        }
    }

    /// Adds a NAT rule for this point.
    pub fn add_nat_rule(&mut self, point: usize, mapping: Mapping) {
        if let Some(point_state) = self.points.get_mut(point) {
            point_state.rules.push(NatRule {
                mapping,
                number: self.rule_count,
                has_changed_address: false,
            });
        }
        self.rule_count += 1;
    }

    /// Rules that changed no address so far, by their number, in the order of the calls of
    /// [`Self::add_nat_rule`].
    pub fn unused_rules(&self) -> impl Iterator<Item = usize> + '_ {
        let rules = self.points.iter().flat_map(|point| &point.rules);
        rules
            .filter(|rule| !rule.has_changed_address)
            .map(|rule| rule.number)
    }

    /// Drops all points after the first `points`: their captures were not read.
    pub fn keep_first_points(&mut self, points: usize) {
        self.points.truncate(points);
    }

    /// Adds a packet of a point, with its timestamp in nanoseconds since 1970. The points come in order.
    pub fn add_packet(&mut self, point: usize, at: i64, packet: &Dissected<'_>) {
        let Some(mut identity) = Identity::from_packet(packet) else {
            self.count_cut_packet(point, at);
            return;
        };
        let Some(point_state) = self.points.get_mut(point) else {
            return;
        };
        point_state.counts.count(at);
        identity.source = point_state.translate(identity.source);
        identity.destination = point_state.translate(identity.destination);
        let (number, previous) = self.find_or_add(point, identity, packet);
        let point_state = &mut self.points[point];
        let previous = previous.and_then(|previous| self.packets.passed_at(previous, point));
        let at = match previous {
            Some(previous) => point_state
                .steady_clock
                .correct(at, (previous, MAX_DUPLICATE_NANOS)),
            None => point_state.steady_clock.next(at),
        };
        point_state.extend_to(at);
        if let Some(number) = number {
            self.packets.set_passed_at(number, point, Some(at));
            point_state.order.push(number);
            if is_fragment(packet) {
                let passing = FragmentPassage {
                    point,
                    at,
                    number,
                    identity,
                };
                let hash = |identity| self.hasher.hash_one(identity);
                self.fragments.add_fragment(passing, packet, hash);
            }
        }
    }

    /// Counts a packet of a point of which too few bytes were captured.
    pub fn count_cut_packet(&mut self, point: usize, at: i64) {
        if let Some(point_state) = self.points.get_mut(point) {
            point_state.counts.count_truncated(at);
            let at = point_state.steady_clock.next(at);
            point_state.extend_to(at);
        }
    }

    /// Records that the capture of a point was running at this moment: it has a packet that is not followed,
    /// or its recorder reports so.
    pub fn record_running(&mut self, point: usize, at: i64) {
        if let Some(point_state) = self.points.get_mut(point)
            && let Some(at) = point_state.steady_clock.convert(at)
        {
            point_state.capture_extent = Some(extend_range(point_state.capture_extent, at));
        }
    }

    /// The packet at this point, among equal ones the next; and its equal at this point, if there was one
    /// before.
    fn find_or_add(
        &mut self,
        point: usize,
        identity: Identity,
        packet: &Dissected<'_>,
    ) -> (Option<u32>, Option<u32>) {
        let key = self.hasher.hash_one(identity);
        let point_number = u8::try_from(point).unwrap_or(u8::MAX);
        let mut previous = None;
        if let Some(identical) = self.identical.get_mut(&key) {
            previous = (identical.point == point_number).then_some(identical.last);
            let next = previous.map_or(identical.first, |previous| {
                self.packets.get(previous).next_equal
            });
            if next != NO_NUMBER {
                (identical.last, identical.point) = (next, point_number);
                return (Some(next), previous);
            }
        }
        let flow = self.flows.number_or_insert(FiveTuple {
            protocol: identity.protocol,
            source: identity.source,
            destination: identity.destination,
        });
        let mut stored = Packet::from_dissected(packet, flow, &self.hasher);
        stored.is_distinguishable |= identity.is_distinguishable(packet);
        let Some(number) = self.packets.push(stored) else {
            return (None, previous);
        };
        let identical = self.identical.entry(key).or_insert(IdenticalPackets {
            first: number,
            last: number,
            point: point_number,
        });
        if identical.last != number {
            self.packets.by_number[identical.last as usize].next_equal = number;
            (identical.last, identical.point) = (number, point_number);
        }
        (Some(number), previous)
    }
}

/// The range from the first to the last of these moments and this one.
fn extend_range(times: Option<(i64, i64)>, at: i64) -> (i64, i64) {
    let (from, until) = times.unwrap_or((at, at));
    (from.min(at), until.max(at))
}
