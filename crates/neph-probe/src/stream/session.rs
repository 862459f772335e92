//! A flow's session over TCP: its schedule, its connections and its messages, without input or output.
//!
//! The driver reports events with their times. The session returns what to dial, write and close. Open loop:
//! a message is sent at its time, independent of earlier ones. [`lives`] has the states of connections,
//! [`time`] the actions that depend on time alone.

mod lives;
mod time;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use neph_model::{Answer, EventKind, Instant, Local, LocalFault, Message, Seq, Span};
use neph_sys::stamp::Ending;
use neph_wire::http::FlowToken;
use rustls::ClientConfig;

use super::connection::{Connection, Happening, Phase};
use crate::codec::{self, Use};
use crate::exchange::{Asks, Exchange, Expect, SendPoint};
use crate::kinds;
use crate::report::Note;
use crate::spec::FlowSpec;

/// A message fails if it would wait behind more unwritten bytes than this.
const MAX_UNWRITTEN: usize = 64 << 20;
/// Connections at the same time, for messages that need one each.
const MAX_CONNECTIONS: usize = 256;
/// Pauses before dialling again: doubled from the first to the last.
const FIRST_PAUSE: Span = Span::from_millis(100);
const LAST_PAUSE: Span = Span::from_secs(5);

/// Reads the local clock.
type ReadClock<'a> = dyn FnMut() -> Instant<Local> + 'a;

/// A send timestamp on the local clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    pub(crate) point: SendPoint,
    pub(crate) id: u32,
    pub(crate) at: Instant<Local>,
    pub(crate) tcp: Option<neph_model::TcpState>,
}

/// A connection whose socket is to be closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) number: u32,
    /// To be written first, as far as the socket takes it.
    pub(crate) close_message: Vec<u8>,
}

/// The session.
#[derive(Debug)]
pub(crate) struct Session {
    spec: FlowSpec,
    /// How messages share connections.
    connection_use: Use,
    asks: Asks,
    token: FlowToken,
    tls: Option<Arc<ClientConfig>>,
    start: Option<Instant<Local>>,
    entered: u64,
    exchange: Exchange,
    connections: BTreeMap<u32, Connection>,
    dialled: u32,
    /// The connection whose outbox holds the next message, built ahead of its time. The message is not
    /// recorded yet. If the connection dies, it is built again.
    prepared: Option<u32>,
    /// The connection built ahead of the message that will need it.
    spare: Option<Connection>,
    to_dial: VecDeque<u32>,
    to_close: Vec<Closing>,
    pause: Span,
    redial: Option<Instant<Local>>,
    /// What ended the latest connection, until a reply comes: the reason for messages without a connection.
    last_fault: Option<Answer>,
    tail_sent: bool,
    notes: Vec<Note>,
    /// Kept between calls so that reading a reply needs no allocation.
    happenings: Vec<(Happening, Instant<Local>)>,
}

impl Session {
    pub(crate) fn new(spec: &FlowSpec, tls: Option<Arc<ClientConfig>>) -> Self {
        let connection_use = codec::connection_use(spec);
        let token = codec::new_token();
        let asks = match kinds::stream_codec(spec, token, 0) {
            Some(_) => Asks::Messages,
            None => Asks::Connections,
        };
        let stamped = asks == Asks::Messages;
        let expect = Expect {
            sent: stamped,
            peer_send: codec::learns_peer_send(spec),
            ack: stamped,
        };
        let interval = spec.schedule.interval;
        let mut exchange = Exchange::new(spec.index, interval, spec.timeout, expect);
        exchange.set_asks(asks);
        Self {
            spec: spec.clone(),
            connection_use,
            asks,
            token,
            tls,
            start: None,
            entered: 0,
            exchange,
            connections: BTreeMap::new(),
            dialled: 0,
            prepared: None,
            spare: None,
            to_dial: VecDeque::new(),
            to_close: Vec::new(),
            pause: FIRST_PAUSE,
            redial: None,
            last_fault: None,
            tail_sent: false,
            notes: Vec::with_capacity(64),
            happenings: Vec::with_capacity(16),
        }
    }

    // ---- the schedule

    /// Opens the first connection ahead of the schedule, where connections last.
    pub(crate) fn warm_up(&mut self, now: Instant<Local>) {
        if self.connection_use != Use::Fresh {
            self.dial(None, now);
        }
    }

    /// Whether the first connection is established, has failed, or is not needed.
    pub(crate) fn is_warm(&self) -> bool {
        self.connections.values().all(|c| c.phase == Phase::Ready) && self.to_dial.is_empty()
    }

    /// Message 0 is due at `start`.
    pub(crate) const fn begin(&mut self, start: Instant<Local>) {
        self.start = Some(start);
    }

    /// When the next message is due; `None` before [`Self::begin`] and after the last.
    pub(crate) fn next_due(&self) -> Option<Instant<Local>> {
        self.spec.schedule.due(self.start?, self.entered)
    }

    /// Ends the schedule, except for a message that is already in an outbox.
    pub(crate) fn end_schedule(&mut self) {
        self.spec.schedule.count = Some(self.entered + u64::from(self.prepared.is_some()));
    }

    /// Builds the next message ahead of its time if its connection exists, or else the connection. Returns
    /// whether a new socket is needed.
    pub(crate) fn prepare(&mut self, now: Instant<Local>) -> bool {
        if self.prepared.is_some() {
            return false;
        }
        match self.connection_for_next() {
            Some(number) => {
                if self.put(number, Seq(self.entered), now) {
                    self.prepared = Some(number);
                }
                false
            }
            None => self.connection_use != Use::One && self.make_spare(now),
        }
    }

