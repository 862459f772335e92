//! The states of a session's connections: dialled, ready, replied on, lost.

use neph_model::{Answer, EventKind, Instant, Local, Outcome, Seq, SynAnswer};

use super::{Closing, FIRST_PAUSE, LAST_PAUSE, ReadClock, Session};
use crate::channel::Channel;
use crate::codec::{ConnectionEnd, Use};
use crate::exchange::{Asks, Reply};
use crate::kinds;
use crate::stream::connection::{Connection, Happening, Phase};
use crate::tls;

/// The answer for the message that waits at this place when a connection ends: only the oldest one's reply
/// had begun.
fn waiting_at(index: usize, answer: Option<Answer>) -> Option<Answer> {
    match answer {
        Some(Answer::Truncated) if index > 0 => Some(Answer::Closed),
        answer => answer,
    }
}

/// An event on a connection.
struct ConnectionEvent {
    happening: Happening,
    /// When it was read.
    at: Instant<Local>,
    /// When its bytes arrived at the interface.
    stamp: Option<Instant<Local>>,
}

impl Session {
    pub(super) fn dial(&mut self, pending: Option<Seq>, now: Instant<Local>) {
        let spare = self.spare.take();
        let number = self.dialled;
        self.dialled += 1;
        let mut connection = match spare.map_or_else(|| self.build(number, now), Ok) {
            Ok(connection) => connection,
            Err(error) => {
                self.note(EventKind::ConnectFailed, error.to_string());
                if let Some(seq) = pending {
                    self.exchange.failed(seq, Some(Answer::TlsFailed), now);
                }
                return;
            }
        };
        connection.pending = pending;
        self.connections.insert(number, connection);
        self.to_dial.push_back(number);
    }

    /// Builds the next connection ahead of its message's time: the work of TLS for each (keys, a hello) would
    /// add lateness otherwise. Returns whether it needs a socket.
    pub(super) fn make_spare(&mut self, now: Instant<Local>) -> bool {
        if self.spare.is_none() {
            // A failure now happens again when the message is due, and is reported then.
            self.spare = self.build(self.dialled, now).ok();
        }
        self.spare.is_some()
    }

    fn build(&self, number: u32, now: Instant<Local>) -> Result<Connection, tls::TlsError> {
        let channel = match &self.tls {
            None => Channel::Plain,
            Some(config) => Channel::tls(tls::client(config, self.spec.target.certificate_name())?),
        };
        let codec = kinds::stream_codec(&self.spec, self.token, number);
        Ok(Connection::new(channel, codec, now))
    }

    /// The next connection to open a socket for.
    pub(crate) fn take_dial(&mut self) -> Option<u32> {
        self.to_dial.pop_front()
    }

    /// The next connection whose socket is to be closed.
    pub(crate) fn take_close(&mut self) -> Option<Closing> {
        self.to_close.pop()
    }

