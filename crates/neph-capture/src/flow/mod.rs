//! Flows: a connection each, with its counts.
//!
//! Owns which packet belongs to which flow, which end is the client, and when a flow is over. Reads no clock:
//! time is that of the packets.

mod batch;
mod key;
mod limits;
mod other_packets;
mod period;
mod recency;
mod table;
mod tally;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::net::SocketAddr;

use neph_model::Wall;
use neph_wire::dissect::Tunnel;

use crate::prefetch::prefetch;
use crate::sample::{Half, Sample};
use crate::tcp::{CapturedSegment, Connection, Event, Segment, SegmentBudget, Side, Sink};
use key::{Key, KeyEnd};
pub use limits::Limits;
pub use other_packets::OtherPackets;
use period::EarlierCounts;
pub use period::PeriodCounts;
pub(crate) use recency::Recency;
pub use table::{Listener, Table};
pub use tally::{Quantiles, RoundTripSketches, RoundTripsByMethod, SentCounts};

/// The two ends of a flow, its VLAN and its tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowName {
    key: Key,
    client: KeyEnd,
    is_client_known: bool,
}

impl FlowName {
    /// From the first segment that was seen.
    fn from_first_segment(key: Key, sender: KeyEnd, first: &Segment) -> Self {
        let (client, is_client_known) = if first.is_syn_without_ack() {
            (sender, true)
        } else if first.is_syn_ack() {
            (sender.other(), true)
        } else {
            (key.likely_server().map_or(sender, KeyEnd::other), false)
        };
        Self {
            key,
            client,
            is_client_known,
        }
    }

    /// The end that opened the connection, or probably did.
    pub fn client(&self) -> SocketAddr {
        self.key.socket_address(self.client)
    }

    /// The end that accepted it.
    pub fn server(&self) -> SocketAddr {
        self.key.socket_address(self.client.other())
    }

    /// Whether SYN or SYN-ACK came first. Otherwise the end with the lower port is assumed to be the server.
    pub const fn is_client_known(&self) -> bool {
        self.is_client_known
    }

    /// The outermost VLAN that the flow travels in.
    pub const fn vlan(&self) -> Option<u16> {
        self.key.vlan()
    }

    /// The innermost tunnel that the flow travels in.
    pub const fn tunnel(&self) -> Option<Tunnel> {
        self.key.tunnel()
    }

    fn side(&self, sender: KeyEnd) -> Side {
        if sender == self.client {
            Side::Client
        } else {
            Side::Server
        }
    }
}

/// A TCP connection and its counts.
#[derive(Debug)]
pub struct Flow {
    name: FlowName,
    /// The key of the other direction, where that travels in another VLAN or tunnel.
    other_direction_key: Option<Box<Key>>,
    /// The sender of its first segment.
    first_sender: Side,
    first_packet_at: Wall,
    last_packet_at: Wall,
    connection: Connection,
    /// Memory in bytes of what awaits its answer, at the table's last count.
    awaiting_bytes: u32,
    sent: [SentCounts; 2],
    /// Since the last look, if there was one.
    round_trips: [RoundTripSketches; 2],
    earlier_counts: Option<Box<EarlierCounts>>,
}

impl Flow {
    /// A flow whose first segment was captured at `at`.
    fn new(at: Wall, name: FlowName, first_sender: Side) -> Self {
        Self {
            name,
            other_direction_key: None,
            first_sender,
            first_packet_at: at,
            last_packet_at: at,
            connection: Connection::default(),
            awaiting_bytes: 0,
            sent: Default::default(),
            round_trips: Default::default(),
            earlier_counts: None,
        }
    }

    /// A vacant place.
    fn vacant() -> Self {
        let name = FlowName {
            key: Key::default(),
            client: KeyEnd::Lower,
            is_client_known: false,
        };
        Self::new(Wall::from_unix_nanos(0), name, Side::Client)
    }

    const fn is_vacant(&self) -> bool {
        self.name.key.is_vacant()
    }

    /// Whether `segment` begins another flow with the same addresses and ports.
    fn is_replaced_by(&self, sender: KeyEnd, segment: &Segment) -> bool {
        self.connection
            .is_replaced_by(self.name.side(sender), segment)
    }

    fn add_segment(
        &mut self,
        flow_segment: &FlowSegment,
        budget: SegmentBudget,
        listener: &mut impl Listener,
    ) {
        let side = self.name.side(flow_segment.sender);
        let payload = flow_segment.segment.length();
        self.last_packet_at = self.last_packet_at.max(flow_segment.at);
        self.sent[side as usize].add_packet(flow_segment.bytes.into(), payload.into());
        let mut sink = CountingSink {
            name: &self.name,
            sent: &mut self.sent,
            round_trips: &mut self.round_trips,
            listener,
        };
        let captured = CapturedSegment {
            at: flow_segment.at,
            side,
            segment: &flow_segment.segment,
        };
        self.connection.add_segment(captured, budget, &mut sink);
        if payload > 0 {
            let in_flight = self.connection.in_flight(side);
            let sent = &mut self.sent[side as usize];
            sent.max_in_flight = sent.max_in_flight.max(in_flight);
        }
    }

