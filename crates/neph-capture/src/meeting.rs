//! Two captures of one path: which packets passed both points, when by each clock, and which way.
//!
//! Owns matching. Does not own what makes a packet itself ([`Identity`]), telling the ways apart
//! ([`crate::ways`]), what the packets prove of the clocks (proofs), nor the fit of the clocks (neph-stats).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::quality::RandomState;
use neph_wire::dissect::Dissected;

use crate::fragments::{Fragments, Passing, is_fragment};
use crate::identity::Identity;
use crate::steady::{Fall, Steady, added_at};
use crate::ways::{Way, Ways};

mod proofs;

pub use proofs::SetBack;

/// Matches the packets of two captures: first all of one, then all of the other. Takes some 90 bytes
/// for each packet that is in both, and 50 for each of the first that is not.
#[derive(Debug, Default)]
pub struct Meeting {
    hasher: RandomState,
    /// By a digest of 64 bits with a random seed: of ten million packets two collide once in
    /// 400,000 meetings.
    seen: HashMap<u64, Seen, RandomState>,
    pairs: HashMap<(IpAddr, IpAddr), u32>,
    found: Vec<Found>,
    here: Point,
    there: Point,
    times: [Steady; 2],
    /// Of each capture.
    fragments: [Fragments; 2],
    alike: u64,
    alike_in_both: u64,
}

/// What one capture told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Packets with a time.
    pub packets: u64,
    /// Packets that were cut too short to be known again.
    pub cut: u64,
    /// How exact its stamps are, in nanoseconds: 1, 1,000 or 1,000,000.
    pub resolution: i64,
    /// Packets that it showed again at once: what a mirror or another interface made of one. The first
    /// counts.
    pub again: u64,
}

impl Default for Point {
    fn default() -> Self {
        Self {
            packets: 0,
            cut: 0,
            resolution: 1_000_000,
            again: 0,
        }
    }
}

/// What is like another packet and comes so soon after it was shown again: no timer that sends again is
/// shorter.
pub(crate) const SOON: i64 = 25_000_000;

/// A packet of the first capture.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: i64,
    /// Its place among those found, or what stands for none.
    found: u32,
}

impl Seen {
    const NOT_YET: u32 = u32::MAX;
    const ALIKE: u32 = u32::MAX - 1;
}

/// What a packet is to those of its capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The first that is so.
    New,
    /// One of them, shown again.
    Again,
    /// Another that is like it.
    Alike,
}

/// A packet of both, whose way is not known yet.
#[derive(Debug, Clone, Copy)]
struct Found {
    here: i64,
    there: i64,
    pair: u32,
    /// From the lower address to the higher.
    is_upward: bool,
    is_alike: bool,
}

/// A packet that passed both points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing {
    /// When it passed the first point, in nanoseconds since 1970 by its clock, in steady time: the steps
    /// back of [`Met::set_back`] are no part of it.
    pub here: i64,
    /// And the second, by that one's.
    pub there: i64,
    /// Which way.
    pub way: Way,
    /// A number of the pair of hosts that it travelled between.
    pub pair: u32,
}

/// What came of a meeting.
#[derive(Debug)]
pub struct Met {
    /// In the order of the second capture.
    pub crossings: Vec<Crossing>,
    /// The first capture.
    pub here: Point,
    /// The second.
    pub there: Point,
    /// Packets of which one capture has several that are alike: none of them is used.
    pub alike: u64,
    /// Those of the second capture among them that the first has too.
    pub alike_in_both: u64,
    /// Packets of both captures between hosts of which only one was heard: which way is not known.
    pub one_way: u64,
    /// Packets of both captures between hosts of which both were heard, but as many say the one way as
    /// the other.
    pub even: u64,
    /// Those among `crossings` that took no time at all, there or back: which point comes first is not
    /// known, and their `way` is one of two that are as good.
    pub timeless: u64,
    /// Packets of both captures that have the same stamp in both.
    pub same_stamp: u64,
    /// Where the time of each capture falls.
    pub(crate) falls: [Vec<Fall>; 2],
}

impl Point {
    /// A packet, of whatever time.
    pub(crate) const fn count(&mut self, at: i64) {
        self.packets += 1;
        while self.resolution > 1 && at % self.resolution != 0 {
            self.resolution /= 1_000;
        }
    }

    /// One of which too little was kept.
    pub(crate) const fn cut_short(&mut self, at: i64) {
        self.count(at);
        self.cut += 1;
    }
}

/// Whether a packet that is like one at `first` is that one, shown again.
pub(crate) const fn is_again(first: i64, at: i64, is_named: bool) -> bool {
    is_named && at.saturating_sub(first).saturating_abs() < SOON
}

impl Meeting {
    /// A packet of the first capture of which too little was kept.
    pub fn here_cut(&mut self, at: i64) {
        self.here.cut_short(at);
        self.times[0].next(at);
    }

    /// The same of the second.
    pub fn there_cut(&mut self, at: i64) {
        self.there.cut_short(at);
        self.times[1].next(at);
    }

    /// A packet of the first capture.
    pub fn here(&mut self, at: i64, packet: &Dissected<'_>) {
        let Some(identity) = Identity::of(packet) else {
            self.here_cut(at);
            return;
        };
        self.here.count(at);
        let is_named = identity.is_named(packet);
        match self.known_here(at, identity, is_named) {
            Known::New => {}
            Known::Again => self.here.again += 1,
            Known::Alike => self.alike += 1,
        }
        if let Some(whole) = self.whole(0, at, identity, packet) {
            self.known_here(at, whole, is_named);
        }
    }

