//! One peer's STAMP session: its replies, and the data of the last reply for the next one.

use std::net::SocketAddr;

use neph_model::{Anchor, Instant, Local};
use neph_wire::marks::PreviousTx;
use neph_wire::stamp::{ErrorEstimate, FollowUp, Format, ReplyFields, Timestamp};

use super::repeats::Repeats;
use super::reply_timestamps::{Arrived, build_reply_timestamps};

/// One peer's session.
#[derive(Debug)]
pub(crate) struct Session {
    replies: u32,
    pub(crate) previous: Option<PreviousTx>,
    pub(crate) repeats: Repeats,
    /// The request that was answered last.
    answered: u32,
    /// A request other than the first was received.
    past_first: bool,
}

/// A datagram that arrived.
pub(crate) struct ReceivedDatagram<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) ttl: u8,
    pub(crate) from: SocketAddr,
    pub(crate) arrived: Arrived,
}

impl Session {
    pub(crate) const fn new(last_seen: Instant<Local>) -> Self {
        Self {
            replies: 0,
            previous: None,
            repeats: Repeats::new(last_seen),
            answered: 0,
            past_first: false,
        }
    }

    /// When it last sent something.
    pub(crate) const fn last_seen(&self) -> Instant<Local> {
        self.repeats.at()
    }

    /// Begins a new session of the same address and port. Repeated requests still count.
    pub(crate) fn begin_anew(&mut self) {
        let new_session = Self::new(self.last_seen());
        let repeats = std::mem::replace(self, new_session).repeats;
        self.repeats = repeats;
    }

    /// Whether a request other than the first was received.
    pub(crate) const fn is_past_first(&self) -> bool {
        self.past_first
    }

    /// Request `seq` was answered.
    pub(crate) const fn record_request(&mut self, seq: u32) {
        self.past_first |= seq != 0;
        self.answered = seq;
    }

    pub(crate) fn answer(
        &mut self,
        requested: &ReceivedDatagram<'_>,
        app_tx: Instant<Local>,
        wall: Anchor<Local>,
        error: ErrorEstimate,
    ) -> ReplyFields {
        let arrived = requested.arrived;
        let time = |at: Instant<Local>| {
            Timestamp::from_unix(wall.to_wall(at).unix_nanos(), Format::Ntp).unwrap_or(Timestamp(0))
        };
        let follow_up = follow_up(self, &time);
        let previous = self.previous.take();
        let seq = self.replies;
        self.replies = seq.wrapping_add(1);
        ReplyFields {
            seq,
            receive: time(arrived.rx.unwrap_or(arrived.app_rx)),
            timestamp: time(app_tx),
            error,
            sender_ttl: requested.ttl,
            timestamps: build_reply_timestamps(arrived, app_tx, wall.offset().nanos(), previous),
            follow_up,
        }
    }
}

/// RFC 8972, 4.7. Sent only where the neph timestamps are not: [`neph_wire::stamp::reflect`] decides.
fn follow_up(session: &Session, time: &impl Fn(Instant<Local>) -> Timestamp) -> Option<FollowUp> {
    const METHOD_KERNEL: u8 = 2;
    // It describes the reply before, and not every reply has a timestamp.
    let previous = session.previous;
    let previous = previous.filter(|previous| previous.seq == u64::from(session.answered));
    previous.map(|previous| FollowUp {
        seq: session.replies.wrapping_sub(1),
        timestamp: time(Instant::from_nanos(previous.nic_tx)),
        method: METHOD_KERNEL,
    })
}