    /// The socket is about to connect.
    pub(crate) fn dial_started(&mut self, number: u32, at: Instant<Local>) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.since = at;
        if let Some(seq) = connection.pending {
            self.exchange
                .with_marks(seq, |marks| marks.dialled = Some(at));
        }
    }

    /// The socket was found connected at `at`; `clock` gives the time when the following work is done.
    pub(crate) fn connected(&mut self, number: u32, at: Instant<Local>, clock: &mut ReadClock<'_>) {
        let mut pending_time = Some(at);
        let mut clock = || pending_time.take().unwrap_or_else(&mut *clock);
        self.deliver_event(number, None, &mut clock, |connection, report| {
            connection.connected(report);
        });
    }

    /// The attempt was refused at `at`. That is an answer, where only the attempt is measured.
    pub(crate) fn refused(&mut self, number: u32, at: Instant<Local>, clock: &mut ReadClock<'_>) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.syn_answer = SynAnswer::Rst;
        }
        self.connected(number, at, clock);
    }

    /// Bytes arrived; `stamp` is when the kernel received the last of them.
    pub(crate) fn received(
        &mut self,
        number: u32,
        bytes: &[u8],
        stamp: Option<Instant<Local>>,
        clock: &mut ReadClock<'_>,
    ) {
        self.deliver_event(number, stamp, clock, |connection, report| {
            connection.received(bytes, report);
        });
    }

    /// The peer closed its side.
    pub(crate) fn ended(&mut self, number: u32, now: Instant<Local>) {
        self.deliver_event(number, None, &mut || now, |connection, report| {
            connection.ended(report);
        });
    }

    /// The socket is closed.
    pub(crate) fn closed(&mut self, number: u32) {
        self.connections.remove(&number);
    }

    /// The socket broke, or could not be opened.
    pub(crate) fn connection_failed(
        &mut self,
        number: u32,
        end: ConnectionEnd,
        now: Instant<Local>,
    ) {
        self.drop_connection(number, EventKind::ConnectionLost, end, now);
    }

    fn deliver_event(
        &mut self,
        number: u32,
        stamp: Option<Instant<Local>>,
        clock: &mut ReadClock<'_>,
        act: impl FnOnce(&mut Connection, &mut dyn FnMut(Happening)),
    ) {
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        let mut happenings = std::mem::take(&mut self.happenings);
        act(connection, &mut |happening| {
            happenings.push((happening, clock()));
        });
        for (happening, at) in happenings.drain(..) {
            self.apply(
                number,
                ConnectionEvent {
                    happening,
                    at,
                    stamp,
                },
                clock,
            );
        }
        self.happenings = happenings;
    }

    fn apply(&mut self, number: u32, happened: ConnectionEvent, clock: &mut ReadClock<'_>) {
        let ConnectionEvent {
            happening,
            at,
            stamp,
        } = happened;
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        match happening {
            Happening::Connected => {
                if let Some(seq) = connection.pending {
                    self.exchange
                        .with_marks(seq, |marks| marks.connected = Some(at));
                }
            }
            Happening::Opened => {
                if let Some(seq) = connection.pending {
                    self.exchange
                        .with_marks(seq, |marks| marks.opened = Some(at));
                }
            }
            Happening::Ready => self.ready(number, at, clock),
            Happening::Reply {
                replied,
                ends_the_batch,
            } => {
                let awaited_seq = connection.take_awaited(replied.seq);
                let Some(seq) = awaited_seq.or_else(|| replied.seq.map(Seq)) else {
                    return;
                };
                if awaited_seq.is_none() && self.exchange.is_undecided(seq) {
                    // The number of a message that was never sent over this connection.
                    return;
                }
                let reply = Reply {
                    nic_rx: stamp.filter(|_| ends_the_batch),
                    app_recv: at,
                    marks: replied.marks,
                    answer: replied.answer,
                    outcome: replied.outcome,
                };
                self.reply(number, seq, &reply);
            }
            Happening::Closed(end) => {
                self.drop_connection(number, EventKind::ConnectionLost, end, at);
            }
            Happening::Refused(end) => {
                self.drop_connection(number, EventKind::Refused, end, at);
            }
        }
    }

    fn ready(&mut self, number: u32, at: Instant<Local>, clock: &mut ReadClock<'_>) {
        if self.connection_use == Use::One {
            self.note(EventKind::Connected, format!("connection {number}"));
        }
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.since = at;
        let syn_answer = connection.syn_answer;
        let Some(seq) = connection.pending.take() else {
            return;
        };
        if self.asks == Asks::Connections {
            // The attempt ends when the connection is established, not when this program handles it.
            let mut established = None;
            self.exchange
                .with_marks(seq, |marks| established = marks.connected);
            let reply = Reply {
                nic_rx: None,
                app_recv: established.unwrap_or(at),
                marks: None,
                answer: self
                    .spec
                    .target
                    .kind()
                    .is_segment()
                    .then_some(Answer::Syn(syn_answer)),
                outcome: Outcome::Reply,
            };
            return self.reply(number, seq, &reply);
        }
        if !self.exchange.is_undecided(seq) && !self.is_tail(seq) {
            // Its timeout passed before the connection was established; the connection may serve the next.
            if self.connection_use == Use::Fresh {
                self.leave(number);
            }
        } else if self.put(number, seq, at) {
            // Building and encrypting it took time, which is the compose stage.
            self.hand_over(number, seq, clock());
        } else {
            self.exchange.failed(seq, None, at);
        }
    }

    fn reply(&mut self, number: u32, seq: Seq, reply: &Reply) {
        // Only now the peer is known to serve: one that accepts and closes must not be dialled ever faster.
        self.pause = FIRST_PAUSE;
        self.last_fault = None;
        if let Some(message) = self.exchange.replied(seq, reply) {
            self.notes.push(crate::report::Note::Reply(*message));
        }
        self.notes.extend(self.exchange.take_disbelieved());
        let stays = match self.connection_use {
            Use::One => true,
            Use::Idle => self
                .connections
                .get(&number)
                .is_some_and(Connection::can_go_on),
            Use::Fresh => false,
        };
        if !stays {
            self.leave(number);
        }
    }

    /// Leaves a connection that has served: timestamps may still come, messages may not.
    fn leave(&mut self, number: u32) {
        if let Some(connection) = self.connections.get_mut(&number)
            && connection.phase != Phase::Leaving
        {
            let close_message = connection.close_message();
            connection.phase = Phase::Leaving;
            self.to_close.push(Closing {
                number,
                close_message,
            });
        }
    }

    /// Leaves every connection, as the flow is over.
    pub(crate) fn part(&mut self) {
        let numbers: Vec<u32> = self.connections.keys().copied().collect();
        for number in numbers {
            self.leave(number);
        }
    }

    pub(super) fn drop_connection(
        &mut self,
        number: u32,
        kind: EventKind,
        end: ConnectionEnd,
        at: Instant<Local>,
    ) {
        let Some(mut connection) = self.connections.remove(&number) else {
            return;
        };
        let close_message = connection.close_message();
        self.to_close.push(Closing {
            number,
            close_message,
        });
        if self.prepared == Some(number) {
            self.prepared = None;
        }
        let repeated = self.repeat_on_another(&mut connection, &end);
        let took_along = self.settle(&connection, &end, at);
        if let Some(seq) = repeated {
            self.note(
                EventKind::RequestRetried,
                format!("message {seq}: {}", end.reason),
            );
            self.dial(Some(seq), at);
        }
        if connection.phase == Phase::Leaving {
            return;
        }
        let was_up = connection.phase == Phase::Ready;
        let lasting = self.connection_use == Use::One;
        // The exchange after the last message does not count: without it only a timestamp is missing.
        let for_the_tail = connection.pending.is_some_and(|seq| self.is_tail(seq));
        if (lasting || !was_up || took_along > 0) && !for_the_tail {
            let kind = match kind {
                EventKind::ConnectionLost if !was_up => EventKind::ConnectFailed,
                kind => kind,
            };
            self.note(kind, end.reason);
            self.last_fault = end.answer;
        }
        if lasting {
            self.redial = Some(at + self.pause);
            self.pause = self.pause.times(2).min(LAST_PAUSE);
        }
    }

    /// The message that met the end of an idle connection and is sent on another one. It waits on this one no
    /// more.
    fn repeat_on_another(
        &mut self,
        connection: &mut Connection,
        end: &ConnectionEnd,
    ) -> Option<Seq> {
        let can_retry = self.connection_use == Use::Idle
            && connection.phase == Phase::Ready
            && connection.was_idle_when_closed(end);
        let seq = if can_retry {
            connection.awaiting.pop_front()?
        } else {
            return None;
        };
        connection.outbox.give_up();
        self.exchange.take_back(seq).then_some(seq)
    }

    /// Decides every message that was lost with a connection. Returns their number.
    fn settle(&mut self, connection: &Connection, end: &ConnectionEnd, at: Instant<Local>) -> u64 {
        let before = self.exchange.tally().messages;
        for seq in connection.outbox.untouched() {
            self.exchange.never_left(seq, end.answer, at);
        }
        if let Some(seq) = connection.pending {
            self.exchange.failed(seq, end.answer, at);
        }
        for (index, seq) in connection.awaiting.iter().enumerate() {
            self.exchange.lost(*seq, waiting_at(index, end.answer), at);
        }
        self.exchange.tally().messages - before
    }
}
