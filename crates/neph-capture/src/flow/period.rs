//! What flows showed since the last look, for live views.
//!
//! Owns the counts at the last look, and those of a period whose flow has ended. Each round trip is counted
//! once, in the current period; earlier ones are set aside at each look.

use super::Flow;
use super::tally::{RoundTripSketches, Sent};
use crate::sample::Half;
use crate::tcp::Side;

/// Counts of a flow at the last look.
#[derive(Debug, Default)]
pub(super) struct Before {
    sent: [Sent; 2],
    trips: [RoundTripSketches; 2],
}

/// Counts of a flow in a period.
#[derive(Debug)]
pub struct Recent {
    sent: [Sent; 2],
    trips: [RoundTripSketches; 2],
}

/// The round trips in the current period of flows that ended in it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    trips: [RoundTripSketches; 2],
    /// Whether periods are used.
    is_wanted: bool,
}

impl Recent {
    /// Counts of `side`; the maximum in flight is that of the flow's whole life.
    pub const fn sent(&self, side: Side) -> &Sent {
        &self.sent[side as usize]
    }

    /// Round trips between the capture point and the end behind `half`.
    pub const fn trips(&self, half: Half) -> &RoundTripSketches {
        &self.trips[half as usize]
    }
}

impl Before {
    pub(super) const fn trips(&self, half: Half) -> &RoundTripSketches {
        &self.trips[half as usize]
    }

    pub(super) fn heap(&self) -> usize {
        let sent: usize = self.sent.iter().map(Sent::heap).sum();
        let trips: usize = self.trips.iter().map(RoundTripSketches::heap).sum();
        size_of::<Self>() + sent + trips
    }
}

impl Flow {
    /// Counts since the last look; `None` without packets.
    fn look(&mut self) -> Option<Recent> {
        let before = self.before.get_or_insert_default();
        let sent = [Side::Client, Side::Server]
            .map(|side| self.sent[side as usize].since(&before.sent[side as usize]));
        if sent.iter().all(|sent| sent.packets == 0) {
            return None;
        }
        before.sent.clone_from(&self.sent);
        self.trips.iter_mut().for_each(RoundTripSketches::settle);
        let trips = std::mem::take(&mut self.trips);
        merge(&mut before.trips, &trips);
        Some(Recent { sent, trips })
    }
}

impl Ended {
    pub(super) fn add(&mut self, flow: &Flow) {
        if self.is_wanted {
            merge(&mut self.trips, &flow.trips);
        }
    }

    /// Ends the period: see [`Table::look`](super::Table::look).
    pub(super) fn look<'a>(
        &mut self,
        flows: impl Iterator<Item = &'a mut Flow>,
        mut take: impl FnMut(&Flow, &Recent),
    ) -> [RoundTripSketches; 2] {
        self.is_wanted = true;
        let mut all = std::mem::take(&mut self.trips);
        for flow in flows {
            if let Some(recent) = flow.look() {
                merge(&mut all, &recent.trips);
                take(flow, &recent);
            }
        }
        all
    }
}

fn merge(all: &mut [RoundTripSketches; 2], trips: &[RoundTripSketches; 2]) {
    for (all, trips) in all.iter_mut().zip(trips) {
        all.merge(trips);
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{Span, Wall};

    use super::super::{Limits, Listener, Table};
    use super::*;
    use crate::sample::Method;

    /// For the flow that ended last: round trips to the server.
    #[derive(Default)]
    struct ServerRoundTrips(Option<u64>);

    impl Listener for ServerRoundTrips {
        fn ended(&mut self, flow: &Flow) {
            self.0 = path(&flow.trips(Half::Server));
        }
    }

    fn path(trips: &RoundTripSketches) -> Option<u64> {
        trips.path(Method::Acknowledgement).map(|path| path.n)
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
    fn look(table: &mut Table) -> (Vec<(u64, Option<u64>)>, Option<u64>) {
        let mut flows = Vec::new();
        let all = table.look(|_, recent| {
            let packets = recent.sent(Side::Client).packets + recent.sent(Side::Server).packets;
            flows.push((packets, path(recent.trips(Half::Server))));
        });
        (flows, path(&all[Half::Server as usize]))
    }

    fn see(millis: i64, bytes: &[u8], table: &mut Table, reported: &mut ServerRoundTrips) {
        let observed = neph_wire::dissect::dissect(neph_wire::dissect::Link::Ip, bytes, 40);
        let at = Wall::from_unix_nanos(millis * 1_000_000);
        table.see(at, &observed.expect("a packet"), reported);
        table.flush(reported);
    }

    #[test]
    fn a_period_has_what_came_in_it_and_a_flow_without_a_packet_is_not_in_it() {
        let (mut table, mut whole) = (Table::new(Limits::default()), ServerRoundTrips::default());
        see(0, &packet(true, 2, (99, 0)), &mut table, &mut whole);
        see(30, &packet(false, 18, (499, 100)), &mut table, &mut whole);
        assert_eq!(look(&mut table), (vec![(2, Some(1))], Some(1)));
        assert_eq!(look(&mut table), (vec![], None));
        see(40, &packet(true, 16, (100, 500)), &mut table, &mut whole);
        assert_eq!(look(&mut table), (vec![(1, None)], None));
        // A new connection of the same ports: the old one ends, and its counts do not belong to the new one.
        see(60_000, &packet(true, 2, (9, 0)), &mut table, &mut whole);
        assert_eq!(whole.0, Some(1), "of its whole life");
        assert_eq!(look(&mut table), (vec![(1, None)], None));
        table.end(&mut whole);
        assert_eq!(whole.0, None);
        assert_eq!(Limits::default().idle, Span::from_secs(300));
    }

    #[test]
    fn a_flow_that_ends_within_a_period_is_in_that_of_all() {
        let (mut table, mut whole) = (Table::new(Limits::default()), ServerRoundTrips::default());
        assert_eq!(look(&mut table), (vec![], None));
        see(0, &packet(true, 2, (99, 0)), &mut table, &mut whole);
        see(30, &packet(false, 18, (499, 100)), &mut table, &mut whole);
        see(60_000, &packet(true, 2, (9, 0)), &mut table, &mut whole);
        assert_eq!(look(&mut table), (vec![(1, None)], Some(1)));
        assert_eq!(look(&mut table), (vec![], None));
    }
}
