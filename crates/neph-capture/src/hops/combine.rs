//! Combines the captures of all points, once all are read.
//!
//! Owns the order: equal packets, pieces and duplicates are handled before directions are estimated.

use super::followed::{Copies, Followed};
use super::packet::PacketHandling;
use super::split_segments::join_split_packets;
use super::{Hops, capture_duplicates, copies, order};
use crate::directions::Directions;

impl Hops {
    /// Ends all captures. `one_clock` has for each segment whether its points have one clock.
    pub fn end(mut self, one_clock: &[bool]) -> Followed {
        let points = self.points.len();
        let mut unequal_chains = Vec::new();
        for chain in self.group_identical() {
            if !copies::have_equal_counts(&self.packets, &chain, points) {
                self.exclude(&chain);
                unequal_chains.push(chain);
            }
        }
        let mut followed = self.into_followed(one_clock);
        for chain in unequal_chains {
            let direction = chain.first().and_then(|first| followed.direction(*first));
            if let Some(first) = chain.first() {
                followed.packets.by_number[*first as usize].handling = PacketHandling::Followed;
            }
            let duplicates =
                copies::mark_duplicates(&mut followed.packets, &chain, points, direction);
            if let Some((((segment, count), direction), first)) =
                duplicates.zip(direction).zip(chain.first())
            {
                followed.copies.push(Copies {
                    segment,
                    direction,
                    protocol: followed.flow_and_pair(*first).0.protocol,
                    count,
                });
            }
        }
        followed.record_crossings();
        followed.find_translated_flows();
        followed.out_of_order = order::out_of_order(&followed);
        followed
    }

    /// Ends a window of captures that continue before and after it; `one_clock` as in [`Self::end`]. Equal
    /// packets are excluded: even the same number at each point may be different packets.
    pub fn end_of_window(mut self, one_clock: &[bool]) -> Followed {
        for chain in self.group_identical() {
            self.exclude(&chain);
        }
        let mut followed = self.into_followed(one_clock);
        followed.record_crossings();
        followed.out_of_order = order::out_of_order(&followed);
        followed
    }

    /// Groups of equal packets in order, without duplicates in the capture.
    fn group_identical(&mut self) -> Vec<Vec<u32>> {
        let identical = std::mem::take(&mut self.identical);
        let first_of = |hash: u64| {
            identical
                .get(&hash)
                .map(|identical_packets| identical_packets.first)
        };
        self.fragmented = std::mem::take(&mut self.fragments).groups(first_of);
        let firsts = identical
            .values()
            .map(|identical_packets| identical_packets.first);
        let mut firsts: Vec<u32> = firsts
            .filter(|first| self.packets.chain(*first).nth(1).is_some())
            .collect();
        drop(identical);
        // Independent of the order of the map.
        firsts.sort_unstable();
        capture_duplicates::remove_duplicates(
            &mut self.packets,
            &self.flows,
            &mut self.points,
            &firsts,
        );
        let is_followed =
            |number: &u32| self.packets.get(*number).handling == PacketHandling::Followed;
        let chains = firsts.iter();
        let chains = chains.map(|first| self.packets.chain(*first).filter(is_followed).collect());
        chains.filter(|chain: &Vec<u32>| chain.len() > 1).collect()
    }

    fn exclude(&mut self, chain: &[u32]) {
        for packet in chain {
            self.packets.by_number[*packet as usize].handling = PacketHandling::Ambiguous;
        }
    }

    /// Adds the directions.
    fn into_followed(mut self, one_clock: &[bool]) -> Followed {
        let segments = self.points.len().saturating_sub(1);
        let has_one_clock = |segment: usize| one_clock.get(segment).copied().unwrap_or(false);
        order::sort_by_timestamp(&self.packets, &mut self.points);
        let spreads = join_split_packets(
            &mut self.packets,
            &self.flows,
            &mut self.points,
            &self.fragmented,
        );
        let mut followed = Followed {
            spreads,
            reverse_flows: self.flows.reverse_flows(),
            directions: Directions::with_pairs(self.flows.pair_count()),
            crossing_pairs: Vec::new(),
            crossing_kinds: Vec::new(),
            crossing_flows: Vec::new(),
            translated_flows: Vec::new(),
            one_clock: (0..segments).map(has_one_clock).collect(),
            out_of_order: Vec::new(),
            copies: Vec::new(),
            packets: self.packets,
            flows: self.flows,
            points: self.points,
        };
        followed.vote_on_directions();
        followed
    }
}
