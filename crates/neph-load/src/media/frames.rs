//! Which frames a player with a play-out buffer would have shown in time.
//!
//! Play-out begins one buffer after the first packet. Each frame is due at that time plus the
//! difference of its timestamp to the first frame's. A frame is shown if all its packets arrived by
//! then. Reads no clock.

use std::collections::BTreeMap;

use neph_model::Span;

/// Waiting time after the due time, to distinguish late frames from lost ones.
const REORDER_TOLERANCE: Span = Span::from_secs(1);
/// Maximum number of open frames. Beyond it, as with invalid timestamps, the oldest ones are
/// judged.
const MAX_OPEN: usize = 4_096;
/// A timestamp gap above this many frames is no loss: the sender jumped.
const LARGEST_GAP: i64 = 100_000;

/// Outcomes of frames. Their sum is the number of all frames that were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Complete when due.
    pub in_time: u64,
    /// Complete, but after the due time.
    pub late: u64,
    /// Some packets arrived, not all.
    pub incomplete: u64,
    /// No packet arrived.
    pub missing: u64,
}

impl FrameCounts {
    /// Number of all frames.
    pub const fn total(&self) -> u64 {
        self.in_time + self.late + self.incomplete + self.missing
    }
}

/// Stalls: how often and how long the picture stood still.
///
/// A stall is the time between two consecutive shown frames, or from the last shown frame to the
/// end of the measurement. It lasts at least three frame intervals, and at least one frame interval
/// plus 150 ms (W3C: Identifiers for WebRTC's Statistics API, `freezeCount` and
/// `totalFreezesDuration`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Number of stalls.
    pub count: u64,
    /// Their total duration.
    pub total: Span,
    /// The longest one.
    pub longest: Span,
}

/// A packet of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The frame's timestamp relative to the first frame's, in ticks.
    pub(super) ticks: i64,
    /// The packet's sequence number.
    pub(super) number: i64,
    /// Whether it is the last packet of its frame: it has the marker.
    pub(super) is_last: bool,
    /// Whether it is the first packet of its frame; absent if the payload does not show it.
    pub(super) is_first: Option<bool>,
    /// Arrival time.
    pub(super) at: Span,
}

/// A frame of which a packet arrived.
#[derive(Clone, Copy, Debug)]
struct Frame {
    min_number: i64,
    max_number: i64,
    count: i64,
    has_first: bool,
    has_last: bool,
    /// Whether only the packets before it show which packet is its first.
    is_bare: bool,
    /// Arrival time of its last packet.
    last_at: Span,
}

/// Frames that wait for play-out.
#[derive(Debug)]
pub(super) struct Frames {
    clock_hz: u32,
    buffer: Span,
    /// Ticks between two frames, if known.
    interval: Option<i64>,
    /// Arrival time of the first packet.
    origin: Option<Span>,
    open: BTreeMap<i64, Frame>,
    /// Timestamp of the last evaluated frame, and sequence number of its last packet.
    judged_frame: Option<JudgedFrame>,
    shown: Option<Span>,
    counts: FrameCounts,
    stalls: Stalls,
}

#[derive(Clone, Copy, Debug)]
struct JudgedFrame {
    ticks: i64,
    max_number: i64,
}

impl Frames {
    pub(super) fn new(clock_hz: u32, interval: Option<i64>, buffer: Span) -> Self {
        Self {
            clock_hz,
            buffer,
            interval,
            origin: None,
            open: BTreeMap::new(),
            judged_frame: None,
            shown: None,
            counts: FrameCounts::default(),
            stalls: Stalls::default(),
        }
    }

    /// When a frame is due; absent before the first packet.
    fn due(&self, ticks: i64) -> Option<Span> {
        Some(self.origin? + self.buffer + self.span(ticks))
    }

