//! Who of two ends asks, where packets do not say it: datagrams, and whatever else has no numbers.
//!
//! Owns the rules, the surest first. Who sends first asks, where the capture had begun before. Ports of
//! services are low, those of who asks are high. Who answers takes shorter to do so than who asks takes to
//! ask again, each by the clock of the point next to it. Else the first that was seen asks.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::followed::Followed;
use super::packet::{Flowing, Kind, NONE};
use crate::ways::Way;

/// A capture that lasts for so long, in nanoseconds, before a flow's first packet has not missed it.
const BEFORE: i64 = 1_000_000_000;
/// Turns of an end that are looked at, at most.
const TURNS: usize = 101;
/// So many times shorter is clearly shorter.
const CLEARLY: i64 = 2;
/// Ports from here on are lent to who asks (Linux: 32768 to 60999; IANA: from 49152 on); below the second
/// are those of services.
const LENT: u16 = 32_768;
const SERVICES: u16 = 1_024;

/// Packets of one flow and the one that answers it, at the two ends of the path.
#[derive(Debug, Default)]
struct Exchange {
    /// The first packet at the last point: when, and which way.
    first: Option<(i64, Way)>,
    /// At the first point and at the last.
    latest: [Option<(i64, Way)>; 2],
    /// How long the near end took to send after it had received, and the far end.
    turns: [Vec<i64>; 2],
}

impl Followed {
    /// Flows that go there, by number, in which the far end asks.
    pub(super) fn asked_from_far(&self) -> HashSet<u32, RandomState> {
        let mut exchanges: HashMap<u32, Exchange, RandomState> = HashMap::default();
        let last = self.segments();
        for (end, point) in [0, last].into_iter().enumerate() {
            for number in self.order(point) {
                let packet = self.packets.get(number);
                if packet.kind != Kind::Other {
                    continue;
                }
                let (Some(way), Some(at)) = (self.way(number), self.packets.mark(number, point))
                else {
                    continue;
                };
                let there = match way {
                    Way::There => packet.flow,
                    Way::Back => self.answering[packet.flow as usize],
                };
                if there != NONE {
                    exchanges.entry(there).or_default().see(end, at, way);
                }
            }
        }
        let began = self.points[last].extent.map_or(0, |(from, _)| from);
        let is_from_far = |(flow, exchange): &(u32, Exchange)| {
            let (flow, _) = self.flows.of[*flow as usize];
            exchange.asks(flow, began) == Way::Back
        };
        let all = exchanges.into_iter().filter(is_from_far);
        all.map(|(flow, _)| flow).collect()
    }
}

impl Exchange {
    /// A packet at the near end (0) or the far end (1).
    fn see(&mut self, end: usize, at: i64, way: Way) {
        let sends = if end == 0 { Way::There } else { Way::Back };
        if end == 1 {
            self.first.get_or_insert((at, way));
        }
        let before = self.latest[end].replace((at, way));
        if way == sends
            && let Some((received, before)) = before
            && before != way
            && self.turns[end].len() < TURNS
        {
            self.turns[end].push(at.saturating_sub(received));
        }
    }

    /// Which way questions go.
    fn asks(&self, flow: Flowing, began: i64) -> Way {
        let first = self.first.map_or(Way::There, |(_, way)| way);
        if self
            .first
            .is_some_and(|(at, _)| at.saturating_sub(began) > BEFORE)
        {
            return first;
        }
        if let Some(way) = by_ports(flow) {
            return way;
        }
        let [near, far] = self.turns.each_ref().map(|turns| median(turns));
        match near.zip(far) {
            Some((near, far)) if near.saturating_mul(CLEARLY) < far => Way::Back,
            Some((near, far)) if far.saturating_mul(CLEARLY) < near => Way::There,
            _ => first,
        }
    }
}

/// Which way questions go in a flow that goes there, where its ports say so.
pub(super) fn by_ports(flow: Flowing) -> Option<Way> {
    let (near, far) = (flow.source.port(), flow.destination.port());
    [SERVICES, LENT]
        .into_iter()
        .find_map(|least| match (near < least, far < least) {
            (true, false) => Some(Way::Back),
            (false, true) => Some(Way::There),
            _ => None,
        })
}

fn median(turns: &[i64]) -> Option<i64> {
    let mut turns = turns.to_vec();
    turns.sort_unstable();
    turns.get(turns.len() / 2).copied()
}
