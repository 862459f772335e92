//! Impossible times of the peer: discarded, counted and reported.

use neph_model::{EventKind, Message, PeerMarks};

use crate::report::Note;

/// Counts messages with impossible times of the peer.
#[derive(Debug, Default)]
pub(super) struct Implausible {
    messages: u64,
    /// The count at the last note: 0, 1, 10, 100 ...
    reported: u64,
}

impl Implausible {
    /// Discards the peer's times of a message if they contradict each other or the local timestamps.
    pub(super) fn look_at(&mut self, message: &mut Message) {
        if message.marks.is_peer_possible() {
            return;
        }
        message.marks.peer = PeerMarks::default();
        message.peer_wall_offset = None;
        self.messages += 1;
    }

    /// A note at the first, tenth and hundredth such message, and so on.
    pub(super) fn take(&mut self) -> Option<Note> {
        let next = self.reported.saturating_mul(10).max(1);
        if self.messages < next {
            return None;
        }
        self.reported = next;
        let text = format!(
            "the peer's times of {} messages so far cannot be true (they go back, or take longer than \
             the round trip): neph ignores these times",
            self.messages
        );
        Some(Note::Event(EventKind::Implausible, text))
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowIndex, Instant, Local, Marks, Peer, Seq};

    use super::*;

    /// Sent at 100 and answered at 200; the peer reports `rx` and `app_tx`.
    fn message(rx: i64, app_tx: i64) -> Message {
        let instant = |nanos| Some(Instant::<Local>::from_nanos(nanos));
        let peer = |nanos| Some(Instant::<Peer>::from_nanos(nanos));
        let mut marks = Marks::intended_at(Instant::from_nanos(100));
        (marks.app_send, marks.app_recv) = (instant(100), instant(200));
        (marks.peer.rx, marks.peer.app_tx) = (peer(rx), peer(app_tx));
        Message::new(FlowIndex(0), Seq(0), marks)
    }

    #[test]
    fn peer_timestamps_that_go_back_or_exceed_the_rtt_are_discarded() {
        let mut implausible_replies = Implausible::default();
        for (rx, app_tx, is_believed) in [
            (7_000, 7_100, true),
            (7_000, 7_101, false),
            (7_000, 6_999, false),
            (i64::MIN, i64::MAX, false),
        ] {
            let mut message = message(rx, app_tx);
            implausible_replies.look_at(&mut message);
            assert_eq!(
                message.marks.peer.rx.is_some(),
                is_believed,
                "{rx} {app_tx}"
            );
        }
        let notes = std::iter::from_fn(|| implausible_replies.take()).count();
        assert_eq!(
            notes, 1,
            "of three: at the first, and the next at the tenth"
        );
    }
}
