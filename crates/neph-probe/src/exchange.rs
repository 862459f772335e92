//! The records of one flow's messages: which are in flight, their timestamps, which are finished.
//!
//! Sans-IO: from events and their times it decides loss, duplicates and reordering. It assigns the
//! reflector's late timestamps and hands out finished messages in order. Knows no socket, protocol or clock.

mod implausible_replies;
mod terms;

use std::collections::VecDeque;

use neph_model::{
    Answer, FlowIndex, Instant, Local, Marks, Message, Outcome, Peer, Seq, Span, Tally, TcpState,
};
use neph_wire::marks::PeerMarks as WireMarks;

use crate::report::Note;
use implausible_replies::Implausible;
pub(crate) use terms::{Asks, Expect, Reply, SendPoint};

/// Finished messages whose outcome is remembered, to distinguish late from duplicate replies.
const MEMORY: usize = 1 << 16;

#[derive(Debug)]
struct Entry {
    message: Message,
    /// When its outcome was decided; `None` while it is in flight.
    decided: Option<Instant<Local>>,
}

/// The records of one flow.
#[derive(Debug)]
pub(crate) struct Exchange {
    flow: FlowIndex,
    timeout: Span,
    grace: Span,
    expect: Expect,
    asks: Asks,
    /// Number of the first message in `open`.
    first: u64,
    open: VecDeque<Entry>,
    /// All messages before this number are decided, so searches need not start at the front.
    settled: u64,
    remembered: VecDeque<Outcome>,
    highest_reply: Option<u64>,
    tally: Tally,
    implausible_replies: Implausible,
}

impl Exchange {
    /// Records for messages sent every `interval` and lost after `timeout`.
    pub(crate) fn new(flow: FlowIndex, interval: Span, timeout: Span, expect: Expect) -> Self {
        Self {
            flow,
            timeout,
            grace: interval.times(2) + Span::from_secs(1),
            expect,
            asks: Asks::Messages,
            first: 0,
            open: VecDeque::with_capacity(1024),
            settled: 0,
            remembered: VecDeque::with_capacity(MEMORY),
            highest_reply: None,
            tally: Tally::default(),
            implausible_replies: Implausible::default(),
        }
    }

    /// Enters the next message. Returns its number.
    pub(crate) fn enter(&mut self, intended: Instant<Local>) -> Seq {
        let seq = Seq(self.first + self.open.len() as u64);
        let message = Message::new(self.flow, seq, Marks::intended_at(intended));
        self.open.push_back(Entry {
            message,
            decided: None,
        });
        seq
    }

    /// Changes the timestamps of a message that is still recorded.
    pub(crate) fn with_marks(&mut self, seq: Seq, change: impl FnOnce(&mut Marks)) {
        if let Some(entry) = self.entry_mut(seq) {
            change(&mut entry.message.marks);
        }
    }

