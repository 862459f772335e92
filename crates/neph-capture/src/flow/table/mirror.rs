//! Directions of one connection that travel in different VLANs or tunnels. Networks may number each direction
//! differently (Cilium's identity in Geneve, keys of GRE, asymmetric VLANs).
//!
//! Owns when two directions are joined. Addresses and ports mirror each other, and each was seen in one
//! direction only. The sequence numbers of one match the acknowledgements of the other. If several fit, none
//! is joined. Overlapping address spaces stay separate, as their sequence numbers do not match.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use neph_wire::dissect::Tunnel;

use super::{Table, hash_tag};
use crate::flow::batch::Arrival;
use crate::flow::key::Key;
use crate::flow::{Flow, FlowSegment};
use crate::tcp::Side;

/// Places of flows in VLANs or tunnels, by the hash of their key without these.
#[derive(Debug, Default)]
pub(super) struct TaggedFlows(HashTable<(u64, u32)>);

impl TaggedFlows {
    pub(super) fn insert(&mut self, index: u32, key: &Key, hasher: &RandomState) {
        if key.is_tagged() {
            let hash = hasher.hash_one(key.untagged());
            self.0.insert_unique(hash, (hash, index), |(hash, _)| *hash);
        }
    }

    pub(super) fn remove(&mut self, index: u32, key: &Key, hasher: &RandomState) {
        if key.is_tagged() {
            let hash = hasher.hash_one(key.untagged());
            if let Ok(entry) = self.0.find_entry(hash, |(_, other)| *other == index) {
                entry.remove();
            }
        }
    }

    fn places_with_hash(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let entries = self
            .0
            .iter_hash(hash)
            .filter(move |(other, _)| *other == hash);
        entries.map(|(_, index)| *index)
    }
}

impl Table {
    /// The flow whose other direction begins with this segment.
    #[inline]
    pub(super) fn join_mirrored(&mut self, arrival: &Arrival) -> Option<u32> {
        // True for nearly all captures.
        if self.tagged.0.is_empty() && !arrival.key.is_tagged() {
            return None;
        }
        self.join_tagged(arrival)
    }

    fn join_tagged(&mut self, arrival: &Arrival) -> Option<u32> {
        let untagged_key = arrival.key.untagged();
        let hash = self.hasher.hash_one(untagged_key);
        let untagged_flow = self.find(hash, &untagged_key);
        let is_mirrored = |index: &u32| {
            let flow = self.flow(*index);
            flow.is_some_and(|flow| {
                flow.name.key.untagged() == untagged_key
                    && flow.is_mirrored_by(&arrival.flow_segment)
            })
        };
        let candidates = self.tagged.places_with_hash(hash).chain(untagged_flow);
        let mirrored: Vec<u32> = candidates.filter(is_mirrored).take(2).collect();
        let [index] = mirrored[..] else {
            self.ambiguous += u64::from(mirrored.len() > 1);
            return None;
        };
        self.flows[index as usize].other_direction_key = Some(Box::new(arrival.key));
        self.add_to_index(arrival.hash, index);
        Some(index)
    }

    /// Adds the hash of one of a flow's keys to the index.
    pub(super) fn add_to_index(&mut self, hash: u64, place: u32) {
        let (flows, hasher) = (&self.flows, &self.hasher);
        let entry_hash = |(tag, index): &(u32, u32)| {
            let flow = &flows[*index as usize];
            let hash = hasher.hash_one(flow.name.key);
            match &flow.other_direction_key {
                Some(other) if hash_tag(hash) != *tag => hasher.hash_one(**other),
                _ => hash,
            }
        };
        self.places
            .insert_unique(hash, (hash_tag(hash), place), entry_hash);
    }

    /// Directions that were not joined, because several in other VLANs or tunnels fit.
    pub const fn ambiguous(&self) -> u64 {
        self.ambiguous
    }
}

impl Flow {
    /// Whether a key is that of one of its directions.
    #[inline]
    pub(super) fn has_key(&self, key: &Key) -> bool {
        self.name.key == *key || self.other_direction_key.as_deref() == Some(key)
    }

    /// Whether this direction was not seen yet, and the segment answers the direction that was.
    fn is_mirrored_by(&self, flow_segment: &FlowSegment) -> bool {
        let side = self.name.side(flow_segment.sender);
        self.other_direction_key.is_none()
            && self.sent[side as usize].packets == 0
            && self.connection.is_answered_by(side, &flow_segment.segment)
    }

    /// VLAN and tunnel of the packets of `side`, where those of the other side differ.
    pub fn separate_encapsulation(&self, side: Side) -> Option<(Option<u16>, Option<Tunnel>)> {
        let other = self.other_direction_key.as_deref()?;
        // The first segment gave the name its key.
        let key = if self.first_sender == side {
            &self.name.key
        } else {
            other
        };
        Some((key.vlan(), key.tunnel()))
    }
}
