//! All exchanges with a peer, and what they show of its raw clock and its wall clock.
//!
//! Owns combining timestamps, limits and wall clocks. Does no input or output and reads no clock.

use std::collections::BTreeMap;

use neph_model::{Anchor, Instant, Local, Message, Peer, Seq, Span, Wall, WallCourse, WallStep};
use neph_stats::{ClockFit, ClockNature, FourTimestamps, MeanOffset};

use super::peer_clock::{PeerClock, TIMESTAMP_ERROR_NANOS};

/// A reading of two clocks is dropped if it is this close to the line through the others.
const MIN_DEVIATION: Span = Span::from_nanos(10);

/// All exchanges with a peer.
#[derive(Clone, Debug)]
pub struct PeerExchanges {
    pub raw_clock: PeerClock,
    own_wall_clock: WallCourse<Local>,
    peer_wall_clock: WallCourse<Peer>,
    /// Mean offset of the exchanges with four timestamps: of the raw clocks, of the wall clocks.
    pub raw_mean: MeanOffset,
    pub wall_mean: MeanOffset,
    /// The peer is not a neph reflector: the clock that it sends is its wall clock.
    pub is_third_party: bool,
    pub exchange_count: u64,
    pub shortest_round_trip_nanos: Option<i64>,
    pub latest_sent_at: Option<i64>,
    /// Offset of each exchange: of the wall clocks and of the raw clocks.
    pub wall_offsets: FigureOffsets,
    pub raw_offsets: FigureOffsets,
    pub steps: Vec<WallClockStep>,
    /// Exchanges that were answered but are not over. Messages are reported in order, so one that waits for
    /// its timeout delays all later ones.
    answered: BTreeMap<Seq, Message>,
}

/// A step of a wall clock, on either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClockStep {
    pub is_of_peer: bool,
    /// The step is after this moment and before the next field, in nanoseconds of the local raw clock.
    pub after: i64,
    pub before: i64,
    pub by: Span,
}

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Fit of the raw clocks.
    pub raw: ClockFit,
    /// The peer's wall clock minus the local one, and its error bound, in nanoseconds.
    pub wall: Option<(i64, i64)>,
}

impl PeerExchanges {
    pub fn new(nature: ClockNature) -> Self {
        Self {
            raw_clock: PeerClock::new(nature),
            own_wall_clock: WallCourse::within(MIN_DEVIATION),
            peer_wall_clock: WallCourse::within(MIN_DEVIATION),
            raw_mean: MeanOffset::default(),
            wall_mean: MeanOffset::default(),
            is_third_party: false,
            exchange_count: 0,
            shortest_round_trip_nanos: None,
            latest_sent_at: None,
            wall_offsets: FigureOffsets::default(),
            raw_offsets: FigureOffsets::default(),
            steps: Vec::new(),
            answered: BTreeMap::new(),
        }
    }

    /// Adds a reading of the two local clocks.
    pub fn add_anchor(&mut self, reading: Anchor<Local>) {
        if let Some(WallStep { after, before, by }) = self.own_wall_clock.read(reading) {
            self.steps.push(WallClockStep {
                is_of_peer: false,
                after: after.nanos(),
                before: before.nanos(),
                by,
            });
        }
    }

    /// Adds an exchange that was answered. Better timestamps may follow when it is over.
    pub fn add_answered(&mut self, message: &Message) {
        self.answered.insert(message.seq, *message);
    }

