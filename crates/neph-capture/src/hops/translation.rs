//! Flows that a segment's second point shows with other addresses or ports: a NAT lies in between.
//!
//! Owns recognizing their packets by their numbers. They are not followed: that needs the rule of the NAT.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use foldhash::fast::RandomState;
use neph_wire::ip::TCP;

use super::followed::{Followed, Passage};
use super::packet::{FiveTuple, PacketHandling, PacketKind};
use super::translated_flows::{TranslatedAddress, TranslatedFlows};

/// Packets of the first point that are remembered, at most.
const MAX_PACKETS: usize = 1_000_000;

/// Fields that a NAT does not change, even if it changes ports.
type Numbers = (u8, PacketKind, [u32; 4]);

impl Followed {
    /// Whether no packet of its flow passed both points of a segment, but the other point shows the flow with
    /// other addresses or ports.
    pub fn is_translated(&self, passage: &Passage, segment: usize) -> bool {
        let flow = self.packets.get(passage.number).flow;
        let translated = self.translated_flows.get(segment);
        translated.is_some_and(|translated| translated.flows.get(flow as usize) == Some(&true))
    }

    /// Runs once it is known which flows passed.
    pub(super) fn find_translated_flows(&mut self) {
        self.translated_flows = (0..self.segments())
            .map(|segment| self.translated_flows_in(segment))
            .collect();
    }

    fn translated_flows_in(&self, segment: usize) -> TranslatedFlows {
        let recognized = self.count_recognized(segment);
        let mut translated = TranslatedFlows {
            flows: vec![false; self.flows.by_number.len()],
            packets: recognized.values().sum(),
            ..TranslatedFlows::default()
        };
        let mut packet_counts: BTreeMap<(TranslatedAddress, TranslatedAddress), u64> =
            BTreeMap::new();
        for ((first_flow, second_flow), count) in recognized {
            translated.flows[first_flow as usize] = true;
            translated.flows[second_flow as usize] = true;
            let [first_flow, second_flow] =
                [first_flow, second_flow].map(|flow| self.flows.by_number[flow as usize].0);
            for address_pair in translated_ends(first_flow, second_flow) {
                *packet_counts.entry(address_pair).or_default() += count;
            }
        }
        let most_frequent = packet_counts.into_iter().max_by_key(|(_, count)| *count);
        translated.most_frequent_translation = most_frequent.map(|(address_pair, _)| address_pair);
        if let Some((first_address, second_address)) = translated.most_frequent_translation {
            translated.is_address_shared = [first_address, second_address]
                .map(|address| self.is_address_shared(address, segment));
        }
        translated
    }

    /// Number of recognized packets, by the numbers of their flows at the first point and at the second.
    fn count_recognized(&self, segment: usize) -> BTreeMap<(u32, u32), u64> {
        let numbered_packets = |point| {
            let order = self.packets_in_order(point);
            order.filter_map(move |number| {
                let flow = self.packets.get(number).flow;
                let is_unmatched = !self.crossing_flows[segment][flow as usize];
                let numbers = is_unmatched
                    .then(|| self.packet_numbers(number))
                    .flatten()?;
                Some((numbers, flow))
            })
        };
        let mut first_flows: HashMap<Numbers, u32, RandomState> = HashMap::default();
        let mut numbered_counts = vec![0_u64; self.flows.by_number.len()];
        for (numbers, flow) in numbered_packets(segment).take(MAX_PACKETS) {
            first_flows.insert(numbers, flow);
            numbered_counts[flow as usize] += 1;
        }
        let mut recognized: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (numbers, second_flow) in numbered_packets(segment + 1) {
            numbered_counts[second_flow as usize] += 1;
            if let Some(first_flow) = first_flows
                .get(&numbers)
                .filter(|first_flow| **first_flow != second_flow)
            {
                *recognized.entry((*first_flow, second_flow)).or_default() += 1;
            }
        }
        // Equal numbers of 16 bits occur by accident, those of TCP do not.
        recognized.retain(|(first_flow, second_flow), count| {
            let fewer =
                numbered_counts[*first_flow as usize].min(numbered_counts[*second_flow as usize]);
            self.flows.by_number[*second_flow as usize].0.protocol == TCP || *count * 2 >= fewer
        });
        recognized
    }

    fn is_address_shared(&self, (ip, port): TranslatedAddress, segment: usize) -> bool {
        let has_address =
            |end: SocketAddr| end.ip() == ip && port.is_none_or(|port| port == end.port());
        let flows = self
            .flows
            .by_number
            .iter()
            .zip(&self.crossing_flows[segment]);
        let mut crossing_flows = flows.filter(|(_, passes)| **passes);
        crossing_flows
            .any(|((flow, _), _)| has_address(flow.source) || has_address(flow.destination))
    }

    /// `None` for packets without a number: others may equal them.
    fn packet_numbers(&self, number: u32) -> Option<Numbers> {
        let packet = self.packets.get(number);
        let numbers = [packet.seq, packet.ack, packet.length, packet.split_key];
        let protocol = self.flows.by_number[packet.flow as usize].0.protocol;
        let is_followed = packet.handling == PacketHandling::Followed;
        (packet.is_distinguishable && is_followed && numbers != [0; 4]).then_some((
            protocol,
            packet.kind,
            numbers,
        ))
    }
}

/// The ends with different addresses or ports.
fn translated_ends(
    first_flow: FiveTuple,
    second_flow: FiveTuple,
) -> impl Iterator<Item = (TranslatedAddress, TranslatedAddress)> {
    let ends = [
        (first_flow.source, second_flow.source),
        (first_flow.destination, second_flow.destination),
    ];
    ends.into_iter()
        .filter(|(first_end, second_end)| first_end != second_end)
        .map(|(first_end, second_end)| {
            let address = |end: SocketAddr| {
                let is_port_translated = first_end.port() != second_end.port();
                (end.ip(), is_port_translated.then_some(end.port()))
            };
            (address(first_end), address(second_end))
        })
}
