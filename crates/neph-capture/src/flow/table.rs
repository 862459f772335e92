//! The table of flows: finds each packet's flow, and ends flows that are over or too many.
//!
//! Owns the bounds: how many flows at once, how long a silent one is kept, how much may wait for its
//! answer. What is over is handed out and forgotten.

mod mirror;

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use neph_model::Wall;
use neph_wire::dissect::{Dissected, Plain, Transport};

use super::batch::{Arrived, Batch, NOWHERE};
use super::key::Key;
use super::limits::Limits;
use super::others::Others;
use super::period::Ended;
use super::recency::Recency;
use super::tally::Trips;
use super::{Flow, Name, Passed, Recent};
use crate::sample::Sample;
use crate::tcp::{Event, Room, Segment, Side};
use mirror::Tagged;

/// From where they arrive to where they are told.
const STEPS: usize = 3;
/// Fewer flows lie in the processor's own memory: nothing is fetched for them.
const NEAR: usize = 512;

/// Is told what packets show, as they show it.
pub trait Listener {
    /// A round trip.
    fn sample(&mut self, _of: &Name, _sample: &Sample) {}
    /// Something else than the next segment, sent by `side`.
    fn event(&mut self, _of: &Name, _at: Wall, _side: Side, _event: Event) {}
    /// A retransmission of `side` that was told as `was` turns out to have been spurious.
    fn found_spurious(&mut self, _of: &Name, _at: Wall, _side: Side, _was: Event) {}
    /// So many segments are not followed to their answers.
    fn thinned(&mut self, _of: &Name, _segments: u64) {}
    /// A segment is stamped before what it answers: it has no round trip.
    fn backwards(&mut self) {}
    /// A segment has the stamp of what it acknowledges: once, however many round trips say so.
    fn of_no_time(&mut self) {}
    /// A flow is over, or given up for others.
    fn ended(&mut self, _flow: &Flow) {}
}

/// Flows by their addresses and ports.
#[derive(Debug)]
pub struct Table {
    limits: Limits,
    hasher: RandomState,
    /// Places by the hash of their flow's key, the middle of which stands beside the place.
    places: HashTable<(u32, u32)>,
    /// Those of flows in VLANs or tunnels, for directions that differ in these.
    tagged: Tagged,
    /// Directions that may belong to several others.
    ambiguous: u64,
    /// Vacant where none is: whether there is one is not asked of memory before it is needed.
    flows: Vec<Flow>,
    free: Vec<u32>,
    recency: Recency,
    /// Seen and not yet told.
    arrived: Batch,
    /// Arrived before, and looked up: their flows are being fetched.
    found: Batch,
    /// Found before: what their flows point to is being fetched.
    ready: Batch,
    /// The latest time of any packet: it does not go back where theirs do.
    now: i64,
    /// Bytes of what awaits its answer.
    waiting: usize,
    others: Others,
    /// Flows that were ended for others.
    crowded_out: u64,
    /// Of the running period, where somebody looks at periods.
    ended: Ended,
}

