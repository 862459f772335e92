//! One connection's answering half, without input or output: bytes in, replies into an outbox.
//!
//! The first bytes decide the protocol: a TLS record, an HTTP method, or our own hello.

mod framed;
mod http;
mod recognise;
mod websocket;

use std::sync::Arc;

use neph_model::{Instant, Own, Seq, Span};
use neph_wire::http::FlowToken;
use neph_wire::marks::{PeerMarks, PreviousTx};
use rustls::ServerConfig;

use super::budget::Budget;
use super::bulk_turn::BulkGate;
use super::caps::Caps;
use super::counters::Counted;
use super::departures::Departures;
use super::marks::{Arrived, marks};
use super::unread::{Held, Unread};
use crate::channel::Channel;
use crate::outbox::Outbox;
use crate::tls;

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// Replies are built ahead of what the peer reads up to here: many small requests at once must
/// not become as many large replies in memory.
const MAX_UNREAD: usize = 1 << 20;
/// Room that is kept for the next message; beyond, it is given back.
const KEPT: usize = 1 << 20;

/// What time it is, and how to wait: real for a socket, virtual for a simulation.
pub(crate) trait Times {
    fn now(&mut self) -> Instant<Own>;
    /// Wall clock minus monotonic clock, nanoseconds.
    fn wall_offset(&mut self) -> i64;
    /// Waits as the program that is being imitated would.
    fn think(&mut self, span: Span);
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Refused, for a counted reason. What is in the outbox tells the peer.
    Refused(Counted),
    /// The peer asked for it, and nothing is wrong.
    Done,
}

/// What a connection is for, once it is known.
#[derive(Debug)]
enum Protocol {
    /// Too few bytes yet.
    Unknown,
    Http(http::Http),
    WebSocket(websocket::WebSocket),
    Framed(framed::Framed),
}

/// The answering half.
#[derive(Debug)]
pub(crate) struct Answerer {
    line: Line,
    protocol: Protocol,
    channel: Option<Channel>,
    tls: Option<Arc<ServerConfig>>,
    /// Protocol bytes that were received and not yet read.
    inbox: Vec<u8>,
    /// Requests wait in the inbox until replies have been written.
    backlogged: bool,
}

/// A connection's part of what all connections share.
#[derive(Debug)]
pub(crate) struct Shares {
    /// Its peer address's budget.
    pub(crate) budget: Arc<Budget>,
    /// The right to a bulk transfer.
    pub(crate) bulk: Arc<BulkGate>,
    /// Room for replies that were not read yet.
    pub(crate) held: Held,
    /// Send stamps for flows that take several connections.
    pub(crate) departures: Arc<Departures>,
}

impl Shares {
    /// Those of a connection that shares nothing but its peer's budget.
    pub(crate) fn alone(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            bulk: Arc::default(),
            held: Unread::new().part(),
            departures: Arc::default(),
        }
    }
}

/// What every protocol needs to write a reply.
#[derive(Debug)]
struct Line {
    caps: Caps,
    think: Span,
    budget: Arc<Budget>,
    bulk: Arc<BulkGate>,
    held: Held,
    departures: Arc<Departures>,
    /// Whose requests these are, where the client says that it takes several connections.
    flow: Option<FlowToken>,
    /// When the bytes that are being read had come.
    at: Instant<Own>,
    outbox: Outbox,
    /// The send stamp of the latest reply that has one.
    previous: Option<PreviousTx>,
    /// Replies wait here until the channel has sealed them.
    plain: Vec<u8>,
    /// The reply that `plain` ends with, if it ends with one.
    reply: Option<Seq>,
    replies: u64,
}

impl Answerer {
    pub(crate) fn new(
        caps: Caps,
        think: Span,
        tls: Option<Arc<ServerConfig>>,
        shares: Shares,
    ) -> Self {
        let line = Line {
            caps,
            think,
            budget: shares.budget,
            bulk: shares.bulk,
            held: shares.held,
            departures: shares.departures,
            flow: None,
            at: Instant::from_nanos(0),
            outbox: Outbox::default(),
            previous: None,
            plain: Vec::new(),
            reply: None,
            replies: 0,
        };
        Self {
            line,
            protocol: Protocol::Unknown,
            channel: None,
            tls,
            inbox: Vec::new(),
            backlogged: false,
        }
    }

