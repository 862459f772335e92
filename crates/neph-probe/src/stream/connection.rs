//! One connection: dialled, secured, opened, in use, over. Sans-IO.

use std::collections::VecDeque;

use neph_model::{Instant, Own, Seq, SynAnswer};

use crate::channel::Channel;
use crate::codec::{Arrival, Codec, Opening, Step};
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
    /// Protocol bytes that were received and not yet read.
    inbox: Vec<u8>,
    /// A request before it is sealed; kept so that nothing is allocated for it.
    plain: Vec<u8>,
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
        seq: Option<u64>,
        marks: Option<neph_wire::marks::PeerMarks>,
        ends_the_batch: bool,
    },
    Closed(String),
    Refused(String),
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
            inbox: Vec::new(),
            plain: Vec::new(),
        }
    }

    /// The TCP handshake is done.
    pub(super) fn connected(&mut self, tell: &mut dyn FnMut(Happening)) {
        tell(Happening::Connected);
        self.phase = Phase::Securing;
        let channel = &mut self.channel;
        if let Err(error) = self.outbox.put(|out| channel.speak(out)) {
            return tell(Happening::Closed(error.to_string()));
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
                return tell(Happening::Closed(error.to_string()));
            }
            if opening == Opening::Ready {
                self.phase = Phase::Ready;
                tell(Happening::Ready);
            }
        }
    }

    /// Puts request `seq` into the outbox, held back until released.
    pub(super) fn hold(&mut self, seq: Seq) -> Result<(), String> {
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
        written.map_err(|error| error.to_string())
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
            return tell(Happening::Closed(error.to_string()));
        }
        self.advance(tell);
        self.read(tell);
    }

    fn read(&mut self, tell: &mut dyn FnMut(Happening)) {
        let Some(codec) = &mut self.codec else { return };
        let mut answer = Vec::new();
        let mut taken = 0;
        let fault = loop {
            match codec.step(&mut self.inbox[taken..], &mut answer) {
                Err(error) => break Some(Happening::Closed(error)),
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
                        Arrival::Reply { seq, marks } => {
                            let ends_the_batch =
                                taken == self.inbox.len() && self.channel.ends_whole();
                            tell(Happening::Reply {
                                seq,
                                marks,
                                ends_the_batch,
                            });
                        }
                        Arrival::Closed(why) => break Some(Happening::Closed(why)),
                        Arrival::Refused(why) => break Some(Happening::Refused(why)),
                    }
                }
            }
        };
        self.inbox.drain(..taken);
        let channel = &mut self.channel;
        let sealed = if answer.is_empty() {
            Ok(())
        } else {
            self.outbox.put(|out| channel.seal(&answer, out))
        };
        match (fault, sealed) {
            (Some(fault), _) => tell(fault),
            (None, Err(error)) => tell(Happening::Closed(error.to_string())),
            (None, Ok(())) => {}
        }
    }

    /// The peer closed its side.
    pub(super) fn ended(&mut self, tell: &mut dyn FnMut(Happening)) {
        if let Some(Arrival::Reply { seq, marks }) = self.codec.as_mut().and_then(|c| c.end()) {
            tell(Happening::Reply {
                seq,
                marks,
                ends_the_batch: true,
            });
        }
        tell(Happening::Closed(
            "the peer closed the connection".to_owned(),
        ));
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
