//! What came of following packets: their marks, their ways, and what was out of order.
//!
//! Owns what is known of each packet and of whom anything passed; `ended` puts it together.

use neph_model::Wall;

use super::packet::{Flowing, Flows, Packets, Standing};
use super::renamed::Renamed;
use super::wholes::Spreads;
use super::{Hops, Place};
use crate::meeting::Point;
use crate::ways::{Way, Ways};

/// Packets of all captures.
#[derive(Debug)]
pub struct Followed {
    pub(super) packets: Packets,
    pub(super) flows: Flows,
    /// For each flow the one that answers it.
    pub(super) answering: Vec<u32>,
    pub(super) ways: Ways,
    pub(super) points: Vec<Place>,
    /// For each segment, whether packets of a pair of hosts passed both of its points.
    pub(super) crosses: Vec<Vec<bool>>,
    /// For each segment, whether packets of a flow's protocol and direction, between its hosts, did.
    pub(super) kinds: Vec<Vec<bool>>,
    /// For each segment, whether packets of a flow did.
    pub(super) passes: Vec<Vec<bool>>,
    /// For each segment; none of a window.
    pub(super) renamed: Vec<Renamed>,
    /// Of each segment, whether its points have one clock.
    pub(super) one_clock: Vec<bool>,
    /// For each packet a bit for each segment in which it was overtaken.
    pub(super) overtaken: Vec<u8>,
    pub(super) copies: Vec<Copies>,
    pub(super) spreads: Spreads,
}

/// Copies that were made between a point and the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copies {
    pub(super) segment: usize,
    pub(super) way: Way,
    /// Its number in IP.
    pub(super) protocol: u8,
    pub(super) many: u64,
}

/// A packet's way from point to point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Its number, of all packets that are followed.
    pub number: u32,
    /// Who sends it to whom.
    pub flow: Flowing,
    /// Which way it went; `None` where only one of its hosts was heard, or no packet between them shows
    /// which point comes first.
    pub way: Option<Way>,
    marks: [Option<i64>; Hops::POINTS],
    overtaken: u8,
}

impl Passage {
    /// When it passed a point by that one's clock, in nanoseconds since 1970, in steady time: where the
    /// clock was set back it goes on ([`Followed::stamp`] has the stamp).
    pub fn mark(&self, point: usize) -> Option<i64> {
        self.marks.get(point).copied().flatten()
    }

    /// Whether one that its flow sent later came out of this segment before it (RFC 4737).
    pub const fn is_overtaken(&self, segment: usize) -> bool {
        self.overtaken >> segment & 1 == 1
    }
}

impl Followed {
    /// Segments: one fewer than points.
    pub const fn segments(&self) -> usize {
        self.points.len().saturating_sub(1)
    }

    /// What the capture of a point told.
    pub fn point(&self, point: usize) -> &Point {
        &self.points[point].point
    }

    /// The first and the last stamp of a point's packets.
    pub fn extent(&self, point: usize) -> Option<(Wall, Wall)> {
        walls(self.points[point].extent)
    }

    /// From when until when the capture of a point is known to have lasted, by its clock.
    pub fn lasted(&self, point: usize) -> Option<(Wall, Wall)> {
        walls(self.points[point].lasted)
    }

    /// Whether a point shows packets, and of no two hosts both directions.
    pub fn is_one_direction(&self, point: usize) -> bool {
        let mut heard = vec![[false; 2]; self.flows.pairs()];
        for number in &self.points[point].order {
            let (pair, is_upward) = self.between(*number);
            heard[pair][usize::from(is_upward)] = true;
        }
        !self.points[point].order.is_empty() && !heard.contains(&[true; 2])
    }

    /// Packets that were left out because others are like them.
    pub fn alike(&self) -> u64 {
        let packets = self.packets.of.iter();
        packets
            .filter(|packet| packet.standing == Standing::Alike)
            .count() as u64
    }

    /// Packets that both points of a segment show, but left out because others are like them.
    pub fn alike_in(&self, segment: usize) -> u64 {
        let passed = [segment, segment + 1];
        let numbers = 0..u32::try_from(self.packets.of.len()).unwrap_or(u32::MAX);
        let alike = numbers.filter(|number| {
            self.packets.get(*number).standing == Standing::Alike
                && passed
                    .iter()
                    .all(|point| self.packets.mark(*number, *point).is_some())
        });
        alike.count() as u64
    }

    /// Packets that offload cut or joined on the way.
    pub fn joined(&self) -> u64 {
        self.spreads.len() as u64
    }

    /// How long the pieces of such a packet took to pass a point, in nanoseconds; `None` where not all
    /// of them did, and of other packets.
    pub fn spread(&self, passage: &Passage, point: usize) -> Option<i64> {
        self.spreads.get(&passage.number)?.get(point).copied()?
    }

    /// Copies that were made in a segment of packets of the protocols that are meant, by their numbers
    /// in IP.
    pub fn copies(&self, segment: usize, way: Way, is_meant: impl Fn(u8) -> bool) -> u64 {
        let copies = self.copies.iter();
        copies
            .filter(|of| of.segment == segment && of.way == way && is_meant(of.protocol))
            .map(|of| of.many)
            .sum()
    }

