//! One side of a connection as a sender: what of it awaits an answer.
//!
//! Owns how much is remembered. What is beyond is forgotten oldest first: its samples are missing,
//! none is wrong.

use std::collections::VecDeque;

use neph_model::Wall;

use super::Segment;
use crate::sequence::Serial;

/// Segments that await their acknowledgement, at most: 6 KB a side. Where windows are larger, the
/// oldest have no sample.
const OUTSTANDING_MAX: usize = 256;
/// Time stamps that await their echo, at most. A host's clock for them ticks each millisecond, so
/// this is a quarter of a second of sending without pause.
const STAMPS_MAX: usize = 256;

/// A segment that awaits its acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outstanding {
    pub(super) at: Wall,
    pub(super) end: Serial,
    /// Bytes on their way with it.
    pub(super) in_flight: u32,
    pub(super) is_syn: bool,
    /// It was sent again: whose acknowledgement comes cannot be told.
    pub(super) again: bool,
}

/// A time stamp value that awaits its echo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamped {
    pub(super) at: Wall,
    pub(super) value: Serial,
    /// The echo has to acknowledge this, or it answers something else.
    pub(super) end: Serial,
    pub(super) in_flight: u32,
    pub(super) is_syn: bool,
}

/// A side of a connection.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// The number it began with, if its SYN was seen.
    pub(super) first: Option<Serial>,
    /// The number behind the highest that it sent.
    pub(super) next: Option<Serial>,
    /// When that was sent.
    pub(super) next_at: Option<Wall>,
    /// Until where the other side has acknowledged.
    pub(super) acked: Option<Serial>,
    /// The largest segment that the other side takes.
    pub(super) largest: u32,
    pub(super) outstanding: VecDeque<Outstanding>,
    pub(super) stamps: VecDeque<Stamped>,
    newest_stamp: Option<Serial>,
    /// The shortest round trip to the other side so far, in nanoseconds.
    pub(super) floor: Option<i64>,
    /// What it acknowledged last, the window it told with that, and how often it said the same again.
    pub(super) said: Option<Serial>,
    pub(super) window: Option<u16>,
    pub(super) repeated: u32,
    pub(super) repeated_at: Option<Wall>,
}

impl Sender {
    /// Bytes that are not acknowledged, up to `end`.
    pub(super) fn in_flight(&self, end: Serial) -> u32 {
        let from = self.acked.or(self.first).unwrap_or(end);
        u32::try_from(end.since(from)).unwrap_or(0)
    }

    /// Whether `segment` begins at or behind all that was sent before.
    pub(super) fn is_new(&self, segment: &Segment) -> bool {
        self.next.is_none_or(|next| !next.is_after(segment.seq))
    }

    /// Whether a segment with a newer time stamp than `segment` went before it; `None` without stamps.
    pub(super) fn has_newer_stamp(&self, segment: &Segment) -> Option<bool> {
        let (value, _) = segment.stamps?;
        Some(self.newest_stamp?.is_after(value))
    }

    /// Remembers a segment, once it has been looked at.
    pub(super) fn sent(&mut self, at: Wall, segment: &Segment) {
        let takes = segment.takes();
        let in_flight = self.in_flight(segment.end());
        if takes > 0 && !segment.is_reset() {
            if self.is_new(segment) {
                remember(
                    &mut self.outstanding,
                    Outstanding {
                        at,
                        end: segment.end(),
                        in_flight,
                        is_syn: segment.is_syn(),
                        again: false,
                    },
                    OUTSTANDING_MAX,
                );
            } else {
                self.sent_again(segment);
            }
        }
        if segment.is_syn() {
            self.first = Some(segment.seq);
        }
        self.stamped(at, segment, in_flight);
        if self.next.is_none_or(|next| segment.end().is_after(next)) {
            self.next = Some(segment.end());
            self.next_at = Some(at);
        }
    }

    /// What of it still awaits its acknowledgement has no sample any more; what lies behind the
    /// highest number (a retransmission that took more along) awaits none.
    fn sent_again(&mut self, segment: &Segment) {
        for waiting in &mut self.outstanding {
            let overlaps =
                waiting.end.is_after(segment.seq) && !waiting.end.is_after(segment.end());
            waiting.again |= overlaps;
        }
    }

    /// Remembers a time stamp that nothing was sent with before. One that a bare acknowledgement
    /// used first is left out: its echo may answer what followed up to a tick later.
    fn stamped(&mut self, at: Wall, segment: &Segment, in_flight: u32) {
        let Some((value, _)) = segment.stamps else {
            return;
        };
        if self
            .newest_stamp
            .is_some_and(|newest| !value.is_after(newest))
        {
            return;
        }
        self.newest_stamp = Some(value);
        if segment.takes() > 0 && !segment.is_reset() {
            let stamped = Stamped {
                at,
                value,
                end: segment.end(),
                in_flight,
                is_syn: segment.is_syn(),
            };
            remember(&mut self.stamps, stamped, STAMPS_MAX);
        }
    }
}

fn remember<T>(queue: &mut VecDeque<T>, one: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(one);
}
