//! One connection from dial to close, with TLS and the protocol's opening. Sans-IO.

use std::collections::VecDeque;

use neph_model::{Answer, Instant, Local, Seq, SynAnswer};

use crate::channel::{Channel, ChannelError, StreamEnd};
use crate::codec::{Arrival, Codec, ConnectionEnd, Opening, PartialReply, Replied, Step};
use crate::outbox::Outbox;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The TCP handshake is in progress.
    Dialling,
    /// The TLS handshake is in progress.
    Securing,
    /// The protocol's own opening is in progress.
    Opening,
    /// Requests may be written.
    Ready,
    /// It has served; its socket is about to be closed.
    Leaving,
}

/// A connection without its socket.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    /// When it was begun; once ready, when its latest message was sent.
    pub(super) since: Instant<Local>,
    /// The message that waits for it to be ready.
    pub(super) pending: Option<Seq>,
    /// The answer to its SYN, where only that is measured.
    pub(super) syn_answer: SynAnswer,
    /// Messages written and not answered, oldest first.
    pub(super) awaiting: VecDeque<Seq>,
    pub(super) outbox: Outbox,
    channel: Channel,
    /// `None` where only the connection attempt is measured.
    codec: Option<Box<dyn Codec>>,
    /// A reply was read from it.
    has_replied: bool,
    /// Protocol bytes that were received and not yet read.
    inbox: Vec<u8>,
    /// A request before encryption; kept to avoid an allocation.
    plain: Vec<u8>,
    /// The end in the outbox of the codec's last own answer.
    paid: u64,
}

/// Result of received bytes or of a connection's progress.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Connected,
    /// A handshake above TCP is done; another may follow.
    Opened,
    Ready,
    /// A reply, and whether its last byte was the last one received: only then is the kernel's receive
    /// timestamp that of the reply.
    Reply {
        replied: Replied,
        ends_the_batch: bool,
    },
    Closed(ConnectionEnd),
    Refused(ConnectionEnd),
}

impl Connection {
    pub(super) fn new(
        channel: Channel,
        codec: Option<Box<dyn Codec>>,
        now: Instant<Local>,
    ) -> Self {
        Self {
            phase: Phase::Dialling,
            since: now,
            pending: None,
            syn_answer: SynAnswer::SynAck,
            awaiting: VecDeque::new(),
            outbox: Outbox::default(),
            channel,
            codec,
            has_replied: false,
            inbox: Vec::new(),
            plain: Vec::new(),
            paid: 0,
        }
    }

    /// The TCP handshake is done.
    pub(super) fn connected(&mut self, report: &mut dyn FnMut(Happening)) {
        report(Happening::Connected);
        self.phase = Phase::Securing;
        let channel = &mut self.channel;
        if let Err(error) = self.outbox.put(|out| channel.speak(out)) {
            return report(Happening::Closed(broken(&error)));
        }
        self.advance(report);
    }

    /// Moves on from a handshake that is done.
    fn advance(&mut self, report: &mut dyn FnMut(Happening)) {
        if self.phase == Phase::Securing && self.channel.is_ready() {
            if matches!(self.channel, Channel::Tls(_)) {
                report(Happening::Opened);
            }
            self.phase = Phase::Opening;
            let Some(codec) = &mut self.codec else {
                self.phase = Phase::Ready;
                return report(Happening::Ready);
            };
            let mut hello = Vec::new();
            let opening = codec.open(&mut hello);
            let channel = &mut self.channel;
            if let Err(error) = self.outbox.put(|out| channel.seal(&hello, out)) {
                return report(Happening::Closed(broken(&error)));
            }
            if opening == Opening::Ready {
                self.phase = Phase::Ready;
                report(Happening::Ready);
            }
        }
    }

    /// Puts request `seq` into the outbox, held back until released.
    pub(super) fn hold(&mut self, seq: Seq) -> Result<(), ConnectionEnd> {
        let Some(codec) = &mut self.codec else {
            return Ok(());
        };
        let (channel, plain) = (&mut self.channel, &mut self.plain);
        let written = self.outbox.hold(seq, |out| match channel {
            Channel::Plain => {
                codec.request(seq.0, out);
                Ok(())
            }
            Channel::Tls(_) => {
                plain.clear();
                codec.request(seq.0, plain);
                channel.seal(plain, out)
            }
        });
        written.map_err(|error| broken(&error))
    }

    /// Releases message `seq`, which was held.
    pub(super) fn release(&mut self, seq: Seq, now: Instant<Local>) {
        self.outbox.release();
        self.awaiting.push_back(seq);
        self.since = now;
    }

    /// Removes a message from those that wait for a reply: the one with this number, or the oldest where
    /// replies have no number.
    pub(super) fn take_awaited(&mut self, seq: Option<u64>) -> Option<Seq> {
        let Some(seq) = seq.map(Seq) else {
            return self.awaiting.pop_front();
        };
        if self.awaiting.front() == Some(&seq) {
            return self.awaiting.pop_front();
        }
        let at = self.awaiting.binary_search(&seq).ok()?;
        self.awaiting.remove(at)
    }

    /// Processes received bytes.
    pub(super) fn received(&mut self, bytes: &[u8], report: &mut dyn FnMut(Happening)) {
        let (channel, inbox) = (&mut self.channel, &mut self.inbox);
        if let Err(error) = self.outbox.put(|out| channel.open(bytes, inbox, out)) {
            return report(Happening::Closed(broken(&error)));
        }
        self.advance(report);
        self.read(report);
        if self.channel.has_ended() {
            self.handle_stream_end(StreamEnd::Closed, report);
        }
    }

