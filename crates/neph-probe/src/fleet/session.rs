//! A fleet's session: which message is due when, which are in flight, and how each ended.
//!
//! Does no input or output and reads no clock. Knows no protocol: source port and number within the flow
//! identify a request, and the transport reports its [`Event`]s. Needs no search and no memory per message.

mod event;
mod pending;

use std::collections::VecDeque;

use neph_model::{FleetMessage, Instant, Local, ReadBy, Slot, Span, SynAnswer, Wall};

pub(crate) use event::{Departed, Event, Replied, RequestId, low};
use pending::{
    Arrival, Decision, Pending, Stage, is_implausible, is_repeated, is_unstamped, message_of,
};

use super::flows::Flows;
use super::send_order::{SendOrder, Turn};
use super::spec::FleetTally;

/// A reply is reported after this time: its request's timestamp may arrive after it, and duplicates too.
const REPORT_DELAY: Span = Span::from_millis(5);

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) slot: Slot,
    /// Its number within its flow.
    pub(crate) seq: u64,
    pub(crate) due: Instant<Local>,
    /// Its flow's port; `None` when the flow begins with it and needs one first.
    pub(crate) port: Option<u16>,
}

#[derive(Debug)]
pub(crate) struct Session {
    send_order: SendOrder,
    timeout: Span,
    start: Option<Instant<Local>>,
    flows: Flows,
    /// The number of the next message.
    next: u64,
    /// Messages `first..next`: each until it is reported and its timeout has passed.
    in_flight: VecDeque<Pending>,
    first: u64,
    /// The first message whose timeout has not passed.
    unexpired: u64,
    /// Messages with a reply, in the order of replies, until reported.
    replied: VecDeque<(Instant<Local>, u64)>,
    /// For messages before `first`, latest last: whether a reply was counted.
    past: VecDeque<bool>,
    unreported: u64,
    finished: Vec<FleetMessage>,
    tally: FleetTally,
}

impl Session {
    pub(crate) fn new(send_order: SendOrder, slots: u32, timeout: Span) -> Self {
        // As many as are in flight at once, so that it need not grow later.
        let gap = send_order.gap().nanos().max(1);
        let under_way = usize::try_from(timeout.nanos().max(0) / gap).unwrap_or(0);
        let room = under_way.min(1 << 20) + 1_024;
        Self {
            send_order,
            timeout,
            start: None,
            flows: Flows::new(slots),
            next: 0,
            in_flight: VecDeque::with_capacity(room),
            first: 0,
            unexpired: 0,
            replied: VecDeque::new(),
            past: VecDeque::with_capacity(room),
            unreported: 0,
            finished: Vec::new(),
            tally: FleetTally::default(),
        }
    }

    pub(crate) const fn begin(&mut self, start: Instant<Local>) {
        self.start = Some(start);
    }

    pub(crate) const fn tally(&self) -> &FleetTally {
        &self.tally
    }

    /// Ends the schedule.
    pub(crate) const fn end_schedule(&mut self) {
        self.send_order.end_at(self.next);
    }

    pub(crate) fn next_due(&self) -> Option<Instant<Local>> {
        self.send_order.due(self.start?, self.next)
    }

    /// The next message.
    pub(crate) fn departure(&self) -> Option<Departure> {
        let due = self.next_due()?;
        let turn = self.send_order.turn(self.next);
        Some(Departure {
            slot: turn.slot,
            seq: turn.seq,
            due,
            port: self.flows.port(&turn),
        })
    }

    /// The next message's flow has this port. The slot's earlier flow is over.
    pub(crate) fn opened(&mut self, port: u16) {
        let turn = self.send_order.turn(self.next);
        self.flows.open(&turn, port);
    }

    /// The first flow of a slot has this port.
    pub(crate) fn opened_first(&mut self, slot: Slot, port: u16) {
        let (round, seq) = (0, 0);
        self.flows.open(&Turn { slot, round, seq }, port);
    }

    /// The next message is sent at `at` and carries the time `wall`.
    pub(crate) fn sending(&mut self, at: Instant<Local>, wall: Wall) {
        let Some(departure) = self.departure() else {
            return;
        };
        self.in_flight.push_back(Pending {
            sent: at,
            wall,
            late: at - departure.due,
            departed: None,
            reply: None,
            seq: low(departure.seq),
            port: departure.port.unwrap_or(0),
            stage: Stage::Out,
            decision: Decision::Open,
        });
        self.next += 1;
        self.unreported += 1;
        self.tally.sent += 1;
    }

