//! Result of following packets: their timestamps, their directions, and reordering.
//!
//! Owns what is known of each packet, and the hosts that each segment was passed by. `combine` builds it.

use neph_model::Wall;

use super::packet::{FiveTuple, Flows, Packet, PacketHandling, Packets};
use super::packet_of_piece::Spreads;
use super::translated_flows::TranslatedFlows;
use super::{CapturePoint, Hops};
use crate::capture_matcher::CaptureCounts;
use crate::directions::{Direction, Directions};

/// Packets of all captures.
#[derive(Debug)]
pub struct Followed {
    pub(super) packets: Packets,
    pub(super) flows: Flows,
    /// For each flow its reverse flow.
    pub(super) reverse_flows: Vec<u32>,
    pub(super) directions: Directions,
    pub(super) points: Vec<CapturePoint>,
    /// For each segment and host pair, whether packets passed both points.
    pub(super) crossing_pairs: Vec<Vec<bool>>,
    /// For each segment and flow, whether packets of its hosts, protocol and direction passed both points.
    pub(super) crossing_kinds: Vec<Vec<bool>>,
    /// For each segment and flow, whether packets of the flow passed both points.
    pub(super) crossing_flows: Vec<Vec<bool>>,
    /// For each segment; empty for a window.
    pub(super) translated_flows: Vec<TranslatedFlows>,
    /// For each segment, whether its points have one clock.
    pub(super) one_clock: Vec<bool>,
    /// For each packet, a bit per segment in which it was reordered.
    pub(super) out_of_order: Vec<u8>,
    pub(super) copies: Vec<Copies>,
    pub(super) spreads: Spreads,
}

/// Duplicates that were made between a point and the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copies {
    pub(super) segment: usize,
    pub(super) direction: Direction,
    /// Protocol number in IP.
    pub(super) protocol: u8,
    pub(super) count: u64,
}

/// A packet's passage from point to point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Its number among all followed packets.
    pub number: u32,
    /// Source and destination.
    pub flow: FiveTuple,
    /// Its direction. `None` if packets of only one of its hosts were seen, or if no packet between them
    /// shows the order of the points.
    pub direction: Option<Direction>,
    passed_at: [Option<i64>; Hops::MAX_POINTS],
    out_of_order: u8,
}

impl Passage {
    /// When it passed a point by that point's clock, in nanoseconds since 1970 in steady time, which
    /// continues where the clock was set back ([`Followed::stamp`] has the timestamp).
    pub fn passed_at(&self, point: usize) -> Option<i64> {
        self.passed_at.get(point).copied().flatten()
    }

    /// Whether a packet that its flow sent later left this segment before it (RFC 4737).
    pub const fn is_reordered(&self, segment: usize) -> bool {
        self.out_of_order >> segment & 1 == 1
    }
}

impl Followed {
    /// Number of segments: one less than points.
    pub const fn segments(&self) -> usize {
        self.points.len().saturating_sub(1)
    }

    /// Counts of the capture of a point.
    pub fn point(&self, point: usize) -> &CaptureCounts {
        &self.points[point].counts
    }

    /// The first and the last timestamp of a point's packets.
    pub fn packet_extent(&self, point: usize) -> Option<(Wall, Wall)> {
        wall_times(self.points[point].packet_extent)
    }

    /// Begin and end of the capture of a point, as far as known, by its clock.
    pub fn capture_extent(&self, point: usize) -> Option<(Wall, Wall)> {
        wall_times(self.points[point].capture_extent)
    }

    /// Whether a point shows packets, and of every host pair only one direction.
    pub fn is_one_direction(&self, point: usize) -> bool {
        let mut received = vec![[false; 2]; self.flows.pair_count()];
        for number in &self.points[point].order {
            let (pair, is_upward) = self.pair_and_direction(*number);
            received[pair][usize::from(is_upward)] = true;
        }
        !self.points[point].order.is_empty() && !received.contains(&[true; 2])
    }

