//! A fleet's session: who is due when, what is under way, and how each message ended.
//!
//! Does no input or output and reads no clock. Knows no protocol: a request is known by the source
//! port and the number within its flow, and whoever carries it says what became of it ([`Event`]).
//! Costs no search and, once it runs, no memory per message.

mod event;
mod slot;

use std::collections::VecDeque;

use neph_model::{FleetMessage, Instant, Lane, Own, ReadBy, Span, SynAnswer, Wall};

pub(crate) use event::{Departed, Event, Known, Replied, low};
use slot::{Arrival, Fate, Slot, Stage, is_disbelieved, is_repeated, is_unstamped, told};

use super::flows::Flows;
use super::rota::{Rota, Turn};
use super::spec::FleetTally;

/// How long a reply waits to be told: for the stamp of its request, which the kernel may tell after
/// it, and for copies of it.
const RIPENING: Span = Span::from_millis(5);

/// A message that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) lane: Lane,
    /// Its number within its flow.
    pub(crate) seq: u64,
    pub(crate) due: Instant<Own>,
    /// Its flow's port; `None` when the flow begins with it and needs one first.
    pub(crate) port: Option<u16>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    rota: Rota,
    timeout: Span,
    start: Option<Instant<Own>>,
    flows: Flows,
    /// The number of the next message.
    next: u64,
    /// Messages `first..next`: each until it is told and its timeout has passed.
    slots: VecDeque<Slot>,
    first: u64,
    /// The first message whose timeout has not passed.
    unexpired: u64,
    /// Replied to, in order of the replies, until told.
    ripening: VecDeque<(Instant<Own>, u64)>,
    /// Of messages before `first`, latest last: whether a reply was counted.
    past: VecDeque<bool>,
    untold: u64,
    finished: Vec<FleetMessage>,
    tally: FleetTally,
}

impl Session {
    pub(crate) fn new(rota: Rota, lanes: u32, timeout: Span) -> Self {
        // As many as are under way at once, so that the room need not grow while it runs.
        let gap = rota.gap().nanos().max(1);
        let under_way = usize::try_from(timeout.nanos().max(0) / gap).unwrap_or(0);
        let room = under_way.min(1 << 20) + 1_024;
        Self {
            rota,
            timeout,
            start: None,
            flows: Flows::new(lanes),
            next: 0,
            slots: VecDeque::with_capacity(room),
            first: 0,
            unexpired: 0,
            ripening: VecDeque::new(),
            past: VecDeque::with_capacity(room),
            untold: 0,
            finished: Vec::new(),
            tally: FleetTally::default(),
        }
    }

    pub(crate) const fn begin(&mut self, start: Instant<Own>) {
        self.start = Some(start);
    }

    pub(crate) const fn tally(&self) -> &FleetTally {
        &self.tally
    }

    /// Nothing more is due.
    pub(crate) const fn end_schedule(&mut self) {
        self.rota.end_at(self.next);
    }

    pub(crate) fn next_due(&self) -> Option<Instant<Own>> {
        self.rota.due(self.start?, self.next)
    }

    /// What goes next.
    pub(crate) fn departure(&self) -> Option<Departure> {
        let due = self.next_due()?;
        let turn = self.rota.turn(self.next);
        Some(Departure {
            lane: turn.lane,
            seq: turn.seq,
            due,
            port: self.flows.port(&turn),
        })
    }

    /// The flow that the next message belongs to has this port; its lane's earlier one is over.
    pub(crate) fn opened(&mut self, port: u16) {
        let turn = self.rota.turn(self.next);
        self.flows.open(&turn, port);
    }

    /// The first flow of a lane has this port.
    pub(crate) fn opened_first(&mut self, lane: Lane, port: u16) {
        let (round, seq) = (0, 0);
        self.flows.open(&Turn { lane, round, seq }, port);
    }

