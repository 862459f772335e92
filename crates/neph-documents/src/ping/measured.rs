//! The totals of a flow's messages, in bounded memory.

use std::collections::VecDeque;

use neph_model::{Answer, Answers, ClockOffset, Message, SynAnswer, Tally};
use neph_probe::Backends;
use neph_stats::RunningSummary;

use super::columns::Column;
use super::entries::Entries;
use super::retransmissions::Retransmissions;
use neph_capture::clocks::peer_clock::PeerClock;

/// Number of latest messages of a flow for diagnosis: some 10 MB.
const MAX_RECENT_MESSAGES: usize = 20_000;

/// The totals of one flow's messages.
#[derive(Debug, Default)]
pub struct FlowTotals {
    /// Outcomes of the messages.
    pub tally: Tally,
    /// Number of established connections.
    pub connections: u32,
    /// Summary of each column, in nanoseconds.
    pub(super) values: Vec<RunningSummary>,
    /// Answers as their protocol names them, and why there was none.
    pub(super) answers: Answers,
    /// Ledger entries of the replies.
    pub(super) entries: Entries,
    pub(super) retransmissions: Retransmissions,
    pub(super) last_message: Option<Message>,
    /// The latest messages, with or without a reply.
    pub(super) recent_messages: VecDeque<Message>,
    /// The servers behind the address.
    pub(super) backends: Backends,
    /// What the messages show about the peer's clock.
    clock: PeerClock,
}

/// The totals of all flows' messages.
#[derive(Debug, Default)]
pub struct PingResult {
    /// Each flow, in the order in which they were planned.
    pub flows: Vec<FlowTotals>,
    /// Why it ended early: no message was ever replied to.
    pub early_end_reason: Option<String>,
}

impl FlowTotals {
    /// Adds a message that ended.
    ///
    /// # Panics
    /// Never: a span is a finite number.
    pub fn add(&mut self, message: &Message) {
        self.values
            .resize_with(Column::ALL.len(), RunningSummary::default);
        self.answers.count(message.answer);
        self.last_message = Some(*message);
        self.retransmissions.add(message);
        if self.recent_messages.len() == MAX_RECENT_MESSAGES {
            self.recent_messages.pop_front();
        }
        self.recent_messages.push_back(*message);
        let Some(ledger) = message.ledger() else {
            return;
        };
        self.backends.add(message);
        self.entries.add(&ledger);
        self.clock.add_message(&message.marks);
        for (column, values) in Column::ALL.iter().zip(&mut self.values) {
            #[expect(clippy::cast_precision_loss, reason = "statistics")]
            let value = column.value_of(message).map(|span| span.nanos() as f64);
            if let Some(value) = value {
                values.add(value).expect("a span is finite");
            }
        }
    }

    /// Number of RST replies to a SYN of neph.
    pub fn refusal_count(&self) -> u64 {
        self.answers.of(Answer::Syn(SynAnswer::Rst))
    }

    /// The peer's clock minus the local one at the departure of the latest message, as far as the
    /// messages show it. `None` for several servers behind the address, which have several clocks.
    pub(super) fn offset(&self) -> Option<ClockOffset> {
        if self.backends.count_if_several().is_some() {
            return None;
        }
        let sent_at = self.last_message.as_ref()?.marks.nic_tx?;
        self.clock.offset(sent_at.nanos())
    }
}
