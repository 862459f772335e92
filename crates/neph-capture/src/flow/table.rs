//! The table of flows: finds each packet's flow, and ends flows that are over or too many.
//!
//! Owns the limits: the number of flows, the time after which a silent one ends, and the memory of segments
//! that await an answer. A flow that ends is handed out and forgotten.

mod mirror;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use neph_model::Wall;
use neph_wire::dissect::{Dissected, Plain, Transport};

use super::batch::{Arrival, Batch, NO_INDEX};
use super::key::Key;
use super::limits::Limits;
use super::other_packets::OtherPackets;
use super::period::EndedFlows;
use super::recency::Recency;
use super::tally::RoundTripSketches;
use super::{Flow, FlowName, FlowSegment, PeriodCounts};
use crate::sample::Sample;
use crate::tcp::{Event, Segment, SegmentBudget, Side};
use mirror::TaggedFlows;

/// Batches from arrival to report.
const BATCH_STAGES: usize = 3;
/// Fewer flows than this are in the processor's cache: nothing is prefetched.
const MAX_CACHED_FLOWS: usize = 512;

/// Receives what packets show.
pub trait Listener {
    /// A round trip.
    fn sample(&mut self, _name: &FlowName, _sample: &Sample) {}
    /// An event other than the next segment, sent by `side`.
    fn event(&mut self, _name: &FlowName, _at: Wall, _side: Side, _event: Event) {}
    /// A retransmission of `side` that was reported as `previous` turns out to be spurious.
    fn found_spurious(&mut self, _name: &FlowName, _at: Wall, _side: Side, _previous: Event) {}
    /// This number of segments is not followed to the answer.
    fn segments_not_tracked(&mut self, _name: &FlowName, _segments: u64) {}
    /// A segment has an earlier timestamp than what it answers: there is no round trip.
    fn negative_round_trip(&mut self) {}
    /// A segment has the same timestamp as what it acknowledges. Reported once per segment.
    fn zero_round_trip(&mut self) {}
    /// A flow is over, or was evicted.
    fn ended(&mut self, _flow: &Flow) {}
}

/// Flows by their addresses and ports.
#[derive(Debug)]
pub struct Table {
    limits: Limits,
    hasher: RandomState,
    /// Places by the hash of the flow's key. The middle bits of the hash are stored with the place.
    places: HashTable<(u32, u32)>,
    /// Flows in VLANs or tunnels, for directions that differ in these.
    tagged: TaggedFlows,
    /// Directions that may belong to several others.
    ambiguous: u64,
    /// Vacant places are marked in the flow itself: a check of an `Option` would wait for memory.
    flows: Vec<Flow>,
    free_places: Vec<u32>,
    recency: Recency,
    /// Arrived and not yet reported.
    arrived: Batch,
    /// Looked up: their flows are being prefetched.
    looked_up: Batch,
    /// Flows are in the cache: the memory that they point to is being prefetched.
    ready: Batch,
    /// The latest time of any packet. It never goes back.
    now: i64,
    /// Bytes of segments that await their answer.
    pending_bytes: usize,
    other_packets: OtherPackets,
    /// Flows that were evicted.
    evicted: u64,
    /// Flows that ended in the current period, if periods are used.
    ended: EndedFlows,
}