    /// Packets that were excluded because others equal them.
    pub fn identical(&self) -> u64 {
        let packets = self.packets.by_number.iter();
        packets
            .filter(|packet| packet.handling == PacketHandling::Ambiguous)
            .count() as u64
    }

    /// Packets that both points of a segment show, but that were excluded because others equal them.
    pub fn ambiguous_in(&self, segment: usize) -> u64 {
        let points = [segment, segment + 1];
        let numbers = 0..u32::try_from(self.packets.by_number.len()).unwrap_or(u32::MAX);
        let identical = numbers.filter(|number| {
            self.packets.get(*number).handling == PacketHandling::Ambiguous
                && points
                    .iter()
                    .all(|point| self.packets.passed_at(*number, *point).is_some())
        });
        identical.count() as u64
    }

    /// Packets that offload split or merged on the path.
    pub fn split_or_merged(&self) -> u64 {
        self.spreads.len() as u64
    }

    /// How long the pieces of such a packet took to pass a point, in nanoseconds. `None` where a piece is
    /// missing, and for other packets.
    pub fn spread(&self, passage: &Passage, point: usize) -> Option<i64> {
        self.spreads.get(&passage.number)?.get(point).copied()?
    }

    /// Duplicates that were made in a segment, of packets of the selected protocols (numbers in IP).
    pub fn copies(
        &self,
        segment: usize,
        direction: Direction,
        is_selected: impl Fn(u8) -> bool,
    ) -> u64 {
        let copies = self.copies.iter();
        copies
            .filter(|group| {
                group.segment == segment
                    && group.direction == direction
                    && is_selected(group.protocol)
            })
            .map(|group| group.count)
            .sum()
    }

    /// Whether any packet passed both points of a segment.
    pub fn has_common_packets(&self, segment: usize) -> bool {
        self.crossing_pairs[segment].contains(&true)
    }

    /// Whether any packet between the same two hosts passed both points of a segment.
    pub fn has_host_pair_crossed(&self, passage: &Passage, segment: usize) -> bool {
        let flow = self.packets.get(passage.number).flow;
        let pair = self.flows.by_number[flow as usize].1;
        self.crossing_pairs[segment][pair as usize]
    }

    /// Whether packets of both directions between its hosts passed two points with two clocks.
    pub fn is_compared(&self, passage: &Passage) -> bool {
        let (_, pair) = self.flow_and_pair(passage.number);
        self.directions.is_compared(pair)
    }

    /// Whether these differ between all points by their clocks alone.
    pub fn has_no_delay(&self, passage: &Passage) -> bool {
        let (_, pair) = self.flow_and_pair(passage.number);
        self.directions.has_no_delay(pair)
    }

    /// Whether any packet of its protocol, hosts and direction passed both points of a segment.
    pub fn has_flow_kind_crossed(&self, passage: &Passage, segment: usize) -> bool {
        let flow = self.packets.get(passage.number).flow;
        self.crossing_kinds[segment][flow as usize]
    }