    /// The last message did not leave.
    pub(crate) fn not_sent(&mut self) {
        if let Some(number) = self.next.checked_sub(1) {
            self.fail(number);
        }
    }

    fn fail(&mut self, number: u64) {
        let Some(pending) = self.pending(number) else {
            return;
        };
        if pending.stage != Stage::Out || pending.reply.is_some() {
            return;
        }
        pending.decision = Decision::Failed;
        self.tally.sent -= 1;
        self.tally.failed += 1;
        self.done(number);
    }

    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Departed(departed) => {
                let number = self.number_of(departed.request);
                if let Some(pending) = number.and_then(|number| self.pending(number)) {
                    pending.departed = Some(departed.at);
                }
            }
            Event::Replied(replied) => self.replied(replied),
            Event::Failed(request) => {
                if let Some(number) = self.number_of(*request) {
                    self.fail(number);
                }
            }
        }
    }

    fn replied(&mut self, replied: &Replied) {
        let Some(number) = self.number_of(replied.request) else {
            return;
        };
        let timeout = self.timeout;
        let Some(pending) = self.pending(number) else {
            self.replied_after_all(number);
            return;
        };
        let repeated = replied.repeated;
        if repeated.is_some_and(|repeated| !is_repeated(pending, repeated)) {
            self.tally.implausible_replies += 1;
            return;
        }
        if let Some(arrival) = &mut pending.reply {
            let is_reported = pending.stage == Stage::Reported;
            if !is_reported {
                arrival.copies = arrival.copies.saturating_add(1);
            }
            self.tally.copies += 1;
            return;
        }
        let (at, by) = match replied.stamp {
            Some(stamp) => (stamp, ReadBy::Kernel),
            None => (replied.read, ReadBy::Program),
        };
        let in_time = at < pending.sent + timeout;
        pending.reply = Some(Arrival {
            at,
            by,
            peer_report: replied.peer_report,
            ttl: replied.ttl,
            copies: 0,
            answer: replied.answer,
        });
        if pending.stage != Stage::Out {
            self.tally.late += 1;
        } else if in_time {
            self.tally.refused += u64::from(replied.answer == Some(SynAnswer::Rst));
            self.replied
                .push_back((replied.read + REPORT_DELAY, number));
        } else {
            self.tally.late += 1;
            self.lose(number);
        }
    }

    fn lose(&mut self, number: u64) {
        if let Some(pending) = self.pending(number) {
            pending.decision = Decision::Lost;
        }
        self.tally.lost += 1;
        self.done(number);
    }

    /// A reply to a message that is no longer recorded.
    fn replied_after_all(&mut self, number: u64) {
        let distance = usize::try_from(self.first - number).unwrap_or(usize::MAX);
        let observed = self
            .past
            .len()
            .checked_sub(distance)
            .and_then(|at| self.past.get_mut(at));
        match observed {
            Some(true) => self.tally.copies += 1,
            Some(observed) => {
                *observed = true;
                self.tally.late += 1;
            }
            None => self.tally.late += 1,
        }
    }

    /// The number of the request's message. `None` if there is none.
    fn number_of(&self, request: RequestId) -> Option<u64> {
        let (slot, began) = self.flows.of(request.port)?;
        let latest_round = self.send_order.latest_round(slot, self.next);
        let seq = crate::datagram::widen(request.seq, latest_round.checked_sub(began)?);
        let number = self.send_order.number(slot, began.checked_add(seq)?);
        if number >= self.next {
            return None;
        }
        let pending = number
            .checked_sub(self.first)
            .and_then(|at| self.in_flight.get(usize::try_from(at).ok()?));
        // After the flow was replaced, the slot's later messages have another port.
        pending
            .is_none_or(|pending| pending.port == request.port)
            .then_some(number)
    }

    fn pending(&mut self, number: u64) -> Option<&mut Pending> {
        let at = number.checked_sub(self.first)?;
        self.in_flight.get_mut(usize::try_from(at).ok()?)
    }

    /// Makes the decisions that are due at `now`. Replies until then must have been processed.
    pub(crate) fn at_time(&mut self, now: Instant<Local>) {
        while let Some((due, number)) = self.replied.front().copied() {
            if due > now {
                break;
            }
            self.replied.pop_front();
            self.tally.replies += 1;
            self.done(number);
        }
        while self.unexpired < self.next {
            let (number, timeout) = (self.unexpired, self.timeout);
            let Some(pending) = self.pending(number) else {
                break;
            };
            if pending.sent + timeout > now {
                break;
            }
            if pending.stage == Stage::Out && pending.reply.is_none() {
                self.lose(number);
            }
            self.unexpired += 1;
        }
        self.forget(now);
    }

    /// Forgets messages that are reported and will hardly get a reply.
    fn forget(&mut self, now: Instant<Local>) {
        while let Some(pending) = self.in_flight.front() {
            if pending.stage != Stage::Reported || pending.sent + self.timeout > now {
                return;
            }
            if self.past.len() == self.past.capacity() {
                self.past.pop_front();
            }
            self.past.push_back(pending.reply.is_some());
            self.in_flight.pop_front();
            self.first += 1;
            self.unexpired = self.unexpired.max(self.first);
        }
    }

    /// Reports a decided message, unless an earlier one of its slot is undecided; then together with it.
    fn done(&mut self, number: u64) {
        if let Some(pending) = self.pending(number) {
            pending.stage = Stage::Done;
        }
        let slot = self.send_order.turn(number).slot;
        loop {
            let number = self.send_order.number(slot, self.flows.unreported(slot));
            let Some(pending) = self.pending(number) else {
                return;
            };
            if pending.stage != Stage::Done {
                return;
            }
            pending.stage = Stage::Reported;
            let message = message_of(slot, pending);
            self.tally.implausible_replies += u64::from(is_implausible(pending, &message));
            self.tally.unstamped += u64::from(is_unstamped(&message));
            self.finished.push(message);
            self.flows.report(slot);
            self.unreported -= 1;
        }
    }

    /// The moment at which [`Self::at_time`] has something to decide.
    pub(crate) fn next_deadline(&self) -> Option<Instant<Local>> {
        let at = self.unexpired.checked_sub(self.first);
        let pending = at.and_then(|at| self.in_flight.get(usize::try_from(at).ok()?));
        let expires = pending.map(|pending| pending.sent + self.timeout);
        let report_due = self.replied.front().map(|(due, _)| *due);
        expires.into_iter().chain(report_due).min()
    }

    /// How many finished messages wait to be taken.
    pub(crate) const fn finished(&self) -> usize {
        self.finished.len()
    }

    /// The finished messages so far, those of a slot in order.
    pub(crate) fn take_finished(&mut self) -> Vec<FleetMessage> {
        let room = Vec::with_capacity(self.finished.len());
        std::mem::replace(&mut self.finished, room)
    }

    /// Whether everything was sent and reported.
    pub(crate) fn is_done(&self) -> bool {
        self.unreported == 0 && self.next_due().is_none()
    }

    /// Reports the rest, as the fleet is over. A message still in flight was cut short before its timeout: it
    /// is neither answered nor lost, and is not counted.
    pub(crate) fn finish(&mut self) {
        while let Some((_, number)) = self.replied.pop_front() {
            self.tally.replies += 1;
            if let Some(pending) = self.pending(number) {
                pending.stage = Stage::Done;
            }
        }
        let mut left = 0;
        for (number, pending) in (self.first..).zip(&mut self.in_flight) {
            match pending.stage {
                Stage::Reported => {}
                Stage::Out => left += 1,
                Stage::Done => {
                    pending.stage = Stage::Reported;
                    let message = message_of(self.send_order.turn(number).slot, pending);
                    self.tally.implausible_replies += u64::from(is_implausible(pending, &message));
                    self.tally.unstamped += u64::from(is_unstamped(&message));
                    self.finished.push(message);
                }
            }
        }
        self.tally.sent -= left;
        self.unreported = 0;
    }

    pub(crate) const fn count_dropped(&mut self, dropped: u64) {
        self.tally.dropped_here = dropped;
    }
}

#[cfg(test)]
mod tests;
