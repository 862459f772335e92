//! One connection: dialled, secured, opened, in use, over. Sans-IO.

use std::collections::VecDeque;

use neph_model::{Answer, Instant, Own, Seq, SynAnswer};

use crate::channel::{Channel, ChannelError, StreamEnd};
use crate::codec::{Arrival, Codec, Opening, Parting, Replied, Step, Under};
use crate::outbox::Outbox;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The TCP handshake is under way.
    Dialling,
    /// The TLS handshake is under way.
    Securing,
    /// The protocol's own opening is under way.
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
    /// Since when it has been in the making; once ready, when its latest message went.
    pub(super) since: Instant<Own>,
    /// The message that waits for it to be ready.
    pub(super) pending: Option<Seq>,
    /// What its SYN is answered with, where that is all that is asked.
    pub(super) said: SynAnswer,
    /// Messages written and not answered, oldest first.
    pub(super) awaiting: VecDeque<Seq>,
    pub(super) outbox: Outbox,
    channel: Channel,
    /// `None` where the connection attempt is all there is to measure.
    codec: Option<Box<dyn Codec>>,
    /// A reply was read from it.
    has_replied: bool,
    /// Protocol bytes that were received and not yet read.
    inbox: Vec<u8>,
    /// A request before it is sealed; kept so that nothing is allocated for it.
    plain: Vec<u8>,
    /// Where the last answer that the codec gave by itself ends in the outbox.
    paid: u64,
}

/// What came of bytes or of a connection's progress.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Connected,
    /// A handshake above TCP is done; another may follow.
    Opened,
    Ready,
    /// A reply, and whether its last byte was the last one received: only then is the kernel's
    /// receive stamp its own.
    Reply {
        replied: Replied,
        ends_the_batch: bool,
    },
    Closed(Parting),
    Refused(Parting),
}