    /// Everything known now, including exchanges that were answered but are not over.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let mut snapshot = self.clone();
        for message in std::mem::take(&mut snapshot.answered).values() {
            snapshot.add_message(message);
        }
        snapshot
    }

    /// Adds an exchange that is over. Returns whether it has all four timestamps.
    pub fn add_message(&mut self, message: &Message) -> bool {
        self.answered.remove(&message.seq);
        let Some(timestamps) = self.raw_clock.add_message(&message.marks) else {
            return false;
        };
        self.add_peer_wall(message, timestamps);
        self.exchange_count += 1;
        self.latest_sent_at = self.latest_sent_at.max(Some(timestamps.sent));
        let round_trip = timestamps.round_trip();
        self.shortest_round_trip_nanos = Some(
            self.shortest_round_trip_nanos
                .map_or(round_trip, |min| min.min(round_trip)),
        );
        let raw = timestamps.offset();
        self.raw_mean.push(raw);
        self.raw_offsets.push(timestamps.sent, raw);
        let sent = Instant::from_nanos(timestamps.sent);
        let arrived = Instant::from_nanos(timestamps.arrived);
        let own_offset = self.own_wall_clock.offset(sent);
        let peer_offset = self.peer_wall_clock.offset(arrived);
        if let Some((own_offset, peer_offset)) = own_offset.zip(peer_offset) {
            let wall = raw.saturating_add((peer_offset - own_offset).nanos());
            self.wall_mean.push(wall);
            self.wall_offsets.push(timestamps.sent, wall);
        }
        true
    }

    fn add_peer_wall(&mut self, message: &Message, timestamps: FourTimestamps) {
        let (Some(wall_offset), Some(read_at)) =
            (message.peer_wall_offset, message.marks.peer.app_tx)
        else {
            return;
        };
        // A peer that sends its wall clock as raw time has no separate wall clock.
        self.is_third_party = wall_offset == 0;
        let wall = Wall::from_unix_nanos(read_at.nanos().saturating_add(wall_offset));
        let step = self.peer_wall_clock.read(Anchor { at: read_at, wall });
        if let Some(WallStep { after, before, by }) = step {
            // On the local clock: the step is as long before this exchange as on the peer's clock.
            let since = (before - after).nanos();
            self.steps.push(WallClockStep {
                is_of_peer: true,
                after: timestamps.sent.saturating_sub(since),
                before: timestamps.returned,
                by,
            });
        }
    }

    /// The clocks at a moment of the local raw clock, estimated from the exchanges around it.
    pub fn reading(&self, at: i64) -> Option<Reading> {
        Some(self.reading_from_fit(self.raw_clock.fit(at)?))
    }

    /// Completes a fit of the raw clocks with the wall clocks at that moment.
    pub fn reading_from_fit(&self, raw: ClockFit) -> Reading {
        let own_offset = self.own_wall_clock.offset(Instant::from_nanos(raw.at));
        let peer_time = raw.at.saturating_add(raw.offset);
        let peer_offset = self.peer_wall_clock.offset(Instant::from_nanos(peer_time));
        let wall = own_offset
            .zip(peer_offset)
            .map(|(own_offset, peer_offset)| {
                let offset = raw
                    .offset
                    .saturating_add((peer_offset - own_offset).nanos());
                let wall_clock_error = self.own_wall_clock.doubt() + self.peer_wall_clock.doubt();
                let reading_error = TIMESTAMP_ERROR_NANOS + wall_clock_error.nanos();
                (offset, raw.bound.saturating_add(reading_error))
            });
        Reading { raw, wall }
    }
}

/// Offsets of single exchanges, thinned to every second, fourth and so on: as many as a figure can show.
#[derive(Debug, Clone, Default)]
pub struct FigureOffsets {
    pub points: Vec<(i64, i64)>,
    offset_count: usize,
    stride: usize,
}

impl FigureOffsets {
    const MAX_POINTS: usize = 4_096;

    /// Adds an offset at a moment, both in nanoseconds.
    pub fn push(&mut self, at: i64, offset: i64) {
        let stride = self.stride.max(1);
        if self.offset_count.is_multiple_of(stride) {
            if self.points.len() == Self::MAX_POINTS {
                let mut index = 0;
                self.points.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride = stride * 2;
            }
            self.points.push((at, offset));
        }
        self.offset_count += 1;
    }
}

#[cfg(test)]
mod tests;
