//! Reports of a running flow, through a channel that never blocks the measuring thread.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use neph_model::{Anchor, EventKind, Instant, Local, Message, Tally};
use neph_sys::tcp::TcpInfo;

/// Room for this many reports: a second of the fastest flow.
const MAX_QUEUED_REPORTS: usize = 1 << 14;
/// Reports that are kept for a slow receiver: about 90 MB.
const MAX_WAITING: usize = 1 << 18;

/// A report of a flow.
#[derive(Clone, Debug)]
pub enum Report {
    /// A reply has just come; more timestamps may follow. For live output only.
    Reply(Message),
    /// A message is finished. Each message once, in order.
    Message(Message),
    /// An event.
    Event {
        /// Its time.
        at: Instant<Local>,
        /// Its kind.
        kind: EventKind,
        /// In words.
        text: String,
    },
    /// The flow's first socket is open.
    Opened {
        /// Its local address.
        source: SocketAddr,
        /// Its congestion control, if it is TCP.
        congestion: Option<String>,
    },
    /// The kernel's statistics of the flow's TCP connection, as requested by [`neph_model::TcpStatsSchedule`].
    Tcp {
        /// When it was read.
        at: Instant<Local>,
        /// All of it.
        info: TcpInfo,
    },
    /// Both clocks, once per second.
    Anchor(Anchor<Local>),
    /// The flow is over. No report follows.
    Ended(Tally),
}

/// A note of a session, for its driver to report.
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
    /// Reports that found no room, in order; sent at the next opportunity.
    waiting: std::collections::VecDeque<Report>,
}

impl Reports {
    /// A channel with preallocated room.
    pub(crate) fn new() -> (Self, Receiver<Report>) {
        let (channel, receiver) = sync_channel(MAX_QUEUED_REPORTS);
        (
            Self {
                channel,
                waiting: std::collections::VecDeque::new(),
            },
            receiver,
        )
    }

    /// Sends a report, or keeps it up to a limit. Beyond the limit the measuring thread waits, which shows as
    /// lateness. A receiver that is gone gets nothing.
    pub(crate) fn report(&mut self, report: Report) {
        if matches!(report, Report::Reply(_)) && !self.waiting.is_empty() {
            // Late live output is useless; the message itself follows.
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

    /// Sends all waiting reports, and the end.
    pub(crate) fn end(mut self, tally: Tally) {
        self.waiting.push_back(Report::Ended(tally));
        for report in self.waiting {
            if self.channel.send(report).is_err() {
                return;
            }
        }
    }
}
