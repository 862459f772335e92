//! What flows showed since the last look, for live views.
//!
//! Owns the counts at the last look, and those of a period whose flow has ended. Each round trip is counted
//! once, in the current period; earlier ones are set aside at each look.

use super::Flow;
use super::tally::{RoundTripSketches, SentCounts};
use crate::sample::Half;
use crate::tcp::Side;

/// Counts of a flow at the last look.
#[derive(Debug, Default)]
pub(super) struct EarlierCounts {
    sent: [SentCounts; 2],
    round_trips: [RoundTripSketches; 2],
}

/// Counts of a flow in a period.
#[derive(Debug)]
pub struct PeriodCounts {
    sent: [SentCounts; 2],
    round_trips: [RoundTripSketches; 2],
}

/// The round trips in the current period of flows that ended in it.
#[derive(Debug, Default)]
pub(super) struct EndedFlows {
    round_trips: [RoundTripSketches; 2],
    /// Whether periods are used.
    is_enabled: bool,
}

impl PeriodCounts {
    /// Counts of `side`; the maximum in flight is that of the flow's whole life.
    pub const fn sent(&self, side: Side) -> &SentCounts {
        &self.sent[side as usize]
    }

    /// Round trips between the capture point and the end behind `half`.
    pub const fn round_trips(&self, half: Half) -> &RoundTripSketches {
        &self.round_trips[half as usize]
    }
}

impl EarlierCounts {
    pub(super) const fn round_trips(&self, half: Half) -> &RoundTripSketches {
        &self.round_trips[half as usize]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let sent: usize = self.sent.iter().map(SentCounts::heap_bytes).sum();
        let sketches = self.round_trips.iter();
        let sketch_bytes: usize = sketches.map(RoundTripSketches::heap_bytes).sum();
        size_of::<Self>() + sent + sketch_bytes
    }
}

impl Flow {
    /// Counts since the last look; `None` without packets.
    fn take_period_counts(&mut self) -> Option<PeriodCounts> {
        let earlier = self.earlier_counts.get_or_insert_default();
        let sent = [Side::Client, Side::Server]
            .map(|side| self.sent[side as usize].since(&earlier.sent[side as usize]));
        if sent.iter().all(|sent| sent.packets == 0) {
            return None;
        }
        earlier.sent.clone_from(&self.sent);
        self.round_trips
            .iter_mut()
            .for_each(RoundTripSketches::settle);
        let round_trips = std::mem::take(&mut self.round_trips);
        merge(&mut earlier.round_trips, &round_trips);
        Some(PeriodCounts { sent, round_trips })
    }
}

impl EndedFlows {
    pub(super) fn add(&mut self, flow: &Flow) {
        if self.is_enabled {
            merge(&mut self.round_trips, &flow.round_trips);
        }
    }

    /// Ends the period: see [`Table::end_period`](super::Table::end_period).
    pub(super) fn end_period<'a>(
        &mut self,
        flows: impl Iterator<Item = &'a mut Flow>,
        mut report: impl FnMut(&Flow, &PeriodCounts),
    ) -> [RoundTripSketches; 2] {
        self.is_enabled = true;
        let mut totals = std::mem::take(&mut self.round_trips);
        for flow in flows {
            if let Some(recent) = flow.take_period_counts() {
                merge(&mut totals, &recent.round_trips);
                report(flow, &recent);
            }
        }
        totals
    }
}

fn merge(totals: &mut [RoundTripSketches; 2], round_trips: &[RoundTripSketches; 2]) {
    for (total, round_trips_of_half) in totals.iter_mut().zip(round_trips) {
        total.merge(round_trips_of_half);
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
            self.0 = path_round_trip_count(&flow.round_trips(Half::Server));
        }
    }

    fn path_round_trip_count(sketches: &RoundTripSketches) -> Option<u64> {
        sketches
            .path_quantiles(Method::Acknowledgement)
            .map(|path| path.n)
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
    fn end_period(table: &mut Table) -> (Vec<(u64, Option<u64>)>, Option<u64>) {
        let mut flows = Vec::new();
        let totals = table.end_period(|_, recent| {
            let packets = recent.sent(Side::Client).packets + recent.sent(Side::Server).packets;
            flows.push((
                packets,
                path_round_trip_count(recent.round_trips(Half::Server)),
            ));
        });
        (flows, path_round_trip_count(&totals[Half::Server as usize]))
    }

    fn add_packet(millis: i64, bytes: &[u8], table: &mut Table, listener: &mut ServerRoundTrips) {
        let dissected = neph_wire::dissect::dissect(neph_wire::dissect::Link::Ip, bytes, 40);
        let at = Wall::from_unix_nanos(millis * 1_000_000);
        table.add_packet(at, &dissected.expect("a packet"), listener);
        table.flush(listener);
    }

    #[test]
    fn a_period_counts_its_packets_and_omits_flows_without_any() {
        let (mut table, mut round_trips) =
            (Table::new(Limits::default()), ServerRoundTrips::default());
        add_packet(0, &packet(true, 2, (99, 0)), &mut table, &mut round_trips);
        add_packet(
            30,
            &packet(false, 18, (499, 100)),
            &mut table,
            &mut round_trips,
        );
        assert_eq!(end_period(&mut table), (vec![(2, Some(1))], Some(1)));
        assert_eq!(end_period(&mut table), (vec![], None));
        add_packet(
            40,
            &packet(true, 16, (100, 500)),
            &mut table,
            &mut round_trips,
        );
        assert_eq!(end_period(&mut table), (vec![(1, None)], None));
        // A new connection of the same ports: the old one ends, and its counts do not belong to the new one.
        add_packet(
            60_000,
            &packet(true, 2, (9, 0)),
            &mut table,
            &mut round_trips,
        );
        assert_eq!(round_trips.0, Some(1), "of its whole life");
        assert_eq!(end_period(&mut table), (vec![(1, None)], None));
        table.end(&mut round_trips);
        assert_eq!(round_trips.0, None);
        assert_eq!(Limits::default().idle_timeout, Span::from_secs(300));
    }

    #[test]
    fn a_flow_that_ends_within_a_period_counts_in_the_totals() {
        let (mut table, mut round_trips) =
            (Table::new(Limits::default()), ServerRoundTrips::default());
        assert_eq!(end_period(&mut table), (vec![], None));
        add_packet(0, &packet(true, 2, (99, 0)), &mut table, &mut round_trips);
        add_packet(
            30,
            &packet(false, 18, (499, 100)),
            &mut table,
            &mut round_trips,
        );
        add_packet(
            60_000,
            &packet(true, 2, (9, 0)),
            &mut table,
            &mut round_trips,
        );
        assert_eq!(end_period(&mut table), (vec![(1, None)], Some(1)));
        assert_eq!(end_period(&mut table), (vec![], None));
    }
}
