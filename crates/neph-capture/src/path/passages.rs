//! Each packet's passage in times: segment by segment its delay with the bound, and where it was lost.
//!
//! Owns what of the stamps and the clocks is told of one packet. Figures and tables are made of this.

use std::collections::HashMap;

use crate::{Followed, Passage, Trip, Way};
use neph_model::{Instant, OneWay, Span};
use neph_wire::ip;

use super::offsets::Offsets;

/// All captures, with their clocks.
#[derive(Debug)]
pub struct Passages {
    /// The points, in order.
    pub names: Vec<String>,
    pub followed: Followed,
    /// Of each segment.
    pub clocks: Vec<Offsets>,
    pub trips: Vec<Trip>,
    /// In which order packets pass the points, where it is another one than that of `names`.
    pub order: Option<Vec<usize>>,
    /// Why what is told may be of no use, a sentence each.
    pub doubts: Vec<String>,
    /// By the number of the packet that went there.
    round_trips: HashMap<u32, i64>,
    /// When the first point saw its first packet, by its clock.
    pub began: i64,
    /// The longest delays of each segment, there and back, in nanoseconds.
    longest: Vec<[i64; 2]>,
}

/// Where a packet's way ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It passed the last point.
    Arrived,
    /// It went into this segment and did not come out.
    Lost(usize),
    /// It cannot be told whether it was lost.
    Unknown(Doubt),
}

/// Why it cannot be told whether a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// No packet of its hosts ever passed the next point.
    NeverPassed,
    /// Packets of its hosts passed this point, the next one, but none of its protocol and way: its
    /// capture may have left them out.
    NotOfKind(usize),
    /// No packet of its flow passed the next point, which shows it under other addresses or ports.
    Renamed,
    /// The next point's capture had not begun.
    NotBegun,
    /// The next point's capture was over, or shows nothing as late.
    Over,
    /// No point's capture has all of its bytes.
    Torn,
    /// The clocks are not known, or one was set.
    Clocks,
}

/// What a packet that did not come is to the capture of the point that it should have come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coming {
    /// It lasted from before until after it must have come.
    Within,
    Before,
    Behind,
}

/// One packet.
#[derive(Debug, Clone)]
pub struct Row {
    pub passage: Passage,
    pub way: Way,
    /// When it passed its first point, since the beginning, by the first point's clock; around a
    /// step, and where the clocks are not known, to within its delay. `None` where it was not seen on
    /// the side of the first point either.
    pub since: Option<Span>,
    /// Of each segment, in the order of the points.
    pub delays: Vec<Option<OneWay>>,
    /// What it took until its answer passed the first point, without any clock's doubt.
    pub round_trip: Option<Span>,
    pub end: End,
}

impl Passages {
    /// What `followed` says with these clocks, one for each segment.
    pub fn of(names: Vec<String>, followed: Followed, clocks: Vec<Offsets>) -> Self {
        let trips = followed.trips();
        let round_trip = |trip: &Trip| {
            let (there, back) = (followed.passage(trip.there), followed.passage(trip.back));
            let (left, came) = (there.mark(0)?, back.mark(0)?);
            let is_set = clocks
                .first()
                .is_some_and(|of| of.is_set_between(left, came));
            let is_one = !is_set && !followed.is_set_back(0, (left, came));
            is_one.then_some((trip.there, came.saturating_sub(left)))
        };
        let round_trips = trips.iter().filter_map(round_trip).collect();
        // Where the first point saw nothing, the next one of its clock stands for it.
        let began = (0..=followed.segments()).find_map(|point| followed.extent(point));
        let began = began.map_or(0, |(from, _)| from.unix_nanos());
        let mut passages = Self {
            names,
            longest: vec![[0; 2]; followed.segments()],
            followed,
            clocks,
            trips,
            order: None,
            doubts: Vec::new(),
            round_trips,
            began,
        };
        passages.longest = passages.longest();
        passages
    }