    fn read(&mut self, report: &mut dyn FnMut(Happening)) {
        let Some(codec) = &mut self.codec else { return };
        let mut taken = 0;
        let fault = loop {
            match codec.step(&mut self.inbox[taken..]) {
                Err(error) => break Some(Happening::Closed(ConnectionEnd::new(error, None))),
                Ok(Step::More) => break None,
                Ok(Step::Consumed(count, arrival)) => {
                    taken += count;
                    match arrival {
                        Arrival::Nothing if count == 0 => break None,
                        Arrival::Nothing => {}
                        Arrival::Opened => {
                            self.phase = Phase::Ready;
                            report(Happening::Opened);
                            report(Happening::Ready);
                        }
                        Arrival::Reply(replied) => {
                            self.has_replied = true;
                            let ends_the_batch =
                                taken == self.inbox.len() && self.channel.is_at_record_end();
                            report(Happening::Reply {
                                replied,
                                ends_the_batch,
                            });
                        }
                        Arrival::Closed(end) => break Some(Happening::Closed(end)),
                        Arrival::Refused(end) => break Some(Happening::Refused(end)),
                    }
                }
            }
        };
        self.inbox.drain(..taken);
        let paid = self.pay();
        match (fault, paid) {
            (Some(fault), _) => report(fault),
            (None, Err(error)) => report(Happening::Closed(broken(&error))),
            (None, Ok(())) => {}
        }
    }

    /// Puts the codec's pending answers into the outbox, if the earlier ones have been written.
    fn pay(&mut self) -> Result<(), ChannelError> {
        let Some(codec) = &mut self.codec else {
            return Ok(());
        };
        if self.outbox.written() < self.paid {
            return Ok(());
        }
        let mut unsent = Vec::new();
        codec.pay(&mut unsent);
        if unsent.is_empty() {
            return Ok(());
        }
        let channel = &mut self.channel;
        let sealed = self.outbox.put(|out| channel.seal(&unsent, out));
        self.paid = self.outbox.end();
        sealed
    }

    /// The socket took `count` bytes of the outbox.
    pub(super) fn wrote(&mut self, count: usize) {
        self.outbox.wrote(count);
        // The next read or write will find a broken channel.
        let _ = self.pay();
    }

    /// The peer closed its side of TCP.
    pub(super) fn ended(&mut self, report: &mut dyn FnMut(Happening)) {
        self.handle_stream_end(self.channel.end_of_tcp(), report);
    }

    /// The peer sends no more: completes, or cuts off, the reply in progress.
    fn handle_stream_end(&mut self, end: StreamEnd, report: &mut dyn FnMut(Happening)) {
        let under = self.codec.as_mut().map(|codec| codec.end(end));
        let has_partial_reply = !self.inbox.is_empty();
        let connection_end = match (under, end) {
            (Some(PartialReply::Whole(replied)), _) => {
                report(Happening::Reply {
                    replied,
                    ends_the_batch: true,
                });
                ConnectionEnd::new("the peer closed the connection", Some(Answer::Closed))
            }
            (Some(PartialReply::Part), StreamEnd::Truncated) => ConnectionEnd::new(
                "the peer cut the connection in the middle of a reply, without ending TLS (no close_notify)",
                Some(Answer::Truncated),
            ),
            (Some(PartialReply::Part), StreamEnd::Closed) => ConnectionEnd::new(
                "the peer closed the connection in the middle of a reply",
                Some(Answer::Truncated),
            ),
            _ if has_partial_reply => ConnectionEnd::new(
                "the peer closed the connection in the middle of a reply",
                Some(Answer::Truncated),
            ),
            _ => ConnectionEnd::new(self.closed_in_phase(), Some(Answer::Closed)),
        };
        report(Happening::Closed(connection_end));
    }

    const fn closed_in_phase(&self) -> &'static str {
        match self.phase {
            Phase::Dialling | Phase::Securing => {
                "the peer closed the connection during the TLS handshake"
            }
            Phase::Opening => {
                "the peer closed the connection before the protocol's opening was done"
            }
            Phase::Ready | Phase::Leaving => "the peer closed the connection",
        }
    }

    /// Whether a waiting message may be sent on another connection: an earlier reply came on this one, none
    /// has begun since, and the peer is gone. Then the peer closed an idle connection while the request was
    /// in flight (RFC 9110, 9.2.2; RFC 9112, 9.3.1).
    pub(super) fn was_idle_when_closed(&self, end: &ConnectionEnd) -> bool {
        self.has_replied && matches!(end.answer, Some(Answer::Closed | Answer::Reset))
    }

    /// Bytes to write before the socket is closed. Empty if they would land in the middle of a message.
    pub(super) fn close_message(&mut self) -> Vec<u8> {
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        if self.phase != Phase::Ready || self.outbox.len() > 0 {
            return out;
        }
        if let Some(codec) = &mut self.codec {
            codec.encode_close_message(&mut plain);
        }
        let sealed = self.channel.seal(&plain, &mut out);
        match sealed.and_then(|()| self.channel.close(&mut out)) {
            Ok(()) => out,
            // A channel that is already broken has no last bytes.
            Err(_) => Vec::new(),
        }
    }

    /// Whether the connection can carry another request after the last reply.
    pub(super) fn can_go_on(&self) -> bool {
        self.codec.as_ref().is_some_and(|codec| codec.can_go_on())
    }

    /// Whether it waits for nothing and can take a request.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Ready
            && self.awaiting.is_empty()
            && self.pending.is_none()
            && self.outbox.len() == 0
    }
}

/// The end of a connection whose channel cannot be used any more.
fn broken(error: &ChannelError) -> ConnectionEnd {
    ConnectionEnd::new(error.to_string(), Some(Answer::TlsFailed))
}
