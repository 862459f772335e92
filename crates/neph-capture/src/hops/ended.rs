//! Puts together what the captures told, once all are read.
//!
//! Owns the order of it: what is alike, in pieces or copied is set aside before ways are found.

use super::followed::{Copies, Followed};
use super::joined::join;
use super::packet::Standing;
use super::{Hops, again, copies, order};
use crate::ways::Ways;

impl Hops {
    /// All captures are over. `one_clock` says for each segment whether its points have one clock.
    pub fn end(mut self, one_clock: &[bool]) -> Followed {
        let points = self.points.len();
        let mut uneven = Vec::new();
        for chain in self.alike() {
            if !copies::are_even(&self.packets, &chain, points) {
                self.leave_out(&chain);
                uneven.push(chain);
            }
        }
        let mut followed = self.followed(one_clock);
        for chain in uneven {
            let way = chain.first().and_then(|first| followed.way(*first));
            if let Some(first) = chain.first() {
                followed.packets.of[*first as usize].standing = Standing::Followed;
            }
            let made = copies::set_aside(&mut followed.packets, &chain, points, way);
            if let Some((((segment, many), way), first)) = made.zip(way).zip(chain.first()) {
                followed.copies.push(Copies {
                    segment,
                    way,
                    protocol: followed.flow(*first).0.protocol,
                    many,
                });
            }
        }
        followed.look_at_crossings();
        followed.look_at_names();
        followed.overtaken = order::overtaken(&followed);
        followed
    }

    /// What was read is a window of captures, which went on before and go on behind it; `one_clock` as in [`Self::end`].
    /// Packets that are alike are left out: as many at each point may be others at each.
    pub fn end_of_window(mut self, one_clock: &[bool]) -> Followed {
        for chain in self.alike() {
            self.leave_out(&chain);
        }
        let mut followed = self.followed(one_clock);
        followed.look_at_crossings();
        followed.overtaken = order::overtaken(&followed);
        followed
    }

    /// Each several that are alike, as they came, without what a point showed again.
    fn alike(&mut self) -> Vec<Vec<u32>> {
        let seen = std::mem::take(&mut self.seen);
        let whole = |known: u64| seen.get(&known).map(|seen| seen.first);
        self.fragmented = std::mem::take(&mut self.fragments).groups(whole);
        let firsts = seen.values().map(|seen| seen.first);
        let mut firsts: Vec<u32> = firsts
            .filter(|first| self.packets.chain(*first).nth(1).is_some())
            .collect();
        drop(seen);
        // Whatever the order of the map.
        firsts.sort_unstable();
        again::take_out(&mut self.packets, &self.flows, &mut self.points, &firsts);
        let is_followed = |number: &u32| self.packets.get(*number).standing == Standing::Followed;
        let chains = firsts.iter();
        let chains = chains.map(|first| self.packets.chain(*first).filter(is_followed).collect());
        chains.filter(|chain: &Vec<u32>| chain.len() > 1).collect()
    }

    fn leave_out(&mut self, chain: &[u32]) {
        for packet in chain {
            self.packets.of[*packet as usize].standing = Standing::Alike;
        }
    }

    /// With their ways.
    fn followed(mut self, one_clock: &[bool]) -> Followed {
        let segments = self.points.len().saturating_sub(1);
        let is_one = |segment: usize| one_clock.get(segment).copied().unwrap_or(false);
        order::by_stamps(&self.packets, &mut self.points);
        let spreads = join(
            &mut self.packets,
            &self.flows,
            &mut self.points,
            &self.fragmented,
        );
        let mut followed = Followed {
            spreads,
            answering: self.flows.answering(),
            ways: Ways::of(self.flows.pairs()),
            crosses: Vec::new(),
            kinds: Vec::new(),
            passes: Vec::new(),
            renamed: Vec::new(),
            one_clock: (0..segments).map(is_one).collect(),
            overtaken: Vec::new(),
            copies: Vec::new(),
            packets: self.packets,
            flows: self.flows,
            points: self.points,
        };
        followed.vote();
        followed
    }
}