    fn known_here(&mut self, at: i64, identity: Identity, is_named: bool) -> Known {
        let time = &mut self.times[0];
        match self.seen.entry(self.hasher.hash_one(identity)) {
            Entry::Vacant(place) => {
                let (at, found) = (time.next(at), Seen::NOT_YET);
                place.insert(Seen { at, found });
                Known::New
            }
            Entry::Occupied(mut seen) => {
                let first = seen.get().at;
                // Of what both show again the first is paired with the first, which is never earlier
                // there than it was sent.
                if is_again(first, time.near(at, (first, SOON)), is_named) {
                    return Known::Again;
                }
                seen.get_mut().found = Seen::ALIKE;
                Known::Alike
            }
        }
    }

    /// As what the packet of a fragment is known whole, if this was the last one that was missing.
    fn whole(
        &mut self,
        point: usize,
        at: i64,
        identity: Identity,
        packet: &Dissected<'_>,
    ) -> Option<Identity> {
        if !is_fragment(packet) {
            return None;
        }
        let passing = Passing {
            point,
            at,
            number: 0,
            identity,
        };
        let whole = self.fragments[point].see(passing, packet)?;
        Some(whole.identity)
    }

    /// A packet of the second, once the first is over.
    pub fn there(&mut self, at: i64, packet: &Dissected<'_>) {
        let Some(identity) = Identity::of(packet) else {
            self.there_cut(at);
            return;
        };
        self.there.count(at);
        let is_named = identity.is_named(packet);
        let known = self.known_there(at, identity, is_named);
        match known {
            Some(Known::New) | None => {}
            Some(Known::Again) => self.there.again += 1,
            Some(Known::Alike) => {
                self.alike += 1;
                self.alike_in_both += 1;
            }
        }
        // What is in the same fragments in both captures is known by these.
        if let Some(whole) = self.whole(1, at, identity, packet)
            && known.is_none()
        {
            self.known_there(at, whole, is_named);
        }
    }

    /// `None` where the first capture has none that is like it.
    fn known_there(&mut self, at: i64, identity: Identity, is_named: bool) -> Option<Known> {
        let time = &mut self.times[1];
        let Some(seen) = self.seen.get_mut(&self.hasher.hash_one(identity)) else {
            time.next(at);
            return None;
        };
        if seen.found != Seen::NOT_YET {
            if let Some(found) = self.found.get_mut(seen.found as usize) {
                let at = time.near(at, (found.there, SOON));
                if is_again(found.there, at, is_named) {
                    return Some(Known::Again);
                }
                found.is_alike = true;
                seen.found = Seen::ALIKE;
            }
            return Some(Known::Alike);
        }
        let at = time.next(at);
        seen.found = u32::try_from(self.found.len()).map_or(Seen::ALIKE, |place| place);
        let (source, destination) = (identity.source, identity.destination);
        let is_upward = source < destination;
        let ends = (source.ip(), destination.ip());
        let ends = if is_upward { ends } else { (ends.1, ends.0) };
        let next = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        self.found.push(Found {
            here: seen.at,
            there: at,
            pair: *self.pairs.entry(ends).or_insert(next),
            is_upward,
            is_alike: false,
        });
        Some(Known::New)
    }

    /// Both captures are over.
    pub fn end(mut self) -> Met {
        // The largest part, and of no more use.
        drop(std::mem::take(&mut self.seen));
        self.found.retain(|found| !found.is_alike);
        let mut ways = Ways::of(self.pairs.len());
        for found in &self.found {
            let apart = found.there.saturating_sub(found.here);
            ways.see(found.pair, found.is_upward, apart);
        }
        let [here, there] = self.times.each_ref().map(Steady::falls);
        let is_same = |found: &&Found| {
            let here = found.here - added_at(here, found.here);
            here == found.there - added_at(there, found.there)
        };
        let same_stamp = self.found.iter().filter(is_same).count() as u64;
        let mut met = Met {
            crossings: Vec::with_capacity(self.found.len()),
            here: self.here,
            there: self.there,
            alike: self.alike,
            alike_in_both: self.alike_in_both,
            one_way: 0,
            even: 0,
            timeless: 0,
            same_stamp,
            falls: self.times.map(|time| time.falls().to_vec()),
        };
        for found in &self.found {
            met.cross(
                (found.here, found.there),
                found.pair,
                found.is_upward,
                &ways,
            );
        }
        met
    }
}

impl Met {
    /// A packet of both captures, by its stamps and who sent it.
    pub(crate) fn cross(
        &mut self,
        (here, there): (i64, i64),
        pair: u32,
        is_upward: bool,
        ways: &Ways,
    ) {
        let known = ways.way(pair, is_upward);
        let Some(way) = known.or_else(|| ways.either(pair, is_upward)) else {
            let left_out = if ways.is_compared(pair) {
                &mut self.even
            } else {
                &mut self.one_way
            };
            *left_out += 1;
            return;
        };
        self.timeless += u64::from(known.is_none());
        self.crossings.push(Crossing {
            here,
            there,
            way,
            pair,
        });
    }

    /// Whether one capture was read twice, or a part of it: all that both have is stamped the same.
    /// Stamps of milliseconds say nothing: a short way takes less.
    pub fn is_one_capture(&self) -> bool {
        let shared = self.crossings.len() as u64 + self.one_way + self.even;
        let resolution = self.here.resolution.max(self.there.resolution);
        self.same_stamp > 0 && self.same_stamp == shared && resolution < 1_000_000
    }
}

#[cfg(test)]
mod tests;