    /// The program passed the message to the kernel.
    pub(crate) fn sent(&mut self, seq: Seq, at: Instant<Local>, connection: u32) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.message.marks.app_send = Some(at);
            entry.message.connection = connection;
            entry.message.outcome = Outcome::Lost;
        }
    }

    /// The message could not be sent; `answer` is the reason, if known.
    pub(crate) fn failed(&mut self, seq: Seq, answer: Option<Answer>, at: Instant<Local>) {
        self.explain(seq, answer);
        self.decide(seq, Outcome::Failed, at);
    }

    /// The message was entered as sent, but no byte of it left.
    pub(crate) fn never_left(&mut self, seq: Seq, answer: Option<Answer>, at: Instant<Local>) {
        if self.is_undecided(seq) {
            self.with_marks(seq, |marks| marks.app_send = None);
            self.failed(seq, answer, at);
        }
    }

    /// Marks the message as not sent, as it will be sent another time. Returns whether it is undecided.
    pub(crate) fn take_back(&mut self, seq: Seq) -> bool {
        let is_undecided = self.is_undecided(seq);
        if let Some(entry) = self.entry_mut(seq)
            && is_undecided
        {
            let intended = entry.message.marks.intended;
            entry.message = Message::new(entry.message.flow, seq, Marks::intended_at(intended));
        }
        is_undecided
    }

    fn explain(&mut self, seq: Seq, answer: Option<Answer>) {
        if self.is_undecided(seq)
            && let Some(entry) = self.entry_mut(seq)
        {
            entry.message.answer = answer;
        }
    }

    /// The message cannot be answered any more: its timeout passed or its connection is gone. It counts as
    /// failed if it never left, and as an error if something other than a reply (`answer`) arrived.
    pub(crate) fn lost(&mut self, seq: Seq, answer: Option<Answer>, at: Instant<Local>) {
        self.explain(seq, answer);
        let asks = self.asks;
        let left = self.entry(seq).is_some_and(|entry| match asks {
            Asks::Messages => entry.message.marks.app_send.is_some(),
            Asks::Connections => entry.message.marks.dialled.is_some(),
        });
        let outcome = match answer {
            _ if !left => Outcome::Failed,
            Some(answer) if answer.is_error() => Outcome::Error,
            _ => Outcome::Lost,
        };
        if outcome == Outcome::Error {
            self.with_marks(seq, |marks| _ = marks.app_recv.get_or_insert(at));
        }
        self.decide(seq, outcome, at);
    }

    /// Records the kernel's send timestamp of the message's last byte. A retransmission has another
    /// timestamp. The first one counts, so that the wait counts as network time.
    pub(crate) fn stamped(
        &mut self,
        seq: Seq,
        point: SendPoint,
        at: Instant<Local>,
        tcp: Option<TcpState>,
    ) {
        let Some(entry) = self.entry_mut(seq) else {
            return;
        };
        let message = &mut entry.message;
        let (mark, state) = match point {
            SendPoint::Queued => (&mut message.marks.queued, None),
            SendPoint::NicTx => (&mut message.marks.nic_tx, Some(&mut message.tcp_at_send)),
            SendPoint::Acked => (&mut message.marks.acked, Some(&mut message.tcp_at_ack)),
        };
        if mark.is_none() {
            *mark = Some(at);
            if let Some(state) = state {
                *state = tcp;
            }
        }
    }

    /// Records a reply. Returns the message so far, unless the reply is a duplicate, too late, or has no
    /// request.
    pub(crate) fn replied(&mut self, seq: Seq, reply: &Reply) -> Option<&Message> {
        if let Some(marks) = &reply.marks {
            self.place_peer_send(marks);
        }
        let reordered = self.highest_reply.is_some_and(|highest| seq.0 < highest);
        let Some(at) = self.position(seq) else {
            self.count_foreign(seq);
            return None;
        };
        let entry = &mut self.open[at];
        if entry.decided.is_some() {
            match entry.message.outcome {
                Outcome::Reply | Outcome::Error => {
                    entry.message.duplicates = entry.message.duplicates.saturating_add(1);
                    self.tally.duplicates += 1;
                }
                Outcome::Lost | Outcome::Failed => self.tally.late += 1,
            }
            return None;
        }
        entry.message.reordered = reordered;
        self.tally.reordered += u64::from(reordered);
        entry.message.answer = reply.answer;
        entry.message.marks.nic_rx = reply.nic_rx;
        entry.message.marks.app_recv = Some(reply.app_recv);
        if let Some(marks) = &reply.marks {
            entry.message.marks.peer.rx = marks.rx.map(Instant::from_nanos);
            entry.message.marks.peer.app_rx = marks.app_rx.map(Instant::from_nanos);
            let peer = &mut entry.message.marks.peer;
            peer.app_tx = marks.app_tx.map(Instant::from_nanos);
            peer.nic_tx = peer.nic_tx.filter(|left| peer.app_tx <= Some(*left));
            entry.message.peer_wall_offset = Some(marks.wall_offset);
            self.implausible_replies.look_at(&mut entry.message);
        }
        self.highest_reply = Some(
            self.highest_reply
                .map_or(seq.0, |highest| highest.max(seq.0)),
        );
        self.decide(seq, reply.outcome, reply.app_recv);
        self.open.get(at).map(|entry| &entry.message)
    }

    /// Assigns the send timestamp of an earlier reply.
    fn place_peer_send(&mut self, marks: &WireMarks) {
        let Some(previous) = marks.previous else {
            return;
        };
        let at: Instant<Peer> = Instant::from_nanos(previous.nic_tx);
        if let Some(entry) = self.entry_mut(Seq(previous.seq)) {
            let peer = &mut entry.message.marks.peer;
            // A request that the network duplicated was answered twice. The timestamp may be that of the
            // other answer and does not belong to this message.
            peer.nic_tx.get_or_insert(at);
            if !entry.message.marks.is_peer_possible() {
                entry.message.marks.peer.nic_tx = None;
            }
        }
    }

    /// A note on impossible times of the peer, if one is due.
    pub(crate) fn take_disbelieved(&mut self) -> Option<Note> {
        self.implausible_replies.take()
    }

    fn count_foreign(&mut self, seq: Seq) {
        let distance = self.first.checked_sub(seq.0 + 1);
        let Some(distance) = distance.and_then(|distance| usize::try_from(distance).ok()) else {
            return;
        };
        match self.remembered.iter().rev().nth(distance) {
            Some(Outcome::Reply | Outcome::Error) => self.tally.duplicates += 1,
            Some(Outcome::Lost | Outcome::Failed) => self.tally.late += 1,
            None => {}
        }
    }

    /// Counts messages as lost that are in flight for longer than the timeout.
    pub(crate) fn expire(&mut self, now: Instant<Local>) {
        while let Some((seq, deadline)) = self.next_expiry()
            && deadline <= now
        {
            self.lost(seq, None, now);
        }
    }

    /// When [`Self::expire`] or [`Self::take_finished`] has work next.
    pub(crate) fn next_deadline(&self) -> Option<Instant<Local>> {
        let expiry = self.next_expiry().map(|(_, at)| at);
        let front = self
            .open
            .front()
            .and_then(|front| front.decided)
            .map(|at| at + self.grace);
        [expiry, front].into_iter().flatten().min()
    }

    fn next_expiry(&self) -> Option<(Seq, Instant<Local>)> {
        let waiting = self.entry(Seq(self.settled))?;
        let since = waiting
            .message
            .marks
            .first_action()
            .unwrap_or(waiting.message.marks.intended);
        Some((waiting.message.seq, since + self.timeout))
    }

    /// Takes the oldest message if no more information about it can arrive.
    pub(crate) fn take_finished(&mut self, now: Instant<Local>) -> Option<Message> {
        let front = self.open.front()?;
        let decided = front.decided?;
        if !self.is_complete(&front.message) && now < decided + self.grace {
            return None;
        }
        self.take_front()
    }

    /// Takes the oldest message with an outcome, at the end of the flow. A message still in flight was cut
    /// short before its timeout: it is neither answered nor lost, and is not counted.
    pub(crate) fn take_rest(&mut self) -> Option<Message> {
        while self.open.front()?.decided.is_none() {
            self.open.pop_front();
            self.first += 1;
        }
        self.take_front()
    }

    fn take_front(&mut self) -> Option<Message> {
        let message = self.open.pop_front()?.message;
        self.first += 1;
        if self.remembered.len() == MEMORY {
            self.remembered.pop_front();
        }
        self.remembered.push_back(message.outcome);
        Some(message)
    }

    fn is_complete(&self, message: &Message) -> bool {
        match message.outcome {
            Outcome::Reply => {
                (!self.expect.sent || message.marks.nic_tx.is_some())
                    && (!self.expect.peer_send || message.marks.peer.nic_tx.is_some())
                    && (!self.expect.ack || message.marks.acked.is_some())
            }
            Outcome::Error | Outcome::Lost | Outcome::Failed => true,
        }
    }

    fn decide(&mut self, seq: Seq, outcome: Outcome, at: Instant<Local>) {
        let Some(index) = self.position(seq) else {
            return;
        };
        let entry = &mut self.open[index];
        if entry.decided.is_some() {
            return;
        }
        entry.decided = Some(at);
        entry.message.outcome = outcome;
        self.tally.count(outcome);
        while self
            .entry(Seq(self.settled))
            .is_some_and(|entry| entry.decided.is_some())
        {
            self.settled += 1;
        }
    }

    /// Number of messages in flight or waiting for timestamps.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
    /// Whether every message has an outcome.
    pub(crate) fn all_decided(&self) -> bool {
        self.entry(Seq(self.settled)).is_none()
    }
    /// Whether this message is recorded and has no outcome yet.
    pub(crate) fn is_undecided(&self, seq: Seq) -> bool {
        self.entry(seq).is_some_and(|entry| entry.decided.is_none())
    }
    /// Whether the send timestamp of the last reply is still unknown.
    pub(crate) fn lacks_peer_send(&self) -> bool {
        self.expect.peer_send
            && self.open.iter().any(|entry| {
                entry.message.outcome == Outcome::Reply
                    && entry.decided.is_some()
                    && entry.message.marks.peer.app_tx.is_some()
                    && entry.message.marks.peer.nic_tx.is_none()
            })
    }
    /// Outcomes of messages so far.
    pub(crate) const fn tally(&self) -> &Tally {
        &self.tally
    }
    /// Sets the late timestamps worth waiting for, once the peer is known.
    pub(crate) const fn set_expect(&mut self, expect: Expect) {
        self.expect = expect;
    }
    /// Sets what the flow's messages are; the default is [`Asks::Messages`].
    pub(crate) const fn set_asks(&mut self, asks: Asks) {
        self.asks = asks;
    }

    fn position(&self, seq: Seq) -> Option<usize> {
        let at = usize::try_from(seq.0.checked_sub(self.first)?).ok()?;
        (at < self.open.len()).then_some(at)
    }
    fn entry(&self, seq: Seq) -> Option<&Entry> {
        self.open.get(self.position(seq)?)
    }
    fn entry_mut(&mut self, seq: Seq) -> Option<&mut Entry> {
        let at = self.position(seq)?;
        self.open.get_mut(at)
    }
}

#[cfg(test)]
mod tests;
