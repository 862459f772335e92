//! What a flow's messages add up to, in bounded memory.

use std::collections::VecDeque;

use neph_model::{Answer, Answers, ClockOffset, Message, SynAnswer, Tally};
use neph_probe::Backends;
use neph_stats::RunningSummary;

use super::columns::Column;
use super::entries::Entries;
use super::retransmissions::Retransmissions;
use neph_capture::clocks::peer_clock::PeerClock;

/// The latest messages of a flow, which diagnosis looks at: some 10 MB.
const RECENT: usize = 20_000;

/// What one flow's messages add up to.
#[derive(Debug, Default)]
pub struct FlowMeasured {
    /// How the messages ended.
    pub tally: Tally,
    /// How many connections were established.
    pub connections: u32,
    /// One summary for each column, in nanoseconds.
    pub(super) values: Vec<RunningSummary>,
    /// Answers in their protocol's words, and why there was none.
    pub(super) answers: Answers,
    /// Where the time of the replies went.
    pub(super) entries: Entries,
    pub(super) retransmissions: Retransmissions,
    pub(super) last: Option<Message>,
    /// The latest messages, replied to or not.
    pub(super) recent: VecDeque<Message>,
    /// The servers that answer behind the address.
    pub(super) backends: Backends,
    /// What the messages prove of the peer's clock.
    clock: PeerClock,
}

/// What all flows' messages add up to.
#[derive(Debug, Default)]
pub struct PingResult {
    /// Each flow, in the order in which they were planned.
    pub flows: Vec<FlowMeasured>,
    /// Why it ended before it was to: nothing has ever replied.
    pub given_up: Option<String>,
}

impl FlowMeasured {
    /// Takes in a message that is finished.
    ///
    /// # Panics
    /// Never: a span is a finite number.
    pub fn add(&mut self, message: &Message) {
        self.values
            .resize_with(Column::ALL.len(), RunningSummary::default);
        self.answers.count(message.answer);
        self.last = Some(*message);
        self.retransmissions.add(message);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(*message);
        let Some(ledger) = message.ledger() else {
            return;
        };
        self.backends.add(message);
        self.entries.add(&ledger);
        self.clock.message(&message.marks);
        for (column, values) in Column::ALL.iter().zip(&mut self.values) {
            #[expect(clippy::cast_precision_loss, reason = "statistics")]
            let value = column.of(message).map(|span| span.nanos() as f64);
            if let Some(value) = value {
                values.add(value).expect("a span is finite");
            }
        }
    }

    /// Replies that were a RST to a SYN of neph.
    pub fn refused(&self) -> u64 {
        self.answers.of(Answer::Syn(SynAnswer::Rst))
    }

    /// The peer's clock minus the local one when the latest message left, as far as the messages prove it.
    /// Several machines behind the address have no one clock.
    pub(super) fn offset(&self) -> Option<ClockOffset> {
        if self.backends.several().is_some() {
            return None;
        }
        let left = self.last.as_ref()?.marks.nic_tx?;
        self.clock.offset(left.nanos())
    }
}
