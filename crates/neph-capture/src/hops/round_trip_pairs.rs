//! Assignment of reverse packets to the forward packets that they answer.
//!
//! Owns the rules. They use the order at the last point, nearest to the server, with the fewest packets in
//! flight. An echo request is answered by the reply with its number. A segment is answered by the first
//! acknowledgement of its last byte, if it was not retransmitted and nothing newer was in flight. Any other
//! packet is answered by the next reverse packet, if no forward packet came in between and the near end is
//! the client (clients). Fragments after the first have no ports, so they are neither question nor answer.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::followed::Followed;
use super::packet::{NO_NUMBER, PacketKind};
use crate::directions::Direction;
use crate::sequence::Serial;

/// A forward packet and its answer, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTripPair {
    /// The forward packet.
    pub forward: u32,
    /// The reverse packet.
    pub reverse: u32,
}

/// Packets that await an answer, by flow; for an echo by its number too.
type AwaitedAnswers = HashMap<(u32, u32), (u32, Option<Serial>), RandomState>;

impl Followed {
    /// Round trips between the first point and the far end, in the order of their answers.
    pub fn round_trips(&self) -> Vec<RoundTripPair> {
        let mut round_trips = Vec::new();
        let mut awaited = AwaitedAnswers::default();
        let flows_with_far_client = self.flows_with_far_client();
        let mut highest_ends: HashMap<u32, Serial, RandomState> = HashMap::default();
        for number in self.packets_in_order(self.segments()) {
            let packet = self.packets.get(number);
            if packet.kind == PacketKind::LaterFragment
                || flows_with_far_client.contains(&packet.flow)
            {
                continue;
            }
            let echo_number = match packet.kind {
                PacketKind::EchoRequest | PacketKind::EchoReply => packet.seq,
                _ => NO_NUMBER,
            };
            match self.direction(number) {
                Some(Direction::Forward) => {
                    let end = Serial(packet.seq).plus(packet.length);
                    let is_segment =
                        matches!(packet.kind, PacketKind::Acknowledging | PacketKind::Segment);
                    if packet.kind == PacketKind::EchoReply || is_segment && packet.length == 0 {
                        continue;
                    }
                    let request_key = (packet.flow, echo_number);
                    let highest_end = highest_ends.get(&packet.flow).copied();
                    if is_segment
                        && highest_end.is_some_and(|highest_end| !end.is_after(highest_end))
                    {
                        awaited.remove(&request_key);
                        continue;
                    }
                    if is_segment {
                        highest_ends.insert(packet.flow, end);
                    }
                    awaited.insert(request_key, (number, is_segment.then_some(end)));
                }
                Some(Direction::Reverse) => {
                    let request_key = (self.reverse_flows[packet.flow as usize], echo_number);
                    let Some((forward, end)) = awaited.get(&request_key).copied() else {
                        continue;
                    };
                    let is_answer = match end {
                        None => packet.kind != PacketKind::EchoRequest,
                        Some(end) => {
                            packet.kind == PacketKind::Acknowledging
                                && Serial(packet.ack).since(end) >= 0
                        }
                    };
                    if is_answer {
                        awaited.remove(&request_key);
                        let reverse = number;
                        round_trips.push(RoundTripPair { forward, reverse });
                    }
                }
                None => {}
            }
        }
        round_trips
    }
}