    /// The next message is due at `now`; `clock` is read again if the message must be built first. Returns
    /// the connection to write to.
    pub(crate) fn send(&mut self, now: Instant<Local>, clock: &mut ReadClock<'_>) -> Option<u32> {
        let due = self.next_due()?;
        let seq = self.exchange.enter(due);
        self.entered += 1;
        if let Some(number) = self.prepared.take() {
            return self.hand_over(number, seq, now);
        }
        match self.connection_for_next() {
            Some(number) if self.put(number, seq, now) => {
                return self.hand_over(number, seq, clock());
            }
            None if self.connection_use != Use::One && self.connections.len() < MAX_CONNECTIONS => {
                self.dial(Some(seq), now);
                return None;
            }
            Some(_) | None => {}
        }
        let answer = self.last_fault;
        self.exchange.failed(seq, answer, now);
        None
    }

    /// The next message is too late, or beyond a cap: it is not sent.
    pub(crate) fn skip(&mut self, reason: LocalFault, at: Instant<Local>) {
        if let Some(due) = self.next_due() {
            let seq = self.exchange.enter(due);
            self.entered += 1;
            self.exchange.failed(seq, Some(Answer::Local(reason)), at);
        }
    }

    /// Whether the next message is already in an outbox.
    pub(crate) const fn has_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// The end of the schedule.
    pub(crate) fn end(&self) -> Option<Instant<Local>> {
        self.spec.schedule.end(self.start?)
    }

    fn connection_for_next(&self) -> Option<u32> {
        let mut candidates = self.connections.iter();
        let candidate = match self.connection_use {
            Use::Fresh => None,
            Use::Idle => candidates.find(|(_, connection)| connection.is_idle()),
            Use::One => candidates.find(|(_, connection)| {
                connection.phase == Phase::Ready && connection.outbox.len() < MAX_UNWRITTEN
            }),
        };
        candidate.map(|(number, _)| *number)
    }

    /// Puts a message into a connection's outbox, held back. A connection that cannot take it is dropped.
    fn put(&mut self, number: u32, seq: Seq, now: Instant<Local>) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return false;
        };
        match connection.hold(seq) {
            Ok(()) => true,
            Err(end) => {
                self.drop_connection(number, EventKind::ConnectionLost, end, now);
                false
            }
        }
    }

    /// Releases a message in the connection's outbox.
    fn hand_over(&mut self, number: u32, seq: Seq, now: Instant<Local>) -> Option<u32> {
        let connection = self.connections.get_mut(&number)?;
        connection.release(seq, now);
        self.exchange.sent(seq, now, number);
        Some(number)
    }

    /// Sends one more exchange after the last message, which is no message: the reflector reports the send
    /// timestamp of its last reply only with its next.
    pub(crate) fn send_tail(&mut self, now: Instant<Local>) -> Option<u32> {
        if self.tail_sent || self.next_due().is_some() || !self.exchange.all_decided() {
            return None;
        }
        self.tail_sent = true;
        if !self.exchange.lacks_peer_send() {
            return None;
        }
        let seq = Seq(self.entered);
        let Some(number) = self.connection_for_next() else {
            if self.connection_use != Use::One {
                self.dial(Some(seq), now);
            }
            return None;
        };
        if !self.put(number, seq, now) {
            return None;
        }
        self.connections.get_mut(&number)?.release(seq, now);
        Some(number)
    }

    /// Whether this is the number of the exchange that is no message.
    fn is_tail(&self, seq: Seq) -> bool {
        self.tail_sent && seq == Seq(self.entered)
    }

    // ---- writing

    /// The bytes that connection `number` may write now, and whether they end a message.
    pub(crate) fn to_write(&self, number: u32) -> Option<(&[u8], Ending)> {
        self.connections.get(&number)?.outbox.next()
    }

    /// The socket took `count` bytes of it.
    pub(crate) fn wrote(&mut self, number: u32, count: usize) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.wrote(count);
        }
    }

    /// Whether connection `number` still has something that may be written.
    pub(crate) fn has_more(&self, number: u32) -> bool {
        self.connections
            .get(&number)
            .is_some_and(|connection| connection.outbox.is_ready())
    }

    /// Records a kernel's send timestamp.
    pub(crate) fn stamped(&mut self, number: u32, stamp: &Stamped) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if let Some(seq) = connection.outbox.message_at(stamp.id) {
            self.exchange.stamped(seq, stamp.point, stamp.at, stamp.tcp);
        }
        if stamp.point == SendPoint::Acked {
            connection.outbox.acknowledged(stamp.id);
        }
    }

    // ---- results

    fn note(&mut self, kind: EventKind, text: String) {
        self.notes.push(Note::Event(kind, text));
    }

    /// The notes to report, in order.
    pub(crate) fn take_notes(&mut self) -> std::vec::Drain<'_, Note> {
        self.notes.drain(..)
    }

    /// The oldest message, if no more information about it can arrive.
    pub(crate) fn take_finished(&mut self, now: Instant<Local>) -> Option<Message> {
        self.exchange.take_finished(now)
    }

    /// The oldest message that has an outcome, at the end of the flow.
    pub(crate) fn take_rest(&mut self) -> Option<Message> {
        self.exchange.take_rest()
    }

    /// The wall clock stepped: timestamps taken around it were dropped.
    pub(crate) fn clock_stepped(&mut self, step: Span) {
        self.note(
            EventKind::ClockStepped,
            format!("the wall clock stepped by {step}"),
        );
    }

    /// Outcomes of messages.
    pub(crate) const fn tally(&self) -> &neph_model::Tally {
        self.exchange.tally()
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod ends_tests;
