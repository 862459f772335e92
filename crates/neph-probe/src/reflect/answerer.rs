//! One connection's server side, without input or output: bytes in, replies into an outbox.
//!
//! The first bytes decide the protocol: a TLS record, an HTTP method, or the hello of the neph framing.

mod bulk;
mod framed;
mod http;
mod memory;
mod protocol;
mod recognise;
mod reply_context;
mod websocket;

use std::sync::Arc;

use neph_model::{Instant, Local, ReflectorCaps, Span};
use neph_wire::marks::{PeerMarks, PreviousTx};
use rustls::ServerConfig;

pub(crate) use reply_context::Shares;

use super::counters::Counted;
use super::reply_timestamps::{Arrived, build_reply_timestamps};
use super::room::{MemoryGuard, OWN};
use crate::channel::Channel;
use crate::outbox::Outbox;
use crate::tls;
use memory::Unfinished;
use protocol::Protocol;
use reply_context::ReplyContext;

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// Most bytes of replies built ahead of what the peer reads: many small requests must not become as many
/// large replies in memory. It is half of the connection's own part, so a reply of this size is always
/// possible.
const MAX_UNREAD: usize = OWN / 2;
/// Room that is kept for the next message. More is freed.
const MAX_SPARE_CAPACITY: usize = 1 << 20;
/// Time, and how to wait: real for a socket, virtual for a simulation.
pub(crate) trait Times {
    fn now(&mut self) -> Instant<Local>;
    /// Wall clock minus monotonic clock, in nanoseconds.
    fn wall_offset(&mut self) -> i64;
    /// Waits as the imitated server application would.
    fn think(&mut self, span: Span);
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// Refused, for a counted reason. The outbox has the message for the peer.
    Refused(Counted),
    /// The peer requested it; no error.
    Done,
}

/// The server side of a connection.
#[derive(Debug)]
pub(crate) struct Answerer {
    context: ReplyContext,
    protocol: Protocol,
    channel: Option<Channel>,
    tls: Option<Arc<ServerConfig>>,
    /// Protocol bytes that were received and not yet read.
    inbox: Vec<u8>,
    /// Requests wait in the inbox until replies have been written.
    backlogged: bool,
    /// Memory for incomplete requests.
    memory: MemoryGuard,
    unfinished: Option<Unfinished>,
}

impl Answerer {
    pub(crate) fn new(
        caps: ReflectorCaps,
        think: Span,
        tls: Option<Arc<ServerConfig>>,
        shares: Shares,
    ) -> Self {
        let memory = shares.memory_guard();
        Self {
            context: ReplyContext::new(caps, think, shares),
            protocol: Protocol::Unknown,
            channel: None,
            tls,
            inbox: Vec::new(),
            backlogged: false,
            memory,
            unfinished: None,
        }
    }

    /// The bytes to write.
    pub(crate) const fn outbox(&mut self) -> &mut Outbox {
        &mut self.context.outbox
    }

    /// How many messages were answered.
    pub(crate) const fn replies(&self) -> u64 {
        self.context.replies
    }

    /// Whether a protocol has been opened: the handshake's time limit no longer applies.
    pub(crate) const fn is_open(&self) -> bool {
        self.protocol.is_open()
    }

    /// Records the kernel's send timestamp of the reply that ends at this offset.
    pub(crate) fn sent(&mut self, id: u32, at: Instant<Local>) {
        if let Some(seq) = self.context.outbox.message_at(id) {
            self.context.keep_tx_timestamp(PreviousTx {
                seq: seq.0,
                nic_tx: at.nanos(),
            });
            self.context.outbox.acknowledged(id);
        }
    }

    /// Processes received bytes. `arrived` has their times; its kernel timestamp belongs to the last byte.
    pub(crate) fn received(
        &mut self,
        bytes: &[u8],
        arrived: Arrived,
        times: &mut dyn Times,
    ) -> Result<(), CloseReason> {
        self.choose_channel(bytes)?;
        if self.make_room(bytes.len()).is_err() {
            let end = self.refuse_memory();
            self.seal()?;
            return Err(end);
        }
        let Some(channel) = &mut self.channel else {
            return Ok(());
        };
        let inbox = &mut self.inbox;
        self.context
            .outbox
            .put(|out| channel.open(bytes, inbox, out))
            .map_err(|_| CloseReason::Refused(Counted::RefusedTls))?;
        self.resume(arrived, times)
    }

    /// Everything in the outbox was written.
    pub(crate) fn release_spare_capacity(&mut self) {
        self.context.release_spare_capacity();
    }

    /// Nothing more is read or written; only timestamps may still come.
    pub(crate) fn release_memory(&mut self) {
        self.protocol = Protocol::Unknown;
        self.inbox = Vec::new();
        self.memory.give_back();
        self.context.release_memory();
    }

    /// Whether requests wait because too much is unwritten.
    pub(crate) const fn is_backlogged(&self) -> bool {
        self.backlogged
    }

    /// Continues with the bytes that [`Self::received`] did not read.
    pub(crate) fn resume(
        &mut self,
        arrived: Arrived,
        times: &mut dyn Times,
    ) -> Result<(), CloseReason> {
        self.context.at = arrived.app_rx;
        self.backlogged = false;
        let end = self.read(arrived, times).and_then(|()| self.settle(times));
        self.seal()?;
        end
    }