    /// Updates the memory of what awaits its answer.
    #[inline]
    fn update_awaiting_bytes(&mut self) {
        self.awaiting_bytes = u32::try_from(self.connection.heap_bytes()).unwrap_or(u32::MAX);
    }

    /// Prefetches all parts that the next segment needs: see [`crate::prefetch`].
    #[inline]
    fn prefetch(&self) {
        prefetch(&self.round_trips[0]);
        prefetch(&self.round_trips[1]);
        prefetch(&self.name);
        prefetch(&self.other_direction_key);
        prefetch(&self.sent[1]);
        prefetch(&self.awaiting_bytes);
        self.connection.prefetch();
    }

    /// Prefetches what those parts point to, for a segment of `sender`.
    #[inline]
    fn prefetch_far(&self, sender: KeyEnd) {
        let side = self.name.side(sender);
        self.round_trips[side.half() as usize].prefetch_far();
        self.connection.prefetch_far();
    }

    /// Prepares the counts of a flow that is over.
    fn settle(&mut self) {
        self.round_trips
            .iter_mut()
            .for_each(RoundTripSketches::settle);
    }

    /// The two ends.
    pub const fn name(&self) -> &FlowName {
        &self.name
    }

    /// When its first packet was captured.
    pub const fn first_packet_at(&self) -> Wall {
        self.first_packet_at
    }

    /// When its last packet was captured.
    pub const fn last_packet_at(&self) -> Wall {
        self.last_packet_at
    }

    /// What `side` sent.
    pub const fn sent(&self, side: Side) -> &SentCounts {
        &self.sent[side as usize]
    }

    /// Round trips between the capture point and the end behind `half`.
    pub fn round_trips(&self, half: Half) -> Cow<'_, RoundTripSketches> {
        let latest = &self.round_trips[half as usize];
        match &self.earlier_counts {
            None => Cow::Borrowed(latest),
            Some(before) => {
                let mut total = before.round_trips(half).clone();
                total.merge(latest);
                total.settle();
                Cow::Owned(total)
            }
        }
    }

    /// Memory that it points to, in bytes.
    fn heap_bytes(&self) -> usize {
        let sent: usize = self.sent.iter().map(SentCounts::heap_bytes).sum();
        let sketches = self.round_trips.iter();
        let sketch_bytes: usize = sketches.map(RoundTripSketches::heap_bytes).sum();
        let earlier_counts = self.earlier_counts.as_ref();
        let earlier_bytes = earlier_counts.map_or(0, |counts| counts.heap_bytes());
        self.connection.heap_bytes() + sent + sketch_bytes + earlier_bytes
    }
}

/// A segment of a flow.
#[derive(Debug, Clone)]
struct FlowSegment {
    at: Wall,
    sender: KeyEnd,
    /// Of its IP packet on the wire.
    bytes: u32,
    segment: Segment,
}

/// Counts what a connection shows, and passes it on.
struct CountingSink<'a, L> {
    name: &'a FlowName,
    sent: &'a mut [SentCounts; 2],
    round_trips: &'a mut [RoundTripSketches; 2],
    listener: &'a mut L,
}

impl<L: Listener> Sink for CountingSink<'_, L> {
    fn sample(&mut self, sample: Sample) {
        self.round_trips[sample.half as usize].add(&sample);
        self.listener.sample(self.name, &sample);
    }

    fn samples(&mut self, acknowledgement: Option<Sample>, echo: Option<Sample>) {
        let Some(first_sample) = acknowledgement.as_ref().or(echo.as_ref()) else {
            return;
        };
        self.round_trips[first_sample.half as usize]
            .add_by_both_methods(acknowledgement.as_ref(), echo.as_ref());
        let samples = [acknowledgement, echo];
        for sample in samples.iter().flatten() {
            self.listener.sample(self.name, sample);
        }
        if samples.iter().flatten().any(Sample::is_zero) {
            self.listener.zero_round_trip();
        }
    }

    fn event(&mut self, at: Wall, side: Side, event: Event) {
        self.sent[side as usize].add_event(event);
        self.listener.event(self.name, at, side, event);
    }

    fn found_spurious(&mut self, at: Wall, side: Side, previous: Event) {
        self.sent[side as usize].reclassify_as_spurious(previous);
        self.listener.found_spurious(self.name, at, side, previous);
    }

    fn segments_not_tracked(&mut self, side: Side, segments: u64) {
        self.sent[side as usize].add_segments_not_tracked(segments);
        self.listener.segments_not_tracked(self.name, segments);
    }

    fn negative_round_trip(&mut self) {
        self.listener.negative_round_trip();
    }
}