    /// All packets, beginning with those that the first point saw, in its order.
    pub fn passages(&self) -> impl Iterator<Item = Passage> + '_ {
        let numbers = 0..u32::try_from(self.packets.by_number.len()).unwrap_or(u32::MAX);
        numbers
            .filter(|number| self.packets.get(*number).handling == PacketHandling::Followed)
            .map(|number| self.passage(number))
    }

    /// One packet.
    pub fn passage(&self, number: u32) -> Passage {
        let mut passed_at = [None; Hops::MAX_POINTS];
        for (point, at) in passed_at.iter_mut().take(self.points.len()).enumerate() {
            *at = self.packets.passed_at(number, point);
        }
        Passage {
            number,
            flow: self.flows.by_number[self.packets.get(number).flow as usize].0,
            direction: self.direction(number),
            passed_at,
            out_of_order: self.out_of_order[number as usize],
        }
    }

    pub(super) fn direction(&self, number: u32) -> Option<Direction> {
        let (flow, pair) = self.flow_and_pair(number);
        self.directions.direction(pair, flow.is_upward())
    }

    /// Followed packets of a point in the order of passage. A packet in parts counts at its last part.
    pub(super) fn packets_in_order(&self, point: usize) -> impl Iterator<Item = u32> + '_ {
        let order = self.points[point].order.iter().copied();
        order.filter(|number| self.packets.get(*number).handling == PacketHandling::Followed)
    }

    pub(super) fn flow_and_pair(&self, number: u32) -> (FiveTuple, u32) {
        self.flows.by_number[self.packets.get(number).flow as usize]
    }

    /// The number of the forward flow of a packet that goes in this direction; `NO_NUMBER` if there is none.
    pub(super) fn forward_flow(&self, packet: &Packet, direction: Direction) -> u32 {
        match direction {
            Direction::Forward => packet.flow,
            Direction::Reverse => self.reverse_flows[packet.flow as usize],
        }
    }

    /// Number of host pairs.
    pub(super) fn pair_count(&self) -> usize {
        self.flows.pair_count()
    }

    /// The host pair of a packet, and whether it goes from the lower address to the higher.
    pub(super) fn pair_and_direction(&self, number: u32) -> (usize, bool) {
        let (flow, pair) = self.flow_and_pair(number);
        (pair as usize, flow.is_upward())
    }

    /// Packets that passed both points of a segment, in the order of the second.
    pub(super) fn segment_times(
        &self,
        segment: usize,
    ) -> impl Iterator<Item = (u32, i64, i64)> + '_ {
        self.times_at_both(segment, segment + 1)
    }

    /// Packets that passed two points, in the order of the second.
    pub(super) fn times_at_both(
        &self,
        first: usize,
        second: usize,
    ) -> impl Iterator<Item = (u32, i64, i64)> + '_ {
        self.packets_in_order(second).filter_map(move |number| {
            let first_at = self.packets.passed_at(number, first)?;
            let second_at = self.packets.passed_at(number, second)?;
            Some((number, first_at, second_at))
        })
    }

    pub(super) fn vote_on_directions(&mut self) {
        let mut directions = Directions::with_pairs(self.flows.pair_count());
        for segment in 0..self.segments() {
            for (number, first_at, second_at) in self.segment_times(segment) {
                let (flow, pair) = self.flow_and_pair(number);
                let difference = second_at.saturating_sub(first_at);
                if self.one_clock[segment] {
                    let (first_time, second_time) = (
                        self.stamp(segment, first_at),
                        self.stamp(segment + 1, second_at),
                    );
                    let difference = second_time.saturating_sub(first_time);
                    directions.add_by_one_clock(pair, flow.is_upward(), difference);
                } else {
                    directions.add(pair, flow.is_upward(), difference);
                }
            }
            directions.start_next_captures();
        }
        self.directions = directions;
    }

    /// Records which host pairs passed both points of a segment. The first of duplicates counts too.
    pub(super) fn record_crossings(&mut self) {
        for segment in 0..self.segments() {
            let mut pairs = vec![false; self.flows.pair_count()];
            let mut flows = vec![false; self.flows.by_number.len()];
            for (number, ..) in self.segment_times(segment) {
                pairs[self.flow_and_pair(number).1 as usize] = true;
                flows[self.packets.get(number).flow as usize] = true;
            }
            self.crossing_pairs.push(pairs);
            self.crossing_kinds
                .push(self.flows.spread_over_kinds(&flows));
            self.crossing_flows.push(flows);
        }
    }
}

fn wall_times(times: Option<(i64, i64)>) -> Option<(Wall, Wall)> {
    times.map(|(from, until)| (Wall::from_unix_nanos(from), Wall::from_unix_nanos(until)))
}
