//! Timestamps of a message, counted from the experiment's start.
//!
//! Owns the conversion from readings of the clocks. If the peer reads the client's clock, its timestamps count
//! from the same start, so a one-way delay needs no clock offset.

use neph_model::{Instant, Local, Marks, Message, Peer, PeerMarks};

/// Counts the client's timestamps from `origin`, and those of the peer too if it reads the same clock.
/// Otherwise they stay readings of the peer's clock.
pub(super) fn rebase(message: &mut Message, origin: Instant<Local>, same_clock: bool) {
    message.marks = client_marks(message.marks, origin);
    if same_clock {
        message.marks.peer = peer_marks(message.marks.peer, origin);
        let offset = &mut message.peer_wall_offset;
        *offset = offset.map(|nanos| nanos.saturating_add(origin.nanos()));
    }
}

fn client_marks(marks: Marks, origin: Instant<Local>) -> Marks {
    let rebase = |at: Instant<Local>| Instant::from_nanos((at - origin).nanos());
    Marks {
        intended: rebase(marks.intended),
        dialled: marks.dialled.map(rebase),
        connected: marks.connected.map(rebase),
        opened: marks.opened.map(rebase),
        app_send: marks.app_send.map(rebase),
        queued: marks.queued.map(rebase),
        nic_tx: marks.nic_tx.map(rebase),
        acked: marks.acked.map(rebase),
        peer: marks.peer,
        nic_rx: marks.nic_rx.map(rebase),
        app_recv: marks.app_recv.map(rebase),
    }
}

/// The peer read the client's clock, so `origin` is a reading of its clock too.
fn peer_marks(marks: PeerMarks, origin: Instant<Local>) -> PeerMarks {
    let origin = Instant::<Peer>::from_nanos(origin.nanos());
    let rebase = |at: Instant<Peer>| Instant::from_nanos((at - origin).nanos());
    PeerMarks {
        rx: marks.rx.map(rebase),
        app_rx: marks.app_rx.map(rebase),
        app_tx: marks.app_tx.map(rebase),
        nic_tx: marks.nic_tx.map(rebase),
    }
}

#[cfg(test)]
mod tests {
    use neph_model::{FlowIndex, Seq};

    use super::*;

    const ORIGIN: i64 = 9_000_000;

    /// A message whose client and peer read one clock.
    fn message() -> Message {
        let mut marks = Marks::intended_at(Instant::from_nanos(ORIGIN + 100));
        marks.nic_tx = Some(Instant::from_nanos(ORIGIN + 110));
        marks.peer.rx = Some(Instant::from_nanos(ORIGIN + 150));
        marks.peer.app_tx = Some(Instant::from_nanos(ORIGIN + 160));
        let mut message = Message::new(FlowIndex(0), Seq(0), marks);
        message.peer_wall_offset = Some(5_000);
        message
    }

    #[test]
    fn peer_timestamps_on_the_client_clock_count_from_the_same_start() {
        let mut message = message();
        rebase(&mut message, Instant::from_nanos(ORIGIN), true);
        let marks = message.marks;
        assert_eq!(marks.nic_tx, Some(Instant::from_nanos(110)));
        assert_eq!(marks.peer.rx, Some(Instant::from_nanos(150)));
        let wall = message.peer_wall_offset.zip(marks.peer.app_tx);
        let wall = wall.map(|(offset, at)| offset + at.nanos());
        assert_eq!(wall, Some(5_000 + ORIGIN + 160), "wall time stays");
    }

    #[test]
    fn peer_timestamps_on_another_clock_are_unchanged() {
        let mut rebased = message();
        rebase(&mut rebased, Instant::from_nanos(ORIGIN), false);
        assert_eq!(rebased.marks.intended, Instant::from_nanos(100));
        assert_eq!(rebased.marks.peer, message().marks.peer);
        assert_eq!(rebased.peer_wall_offset, message().peer_wall_offset);
    }
}
