//! What passed later than its number says: sent again, or overtaken.
//!
//! Owns what is remembered of it: which acknowledgements had to wait for it, and whether what was sent again
//! turns out to have been there already (spurious: D-SACK, RFC 2883; Eifel, RFC 3522; an acknowledgement that
//! comes sooner than any round trip).

use std::collections::VecDeque;

use neph_model::{Span, Wall};

use super::awaiting::Awaiting;
use super::{Event, Segment};
use crate::sequence::Serial;

/// Those of one side that are remembered; beyond, the oldest go first that are acknowledged.
const MOST: usize = 64;
/// A duplicate is reported within a round trip: what is acknowledged is forgotten after this.
const REPORTED: Span = Span::from_secs(3);

/// A segment that passed late.
#[derive(Debug, Clone, Copy)]
struct Late {
    seq: Serial,
    end: Serial,
    at: Wall,
    /// Its time stamp.
    value: Option<Serial>,
    /// Whether some of it had passed before.
    is_again: bool,
    /// What a retransmission was counted as, while it may turn out to be spurious.
    counted: Option<Event>,
}

impl Late {
    fn meets(&self, other: &Self) -> bool {
        self.end.is_after(other.seq) && other.end.is_after(self.seq)
    }
}

/// Those of one side; most have none.
#[derive(Debug, Default)]
pub(super) struct Lates(
    #[expect(clippy::box_collection, reason = "most sides have none")] Option<Box<VecDeque<Late>>>,
);

/// An acknowledgement, as far as it says what was spurious.
pub(super) struct Verdict<'a> {
    pub(super) at: Wall,
    pub(super) segment: &'a Segment,
    pub(super) ack: Serial,
    /// What was acknowledged before.
    pub(super) acked: Option<Serial>,
    /// The shortest round trip to who acknowledges (nanoseconds).
    pub(super) floor: Option<i64>,
}

impl Verdict<'_> {
    /// Whether it is the first that acknowledges all of `late`.
    fn covers(&self, late: &Late) -> bool {
        let is_first = self.acked.is_none_or(|acked| late.end.is_after(acked));
        is_first && !late.end.is_after(self.ack)
    }

    /// Whether it reports that `late` came twice.
    fn reports(&self, late: &Late) -> bool {
        self.segment.reports(late.seq, late.end)
    }

    /// Whether `late` cannot have been there and back: a quarter of the shortest round trip is left for
    /// one that is shorter than any before.
    fn is_too_soon_for(&self, late: &Late) -> bool {
        let nanos = self.at.unix_nanos().saturating_sub(late.at.unix_nanos());
        let least = self.floor.map(|floor| floor / 4 * 3);
        least.is_some_and(|least| (0..least).contains(&nanos))
    }
}

impl Lates {
    /// A segment passed late: whether some of it passed before, and what it was counted as.
    pub(super) fn push(
        &mut self,
        at: Wall,
        segment: &Segment,
        is_again: bool,
        counted: Option<Event>,
    ) {
        let again = [Event::Retransmission, Event::FastRetransmission];
        let all = self.0.get_or_insert_default();
        all.push_back(Late {
            seq: segment.seq,
            end: segment.end(),
            at,
            value: segment.stamps.map(|(value, _)| value),
            is_again,
            counted: counted.filter(|event| again.contains(event)),
        });
        if all.len() > MOST {
            join_oldest(all);
        }
    }

    /// A segment passed that was acknowledged: should its receiver report a duplicate, it is of this one, and
    /// not of what was sent before it.
    pub(super) fn repeat(&mut self, segment: &Segment) {
        let (seq, end) = (segment.seq, segment.end());
        let is_met = |late: &&mut Late| end.is_after(late.seq) && late.end.is_after(seq);
        let all = self.0.iter_mut().flat_map(|all| all.iter_mut());
        all.filter(is_met).for_each(|late| late.counted = None);
    }

    /// Whether there is any.
    #[inline]
    pub(super) const fn is_any(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the acknowledgement of `found`, which was the last to be acknowledged behind `acked`, had to
    /// wait for what passed later or once more.
    pub(super) fn kept_waiting(&self, found: &Awaiting, acked: Option<Serial>) -> bool {
        let is_awaited = |late: &Late| {
            acked.is_none_or(|acked| late.end.is_after(acked))
                && found.seq.is_after(late.seq)
                && (late.is_again || late.at > found.at)
        };
        self.0.iter().flat_map(|all| all.iter()).any(is_awaited)
    }

    /// Hands out what the retransmissions were counted as that turn out to be spurious.
    pub(super) fn judge(&mut self, verdict: &Verdict<'_>, mut spurious: impl FnMut(Event)) {
        let Some(all) = &mut self.0 else { return };
        // An echo older than all of them is that of what had passed before any was sent again.
        let covered = all
            .iter()
            .filter(|late| late.counted.is_some() && verdict.covers(late));
        let oldest = covered.map(|late| late.value).reduce(|first, next| {
            let (first, next) = (first?, next?);
            Some(if first.is_after(next) { next } else { first })
        });
        let echo = verdict.segment.stamps.map(|(_, echo)| echo);
        let is_older = oldest
            .flatten()
            .zip(echo)
            .is_some_and(|(oldest, echo)| oldest.is_after(echo));
        // Of what was sent several times a duplicate is the last: the first may have been needed.
        let mut reported: Option<Late> = None;
        for late in all.iter_mut().rev() {
            let is_answered = verdict.covers(late) && (is_older || verdict.is_too_soon_for(late));
            let is_reported =
                verdict.reports(late) && !reported.is_some_and(|last| last.meets(late));
            reported = Some(*late).filter(|_| is_reported).or(reported);
            if (is_answered || is_reported)
                && let Some(event) = late.counted.take()
            {
                spurious(event);
            }
        }
        let is_over = |late: &Late| {
            let nanos = verdict.at.unix_nanos().saturating_sub(late.at.unix_nanos());
            !late.end.is_after(verdict.ack) && nanos > REPORTED.nanos()
        };
        while all.front().is_some_and(is_over) {
            all.pop_front();
        }
        if all.is_empty() {
            self.0 = None;
        }
    }

    /// Bytes of memory beside itself.
    pub(super) fn heap(&self) -> usize {
        let all = self.0.as_ref();
        all.map_or(0, |all| {
            size_of::<VecDeque<Late>>() + all.capacity() * size_of::<Late>()
        })
    }
}

/// Makes one of the two oldest: what lies between them counts as late too, and no verdict comes.
fn join_oldest(all: &mut VecDeque<Late>) {
    if let Some(first) = all.pop_front()
        && let Some(second) = all.front_mut()
    {
        let (from, to) = (first.seq, second.end);
        second.seq = if second.seq.is_after(from) {
            from
        } else {
            second.seq
        };
        second.end = if first.end.is_after(to) {
            first.end
        } else {
            to
        };
        second.is_again |= first.is_again;
        second.at = second.at.max(first.at);
        second.counted = None;
    }
}