    /// What may be written.
    pub(crate) const fn outbox(&mut self) -> &mut Outbox {
        &mut self.line.outbox
    }

    /// How many messages were answered.
    pub(crate) const fn replies(&self) -> u64 {
        self.line.replies
    }

    /// Whether a protocol has been opened: the handshake's time limit no longer applies.
    pub(crate) const fn is_open(&self) -> bool {
        match &self.protocol {
            Protocol::Unknown => false,
            Protocol::Http(http) => http.is_open(),
            Protocol::WebSocket(_) => true,
            Protocol::Framed(framed) => framed.is_open(),
        }
    }

    /// What is to be sunk from the socket without being looked at, and for how long.
    pub(crate) const fn bulk(&self) -> Option<Span> {
        match &self.protocol {
            Protocol::Framed(framed) => framed.bulk(),
            _ => None,
        }
    }

    /// The kernel stamped the reply that ends at this offset when it left.
    pub(crate) fn sent(&mut self, id: u32, at: Instant<Own>) {
        if let Some(seq) = self.line.outbox.message_at(id) {
            self.line.departed(PreviousTx {
                seq: seq.0,
                nic_tx: at.nanos(),
            });
            self.line.outbox.acknowledged(id);
        }
    }

    /// Bytes came. `arrived` tells when; its kernel stamp belongs to the last byte.
    pub(crate) fn received(
        &mut self,
        bytes: &[u8],
        arrived: Arrived,
        times: &mut dyn Times,
    ) -> Result<(), End> {
        self.choose_channel(bytes)?;
        let Some(channel) = &mut self.channel else {
            return Ok(());
        };
        let inbox = &mut self.inbox;
        self.line
            .outbox
            .put(|out| channel.open(bytes, inbox, out))
            .map_err(|_| End::Refused(Counted::RefusedTls))?;
        self.resume(arrived, times)
    }

    /// Everything in the outbox was written.
    pub(crate) fn written(&mut self) {
        self.line.held.give_back();
    }

    /// Whether requests were left alone because too much was waiting to be written.
    pub(crate) const fn is_backlogged(&self) -> bool {
        self.backlogged
    }

    /// Goes on with what [`Self::received`] left alone.
    pub(crate) fn resume(&mut self, arrived: Arrived, times: &mut dyn Times) -> Result<(), End> {
        self.line.at = arrived.app_rx;
        self.backlogged = false;
        let end = self.read(arrived, times);
        self.seal()?;
        end
    }

    fn choose_channel(&mut self, bytes: &[u8]) -> Result<(), End> {
        if self.channel.is_some() || bytes.is_empty() {
            return Ok(());
        }
        self.channel = Some(match (bytes[0], &self.tls) {
            (TLS_HANDSHAKE, Some(config)) => tls::server(config)
                .map(Channel::tls)
                .map_err(|_| End::Refused(Counted::RefusedTls))?,
            (TLS_HANDSHAKE, None) => return Err(End::Refused(Counted::RefusedTls)),
            _ => Channel::Plain,
        });
        Ok(())
    }

    /// Reads messages until the inbox ends inside one.
    fn read(&mut self, arrived: Arrived, times: &mut dyn Times) -> Result<(), End> {
        let mut taken = 0;
        let end = loop {
            if self.line.outbox.len() + self.line.plain.len() >= MAX_UNREAD {
                self.backlogged = true;
                break Ok(());
            }
            let input = &mut self.inbox[taken..];
            let whole = input.len();
            let step = match &mut self.protocol {
                Protocol::Unknown => match recognise::recognise(input) {
                    None => break Ok(()),
                    Some(Err(end)) => break Err(end),
                    Some(Ok(protocol)) => {
                        self.protocol = protocol;
                        continue;
                    }
                },
                Protocol::Http(http) => http.step(input, &mut self.line),
                Protocol::WebSocket(ws) => ws.step(input, &mut self.line),
                Protocol::Framed(framed) => framed.step(input, &mut self.line),
            };
            match step {
                Err(end) => break Err(end),
                Ok(Step::More) => break Ok(()),
                Ok(Step::Took(count)) => taken += count,
                Ok(Step::Upgraded(count)) => {
                    taken += count;
                    let Protocol::Http(http) = &self.protocol else {
                        continue;
                    };
                    let reply_size = http.reply_size();
                    self.protocol =
                        Protocol::WebSocket(websocket::WebSocket::new(reply_size, self.line.caps));
                }
                Ok(Step::Asked(asked)) => {
                    let last = taken + asked.taken == self.inbox.len() && asked.taken <= whole;
                    taken += asked.taken;
                    if let Err(end) = self.reply(&asked, arrived, last, times) {
                        break Err(end);
                    }
                }
            }
        };
        self.inbox.drain(..taken);
        if self.inbox.is_empty() {
            self.inbox.shrink_to(KEPT);
        }
        end
    }

