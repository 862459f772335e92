//! Packets of hosts of which none passed both points of a segment, and those among them that both points
//! show, under other addresses: a translator lies in between.
//!
//! Owns knowing these by their numbers alone. They are not followed: that takes the translator's rule.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use foldhash::fast::RandomState;

use super::followed::Followed;
use super::packet::{Flowing, Kind, Standing};

/// Packets that are remembered of the first point, at most.
const MOST: usize = 1_000_000;

/// What both points of a segment show of hosts of which none passed both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strangers {
    /// Packets at the first point.
    pub here: u64,
    /// And at the second.
    pub there: u64,
    /// Packets that passed both.
    pub met: u64,
    /// Packets at the second that the first shows under other addresses.
    pub renamed: u64,
    /// Of addresses that are others at the second point those of the most packets: at the first point,
    /// and at the second.
    pub name: Option<(IpAddr, IpAddr)>,
}

/// What translators leave alone. Those that write other ports leave these.
type Numbers = (u8, Kind, [u32; 4]);

impl Followed {
    /// Of a segment.
    pub fn strangers(&self, segment: usize) -> Strangers {
        let met = self.passed(segment, segment + 1).count() as u64;
        let at = |point| {
            let order = self.order(point);
            order.filter(move |number| !self.crosses[segment][self.between(*number).0])
        };
        let mut known: HashMap<Numbers, Flowing, RandomState> = HashMap::default();
        let mut here = 0;
        for number in at(segment) {
            here += 1;
            if let Some(numbers) = self.numbers(number).filter(|_| known.len() < MOST) {
                known.insert(numbers, self.flow_of(number));
            }
        }
        let (mut there, mut renamed) = (0, 0);
        let mut names: BTreeMap<(IpAddr, IpAddr), u64> = BTreeMap::new();
        for number in at(segment + 1) {
            there += 1;
            let before = self.numbers(number).and_then(|numbers| known.get(&numbers));
            let Some(before) = before else { continue };
            renamed += 1;
            let now = self.flow_of(number);
            for (before, now) in [
                (before.source.ip(), now.source.ip()),
                (before.destination.ip(), now.destination.ip()),
            ] {
                if before != now {
                    *names.entry((before, now)).or_default() += 1;
                }
            }
        }
        let name = names.into_iter().max_by_key(|(_, many)| *many);
        Strangers {
            here,
            there,
            met,
            renamed,
            name: name.map(|(name, _)| name),
        }
    }

    /// `None` of packets that nobody numbered: others may be like them.
    fn numbers(&self, number: u32) -> Option<Numbers> {
        let packet = self.packets.get(number);
        let numbers = [packet.seq, packet.ack, packet.length, packet.train];
        let protocol = self.flow_of(number).protocol;
        (packet.is_named && packet.standing == Standing::Followed && numbers != [0; 4]).then_some((
            protocol,
            packet.kind,
            numbers,
        ))
    }

    fn flow_of(&self, number: u32) -> Flowing {
        self.passage(number).flow
    }
}