    /// Each packet whose way is known.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let passages = self.followed.passages();
        passages.filter_map(|passage| passage.way.map(|way| self.row(passage, way)))
    }

    fn row(&self, passage: Passage, way: Way) -> Row {
        Row {
            since: self.since(&passage, way),
            delays: (0..self.followed.segments())
                .map(|segment| self.delay(&passage, way, segment))
                .collect(),
            round_trip: (self.round_trips.get(&passage.number)).map(|trip| Span::from_nanos(*trip)),
            end: self.end(&passage, way),
            passage,
            way,
        }
    }

    /// How long it was in a segment.
    pub fn delay(&self, passage: &Passage, way: Way, segment: usize) -> Option<OneWay> {
        let (here, there) = self.times(passage, segment)?;
        let offset = self.clocks[segment].around(here, there)?;
        let told = match way {
            Way::There => offset.there(Instant::from_nanos(here), Instant::from_nanos(there)),
            Way::Back => offset.back(Instant::from_nanos(there), Instant::from_nanos(here)),
        };
        Some(OneWay {
            delay: told.delay,
            bound: told.bound + self.coarseness(segment),
        })
    }

    /// When it passed both points of a segment, in times that its clocks compare; `None` where their one
    /// clock was set back in between.
    fn times(&self, passage: &Passage, segment: usize) -> Option<(i64, i64)> {
        let (here, there) = (passage.mark(segment)?, passage.mark(segment + 1)?);
        if !matches!(self.clocks[segment], Offsets::Same) {
            return Some((here, there));
        }
        let is_set = self.followed.is_set_underway(segment, (here, there));
        let stamp = |point, at| self.followed.stamp(point, at);
        (!is_set).then(|| (stamp(segment, here), stamp(segment + 1, there)))
    }

    /// What stamps that are cut to micro- or milliseconds may hide.
    fn coarseness(&self, segment: usize) -> Span {
        let of = |point| self.followed.point(point).resolution;
        let coarser = of(segment).max(of(segment + 1));
        Span::from_nanos(if coarser > 1 { coarser } else { 0 })
    }

    fn since(&self, passage: &Passage, way: Way) -> Option<Span> {
        let mut points = 0..=self.followed.segments();
        let seen = |point: &usize| passage.mark(*point).is_some();
        let first = match way {
            Way::There => points.find(seen),
            Way::Back => points.rfind(seen),
        };
        self.passed(passage, first?)
    }

    /// When it came into a segment, by what tells when it set out ([`Row::since`]).
    pub fn entered(&self, passage: &Passage, way: Way, segment: usize) -> Option<Span> {
        self.passed(passage, way.enters(segment))
    }

    /// When it passed a point, since the beginning, by the first point's clock.
    fn passed(&self, passage: &Passage, mut point: usize) -> Option<Span> {
        let mut at = passage.mark(point)?;
        while point > 0 {
            let clocks = &self.clocks[point - 1];
            let nearer = passage.mark(point - 1);
            if matches!(clocks, Offsets::Same) {
                let across = self.followed.across(point, at, point - 1);
                at = across.or(nearer).unwrap_or(at);
                point -= 1;
                continue;
            }
            // Its own stamp says on which side of a step it passed.
            let offset = nearer.map_or_else(|| clocks.at_there(at), |here| clocks.around(here, at));
            (point, at) = match offset {
                Some(offset) => (point - 1, at.saturating_sub(offset.value().nanos())),
                None => (0..point)
                    .rev()
                    .find_map(|point| Some((point, passage.mark(point)?)))?,
            };
        }
        Some(Span::from_nanos(at.saturating_sub(self.began)))
    }

    fn end(&self, passage: &Passage, way: Way) -> End {
        let last = self.followed.segments();
        let passed = |point: &usize| passage.mark(*point).is_some();
        // The last point it passed, the next one, and the segment between.
        let (at, next, segment) = match way {
            Way::There => match (0..=last).rev().find(passed) {
                Some(at) if at == last => return End::Arrived,
                Some(at) => (at, at + 1, at),
                None => return End::Unknown(Doubt::Torn),
            },
            Way::Back => match (0..=last).find(passed) {
                Some(0) => return End::Arrived,
                Some(at) => (at, at - 1, at - 1),
                None => return End::Unknown(Doubt::Torn),
            },
        };
        let mark = passage.mark(at);
        let coming = mark.and_then(|mark| self.coming(mark, (next, segment), way));
        // What a capture did not last for says nothing of what it leaves out.
        match coming {
            Some(Coming::Before) => return End::Unknown(Doubt::NotBegun),
            Some(Coming::Behind) => return End::Unknown(Doubt::Over),
            Some(Coming::Within) | None => {}
        }
        if !self.followed.crosses(passage, segment) {
            return End::Unknown(Doubt::NeverPassed);
        }
        if self.followed.is_renamed(passage, segment) {
            return End::Unknown(Doubt::Renamed);
        }
        if !self.followed.crosses_by_kind(passage, segment) {
            return End::Unknown(Doubt::NotOfKind(next));
        }
        match coming {
            Some(_) => End::Lost(segment),
            None => End::Unknown(Doubt::Clocks),
        }
    }

    /// When it must have come to the next point, by the longest delay seen there, against when that
    /// one's capture lasted.
    fn coming(&self, mark: i64, (next, segment): (usize, usize), way: Way) -> Option<Coming> {
        let clocks = &self.clocks[segment];
        let at = segment + usize::from(next == segment);
        let mark = if matches!(clocks, Offsets::Same) {
            self.followed.across(at, mark, next)?
        } else {
            mark
        };
        let (offset, sign) = match way {
            Way::There => (clocks.at(mark)?, 1),
            Way::Back => (clocks.at_there(mark)?, -1),
        };
        let (from, until) = self.followed.lasted(next)?;
        let bound = offset.bound().nanos();
        let expected = mark.saturating_add(sign * offset.value().nanos());
        let longest = self.longest[segment][way as usize];
        let latest = expected.saturating_add(bound).saturating_add(longest);
        Some(if expected.saturating_sub(bound) < from.unix_nanos() {
            Coming::Before
        } else if latest > until.unix_nanos() {
            Coming::Behind
        } else {
            Coming::Within
        })
    }

    fn longest(&self) -> Vec<[i64; 2]> {
        let mut longest = vec![[0; 2]; self.followed.segments()];
        for passage in self.followed.passages() {
            let Some(way) = passage.way else { continue };
            for (segment, longest) in longest.iter_mut().enumerate() {
                let delay = self.delay(&passage, way, segment);
                let longest = &mut longest[way as usize];
                *longest = delay.map_or(*longest, |delay| delay.delay.nanos().max(*longest));
            }
        }
        longest
    }
}

/// `a - b` for each two neighbours.
pub fn segment_names(names: &[String]) -> Vec<String> {
    let pairs = names.windows(2);
    pairs
        .map(|pair| format!("{} - {}", pair[0], pair[1]))
        .collect()
}

/// The protocols that are told apart, in their order.
pub const PROTOCOLS: [&str; 4] = ["icmp", "tcp", "udp", "other"];

/// Which of [`PROTOCOLS`], by its number in IP.
pub const fn protocol(number: u8) -> usize {
    match number {
        ip::ICMP | ip::ICMPV6 => 0,
        ip::TCP => 1,
        ip::UDP => 2,
        _ => 3,
    }
}