impl Connection {
    pub(super) fn new(channel: Channel, codec: Option<Box<dyn Codec>>, now: Instant<Own>) -> Self {
        Self {
            phase: Phase::Dialling,
            since: now,
            pending: None,
            said: SynAnswer::SynAck,
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
    pub(super) fn connected(&mut self, tell: &mut dyn FnMut(Happening)) {
        tell(Happening::Connected);
        self.phase = Phase::Securing;
        let channel = &mut self.channel;
        if let Err(error) = self.outbox.put(|out| channel.speak(out)) {
            return tell(Happening::Closed(broken(&error)));
        }
        self.advance(tell);
    }

    /// Moves on from a handshake that is done.
    fn advance(&mut self, tell: &mut dyn FnMut(Happening)) {
        if self.phase == Phase::Securing && self.channel.is_ready() {
            if matches!(self.channel, Channel::Tls(_)) {
                tell(Happening::Opened);
            }
            self.phase = Phase::Opening;
            let Some(codec) = &mut self.codec else {
                self.phase = Phase::Ready;
                return tell(Happening::Ready);
            };
            let mut hello = Vec::new();
            let opening = codec.open(&mut hello);
            let channel = &mut self.channel;
            if let Err(error) = self.outbox.put(|out| channel.seal(&hello, out)) {
                return tell(Happening::Closed(broken(&error)));
            }
            if opening == Opening::Ready {
                self.phase = Phase::Ready;
                tell(Happening::Ready);
            }
        }
    }

    /// Puts request `seq` into the outbox, held back until released.
    pub(super) fn hold(&mut self, seq: Seq) -> Result<(), Parting> {
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

    /// Lets message `seq` go, which was held.
    pub(super) fn release(&mut self, seq: Seq, now: Instant<Own>) {
        self.outbox.release();
        self.awaiting.push_back(seq);
        self.since = now;
    }

    /// Takes a message off those that wait for their reply: the one with this number, or the
    /// oldest where replies have no number.
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

    /// Bytes came.
    pub(super) fn received(&mut self, bytes: &[u8], tell: &mut dyn FnMut(Happening)) {
        let (channel, inbox) = (&mut self.channel, &mut self.inbox);
        if let Err(error) = self.outbox.put(|out| channel.open(bytes, inbox, out)) {
            return tell(Happening::Closed(broken(&error)));
        }
        self.advance(tell);
        self.read(tell);
        if self.channel.has_ended() {
            self.over(StreamEnd::Closed, tell);
        }
    }

    fn read(&mut self, tell: &mut dyn FnMut(Happening)) {
        let Some(codec) = &mut self.codec else { return };
        let mut taken = 0;
        let fault = loop {
            match codec.step(&mut self.inbox[taken..]) {
                Err(error) => break Some(Happening::Closed(Parting::new(error, None))),
                Ok(Step::More) => break None,
                Ok(Step::Took(count, arrival)) => {
                    taken += count;
                    match arrival {
                        Arrival::Nothing if count == 0 => break None,
                        Arrival::Nothing => {}
                        Arrival::Opened => {
                            self.phase = Phase::Ready;
                            tell(Happening::Opened);
                            tell(Happening::Ready);
                        }
                        Arrival::Reply(replied) => {
                            self.has_replied = true;
                            let ends_the_batch =
                                taken == self.inbox.len() && self.channel.ends_whole();
                            tell(Happening::Reply {
                                replied,
                                ends_the_batch,
                            });
                        }
                        Arrival::Closed(parting) => break Some(Happening::Closed(parting)),
                        Arrival::Refused(parting) => break Some(Happening::Refused(parting)),
                    }
                }
            }
        };
        self.inbox.drain(..taken);
        let paid = self.pay();
        match (fault, paid) {
            (Some(fault), _) => tell(fault),
            (None, Err(error)) => tell(Happening::Closed(broken(&error))),
            (None, Ok(())) => {}
        }
    }

    /// Puts what the codec owes the peer into the outbox, if what it owed before has been written.
    fn pay(&mut self) -> Result<(), ChannelError> {
        let Some(codec) = &mut self.codec else {
            return Ok(());
        };
        if self.outbox.written() < self.paid {
            return Ok(());
        }
        let mut owed = Vec::new();
        codec.pay(&mut owed);
        if owed.is_empty() {
            return Ok(());
        }
        let channel = &mut self.channel;
        let sealed = self.outbox.put(|out| channel.seal(&owed, out));
        self.paid = self.outbox.end();
        sealed
    }

    /// The socket took `count` bytes of the outbox.
    pub(super) fn wrote(&mut self, count: usize) {
        self.outbox.wrote(count);
        // A channel that is broken is found so by what is read or written next.
        let _ = self.pay();
    }

    /// The peer closed its side of TCP.
    pub(super) fn ended(&mut self, tell: &mut dyn FnMut(Happening)) {
        self.over(self.channel.end_of_tcp(), tell);
    }

    /// Nothing more comes from the peer: completes, or cuts off, the reply under way.
    fn over(&mut self, end: StreamEnd, tell: &mut dyn FnMut(Happening)) {
        let under = self.codec.as_mut().map(|codec| codec.end(end));
        let begun = !self.inbox.is_empty();
        let parting = match (under, end) {
            (Some(Under::Whole(replied)), _) => {
                tell(Happening::Reply {
                    replied,
                    ends_the_batch: true,
                });
                Parting::new("the peer closed the connection", Some(Answer::Closed))
            }
            (Some(Under::Part), StreamEnd::Cut) => Parting::new(
                "the peer cut the connection in the middle of a reply, without ending TLS (no close_notify)",
                Some(Answer::Truncated),
            ),
            (Some(Under::Part), StreamEnd::Closed) => Parting::new(
                "the peer closed the connection in the middle of a reply",
                Some(Answer::Truncated),
            ),
            _ if begun => Parting::new(
                "the peer closed the connection in the middle of a reply",
                Some(Answer::Truncated),
            ),
            _ => Parting::new(self.closed_in_phase(), Some(Answer::Closed)),
        };
        tell(Happening::Closed(parting));
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

    /// Whether a message that waits for its reply may be sent again on another connection: an
    /// earlier reply came on this one, none has begun since, and the peer is gone. Then the peer
    /// closed an idle connection while the request was on its way (RFC 9110, 9.2.2; RFC 9112, 9.3.1).
    pub(super) fn was_idle_when_closed(&self, parting: &Parting) -> bool {
        self.has_replied && matches!(parting.answer, Some(Answer::Closed | Answer::Reset))
    }

    /// What is to be written before the socket is closed; nothing where that would land in the
    /// middle of a message.
    pub(super) fn last_words(&mut self) -> Vec<u8> {
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        if self.phase != Phase::Ready || self.outbox.len() > 0 {
            return out;
        }
        if let Some(codec) = &mut self.codec {
            codec.farewell(&mut plain);
        }
        let sealed = self.channel.seal(&plain, &mut out);
        match sealed.and_then(|()| self.channel.close(&mut out)) {
            Ok(()) => out,
            // A channel that is broken already has nothing to say.
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

/// A channel that is of no use any more.
fn broken(error: &ChannelError) -> Parting {
    Parting::new(error.to_string(), Some(Answer::TlsFailed))
}
