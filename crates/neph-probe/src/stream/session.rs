//! A flow's session over TCP: its schedule, its connections and its book, without input or output.
//!
//! The driver tells it what happened and when; it tells the driver what to dial, write and close.
//! Open loop: a message goes at its time whatever became of those before it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use neph_model::{EventKind, Instant, Message, Own, Seq, Span};
use neph_sys::stamp::Ending;
use rustls::ClientConfig;

use super::connection::{Connection, Happening, Phase};
use crate::channel::Channel;
use crate::codec::{self, Use};
use crate::exchange::{Exchange, Expect, Reply, SendPoint};
use crate::report::Note;
use crate::spec::FlowSpec;
use crate::tls;

/// A message is given up rather than queued behind more unwritten bytes than this.
const MAX_UNWRITTEN: usize = 64 << 20;
/// Connections at the same time, for messages that need one each.
const MAX_CONNECTIONS: usize = 256;
/// Pauses before dialling again: doubled from the first to the last.
const FIRST_PAUSE: Span = Span::from_millis(100);
const LAST_PAUSE: Span = Span::from_secs(5);

/// A send stamp with its time on our clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamped {
    pub(super) point: SendPoint,
    pub(super) id: u32,
    pub(super) at: Instant<Own>,
    pub(super) tcp: Option<neph_model::TcpState>,
}

/// The session.
#[derive(Debug)]
pub(super) struct Session {
    spec: FlowSpec,
    tls: Option<Arc<ClientConfig>>,
    start: Option<Instant<Own>>,
    entered: u64,
    book: Exchange,
    connections: BTreeMap<u32, Connection>,
    dialled: u32,
    /// The message built ahead of its time, and its connection.
    prepared: Option<(Seq, u32)>,
    to_dial: VecDeque<u32>,
    to_close: Vec<u32>,
    pause: Span,
    dial_again: Option<Instant<Own>>,
    tail_sent: bool,
    notes: Vec<Note>,
    /// Kept between calls so that nothing is allocated while a reply is read.
    happenings: Vec<(Happening, Instant<Own>)>,
}

impl Session {
    pub(super) fn new(spec: &FlowSpec, tls: Option<Arc<ClientConfig>>) -> Self {
        let expect = Expect {
            peer_send: spec.reflector && codec::connection_use(spec) != Use::Fresh,
            ack: codec::for_flow(spec, 0).is_some(),
        };
        let interval = spec.schedule.interval;
        Self {
            spec: spec.clone(),
            tls,
            start: None,
            entered: 0,
            book: Exchange::new(spec.index, interval, spec.timeout, expect),
            connections: BTreeMap::new(),
            dialled: 0,
            prepared: None,
            to_dial: VecDeque::new(),
            to_close: Vec::new(),
            pause: FIRST_PAUSE,
            dial_again: None,
            tail_sent: false,
            notes: Vec::with_capacity(64),
            happenings: Vec::with_capacity(16),
        }
    }

    // ---- the schedule

    /// Opens the first connection ahead of the schedule, where connections last.
    pub(super) fn warm_up(&mut self, now: Instant<Own>) {
        if codec::connection_use(&self.spec) != Use::Fresh {
            self.dial(None, now);
        }
    }

    /// Whether the first connection stands, has failed, or is not wanted.
    pub(super) fn is_warm(&self) -> bool {
        self.connections.values().all(|c| c.phase == Phase::Ready) && self.to_dial.is_empty()
    }

    /// Message 0 is due at `start`.
    pub(super) const fn begin(&mut self, start: Instant<Own>) {
        self.start = Some(start);
    }

    /// When the next message is due; `None` before [`Self::begin`] and after the last.
    pub(super) fn next_due(&self) -> Option<Instant<Own>> {
        self.spec.schedule.due(self.start?, self.entered)
    }

    /// Builds the next message ahead of its time, if its connection is there already.
    pub(super) fn prepare(&mut self) {
        if self.prepared.is_some() {
            return;
        }
        let seq = Seq(self.entered);
        let Some(number) = self.connection_for_next() else {
            return;
        };
        if self.put(number, seq) {
            self.prepared = Some((seq, number));
        }
    }