    fn reply(
        &mut self,
        asked: &Asked,
        mut arrived: Arrived,
        last: bool,
        times: &mut dyn Times,
    ) -> Result<(), End> {
        if !last {
            arrived.rx = None;
        }
        let size = asked.reply_size as u64;
        let refusal = if !self.line.budget.spend(size, arrived.app_rx) {
            Some(Counted::RefusedRate)
        } else if !self.line.held.take(size) {
            Some(Counted::RefusedMemory)
        } else {
            None
        };
        if let Some(counted) = refusal {
            self.protocol.refuse_rate(&mut self.line);
            return Err(End::Refused(counted));
        }
        if self.line.think > Span::ZERO {
            times.think(self.line.think);
        }
        let app_tx = times.now();
        let marks = marks(
            arrived,
            app_tx,
            times.wall_offset(),
            self.line.take_departed(),
        );
        let end = match &mut self.protocol {
            Protocol::Http(http) => http.reply(asked, &marks, &mut self.line),
            Protocol::WebSocket(_) => {
                websocket::reply(asked, &marks, &mut self.line);
                Ok(())
            }
            Protocol::Framed(_) => {
                framed::reply(asked, &marks, &mut self.line);
                Ok(())
            }
            Protocol::Unknown => Ok(()),
        };
        self.line.replies += 1;
        self.seal()?;
        end
    }

    /// Moves what was written in plain into the outbox, through the channel.
    fn seal(&mut self) -> Result<(), End> {
        let Some(channel) = &mut self.channel else {
            return Ok(());
        };
        let Line {
            plain,
            outbox,
            reply,
            ..
        } = &mut self.line;
        if plain.is_empty() {
            return Ok(());
        }
        let sealed = match reply.take() {
            Some(seq) => outbox.hold(seq, |out| channel.seal(plain, out)),
            None => outbox.put(|out| channel.seal(plain, out)),
        };
        outbox.release();
        plain.clear();
        plain.shrink_to(KEPT);
        sealed.map_err(|_| End::Refused(Counted::RefusedTls))
    }
}

impl Line {
    /// A reply left; a later one will tell.
    fn departed(&mut self, departed: PreviousTx) {
        match self.flow {
            Some(flow) => self.departures.put(flow, departed),
            None => self.previous = Some(departed),
        }
    }

    fn take_departed(&mut self) -> Option<PreviousTx> {
        match self.flow {
            Some(flow) => self.departures.take(flow),
            None => self.previous.take(),
        }
    }
}

/// What one step of reading brought.
#[derive(Debug)]
enum Step {
    /// The bytes at hand end before anything is whole.
    More,
    /// Something that asks for no reply.
    Took(usize),
    /// The connection speaks WebSocket from here on.
    Upgraded(usize),
    /// A request.
    Asked(Asked),
}

/// A request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    taken: usize,
    seq: u64,
    reply_size: usize,
}

impl Protocol {
    /// Tells the peer that it asks too often.
    fn refuse_rate(&mut self, line: &mut Line) {
        match self {
            Self::Http(_) => http::refuse(429, line),
            Self::WebSocket(_) => websocket::refuse_rate(line),
            Self::Framed(_) | Self::Unknown => {}
        }
    }
}

/// For replies: the marks go where the protocol has room for them.
type Marks = PeerMarks;