    fn span(&self, ticks: i64) -> Span {
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.clock_hz);
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX / 4))
    }

    /// Adds a packet that is no duplicate; returns whether it arrived after its frame was due.
    pub(super) fn arrive(&mut self, piece: Piece) -> bool {
        let origin = *self.origin.get_or_insert(piece.at);
        self.shown.get_or_insert(origin + self.buffer);
        let is_late = self.due(piece.ticks).is_some_and(|due| piece.at > due);
        if self
            .judged_frame
            .is_some_and(|frame| piece.ticks <= frame.ticks)
        {
            return is_late;
        }
        let frame = self.open.entry(piece.ticks).or_insert_with(|| Frame {
            min_number: piece.number,
            max_number: piece.number,
            count: 0,
            has_first: false,
            has_last: false,
            is_bare: piece.is_first.is_none(),
            last_at: piece.at,
        });
        frame.min_number = frame.min_number.min(piece.number);
        frame.max_number = frame.max_number.max(piece.number);
        frame.count += 1;
        frame.has_first |= piece.is_first == Some(true);
        frame.has_last |= piece.is_last;
        frame.last_at = frame.last_at.max(piece.at);
        while self.open.len() > MAX_OPEN {
            self.judge_first();
        }
        is_late
    }

    /// Judges the frames whose waiting time is over.
    pub(super) fn judge_until(&mut self, now: Span) {
        self.judge_due_by(now - REORDER_TOLERANCE);
    }

    fn judge_due_by(&mut self, deadline: Span) {
        while let Some((ticks, _)) = self.open.first_key_value()
            && self.due(*ticks).is_some_and(|due| due <= deadline)
        {
            self.judge_first();
        }
    }

    fn judge_first(&mut self) {
        let Some((ticks, frame)) = self.open.pop_first() else {
            return;
        };
        let before = self.judged_frame.replace(JudgedFrame {
            ticks,
            max_number: frame.max_number,
        });
        if let Some(before) = before {
            if self.interval.is_none() && before.max_number + 1 == frame.min_number {
                // No packet is missing between the two, so the frames are adjacent.
                self.interval = Some(ticks - before.ticks);
            }
            self.count_missing(before.ticks, ticks);
        }
        // Without information in the payload, a frame begins after the last packet of the previous
        // one.
        let follows = before.is_none_or(|before| before.max_number + 1 == frame.min_number);
        let has_first = frame.has_first || (frame.is_bare && follows);
        let is_whole =
            has_first && frame.has_last && frame.count == frame.max_number - frame.min_number + 1;
        let Some(due) = self.due(ticks) else { return };
        if !is_whole {
            self.counts.incomplete += 1;
        } else if frame.last_at > due {
            self.counts.late += 1;
        } else {
            self.counts.in_time += 1;
            self.show(due);
        }
    }

    /// Counts the frames between two timestamps, of which no packet arrived.
    fn count_missing(&mut self, before: i64, after: i64) {
        let Some(interval) = self.interval.filter(|interval| *interval > 0) else {
            return;
        };
        let gap = (after - before + interval / 2) / interval - 1;
        if (1..LARGEST_GAP).contains(&gap) {
            self.counts.missing += gap.unsigned_abs();
        }
    }

    fn show(&mut self, at: Span) {
        if let Some(last) = self.shown.replace(at) {
            self.stand(at - last);
        }
    }

    /// Counts the time between two shown frames if it is a stall.
    fn stand(&mut self, length: Span) {
        let Some(interval) = self.interval else {
            return;
        };
        let interval = self.span(interval);
        if length >= interval.times(3).max(interval + Span::from_millis(150)) {
            self.stalls.count += 1;
            self.stalls.total += length;
            self.stalls.longest = self.stalls.longest.max(length);
        }
    }

    /// Judges all frames that were due at `end`, but no later ones.
    pub(super) fn finish(&mut self, end: Span) {
        self.judge_due_by(end);
        let (Some(frame), Some(interval)) = (self.judged_frame, self.interval) else {
            return;
        };
        let Some(due) = self.due(frame.ticks).filter(|_| interval > 0) else {
            return;
        };
        let left = (end - due).nanos() / self.span(interval).nanos().max(1);
        let until = frame.ticks + interval * left.clamp(0, LARGEST_GAP);
        let open = self.open.first_key_value().map(|(ticks, _)| *ticks);
        self.count_missing(
            frame.ticks,
            open.map_or(until, |open| open.min(until)) + interval,
        );
        if let Some(shown) = self.shown {
            self.stand(end - shown);
        }
    }

    /// Outcomes of the evaluated frames.
    pub(super) const fn counts(&self) -> FrameCounts {
        self.counts
    }

    /// Stalls of the picture.
    pub(super) const fn stalls(&self) -> Stalls {
        self.stalls
    }

    /// Frames per second, if the interval is known.
    pub(super) fn rate(&self) -> Option<f64> {
        let interval = self.interval.filter(|interval| *interval > 0)?;
        Some(1.0 / self.span(interval).secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: Span = Span::from_millis(100);
    const MS: fn(i64) -> Span = Span::from_millis;

    /// Frames of two packets every 40 ms, with the arrival time of each packet in milliseconds;
    /// absent: lost.
    fn play(frames: &[[Option<i64>; 2]], end: i64) -> Frames {
        let mut played = Frames::new(90_000, Some(3_600), BUFFER);
        let mut pieces = Vec::new();
        for (frame, packets) in (0..).zip(frames) {
            for (index, at) in (0..).zip(packets) {
                pieces.extend(at.map(|at| Piece {
                    ticks: frame * 3_600,
                    number: frame * 2 + index,
                    is_last: index == 1,
                    is_first: Some(index == 0),
                    at: MS(at),
                }));
            }
        }
        pieces.sort_by_key(|piece| piece.at);
        for piece in pieces {
            played.judge_until(piece.at);
            played.arrive(piece);
        }
        played.finish(MS(end));
        played
    }

    fn sent(frame: i64) -> [Option<i64>; 2] {
        [Some(frame * 40), Some(frame * 40 + 10)]
    }

    #[test]
    fn a_constant_rate_stream_has_no_late_frames() {
        let frames: Vec<_> = (0..50).map(sent).collect();
        let played = play(&frames, 1_999);
        // Of 2 s the frames of the last 100 ms are not due yet.
        let counts = FrameCounts {
            in_time: 48,
            ..FrameCounts::default()
        };
        assert_eq!(
            (played.counts(), played.stalls()),
            (counts, Stalls::default())
        );
    }

    #[test]
    fn a_frame_is_late_incomplete_or_missing() {
        let mut frames: Vec<_> = (0..50).map(sent).collect();
        frames[10] = [Some(400), Some(501)];
        frames[20] = [Some(800), None];
        frames[30] = [None, Some(1_210)];
        frames[40] = [None, None];
        let played = play(&frames, 1_999);
        let counts = FrameCounts {
            in_time: 44,
            late: 1,
            incomplete: 2,
            missing: 1,
        };
        assert_eq!(
            (played.counts(), played.stalls()),
            (counts, Stalls::default())
        );
    }

    #[test]
    fn a_stall_lasts_from_the_last_shown_frame_to_the_next() {
        let mut frames: Vec<_> = (0..50).map(sent).collect();
        // Three frames are not shown: 160 ms. Four: 200 ms, more than 40 ms + 150 ms.
        frames[10..13].fill([None, None]);
        frames[20..24].fill([Some(900), None]);
        let played = play(&frames, 1_999);
        let stalls = Stalls {
            count: 1,
            total: MS(200),
            longest: MS(200),
        };
        assert_eq!(played.stalls(), stalls);
    }

    #[test]
    fn an_interrupted_stream_stalls_until_the_end() {
        let frames: Vec<_> = (0..25).map(sent).collect();
        let played = play(&frames, 3_000);
        // The last frame is due at 1060 ms; 48 more are due until 3 s.
        assert_eq!(played.counts().missing, 48);
        assert_eq!(played.stalls().total, MS(3_000 - 1_060));
        assert_eq!(played.counts().total(), 73);
    }

    #[test]
    fn without_positions_a_frame_begins_after_the_previous_packet() {
        let mut played = Frames::new(90_000, None, BUFFER);
        // Frames of three packets; the first packet of frame 2 and the last of frame 3 are lost.
        for number in (0..30).filter(|number| ![6, 11].contains(number)) {
            let frame = number / 3;
            played.arrive(Piece {
                ticks: frame * 3_600,
                number,
                is_last: number % 3 == 2,
                is_first: None,
                at: MS(frame * 40),
            });
        }
        played.finish(MS(460));
        // For the frame after a lost last packet this is unknown.
        let counts = FrameCounts {
            in_time: 7,
            incomplete: 3,
            ..FrameCounts::default()
        };
        assert_eq!(played.counts(), counts);
    }
}