impl Table {
    /// An empty table.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            hasher: RandomState::default(),
            places: HashTable::new(),
            tagged: TaggedFlows::default(),
            ambiguous: 0,
            flows: Vec::new(),
            free_places: Vec::new(),
            recency: Recency::default(),
            arrived: Batch::default(),
            looked_up: Batch::default(),
            ready: Batch::default(),
            now: i64::MIN,
            pending_bytes: 0,
            other_packets: OtherPackets::default(),
            evicted: 0,
            ended: EndedFlows::default(),
        }
    }

    /// Adds a packet that was captured at `at`. Its result may be reported with a later packet, or by
    /// [`Table::flush`], because the flows of several packets are prefetched together.
    pub fn add_packet(&mut self, at: Wall, packet: &Dissected<'_>, listener: &mut impl Listener) {
        let Transport::Tcp {
            header,
            payload_len,
        } = &packet.transport
        else {
            self.other_packets.count(packet);
            return;
        };
        let bytes = u32::try_from(packet.ip.total_len).unwrap_or(u32::MAX);
        let segment = Segment::of(header, *payload_len);
        let (key, sender) = Key::from_packet(packet, header.source, header.destination);
        *self.next_segment(key) = FlowSegment {
            at,
            sender,
            bytes,
            segment,
        };
        self.count_or_batch_arrival(listener);
    }

    /// The same for a segment that the fast parser read.
    #[inline]
    pub fn add_segment(&mut self, at: Wall, segment: &Plain, listener: &mut impl Listener) {
        let (key, sender) = Key::from_segment(segment);
        *self.next_segment(key) = FlowSegment {
            at,
            sender,
            bytes: u32::from(segment.total_len),
            segment: Segment::from_plain(segment),
        };
        self.count_or_batch_arrival(listener);
    }

    /// Counts a packet whose headers are cut off before the addresses.
    pub const fn count_cut_packet(&mut self) {
        self.other_packets.truncated += 1;
    }

    /// The place for the next segment, of a flow with this key.
    #[inline]
    fn next_segment(&mut self, key: Key) -> &mut FlowSegment {
        let hash = self.hasher.hash_one(key);
        let arrival = self.arrived.next_place();
        arrival.hash = hash;
        arrival.key = key;
        arrival.index = NO_INDEX;
        &mut arrival.flow_segment
    }

    /// Counts the segment that just arrived, or leaves it in the batch until that is full.
    #[inline]
    fn count_or_batch_arrival(&mut self, listener: &mut impl Listener) {
        if self.places.len() < MAX_CACHED_FLOWS && self.is_only_arrival() {
            self.count_only_arrival(listener);
        } else if self.arrived.is_full() {
            self.advance(listener);
        }
    }

    /// Whether nothing but one arrived segment waits.
    const fn is_only_arrival(&self) -> bool {
        self.arrived.len() == 1 && self.looked_up.len() == 0 && self.ready.len() == 0
    }

    fn count_only_arrival(&mut self, listener: &mut impl Listener) {
        let mut arrived = std::mem::take(&mut self.arrived);
        for arrival in arrived.drain() {
            self.count_arrival(arrival, listener);
        }
        self.arrived = arrived;
    }

    /// Reports all packets.
    pub fn flush(&mut self, listener: &mut impl Listener) {
        for _ in 0..BATCH_STAGES {
            self.advance(listener);
        }
    }

    /// Reports the segments whose flows are in the cache. Meanwhile it prefetches what the flows of the
    /// others point to, and the flows of those that arrived. One batch of lookups waits for memory as long as
    /// one lookup.
    fn advance(&mut self, listener: &mut impl Listener) {
        for arrival in self.looked_up.filled() {
            if let Some(flow) = self.flow(arrival.index) {
                flow.prefetch_far(arrival.flow_segment.sender);
            }
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        for arrival in arrived.filled_mut() {
            arrival.index = self.find_by_hash(arrival.hash);
            self.prefetch(arrival.index);
        }
        let mut ready = std::mem::take(&mut self.ready);
        for arrival in ready.drain() {
            self.count_arrival(arrival, listener);
        }
        self.ready = std::mem::replace(&mut self.looked_up, arrived);
        self.arrived = ready;
    }

    #[inline]
    fn prefetch(&self, index: u32) {
        self.recency.prefetch(index);
        if let Some(flow) = self.flow(index) {
            flow.prefetch();
        }
    }

    fn count_arrival(&mut self, arrival: &Arrival, listener: &mut impl Listener) {
        self.now = self.now.max(arrival.flow_segment.at.unix_nanos());
        self.end_idle_flows(listener);
        let index = self.find_or_insert(arrival, listener);
        self.recency.touch(index, self.now);
        let budget = match self.pending_bytes {
            pending_bytes if pending_bytes < self.limits.max_pending_bytes / 2 => {
                SegmentBudget::Ample
            }
            pending_bytes if pending_bytes < self.limits.max_pending_bytes => SegmentBudget::Tight,
            _ => SegmentBudget::Scarce,
        };
        let flow = &mut self.flows[index as usize];
        flow.add_segment(&arrival.flow_segment, budget, listener);
        self.pending_bytes -= flow.awaiting_bytes as usize;
        flow.update_awaiting_bytes();
        self.pending_bytes += flow.awaiting_bytes as usize;
    }

    /// Reports all packets, and ends flows that are silent for too long at `now`. Needed where no packets
    /// come, as their timestamps are the table's clock.
    pub fn end_idle(&mut self, now: Wall, listener: &mut impl Listener) {
        self.flush(listener);
        self.now = self.now.max(now.unix_nanos());
        self.end_idle_flows(listener);
    }

    /// Ends all flows, the longest silent first.
    pub fn end(&mut self, listener: &mut impl Listener) {
        self.flush(listener);
        while let Some(index) = self.recency.oldest() {
            self.remove(index, listener);
        }
    }

    /// Ends a period. Hands out each flow with a packet since the last look, in no order. Returns the round
    /// trips of all flows per half; those of ended flows count from the first look on.
    pub fn end_period(
        &mut self,
        report: impl FnMut(&Flow, &PeriodCounts),
    ) -> [RoundTripSketches; 2] {
        let flows = self.flows.iter_mut().filter(|flow| !flow.is_vacant());
        self.ended.end_period(flows, report)
    }

    /// Current number of flows.
    pub fn len(&self) -> usize {
        self.flows.len() - self.free_places.len()
    }

    /// Whether there is no flow.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packets that belong to no flow.
    pub const fn other_packets(&self) -> OtherPackets {
        self.other_packets
    }

    /// Flows that were evicted, because there were too many.
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Memory in bytes. Visits all flows.
    pub fn memory_bytes(&self) -> usize {
        let flows: usize = self.flows.iter().map(Flow::heap_bytes).sum();
        flows
            + self.flows.capacity() * size_of::<Flow>()
            + self.places.allocation_size()
            + self.recency.heap_bytes()
    }

    fn flow(&self, index: u32) -> Option<&Flow> {
        self.flows.get(index as usize)
    }

    /// The probable place of the flow with this hash, without access to the flow.
    fn find_by_hash(&self, hash: u64) -> u32 {
        let place = self.places.find(hash, |(tag, _)| *tag == hash_tag(hash));
        place.map_or(NO_INDEX, |(_, index)| *index)
    }

    fn find(&self, hash: u64, key: &Key) -> Option<u32> {
        let has_key =
            |(_, index): &(u32, u32)| self.flow(*index).is_some_and(|flow| flow.has_key(key));
        self.places.find(hash, has_key).map(|(_, index)| *index)
    }

    /// The place of a packet's flow, which may be new.
    fn find_or_insert(&mut self, arrival: &Arrival, listener: &mut impl Listener) -> u32 {
        // Segments that arrived with it may have ended or begun flows since its lookup.
        let is_index_valid = self
            .flow(arrival.index)
            .is_some_and(|flow| flow.has_key(&arrival.key));
        let found_index = if is_index_valid {
            Some(arrival.index)
        } else {
            self.find(arrival.hash, &arrival.key)
        };
        if let Some(index) = found_index {
            let (sender, segment) = (arrival.flow_segment.sender, &arrival.flow_segment.segment);
            let flow = self.flow(index);
            if !flow.is_some_and(|flow| flow.is_replaced_by(sender, segment)) {
                return index;
            }
            self.remove(index, listener);
        } else if let Some(index) = self.join_mirrored(arrival) {
            return index;
        }
        if self.len() >= self.limits.max_flows.max(1) {
            self.evict_oldest(listener);
        }
        let name = FlowName::from_first_segment(
            arrival.key,
            arrival.flow_segment.sender,
            &arrival.flow_segment.segment,
        );
        let first_sender = name.side(arrival.flow_segment.sender);
        self.insert(
            arrival.hash,
            Flow::new(arrival.flow_segment.at, name, first_sender),
        )
    }

    fn insert(&mut self, hash: u64, flow: Flow) -> u32 {
        let index = self.free_places.pop().unwrap_or_else(|| {
            self.flows.push(Flow::vacant());
            u32::try_from(self.flows.len() - 1).expect("as many as `limits` allows")
        });
        self.tagged.insert(index, &flow.name.key, &self.hasher);
        self.flows[index as usize] = flow;
        self.recency.insert(index, self.now);
        self.add_to_index(hash, index);
        index
    }

    fn end_idle_flows(&mut self, listener: &mut impl Listener) {
        let until = self.now.saturating_sub(self.limits.idle_timeout.nanos());
        while let Some(index) = self.recency.oldest_before(until) {
            self.remove(index, listener);
        }
    }

    fn evict_oldest(&mut self, listener: &mut impl Listener) {
        if let Some(index) = self.recency.oldest() {
            self.evicted += 1;
            self.remove(index, listener);
        }
    }

    fn remove(&mut self, index: u32, listener: &mut impl Listener) {
        self.recency.remove(index);
        let flow = &mut self.flows[index as usize];
        let mut flow = std::mem::replace(flow, Flow::vacant());
        flow.settle();
        self.tagged.remove(index, &flow.name.key, &self.hasher);
        for key in std::iter::once(&flow.name.key).chain(flow.other_direction_key.as_deref()) {
            let hash = self.hasher.hash_one(key);
            if let Ok(entry) = self.places.find_entry(hash, |(_, other)| *other == index) {
                entry.remove();
            }
        }
        self.pending_bytes -= flow.awaiting_bytes as usize;
        self.free_places.push(index);
        self.ended.add(&flow);
        listener.ended(&flow);
    }
}

/// Bits of a hash that the table itself does not compare.
fn hash_tag(hash: u64) -> u32 {
    u32::try_from(hash >> 16 & 0xffff_ffff).unwrap_or(0)
}
