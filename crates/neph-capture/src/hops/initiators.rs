//! The end of the path that starts flows: whether the points were given from the wrong end.
//!
//! Owns counting packets by the end that started their flow. An echo request or a SYN shows it, else the
//! ports of TCP, else the rules of `clients`. Does not own the order of points between the ends (`point_order`).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::clients::request_direction_by_ports;
use super::followed::Followed;
use super::packet::{NO_NUMBER, PacketKind};
use crate::directions::Direction;

/// All but one of this many packets are of flows that the far end started, at least.
const NEARLY_ALL: u64 = 10;

/// Packets of flows, by the end that started them.
#[derive(Debug, Default)]
struct PacketsByInitiator {
    near_packets: u64,
    far_packets: u64,
}

impl PacketsByInitiator {
    const fn count(&mut self, direction: Direction, packets: u64) {
        match direction {
            Direction::Forward => self.near_packets += packets,
            Direction::Reverse => self.far_packets += packets,
        }
    }
}

impl Followed {
    /// Whether the far end starts nearly all flows with a known start. Then the points were given from the
    /// wrong end, and an apparent round trip is the time from an answer to the next question.
    pub fn is_started_from_far(&self) -> bool {
        let flows_with_far_client = self.flows_with_far_client();
        let mut packets_by_initiator = PacketsByInitiator::default();
        // For each forward TCP flow: the sender of the SYN, and the number of packets.
        let mut connections: HashMap<u32, (Option<Direction>, u64), RandomState> =
            HashMap::default();
        for number in self.packets_in_order(self.segments()) {
            let packet = self.packets.get(number);
            let Some(direction) = self.direction(number) else {
                continue;
            };
            let forward_flow = self.forward_flow(packet, direction);
            match packet.kind {
                PacketKind::EchoRequest => packets_by_initiator.count(direction, 1),
                PacketKind::EchoReply | PacketKind::LaterFragment => {}
                _ if forward_flow == NO_NUMBER => {}
                PacketKind::Other if flows_with_far_client.contains(&forward_flow) => {
                    packets_by_initiator.count(Direction::Reverse, 1);
                }
                PacketKind::Other => packets_by_initiator.count(Direction::Forward, 1),
                PacketKind::Segment | PacketKind::Acknowledging => {
                    let (start, packets) = connections.entry(forward_flow).or_default();
                    *packets += 1;
                    // A SYN takes a number; a reset without one does not.
                    if packet.kind == PacketKind::Segment && packet.length > 0 {
                        *start = Some(direction);
                    }
                }
            }
        }
        for (flow, (start, packets)) in connections {
            let (flow, _) = self.flows.by_number[flow as usize];
            if let Some(direction) = start.or_else(|| request_direction_by_ports(flow)) {
                packets_by_initiator.count(direction, packets);
            }
        }
        packets_by_initiator.far_packets > 0
            && packets_by_initiator.far_packets
                >= (NEARLY_ALL - 1).saturating_mul(packets_by_initiator.near_packets)
    }
}
