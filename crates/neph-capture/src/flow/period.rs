//! What flows showed since the last look: for those who watch while packets come.
//!
//! Owns the round trips of the running period, by flow and of all together, and what flows had counted
//! at the last look. Does not own the flows. Memory is that of the table's flows: what has ended is
//! forgotten.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::tally::{Sent, Trips};
use super::{Flow, Name, Table};
use crate::sample::{Half, Sample};
use crate::tcp::Side;

/// The running period. Tell it what a [`Listener`](super::Listener) is told.
#[derive(Debug, Default)]
pub struct Period {
    flows: HashMap<Name, Known, RandomState>,
    /// Round trips of flows that ended in it, and while looking of all.
    all: [Trips; 2],
}

/// A flow at the last look, and what came since.
#[derive(Debug, Default)]
struct Known {
    sent: [Sent; 2],
    trips: [Trips; 2],
}

/// What a flow showed in a period.
#[derive(Debug)]
pub struct Recent {
    sent: [Sent; 2],
    trips: [Trips; 2],
}

impl Recent {
    /// What `side` sent; the most in flight is that of the flow's whole life.
    pub const fn sent(&self, side: Side) -> &Sent {
        &self.sent[side as usize]
    }

    /// Round trips between the point of capture and the end behind `half`.
    pub const fn trips(&self, half: Half) -> &Trips {
        &self.trips[half as usize]
    }
}

impl Period {
    /// A flow had a round trip.
    pub fn sample(&mut self, of: &Name, sample: &Sample) {
        let known = self.flows.entry(*of).or_default();
        known.trips[sample.half as usize].add(sample);
    }

    /// A flow is over: it is in no further period.
    pub fn ended(&mut self, flow: &Flow) {
        if let Some(known) = self.flows.remove(flow.name()) {
            merge(&mut self.all, &known.trips);
        }
    }

    /// Ends the period: hands out each flow of `table` that carried a packet in it, in no order, and
    /// gives the round trips of all flows together, those that ended included.
    pub fn look(&mut self, table: &Table, mut take: impl FnMut(&Flow, &Recent)) -> [Trips; 2] {
        for flow in table.flows() {
            let known = self.flows.entry(*flow.name()).or_default();
            let sent = [Side::Client, Side::Server]
                .map(|side| flow.sent(side).since(&known.sent[side as usize]));
            if sent.iter().all(|sent| sent.packets == 0) {
                continue;
            }
            known.sent = [Side::Client, Side::Server].map(|side| flow.sent(side).clone());
            let trips = std::mem::take(&mut known.trips);
            merge(&mut self.all, &trips);
            take(flow, &Recent { sent, trips });
        }
        std::mem::take(&mut self.all)
    }
}

fn merge(all: &mut [Trips; 2], trips: &[Trips; 2]) {
    for (all, trips) in all.iter_mut().zip(trips) {
        all.merge(trips);
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Span, Wall};

    use super::super::{Limits, Listener};
    use super::*;
    use crate::sample::Method;

    impl Listener for Period {
        fn sample(&mut self, of: &Name, sample: &Sample) {
            Self::sample(self, of, sample);
        }
        fn ended(&mut self, flow: &Flow) {
            Self::ended(self, flow);
        }
    }

    /// A packet of a connection to port 443, of the client or of the server.
    fn packet(is_client: bool, flags: u8, numbers: (u32, u32)) -> Vec<u8> {
        let (from, to) = if is_client { (1, 2) } else { (2, 1) };
        let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
        packet.extend([10, 0, 0, from, 10, 0, 0, to]);
        let ports: [u16; 2] = if is_client {
            [40_000, 443]
        } else {
            [443, 40_000]
        };
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend(numbers.0.to_be_bytes());
        packet.extend(numbers.1.to_be_bytes());
        packet.extend([0x50, flags, 2, 0, 0, 0, 0, 0]);
        packet
    }

    /// Packets and round trips to the server of each flow in a period, and of all.
    fn look(period: &mut Period, table: &Table) -> (Vec<(u64, Option<u64>)>, Option<u64>) {
        let n = |trips: &Trips| trips.path(Method::Acknowledgement).map(|path| path.n);
        let mut flows = Vec::new();
        let all = period.look(table, |_, recent| {
            let packets = recent.sent(Side::Client).packets + recent.sent(Side::Server).packets;
            flows.push((packets, n(recent.trips(Half::Server))));
        });
        (flows, n(&all[Half::Server as usize]))
    }

    #[test]
    fn a_period_has_what_came_in_it_and_a_flow_without_a_packet_is_not_in_it() {
        let (mut table, mut period) = (Table::new(Limits::default()), Period::default());
        let see = |millis: i64, bytes: &[u8], period: &mut Period, table: &mut Table| {
            let seen = neph_wire::dissect::dissect(neph_wire::dissect::Link::Ip, bytes, 40);
            let at = Wall::from_unix_nanos(millis * 1_000_000);
            table.see(at, &seen.expect("a packet"), period);
            table.flush(period);
        };
        see(0, &packet(true, 2, (99, 0)), &mut period, &mut table);
        see(30, &packet(false, 18, (499, 100)), &mut period, &mut table);
        assert_eq!(look(&mut period, &table), (vec![(2, Some(1))], Some(1)));
        assert_eq!(look(&mut period, &table), (vec![], None));
        see(40, &packet(true, 16, (100, 500)), &mut period, &mut table);
        assert_eq!(look(&mut period, &table), (vec![(1, None)], None));
        // A new connection of the same ports: the old one ends, and its counts are not the new one's.
        see(60_000, &packet(true, 2, (9, 0)), &mut period, &mut table);
        assert_eq!(look(&mut period, &table), (vec![(1, None)], None));
        table.end(&mut period);
        assert!(period.flows.is_empty());
        assert_eq!(Limits::default().idle, Span::from_secs(300));
    }
}
