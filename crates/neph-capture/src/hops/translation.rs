//! Flows that a segment's second point shows with other addresses or ports: a NAT lies in between.
//!
//! Owns recognizing their packets by their numbers. They are not followed: that needs the rule of the NAT.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use foldhash::fast::RandomState;
use neph_wire::ip::TCP;

use super::followed::{Followed, Passage};
use super::packet::{Flowing, Kind, PacketHandling};
use super::renamed::{Called, Renamed};

/// Packets of the first point that are remembered, at most.
const MAX_PACKETS: usize = 1_000_000;

/// Fields that a NAT does not change, even if it changes ports.
type Numbers = (u8, Kind, [u32; 4]);

impl Followed {
    /// Whether no packet of its flow passed both points of a segment, but the other point shows the flow with
    /// other addresses or ports.
    pub fn is_renamed(&self, passage: &Passage, segment: usize) -> bool {
        let flow = self.packets.get(passage.number).flow;
        let renamed = self.renamed.get(segment);
        renamed.is_some_and(|renamed| renamed.flows.get(flow as usize) == Some(&true))
    }

    /// Runs once it is known which flows passed.
    pub(super) fn look_at_names(&mut self) {
        self.renamed = (0..self.segments())
            .map(|segment| self.renamed_in(segment))
            .collect();
    }

    fn renamed_in(&self, segment: usize) -> Renamed {
        let met = self.recognised(segment);
        let mut renamed = Renamed {
            flows: vec![false; self.flows.of.len()],
            packets: met.values().sum(),
            ..Renamed::default()
        };
        let mut names: BTreeMap<(Called, Called), u64> = BTreeMap::new();
        for ((before, now), many) in met {
            renamed.flows[before as usize] = true;
            renamed.flows[now as usize] = true;
            let [before, now] = [before, now].map(|flow| self.flows.of[flow as usize].0);
            for names_of in differing(before, now) {
                *names.entry(names_of).or_default() += many;
            }
        }
        let name = names.into_iter().max_by_key(|(_, many)| *many);
        renamed.name = name.map(|(name, _)| name);
        if let Some((first_name, second_name)) = renamed.name {
            renamed.is_shared = [first_name, second_name].map(|name| self.is_shared(name, segment));
        }
        renamed
    }

    /// Number of recognized packets, by the numbers of their flows at the first point and at the second.
    fn recognised(&self, segment: usize) -> BTreeMap<(u32, u32), u64> {
        let at = |point| {
            let order = self.order(point);
            order.filter_map(move |number| {
                let flow = self.packets.get(number).flow;
                let is_strange = !self.passes[segment][flow as usize];
                let numbers = is_strange.then(|| self.numbers(number)).flatten()?;
                Some((numbers, flow))
            })
        };
        let mut known: HashMap<Numbers, u32, RandomState> = HashMap::default();
        let mut numbered = vec![0_u64; self.flows.of.len()];
        for (numbers, flow) in at(segment).take(MAX_PACKETS) {
            known.insert(numbers, flow);
            numbered[flow as usize] += 1;
        }
        let mut met: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (numbers, now) in at(segment + 1) {
            numbered[now as usize] += 1;
            if let Some(before) = known.get(&numbers).filter(|before| **before != now) {
                *met.entry((*before, now)).or_default() += 1;
            }
        }
        // Equal numbers of 16 bits occur by accident, those of TCP do not.
        met.retain(|(before, now), many| {
            let fewer = numbered[*before as usize].min(numbered[*now as usize]);
            self.flows.of[*now as usize].0.protocol == TCP || *many * 2 >= fewer
        });
        met
    }

    fn is_shared(&self, (ip, port): Called, segment: usize) -> bool {
        let is_it = |end: SocketAddr| end.ip() == ip && port.is_none_or(|port| port == end.port());
        let flows = self.flows.of.iter().zip(&self.passes[segment]);
        let mut passing = flows.filter(|(_, passes)| **passes);
        passing.any(|((flow, _), _)| is_it(flow.source) || is_it(flow.destination))
    }

    /// `None` for packets without a number: others may equal them.
    fn numbers(&self, number: u32) -> Option<Numbers> {
        let packet = self.packets.get(number);
        let numbers = [packet.seq, packet.ack, packet.length, packet.train];
        let protocol = self.flows.of[packet.flow as usize].0.protocol;
        (packet.is_named && packet.handling == PacketHandling::Followed && numbers != [0; 4])
            .then_some((protocol, packet.kind, numbers))
    }
}

/// The ends with different names.
fn differing(before: Flowing, now: Flowing) -> impl Iterator<Item = (Called, Called)> {
    let ends = [
        (before.source, now.source),
        (before.destination, now.destination),
    ];
    ends.into_iter()
        .filter(|(before, now)| before != now)
        .map(|(before, now)| {
            let name = |end: SocketAddr| {
                let has_other = before.port() != now.port();
                (end.ip(), has_other.then_some(end.port()))
            };
            (name(before), name(now))
        })
}
