//! What a running flow tells whoever started it, through a channel that never blocks the
//! measuring thread.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use neph_model::{Anchor, EventKind, Instant, Message, Own, Tally};
use neph_sys::tcp::TcpInfo;

/// Room for this many reports: a second of the fastest flow.
const ROOM: usize = 1 << 14;
/// What is kept for a receiver that does not keep up: about 90 MB.
const MAX_WAITING: usize = 1 << 18;

/// Something a flow tells.
#[derive(Clone, Debug)]
pub enum Report {
    /// A reply has just come; more marks may follow. For live output only.
    Reply(Message),
    /// A message is finished. Each message once, in order.
    Message(Message),
    /// Something happened.
    Event {
        /// When.
        at: Instant<Own>,
        /// What.
        kind: EventKind,
        /// In words.
        text: String,
    },
    /// The flow's first socket stands.
    Opened {
        /// Our address on it.
        source: SocketAddr,
        /// Its congestion control, if it is TCP.
        congestion: Option<String>,
    },
    /// What the kernel reports of the flow's TCP connection, as [`neph_model::TcpStatsWhen`] asks for it.
    Tcp {
        /// When it was read.
        at: Instant<Own>,
        /// All of it.
        info: TcpInfo,
    },
    /// Both clocks, once a second.
    Anchor(Anchor<Own>),
    /// The flow is over; nothing follows.
    Ended(Tally),
}

/// What a session notes for its driver to report.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "kept in a list whose room is reused"
)]
pub(crate) enum Note {
    Reply(Message),
    Event(EventKind, String),
}

/// The measuring thread's end of the channel.
#[derive(Debug)]
pub(crate) struct Reports {
    channel: SyncSender<Report>,
    /// What found no room, in order; sent at the next opportunity.
    waiting: std::collections::VecDeque<Report>,
}

impl Reports {
    /// A channel with its room made ahead of time.
    pub(crate) fn new() -> (Self, Receiver<Report>) {
        let (channel, receiver) = sync_channel(ROOM);
        (
            Self {
                channel,
                waiting: std::collections::VecDeque::new(),
            },
            receiver,
        )
    }

    /// Tells; keeps what finds no room, up to a bound: beyond it the measuring thread waits, and
    /// its lateness tells so. A receiver that is gone wants nothing more.
    pub(crate) fn tell(&mut self, report: Report) {
        if matches!(report, Report::Reply(_)) && !self.waiting.is_empty() {
            // Live output that comes late is of no use; the message itself follows.
            return;
        }
        self.waiting.push_back(report);
        if self.waiting.len() > MAX_WAITING
            && let Some(first) = self.waiting.pop_front()
            && self.channel.send(first).is_err()
        {
            self.waiting.clear();
        }
        while let Some(report) = self.waiting.pop_front() {
            match self.channel.try_send(report) {
                Ok(()) => {}
                Err(TrySendError::Full(report)) => {
                    self.waiting.push_front(report);
                    return;
                }
                Err(TrySendError::Disconnected(_)) => self.waiting.clear(),
            }
        }
    }

    /// Tells everything that is still waiting, and the end.
    pub(crate) fn end(mut self, tally: Tally) {
        self.waiting.push_back(Report::Ended(tally));
        for report in self.waiting {
            if self.channel.send(report).is_err() {
                return;
            }
        }
    }
}