impl Table {
    /// An empty one.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            hasher: RandomState::default(),
            places: HashTable::new(),
            tagged: Tagged::default(),
            ambiguous: 0,
            flows: Vec::new(),
            free: Vec::new(),
            recency: Recency::default(),
            arrived: Batch::default(),
            found: Batch::default(),
            ready: Batch::default(),
            now: i64::MIN,
            waiting: 0,
            others: Others::default(),
            crowded_out: 0,
            ended: Ended::default(),
        }
    }

    /// A packet was captured at `at`. What it shows may be told with a later one, or by
    /// [`Table::flush`]: flows lie far apart in memory, and those of several packets are fetched
    /// together.
    pub fn see(&mut self, at: Wall, packet: &Dissected<'_>, listener: &mut impl Listener) {
        let Transport::Tcp {
            header,
            payload_len,
        } = &packet.transport
        else {
            self.others.count(packet);
            return;
        };
        let bytes = u32::try_from(packet.ip.total_len).unwrap_or(u32::MAX);
        let segment = Segment::of(header, *payload_len);
        let (key, sender) = Key::of(packet, header.source, header.destination);
        *self.room_for(key) = Passed {
            at,
            sender,
            bytes,
            segment,
        };
        self.go_on(listener);
    }

    /// The same of a segment that was read at a glance.
    #[inline]
    pub fn see_plain(&mut self, at: Wall, read: &Plain, listener: &mut impl Listener) {
        let (key, sender) = Key::plain(read);
        *self.room_for(key) = Passed {
            at,
            sender,
            bytes: u32::from(read.total_len),
            segment: Segment::plain(read),
        };
        self.go_on(listener);
    }

    /// The headers of a packet were cut off before they told its addresses.
    pub const fn see_cut(&mut self) {
        self.others.cut += 1;
    }

    /// Where the next segment goes, of a flow with this key.
    #[inline]
    fn room_for(&mut self, key: Key) -> &mut Passed {
        let hash = self.hasher.hash_one(key);
        let one = self.arrived.next();
        one.hash = hash;
        one.key = key;
        one.place = NOWHERE;
        &mut one.passed
    }

    /// Another segment has arrived.
    #[inline]
    fn go_on(&mut self, listener: &mut impl Listener) {
        if self.places.len() < NEAR && self.is_first() {
            self.take_in_first(listener);
        } else if self.arrived.is_full() {
            self.advance(listener);
        }
    }

    /// Whether all was told but for one that arrived.
    const fn is_first(&self) -> bool {
        self.arrived.len() == 1 && self.found.len() == 0 && self.ready.len() == 0
    }

    fn take_in_first(&mut self, listener: &mut impl Listener) {
        let mut arrived = std::mem::take(&mut self.arrived);
        for one in arrived.drain() {
            self.take_in(one, listener);
        }
        self.arrived = arrived;
    }

    /// Tells all that was seen.
    pub fn flush(&mut self, listener: &mut impl Listener) {
        for _ in 0..STEPS {
            self.advance(listener);
        }
    }

    /// Tells those whose flows were fetched. What the flows of the others point to is fetched meanwhile,
    /// and the flows of those that arrived: all of these at once, since looking one up waits for memory
    /// as long as looking up many does.
    fn advance(&mut self, listener: &mut impl Listener) {
        for one in self.found.all() {
            if let Some(flow) = self.flow(one.place) {
                flow.fetch_far(one.passed.sender);
            }
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        for one in arrived.all_mut() {
            one.place = self.guess(one.hash);
            self.fetch(one.place);
        }
        let mut ready = std::mem::take(&mut self.ready);
        for one in ready.drain() {
            self.take_in(one, listener);
        }
        self.ready = std::mem::replace(&mut self.found, arrived);
        self.arrived = ready;
    }

    #[inline]
    fn fetch(&self, place: u32) {
        self.recency.fetch(place);
        if let Some(flow) = self.flow(place) {
            flow.fetch();
        }
    }

    fn take_in(&mut self, one: &Arrived, listener: &mut impl Listener) {
        self.now = self.now.max(one.passed.at.unix_nanos());
        self.end_silent(listener);
        let place = self.place(one, listener);
        self.recency.touch(place, self.now);
        let room = match self.waiting {
            waiting if waiting < self.limits.waiting / 2 => Room::Ample,
            waiting if waiting < self.limits.waiting => Room::Tight,
            _ => Room::Scarce,
        };
        let flow = &mut self.flows[place as usize];
        flow.see(&one.passed, room, listener);
        self.waiting -= flow.awaiting as usize;
        flow.count_awaiting();
        self.waiting += flow.awaiting as usize;
    }

    /// Tells all that was seen, and ends the flows that are silent for too long at `now`: where no
    /// packet comes none says how late it is.
    pub fn silence(&mut self, now: Wall, listener: &mut impl Listener) {
        self.flush(listener);
        self.now = self.now.max(now.unix_nanos());
        self.end_silent(listener);
    }

    /// No more packets come: all flows are over, the longest silent first.
    pub fn end(&mut self, listener: &mut impl Listener) {
        self.flush(listener);
        while let Some(place) = self.recency.oldest() {
            self.remove(place, listener);
        }
    }

    /// Ends a period: hands out each flow that carried a packet since the last look, in no order, and
    /// gives the round trips of all flows together in it, by half. Those of flows that ended count from
    /// the first look on.
    pub fn look(&mut self, take: impl FnMut(&Flow, &Recent)) -> [Trips; 2] {
        let flows = self.flows.iter_mut().filter(|flow| !flow.is_vacant());
        self.ended.look(flows, take)
    }

    /// Flows at the moment.
    pub fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// Whether there is no flow at the moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packets that were of no flow.
    pub const fn others(&self) -> Others {
        self.others
    }

    /// Flows that were ended for others, because there were too many.
    pub const fn crowded_out(&self) -> u64 {
        self.crowded_out
    }

    /// Bytes of memory that it takes: walks over all flows.
    pub fn memory(&self) -> usize {
        let flows: usize = self.flows.iter().map(Flow::heap).sum();
        flows
            + self.flows.capacity() * size_of::<Flow>()
            + self.places.allocation_size()
            + self.recency.heap()
    }

    fn flow(&self, place: u32) -> Option<&Flow> {
        self.flows.get(place as usize)
    }

    /// Where the flow of this hash probably is, without a look at the flow.
    fn guess(&self, hash: u64) -> u32 {
        let found = self.places.find(hash, |(tag, _)| *tag == tag_of(hash));
        found.map_or(NOWHERE, |(_, place)| *place)
    }

    fn find(&self, hash: u64, key: &Key) -> Option<u32> {
        let is_it = |(_, place): &(u32, u32)| self.flow(*place).is_some_and(|flow| flow.is_of(key));
        self.places.find(hash, is_it).map(|(_, place)| *place)
    }

    /// Where the flow of a packet is; a new one where there is none.
    fn place(&mut self, one: &Arrived, listener: &mut impl Listener) -> u32 {
        // It was looked up before others that arrived with it had ended or begun flows.
        let is_there = self
            .flow(one.place)
            .is_some_and(|flow| flow.is_of(&one.key));
        let found = if is_there {
            Some(one.place)
        } else {
            self.find(one.hash, &one.key)
        };
        if let Some(place) = found {
            let (sender, segment) = (one.passed.sender, &one.passed.segment);
            let flow = self.flow(place);
            if !flow.is_some_and(|flow| flow.is_followed_by(sender, segment)) {
                return place;
            }
            self.remove(place, listener);
        } else if let Some(place) = self.join_mirrored(one) {
            return place;
        }
        if self.len() >= self.limits.flows.max(1) {
            self.crowd_out(listener);
        }
        let name = Name::of(one.key, one.passed.sender, &one.passed.segment);
        let first = name.side(one.passed.sender);
        self.insert(one.hash, Flow::begin(one.passed.at, name, first))
    }

    fn insert(&mut self, hash: u64, flow: Flow) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::vacant());
            u32::try_from(self.flows.len() - 1).expect("as many as `limits` allows")
        });
        self.tagged.insert(place, &flow.name.key, &self.hasher);
        self.flows[place as usize] = flow;
        self.recency.insert(place, self.now);
        self.index(hash, place);
        place
    }

    fn end_silent(&mut self, listener: &mut impl Listener) {
        let until = self.now.saturating_sub(self.limits.idle.nanos());
        while let Some(place) = self.recency.oldest_before(until) {
            self.remove(place, listener);
        }
    }

    fn crowd_out(&mut self, listener: &mut impl Listener) {
        if let Some(place) = self.recency.oldest() {
            self.crowded_out += 1;
            self.remove(place, listener);
        }
    }

    fn remove(&mut self, place: u32, listener: &mut impl Listener) {
        self.recency.remove(place);
        let flow = &mut self.flows[place as usize];
        let mut flow = std::mem::replace(flow, Flow::vacant());
        flow.settle();
        self.tagged.remove(place, &flow.name.key, &self.hasher);
        for key in std::iter::once(&flow.name.key).chain(flow.other.as_deref()) {
            let hash = self.hasher.hash_one(key);
            if let Ok(entry) = self.places.find_entry(hash, |(_, known)| *known == place) {
                entry.remove();
            }
        }
        self.waiting -= flow.awaiting as usize;
        self.free.push(place);
        self.ended.add(&flow);
        listener.ended(&flow);
    }
}

/// Bits of a hash that the table itself does not compare.
fn tag_of(hash: u64) -> u32 {
    u32::try_from(hash >> 16 & 0xffff_ffff).unwrap_or(0)
}