    /// Whether any packet at all passed both points of a segment.
    pub fn is_met(&self, segment: usize) -> bool {
        self.crosses[segment].contains(&true)
    }

    /// Whether any packet between the same two hosts passed both points of a segment.
    pub fn crosses(&self, passage: &Passage, segment: usize) -> bool {
        let flow = self.packets.get(passage.number).flow;
        let pair = self.flows.of[flow as usize].1;
        self.crosses[segment][pair as usize]
    }

    /// Whether packets of both directions between its hosts passed two points of two clocks.
    pub fn is_compared(&self, passage: &Passage) -> bool {
        let (_, pair) = self.flow(passage.number);
        self.ways.is_compared(pair)
    }

    /// Whether these differ between all points by their clocks alone.
    pub fn is_still(&self, passage: &Passage) -> bool {
        let (_, pair) = self.flow(passage.number);
        self.ways.is_still(pair)
    }

    /// Whether any of its protocol, between its hosts and in its direction, passed both points of a
    /// segment.
    pub fn crosses_by_kind(&self, passage: &Passage, segment: usize) -> bool {
        let flow = self.packets.get(passage.number).flow;
        self.kinds[segment][flow as usize]
    }

    /// Each packet, those that the first point saw first, in its order.
    pub fn passages(&self) -> impl Iterator<Item = Passage> + '_ {
        let numbers = 0..u32::try_from(self.packets.of.len()).unwrap_or(u32::MAX);
        numbers
            .filter(|number| self.packets.get(*number).standing == Standing::Followed)
            .map(|number| self.passage(number))
    }

    /// One of them.
    pub fn passage(&self, number: u32) -> Passage {
        let mut marks = [None; Hops::POINTS];
        for (point, mark) in marks.iter_mut().take(self.points.len()).enumerate() {
            *mark = self.packets.mark(number, point);
        }
        Passage {
            number,
            flow: self.flows.of[self.packets.get(number).flow as usize].0,
            way: self.way(number),
            marks,
            overtaken: self.overtaken[number as usize],
        }
    }

    pub(super) fn way(&self, number: u32) -> Option<Way> {
        let (flow, pair) = self.flow(number);
        self.ways.way(pair, flow.is_upward())
    }

    /// Packets of a point that are followed, as they passed; of one in parts its last.
    pub(super) fn order(&self, point: usize) -> impl Iterator<Item = u32> + '_ {
        let order = self.points[point].order.iter().copied();
        order.filter(|number| self.packets.get(*number).standing == Standing::Followed)
    }

    pub(super) fn flow(&self, number: u32) -> (Flowing, u32) {
        self.flows.of[self.packets.get(number).flow as usize]
    }

    /// Pairs of hosts.
    pub(super) fn pairs(&self) -> usize {
        self.flows.pairs()
    }

    /// The pair of hosts of a packet, and whether it goes from the lower address to the higher.
    pub(super) fn between(&self, number: u32) -> (usize, bool) {
        let (flow, pair) = self.flow(number);
        (pair as usize, flow.is_upward())
    }

    /// Packets that passed both points of a segment, as they passed the second.
    pub(super) fn both(&self, segment: usize) -> impl Iterator<Item = (u32, i64, i64)> + '_ {
        self.passed(segment, segment + 1)
    }

    /// Packets that passed two points, as they passed the second.
    pub(super) fn passed(
        &self,
        first: usize,
        second: usize,
    ) -> impl Iterator<Item = (u32, i64, i64)> + '_ {
        self.order(second).filter_map(move |number| {
            let here = self.packets.mark(number, first)?;
            let there = self.packets.mark(number, second)?;
            Some((number, here, there))
        })
    }

    pub(super) fn vote(&mut self) {
        let mut ways = Ways::of(self.flows.pairs());
        for segment in 0..self.segments() {
            for (number, here, there) in self.both(segment) {
                let (flow, pair) = self.flow(number);
                let apart = there.saturating_sub(here);
                if self.one_clock[segment] {
                    let (here, there) = (self.stamp(segment, here), self.stamp(segment + 1, there));
                    let apart = there.saturating_sub(here);
                    ways.see_by_one_clock(pair, flow.is_upward(), apart);
                } else {
                    ways.see(pair, flow.is_upward(), apart);
                }
            }
            ways.turn();
        }
        self.ways = ways;
    }

    /// Of whom anything passed both points of a segment; the first of copied packets counts too.
    pub(super) fn look_at_crossings(&mut self) {
        for segment in 0..self.segments() {
            let mut crosses = vec![false; self.flows.pairs()];
            let mut flows = vec![false; self.flows.of.len()];
            for (number, ..) in self.both(segment) {
                crosses[self.flow(number).1 as usize] = true;
                flows[self.packets.get(number).flow as usize] = true;
            }
            self.crosses.push(crosses);
            self.kinds.push(self.flows.spread_over_kinds(&flows));
            self.passes.push(flows);
        }
    }
}

fn walls(times: Option<(i64, i64)>) -> Option<(Wall, Wall)> {
    times.map(|(from, until)| (Wall::from_unix_nanos(from), Wall::from_unix_nanos(until)))
}
