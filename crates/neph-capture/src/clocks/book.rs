//! What the exchanges with a peer show of its clocks: the raw ones and the ones on the wall.
//!
//! Owns bringing stamps, limits and wall clocks together. Does no input or output and reads no clock.

use std::collections::BTreeMap;

use neph_model::{Anchor, Instant, Message, Own, Peer, Seq, Span, Wall, WallCourse, WallStep};
use neph_stats::{ClockFit, ClockNature, FourStamps, MeanOffset};

use super::peer_clock::{DOUBT, PeerClock};

/// Readings of a machine's two clocks that are this near to a line are not kept.
const SAME: Span = Span::from_nanos(10);

/// Everything that was exchanged with a peer.
#[derive(Clone, Debug)]
pub struct Book {
    pub raw: PeerClock,
    own: WallCourse<Own>,
    peer: WallCourse<Peer>,
    /// Each exchange's offset by the formula: of the raw clocks, and of the ones on the wall.
    pub raw_mean: MeanOffset,
    pub wall_mean: MeanOffset,
    /// The peer is no reflector of ours: the clock that it tells is the one on its wall.
    pub is_foreign: bool,
    pub exchanges: u64,
    pub shortest: Option<i64>,
    pub latest: Option<i64>,
    /// The same exchange by exchange: of the clocks on the wall, and of the raw ones.
    pub dots: Dots,
    pub raw_dots: Dots,
    pub steps: Vec<Step>,
    /// Exchanges that were answered and are not over: messages are told in order, and the one that waits
    /// for its timeout holds up all behind it.
    answered: BTreeMap<Seq, Message>,
}

/// A wall clock was set, on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub is_peers: bool,
    /// Not before this moment, and not after that, in nanoseconds of our raw clock.
    pub after: i64,
    pub before: i64,
    pub by: Span,
}

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Of the raw clocks.
    pub raw: ClockFit,
    /// The peer's wall clock minus ours, in nanoseconds, with the bound that holds for it.
    pub wall: Option<(i64, i64)>,
}

impl Book {
    pub fn new(nature: ClockNature) -> Self {
        Self {
            raw: PeerClock::new(nature),
            own: WallCourse::within(SAME),
            peer: WallCourse::within(SAME),
            raw_mean: MeanOffset::default(),
            wall_mean: MeanOffset::default(),
            is_foreign: false,
            exchanges: 0,
            shortest: None,
            latest: None,
            dots: Dots::default(),
            raw_dots: Dots::default(),
            steps: Vec::new(),
            answered: BTreeMap::new(),
        }
    }

    /// A reading of our two clocks.
    pub fn anchor(&mut self, reading: Anchor<Own>) {
        if let Some(WallStep { after, before, by }) = self.own.read(reading) {
            self.steps.push(Step {
                is_peers: false,
                after: after.nanos(),
                before: before.nanos(),
                by,
            });
        }
    }

    /// An exchange that was answered; better stamps may follow when it is over.
    pub fn answered(&mut self, message: &Message) {
        self.answered.insert(message.seq, *message);
    }

    /// Everything that is known now, with what was answered and is not over.
    #[must_use]
    pub fn so_far(&self) -> Self {
        let mut all = self.clone();
        for message in std::mem::take(&mut all.answered).values() {
            all.message(message);
        }
        all
    }

    /// An exchange that is over; whether it had all four stamps.
    pub fn message(&mut self, message: &Message) -> bool {
        self.answered.remove(&message.seq);
        let Some(stamps) = self.raw.message(&message.marks) else {
            return false;
        };
        self.peer_wall(message, stamps);
        self.exchanges += 1;
        self.latest = self.latest.max(Some(stamps.sent));
        let trip = stamps.round_trip();
        self.shortest = Some(self.shortest.map_or(trip, |least| least.min(trip)));
        let raw = stamps.offset();
        self.raw_mean.push(raw);
        self.raw_dots.push(stamps.sent, raw);
        let sent = Instant::from_nanos(stamps.sent);
        let arrived = Instant::from_nanos(stamps.arrived);
        if let Some((own, peer)) = self.own.offset(sent).zip(self.peer.offset(arrived)) {
            let wall = raw.saturating_add((peer - own).nanos());
            self.wall_mean.push(wall);
            self.dots.push(stamps.sent, wall);
        }
        true
    }

    fn peer_wall(&mut self, message: &Message, stamps: FourStamps) {
        let (Some(apart), Some(read)) = (message.peer_wall_offset, message.marks.peer.app_tx)
        else {
            return;
        };
        // Who tells the time on the wall for raw time as well tells nothing else.
        self.is_foreign = apart == 0;
        let wall = Wall::from_unix_nanos(read.nanos().saturating_add(apart));
        let step = self.peer.read(Anchor { at: read, wall });
        if let Some(WallStep { after, before, by }) = step {
            // When on our clock: as long before this exchange as the peer says.
            let since = (before - after).nanos();
            self.steps.push(Step {
                is_peers: true,
                after: stamps.sent.saturating_sub(since),
                before: stamps.returned,
                by,
            });
        }
    }

    /// The clocks at a moment of our raw clock, from what was exchanged around it.
    pub fn reading(&self, at: i64) -> Option<Reading> {
        Some(self.with_wall(self.raw.fit(at)?))
    }

    /// What the raw clocks say, with what the ones on the wall do beside it.
    pub fn with_wall(&self, raw: ClockFit) -> Reading {
        let own = self.own.offset(Instant::from_nanos(raw.at));
        let there = raw.at.saturating_add(raw.offset);
        let peer = self.peer.offset(Instant::from_nanos(there));
        let wall = own.zip(peer).map(|(own, peer)| {
            let offset = raw.offset.saturating_add((peer - own).nanos());
            let read = DOUBT + (self.own.doubt() + self.peer.doubt()).nanos();
            (offset, raw.bound.saturating_add(read))
        });
        Reading { raw, wall }
    }
}

/// Each exchange's own offset, or every second, fourth ... one's: as many as a figure can show.
#[derive(Debug, Clone, Default)]
pub struct Dots {
    pub kept: Vec<(i64, i64)>,
    seen: usize,
    every: usize,
}

impl Dots {
    const MOST: usize = 4_096;

    /// At a moment, an offset; both in nanoseconds.
    pub fn push(&mut self, at: i64, offset: i64) {
        let every = self.every.max(1);
        if self.seen.is_multiple_of(every) {
            if self.kept.len() == Self::MOST {
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.every = every * 2;
            }
            self.kept.push((at, offset));
        }
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests;