    fn choose_channel(&mut self, bytes: &[u8]) -> Result<(), CloseReason> {
        if self.channel.is_some() || bytes.is_empty() {
            return Ok(());
        }
        self.context.is_sealed = bytes[0] == TLS_HANDSHAKE;
        self.channel = Some(match (bytes[0], &self.tls) {
            (TLS_HANDSHAKE, Some(config)) => tls::server(config)
                .map(Channel::tls)
                .map_err(|_| CloseReason::Refused(Counted::RefusedTls))?,
            (TLS_HANDSHAKE, None) => return Err(CloseReason::Refused(Counted::RefusedTls)),
            _ => Channel::Plain,
        });
        Ok(())
    }

    /// Reads messages until the inbox ends inside one.
    fn read(&mut self, arrived: Arrived, times: &mut dyn Times) -> Result<(), CloseReason> {
        let mut taken = 0;
        let end = loop {
            if self.context.outbox.len() + self.context.plain.len() >= MAX_UNREAD {
                self.backlogged = true;
                break Ok(());
            }
            let input = &mut self.inbox[taken..];
            let step = match &mut self.protocol {
                Protocol::Unknown => match recognise::recognise(input) {
                    None => break Ok(()),
                    Some(Err(end)) => break Err(end),
                    Some(Ok(protocol)) => {
                        self.protocol = protocol;
                        continue;
                    }
                },
                Protocol::Http(http) => http.step(input, &mut self.context),
                Protocol::WebSocket(ws) => {
                    let copied = ws.copied_len(input);
                    let buffered = (ws.capacity() + copied + self.inbox.capacity()) as u64;
                    if copied > 0 && !self.memory.hold(buffered) {
                        break Err(self.refuse_memory());
                    }
                    ws.step(&mut self.inbox[taken..], &mut self.context)
                }
                Protocol::Framed(framed) => framed.step(input, &mut self.context),
            };
            match step {
                Err(end) => break Err(end),
                Ok(Step::More) => break Ok(()),
                Ok(Step::Consumed(count)) => taken += count,
                Ok(Step::Upgraded(count)) => {
                    taken += count;
                    let Protocol::Http(http) = &self.protocol else {
                        continue;
                    };
                    let reply_size = http.reply_size();
                    self.protocol = Protocol::WebSocket(websocket::WebSocket::new(
                        reply_size,
                        self.context.caps,
                    ));
                }
                Ok(Step::Request(request)) => {
                    let is_complete = self.channel.as_ref().is_some_and(Channel::is_at_record_end);
                    let last = is_complete && taken + request.taken == self.inbox.len();
                    taken += request.taken;
                    if let Err(end) = self.reply(&request, arrived, last, times) {
                        break Err(end);
                    }
                }
            }
        };
        self.inbox.drain(..taken);
        if taken > 0 {
            // Also if the next message has begun: a large one must leave no room allocated.
            self.inbox.shrink_to(MAX_SPARE_CAPACITY);
        }
        end
    }

    fn reply(
        &mut self,
        request: &StreamRequest,
        mut arrived: Arrived,
        last: bool,
        times: &mut dyn Times,
    ) -> Result<(), CloseReason> {
        if !last {
            arrived.rx = None;
        }
        self.context.messages += 1;
        if let Err(counted) = self.context.reserve_reply(request.reply_size) {
            self.protocol.refuse(counted, &mut self.context);
            return Err(CloseReason::Refused(counted));
        }
        if self.context.think > Span::ZERO {
            times.think(self.context.think);
        }
        let app_tx = times.now();
        let timestamps = build_reply_timestamps(
            arrived,
            app_tx,
            times.wall_offset(),
            self.context.take_tx_timestamp(),
        );
        let end = match &mut self.protocol {
            Protocol::Http(http) => http.reply(request, &timestamps, &mut self.context),
            Protocol::WebSocket(_) => {
                websocket::reply(request, &timestamps, &mut self.context);
                Ok(())
            }
            Protocol::Framed(_) => {
                framed::reply(request, &timestamps, &mut self.context);
                Ok(())
            }
            Protocol::Unknown => Ok(()),
        };
        self.context.replies += 1;
        self.seal()?;
        end
    }

    /// Moves plain bytes into the outbox, through the channel.
    fn seal(&mut self) -> Result<(), CloseReason> {
        let Some(channel) = &mut self.channel else {
            return Ok(());
        };
        let ReplyContext {
            plain,
            outbox,
            reply,
            ..
        } = &mut self.context;
        if plain.is_empty() {
            return Ok(());
        }
        let sealed = match reply.take() {
            Some(seq) => outbox.hold(seq, |out| channel.move_into(plain, out)),
            None => outbox.put(|out| channel.move_into(plain, out)),
        };
        outbox.release();
        self.context.sealed();
        sealed.map_err(|_| CloseReason::Refused(Counted::RefusedTls))
    }
}

/// Result of one step of reading.
#[derive(Debug)]
enum Step {
    /// The available bytes are incomplete.
    More,
    /// An element without a reply.
    Consumed(usize),
    /// The connection uses WebSocket from here on.
    Upgraded(usize),
    /// A request.
    Request(StreamRequest),
}

/// A request.
#[derive(Clone, Copy, Debug)]
struct StreamRequest {
    taken: usize,
    seq: u64,
    reply_size: usize,
}

/// For replies: the timestamps go where the protocol has room for them.
type ReplyTimestamps = PeerMarks;

#[cfg(test)]
mod tests;
