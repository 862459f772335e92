//! From which end of the path its flows are started: whether the points were given from the wrong end.
//!
//! Owns counting the packets of flows by the end that started them: an echo request and a SYN say it, else the
//! ports of TCP, else the rules of `askers`. Does not own the order of points between the ends (along).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::askers::by_ports;
use super::followed::Followed;
use super::packet::{Kind, NONE};
use crate::ways::Way;

/// Of so many packets all but one are of flows that the far end started, at least.
const NEARLY_ALL: u64 = 10;

/// Packets of flows, by the end that started them.
#[derive(Debug, Default)]
struct Started {
    near: u64,
    far: u64,
}

impl Started {
    const fn count(&mut self, way: Way, packets: u64) {
        match way {
            Way::There => self.near += packets,
            Way::Back => self.far += packets,
        }
    }
}

impl Followed {
    /// Whether the end behind the last point starts nearly all flows whose start is known: then the points were
    /// given from the wrong end, and what looks like a round trip is the time between an answer and the next
    /// question.
    pub fn is_started_from_far(&self) -> bool {
        let asked_from_far = self.asked_from_far();
        let mut started = Started::default();
        // Of TCP, by the flow that goes there: who sent the SYN, and packets.
        let mut connections: HashMap<u32, (Option<Way>, u64), RandomState> = HashMap::default();
        for number in self.order(self.segments()) {
            let packet = self.packets.get(number);
            let Some(way) = self.way(number) else {
                continue;
            };
            let there = match way {
                Way::There => packet.flow,
                Way::Back => self.answering[packet.flow as usize],
            };
            match packet.kind {
                Kind::Echo => started.count(way, 1),
                Kind::Reply | Kind::Piece => {}
                _ if there == NONE => {}
                Kind::Other if asked_from_far.contains(&there) => started.count(Way::Back, 1),
                Kind::Other => started.count(Way::There, 1),
                Kind::Segment | Kind::Acknowledging => {
                    let (start, packets) = connections.entry(there).or_default();
                    *packets += 1;
                    // A SYN takes a number; a reset without one does not.
                    if packet.kind == Kind::Segment && packet.length > 0 {
                        *start = Some(way);
                    }
                }
            }
        }
        for (flow, (start, packets)) in connections {
            let (flow, _) = self.flows.of[flow as usize];
            if let Some(way) = start.or_else(|| by_ports(flow)) {
                started.count(way, packets);
            }
        }
        started.far > 0 && started.far >= (NEARLY_ALL - 1).saturating_mul(started.near)
    }
}