    /// The next message goes, at `at`; `wall` is the time that it carries.
    pub(crate) fn sending(&mut self, at: Instant<Own>, wall: Wall) {
        let Some(departure) = self.departure() else {
            return;
        };
        self.slots.push_back(Slot {
            sent: at,
            wall,
            late: at - departure.due,
            departed: None,
            reply: None,
            seq: low(departure.seq),
            port: departure.port.unwrap_or(0),
            stage: Stage::Out,
            fate: Fate::Open,
        });
        self.next += 1;
        self.untold += 1;
        self.tally.sent += 1;
    }

    /// The message that went last did not leave.
    pub(crate) fn not_sent(&mut self) {
        if let Some(number) = self.next.checked_sub(1) {
            self.fail(number);
        }
    }

    fn fail(&mut self, number: u64) {
        let Some(slot) = self.slot(number) else {
            return;
        };
        if slot.stage != Stage::Out || slot.reply.is_some() {
            return;
        }
        slot.fate = Fate::Failed;
        self.tally.sent -= 1;
        self.tally.failed += 1;
        self.done(number);
    }

    pub(crate) fn take(&mut self, event: &Event) {
        match event {
            Event::Departed(departed) => {
                let number = self.number_of(departed.request);
                if let Some(slot) = number.and_then(|number| self.slot(number)) {
                    slot.departed = Some(departed.at);
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
        let Some(slot) = self.slot(number) else {
            self.replied_after_all(number);
            return;
        };
        if replied
            .repeated
            .is_some_and(|repeated| !is_repeated(slot, repeated))
        {
            self.tally.disbelieved += 1;
            return;
        }
        if let Some(arrival) = &mut slot.reply {
            let told = slot.stage == Stage::Told;
            if !told {
                arrival.copies = arrival.copies.saturating_add(1);
            }
            self.tally.copies += 1;
            return;
        }
        let (at, by) = match replied.stamp {
            Some(stamp) => (stamp, ReadBy::Kernel),
            None => (replied.read, ReadBy::Program),
        };
        let in_time = at < slot.sent + timeout;
        slot.reply = Some(Arrival {
            at,
            by,
            at_peer: replied.at_peer,
            ttl: replied.ttl,
            copies: 0,
            answer: replied.answer,
        });
        if slot.stage != Stage::Out {
            self.tally.late += 1;
        } else if in_time {
            self.tally.refused += u64::from(replied.answer == Some(SynAnswer::Rst));
            self.ripening.push_back((replied.read + RIPENING, number));
        } else {
            self.tally.late += 1;
            self.lose(number);
        }
    }

    fn lose(&mut self, number: u64) {
        if let Some(slot) = self.slot(number) {
            slot.fate = Fate::Lost;
        }
        self.tally.lost += 1;
        self.done(number);
    }

    /// A reply to a message that is not in the book any more.
    fn replied_after_all(&mut self, number: u64) {
        let back = usize::try_from(self.first - number).unwrap_or(usize::MAX);
        let seen = self
            .past
            .len()
            .checked_sub(back)
            .and_then(|at| self.past.get_mut(at));
        match seen {
            Some(true) => self.tally.copies += 1,
            Some(seen) => {
                *seen = true;
                self.tally.late += 1;
            }
            None => self.tally.late += 1,
        }
    }

    /// The number of the message that is meant; `None` if none of ours is.
    fn number_of(&self, request: Known) -> Option<u64> {
        let (lane, began) = self.flows.of(request.port)?;
        let latest = self.rota.latest_round(lane, self.next);
        let seq = crate::datagram::widen(request.seq, latest.checked_sub(began)?);
        let number = self.rota.number(lane, began.checked_add(seq)?);
        if number >= self.next {
            return None;
        }
        let slot = number
            .checked_sub(self.first)
            .and_then(|at| self.slots.get(usize::try_from(at).ok()?));
        // After a renewal the lane's later messages belong to another port.
        slot.is_none_or(|slot| slot.port == request.port)
            .then_some(number)
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let at = number.checked_sub(self.first)?;
        self.slots.get_mut(usize::try_from(at).ok()?)
    }

    /// Decides what is decided at `now`. Replies that came until then must have been taken in.
    pub(crate) fn at_time(&mut self, now: Instant<Own>) {
        while let Some((ripe, number)) = self.ripening.front().copied() {
            if ripe > now {
                break;
            }
            self.ripening.pop_front();
            self.tally.replies += 1;
            self.done(number);
        }
        while self.unexpired < self.next {
            let (number, timeout) = (self.unexpired, self.timeout);
            let Some(slot) = self.slot(number) else { break };
            if slot.sent + timeout > now {
                break;
            }
            if slot.stage == Stage::Out && slot.reply.is_none() {
                self.lose(number);
            }
            self.unexpired += 1;
        }
        self.forget(now);
    }

    /// Forgets what is told and can hardly be replied to any more.
    fn forget(&mut self, now: Instant<Own>) {
        while let Some(slot) = self.slots.front() {
            if slot.stage != Stage::Told || slot.sent + self.timeout > now {
                return;
            }
            if self.past.len() == self.past.capacity() {
                self.past.pop_front();
            }
            self.past.push_back(slot.reply.is_some());
            self.slots.pop_front();
            self.first += 1;
            self.unexpired = self.unexpired.max(self.first);
        }
    }

    /// A message is decided: it is told, unless an earlier one of its lane is not; then with it.
    fn done(&mut self, number: u64) {
        if let Some(slot) = self.slot(number) {
            slot.stage = Stage::Done;
        }
        let lane = self.rota.turn(number).lane;
        loop {
            let number = self.rota.number(lane, self.flows.untold(lane));
            let Some(slot) = self.slot(number) else {
                return;
            };
            if slot.stage != Stage::Done {
                return;
            }
            slot.stage = Stage::Told;
            let message = told(lane, slot);
            self.tally.disbelieved += u64::from(is_disbelieved(slot, &message));
            self.tally.unstamped += u64::from(is_unstamped(&message));
            self.finished.push(message);
            self.flows.tell(lane);
            self.untold -= 1;
        }
    }

    /// The moment at which [`Self::at_time`] has something to decide.
    pub(crate) fn next_deadline(&self) -> Option<Instant<Own>> {
        let at = self.unexpired.checked_sub(self.first);
        let slot = at.and_then(|at| self.slots.get(usize::try_from(at).ok()?));
        let expires = slot.map(|slot| slot.sent + self.timeout);
        let ripens = self.ripening.front().map(|(ripe, _)| *ripe);
        expires.into_iter().chain(ripens).min()
    }

    /// How many finished messages wait to be taken.
    pub(crate) const fn finished(&self) -> usize {
        self.finished.len()
    }

    /// The finished messages so far, those of a lane in order.
    pub(crate) fn take_finished(&mut self) -> Vec<FleetMessage> {
        let room = Vec::with_capacity(self.finished.len());
        std::mem::replace(&mut self.finished, room)
    }

    /// Everything was sent and told.
    pub(crate) fn is_done(&self) -> bool {
        self.untold == 0 && self.next_due().is_none()
    }

    /// Tells what is known and not told yet: the fleet is over. What is still out was cut short
    /// before its timeout: it is neither answered nor lost, and is not counted.
    pub(crate) fn finish(&mut self) {
        while let Some((_, number)) = self.ripening.pop_front() {
            self.tally.replies += 1;
            if let Some(slot) = self.slot(number) {
                slot.stage = Stage::Done;
            }
        }
        let mut left = 0;
        for (number, slot) in (self.first..).zip(&mut self.slots) {
            match slot.stage {
                Stage::Told => {}
                Stage::Out => left += 1,
                Stage::Done => {
                    slot.stage = Stage::Told;
                    let message = told(self.rota.turn(number).lane, slot);
                    self.tally.disbelieved += u64::from(is_disbelieved(slot, &message));
                    self.tally.unstamped += u64::from(is_unstamped(&message));
                    self.finished.push(message);
                }
            }
        }
        self.tally.sent -= left;
        self.untold = 0;
    }

    pub(crate) const fn count_dropped(&mut self, dropped: u64) {
        self.tally.dropped_here = dropped;
    }
}

#[cfg(test)]
mod tests;