    /// The next message's time has come. Returns the connection to write to now.
    pub(super) fn send(&mut self, now: Instant<Own>) -> Option<u32> {
        let due = self.next_due()?;
        let seq = self.book.enter(due);
        self.entered += 1;
        if let Some((_, number)) = self.prepared.take()
            && self.connections.contains_key(&number)
        {
            return self.hand_over(number, seq, now);
        }
        match (
            codec::connection_use(&self.spec),
            self.connection_for_next(),
        ) {
            (_, Some(number)) if self.put(number, seq) => self.hand_over(number, seq, now),
            (Use::Idle | Use::Fresh, None) if self.connections.len() < MAX_CONNECTIONS => {
                self.dial(Some(seq), now);
                None
            }
            _ => {
                self.book.failed(seq, now);
                None
            }
        }
    }

    fn connection_for_next(&self) -> Option<u32> {
        let mut all = self.connections.iter();
        let found = match codec::connection_use(&self.spec) {
            Use::Fresh => None,
            Use::Idle => all.find(|(_, connection)| connection.is_idle()),
            Use::One => all.find(|(_, connection)| {
                connection.phase == Phase::Ready && connection.outbox.len() < MAX_UNWRITTEN
            }),
        };
        found.map(|(number, _)| *number)
    }

    fn put(&mut self, number: u32, seq: Seq) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return false;
        };
        match connection.hold(seq) {
            Ok(()) => true,
            Err(why) => {
                self.note(EventKind::ConnectionLost, why);
                self.to_close.push(number);
                false
            }
        }
    }

    /// Lets a message go that was put into the connection's outbox.
    fn hand_over(&mut self, number: u32, seq: Seq, now: Instant<Own>) -> Option<u32> {
        let connection = self.connections.get_mut(&number)?;
        connection.outbox.release();
        connection.awaiting.push_back(seq);
        self.book.sent(seq, now, number);
        Some(number)
    }

    /// After the last message: one more exchange that is no message, because the reflector tells
    /// the send stamp of its last reply only with its next.
    pub(super) fn send_tail(&mut self) -> Option<u32> {
        if self.tail_sent || self.next_due().is_some() || !self.book.all_decided() {
            return None;
        }
        self.tail_sent = true;
        if !self.book.lacks_peer_send() {
            return None;
        }
        let number = self.connection_for_next()?;
        let seq = Seq(self.entered);
        let put = self.put(number, seq);
        let connection = self.connections.get_mut(&number)?;
        connection.outbox.release();
        connection.awaiting.push_back(seq);
        put.then_some(number)
    }

    // ---- connections

    fn dial(&mut self, pending: Option<Seq>, now: Instant<Own>) {
        let number = self.dialled;
        self.dialled += 1;
        let channel = match &self.tls {
            None => Ok(Channel::Plain),
            Some(config) => tls::client(config, self.spec.target.host()).map(Channel::tls),
        };
        let channel = match channel {
            Ok(channel) => channel,
            Err(error) => {
                self.note(EventKind::ConnectFailed, error.to_string());
                if let Some(seq) = pending {
                    self.book.failed(seq, now);
                }
                return;
            }
        };
        let codec = codec::for_flow(&self.spec, u64::from(number));
        let mut connection = Connection::new(channel, codec, now);
        connection.pending = pending;
        self.connections.insert(number, connection);
        self.to_dial.push_back(number);
    }

    /// The next connection to open a socket for.
    pub(super) fn take_dial(&mut self) -> Option<u32> {
        self.to_dial.pop_front()
    }

    /// A connection whose socket is to be closed.
    pub(super) fn take_close(&mut self) -> Option<u32> {
        self.to_close.pop()
    }

    /// The socket is about to connect.
    pub(super) fn dialling(&mut self, number: u32, at: Instant<Own>) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.since = at;
        if let Some(seq) = connection.pending {
            self.book.with_marks(seq, |marks| marks.dialled = Some(at));
        }
    }

    /// The socket is connected.
    pub(super) fn connected(&mut self, number: u32, now: Instant<Own>) {
        self.happen(
            number,
            |connection, tell| connection.connected(tell),
            None,
            &mut || now,
        );
    }

    /// Bytes came; `stamp` is when the kernel received the last of them.
    pub(super) fn received(
        &mut self,
        number: u32,
        bytes: &[u8],
        stamp: Option<Instant<Own>>,
        clock: &mut dyn FnMut() -> Instant<Own>,
    ) {
        self.happen(
            number,
            |connection, tell| connection.received(bytes, tell),
            stamp,
            clock,
        );
    }

    /// The peer closed its side.
    pub(super) fn ended(&mut self, number: u32, now: Instant<Own>) {
        self.happen(
            number,
            |connection, tell| connection.ended(tell),
            None,
            &mut || now,
        );
    }

    /// The socket is closed; nothing more comes of it.
    pub(super) fn closed(&mut self, number: u32) {
        self.connections.remove(&number);
    }

    /// The wall clock stepped: stamps taken around it were dropped.
    pub(super) fn clock_stepped(&mut self, step: Span) {
        self.note(
            EventKind::ClockStepped,
            format!("the wall clock stepped by {step}"),
        );
    }

    /// The socket broke, or could not be had.
    pub(super) fn broke(&mut self, number: u32, why: String, now: Instant<Own>) {
        self.drop_connection(number, EventKind::ConnectionLost, why, now);
    }

    fn happen(
        &mut self,
        number: u32,
        act: impl FnOnce(&mut Connection, &mut dyn FnMut(Happening)),
        stamp: Option<Instant<Own>>,
        clock: &mut dyn FnMut() -> Instant<Own>,
    ) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let mut happenings = std::mem::take(&mut self.happenings);
        act(connection, &mut |happening| {
            happenings.push((happening, clock()))
        });
        for (happening, at) in happenings.drain(..) {
            self.apply(number, happening, stamp, at);
        }
        self.happenings = happenings;
    }

    fn apply(
        &mut self,
        number: u32,
        happening: Happening,
        stamp: Option<Instant<Own>>,
        at: Instant<Own>,
    ) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        match happening {
            Happening::Connected => {
                if let Some(seq) = connection.pending {
                    self.book
                        .with_marks(seq, |marks| marks.connected = Some(at));
                }
            }
            Happening::Secured => {
                if let Some(seq) = connection.pending {
                    self.book.with_marks(seq, |marks| marks.secured = Some(at));
                }
            }
            Happening::Ready => self.ready(number, at),
            Happening::Reply {
                seq,
                marks,
                ends_the_batch,
            } => {
                let Some(seq) = seq
                    .map(Seq)
                    .or_else(|| connection.awaiting.front().copied())
                else {
                    return;
                };
                connection.awaiting.retain(|waiting| *waiting != seq);
                let reply = Reply {
                    nic_rx: stamp.filter(|_| ends_the_batch),
                    app_recv: at,
                    marks,
                };
                self.reply(number, seq, &reply);
            }
            Happening::Closed(why) => {
                self.drop_connection(number, EventKind::ConnectionLost, why, at);
            }
            Happening::Refused(why) => self.drop_connection(number, EventKind::Refused, why, at),
        }
    }

    fn ready(&mut self, number: u32, at: Instant<Own>) {
        self.pause = FIRST_PAUSE;
        if codec::connection_use(&self.spec) == Use::One {
            self.note(EventKind::Connected, format!("connection {number}"));
        }
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.since = at;
        let Some(seq) = connection.pending.take() else {
            return;
        };
        if codec::for_flow(&self.spec, 0).is_none() {
            let reply = Reply {
                nic_rx: None,
                app_recv: at,
                marks: None,
            };
            return self.reply(number, seq, &reply);
        }
        if self.put(number, seq) {
            self.hand_over(number, seq, at);
        } else {
            self.book.failed(seq, at);
        }
    }

    fn reply(&mut self, number: u32, seq: Seq, reply: &Reply) {
        if let Some(message) = self.book.replied(seq, reply) {
            self.notes.push(Note::Reply(*message));
        }
        let stays = match codec::connection_use(&self.spec) {
            Use::One => true,
            Use::Idle => self
                .connections
                .get(&number)
                .is_some_and(Connection::can_go_on),
            Use::Fresh => false,
        };
        if !stays {
            self.to_close.push(number);
        }
    }

    fn drop_connection(&mut self, number: u32, kind: EventKind, why: String, at: Instant<Own>) {
        let Some(connection) = self.connections.remove(&number) else {
            return;
        };
        self.to_close.push(number);
        let outstanding: Vec<Seq> = connection
            .pending
            .into_iter()
            .chain(connection.awaiting)
            .chain(connection.outbox.unwritten())
            .collect();
        for seq in &outstanding {
            if self.prepared.is_none_or(|(prepared, _)| prepared != *seq) {
                self.book.lost(*seq, at);
            }
        }
        if self
            .prepared
            .is_some_and(|(_, prepared)| prepared == number)
        {
            self.prepared = None;
        }
        let lasting = codec::connection_use(&self.spec) == Use::One;
        let was_up = connection.phase == Phase::Ready;
        let kind = match kind {
            EventKind::ConnectionLost if !was_up => EventKind::ConnectFailed,
            kind => kind,
        };
        let idle_end = !lasting && was_up && outstanding.is_empty();
        if !idle_end {
            self.note(kind, why);
        }
        if lasting {
            self.dial_again = Some(at + self.pause);
            self.pause = self.pause.times(2).min(LAST_PAUSE);
        }
    }

    // ---- writing

    /// What connection `number` may write now, and whether that ends a message.
    pub(super) fn to_write(&self, number: u32) -> Option<(&[u8], Ending)> {
        self.connections.get(&number)?.outbox.next()
    }

    /// The socket took `count` bytes of it.
    pub(super) fn wrote(&mut self, number: u32, count: usize) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.outbox.wrote(count);
        }
    }

    /// Whether connection `number` still has something that may be written.
    pub(super) fn has_more(&self, number: u32) -> bool {
        self.connections
            .get(&number)
            .is_some_and(|connection| connection.outbox.is_ready())
    }

    /// The kernel stamped something on its way out.
    pub(super) fn stamped(&mut self, number: u32, stamp: &Stamped) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        if let Some(seq) = connection.outbox.message_at(stamp.id) {
            self.book.stamped(seq, stamp.point, stamp.at, stamp.tcp);
        }
        if stamp.point == SendPoint::Acked {
            connection.outbox.acknowledged(stamp.id);
        }
    }

    // ---- time

    /// Does what its time has come for: losses, handshakes that take too long, dialling again.
    pub(super) fn at_time(&mut self, now: Instant<Own>) {
        self.book.expire(now);
        if self.dial_again.is_some_and(|at| at <= now) {
            self.dial_again = None;
            self.dial(None, now);
        }
        let stuck: Vec<u32> = self
            .connections
            .iter()
            .filter(|(_, c)| c.phase != Phase::Ready && c.since + self.spec.timeout <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in stuck {
            let why = format!("no connection within {}", self.spec.timeout);
            self.drop_connection(number, EventKind::ConnectFailed, why, now);
        }
    }

    /// When [`Self::at_time`] has something to do next.
    pub(super) fn next_deadline(&self) -> Option<Instant<Own>> {
        let stuck = self
            .connections
            .values()
            .filter(|connection| connection.phase != Phase::Ready)
            .map(|connection| connection.since + self.spec.timeout)
            .min();
        [self.book.next_deadline(), self.dial_again, stuck]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether the schedule is over, every message decided and every mark there that can come.
    pub(super) fn is_done(&self) -> bool {
        let scheduled = self.start.is_none() || self.next_due().is_some();
        !scheduled && self.book.all_decided() && (self.book.len() == 0 || self.tail_sent)
    }

    /// Whether marks may still come for messages already decided.
    pub(super) fn lacks_peer_send(&self) -> bool {
        self.book.lacks_peer_send()
    }

    // ---- results

    fn note(&mut self, kind: EventKind, text: String) {
        self.notes.push(Note::Event(kind, text));
    }

    /// What there is to tell, in order.
    pub(super) fn take_notes(&mut self) -> std::vec::Drain<'_, Note> {
        self.notes.drain(..)
    }

    /// The oldest message, if nothing more can become known of it.
    pub(super) fn take_finished(&mut self, now: Instant<Own>) -> Option<Message> {
        self.book.take_finished(now)
    }

    /// The oldest message, whatever is missing.
    pub(super) fn take_rest(&mut self, now: Instant<Own>) -> Option<Message> {
        self.book.take_rest(now)
    }

    /// How messages ended.
    pub(super) const fn tally(&self) -> &neph_model::Tally {
        self.book.tally()
    }
}
