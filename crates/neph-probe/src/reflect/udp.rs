//! The STAMP Session-Reflector (RFC 8762), stateful, on one thread for all peers.
//!
//! A reply is exactly as long as its request, so the reflector cannot be used for amplification.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use neph_model::{Instant, Local, Span};
use neph_sys::clock;
use neph_sys::destination::{self, Stamping};
use neph_sys::pulse::Pulse;
use neph_sys::stamp::{self, Batch, Carrier, Family, Notice, Patience, Point, SendStamp};
use neph_wire::marks::PreviousTx;
use neph_wire::stamp::{Auth, Key, StampError, decode_request, reflect};

use super::ReflectorState;
use super::budget::Budget;
use super::caps::Division;
use super::counters::Counted;
use super::ports::Ports;
use super::reply_timestamps::Arrived;
use super::session::ReceivedDatagram;
use super::sessions::Sessions;
use crate::ProbeError;
use crate::numbered::AwaitedTimestamps;
use crate::secret::Secret;
use crate::stamp_clock::{StampClock, now};
use crate::synchrony::Synchrony;

/// Replies that wait for a departure timestamp: more than are answered in a row.
const MAX_PENDING_TIMESTAMPS: usize = 1024;
/// Requests and notices per call, at most.
const BATCH: usize = 32;
/// With this many requests at once there is no spare time: timestamps of their replies would take a seventh
/// of it. A departure timestamp is reported only to the peer's next request.
const DENSE_REQUESTS: usize = 5;
/// The largest datagram.
const MAX_DATAGRAM_BYTES: usize = 1 << 16;
/// Receive buffer: 300 ms of 100,000 requests per second on a veth pair, where each takes 768 bytes of twice
/// this. A busy host may not schedule the thread for 100 ms and more. Under overload it is better to lose
/// requests than to delay them for seconds.
const SOCKET_BUFFER_BYTES: i32 = 12 << 20;
/// How often the kernel's drop counter is read.
const DROP_COUNT_INTERVAL: Span = Span::from_millis(500);

#[derive(Debug)]
pub(super) struct Answerer {
    socket: UdpSocket,
    key: Option<Key>,
    ports: Ports,
    shared: Arc<ReflectorState>,
    clock: StampClock,
    synchrony: Synchrony,
    sessions: Sessions,
    /// Of the latest peer, which is usually the next one too.
    budget: Option<(IpAddr, Arc<Budget>)>,
    unstamped: AwaitedTimestamps<(SocketAddr, u64)>,
    notices: Batch,
    drops_asked: Instant<Local>,
    /// Datagrams that the kernel dropped so far at this socket.
    dropped: u64,
}

/// The two ends of a reply.
#[derive(Clone, Copy)]
struct ReplyEnds {
    /// The local address of the request.
    from: Option<IpAddr>,
    to: SocketAddr,
}

impl Answerer {
    pub(super) fn new(socket: UdpSocket, shared: Arc<ReflectorState>) -> Result<Self, ProbeError> {
        let key = shared.stamp_key.as_ref().map(Secret::key);
        let address = socket
            .local_addr()
            .map_err(|source| fault(&socket, source))?;
        let family = if address.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .and_then(|()| stamp::enable(socket.as_fd(), Carrier::Departures))
            .and_then(|()| stamp::enable_ttl(socket.as_fd(), family))
            .and_then(|()| destination::enable(socket.as_fd(), family))
            .and_then(|()| stamp::make_room(socket.as_fd(), SOCKET_BUFFER_BYTES))
            .map_err(|source| fault(&socket, source))?;
        Ok(Self {
            ports: Ports::new(address.port(), &shared.answered_ports),
            socket,
            key,
            sessions: Sessions::new(shared.caps.peers()),
            shared,
            clock: StampClock::new(),
            synchrony: Synchrony::new(now()),
            budget: None,
            unstamped: AwaitedTimestamps::new(MAX_PENDING_TIMESTAMPS),
            notices: Batch::new(BATCH, 0),
            drops_asked: now(),
            dropped: 0,
        })
    }

    pub(super) fn run(mut self, pulse: &Pulse) {
        let mut requests = Batch::new(BATCH, MAX_DATAGRAM_BYTES);
        let mut reply = Vec::with_capacity(MAX_DATAGRAM_BYTES);
        while !self.shared.stop.is_set() {
            // Errors are timeouts, or a closed port of a peer: both need no action.
            let count = requests.receive(self.socket.as_fd(), Patience::First);
            let app_rx = now();
            self.clock.refresh();
            let count = count.unwrap_or(0);
            self.shared.counters.add(Counted::Datagrams, count as u64);
            let stamping = stamping(count);
            for at in 0..count {
                let (bytes, received) = requests.datagram(at);
                let Some(from) = received.from else {
                    self.refuse(Counted::RefusedMalformed);
                    continue;
                };
                let rx = received
                    .stamp
                    .and_then(|stamp| self.clock.own_instant(stamp));
                let requested = ReceivedDatagram {
                    bytes,
                    ttl: received.ttl.unwrap_or(u8::MAX),
                    from,
                    arrived: Arrived { rx, app_rx },
                };
                match self.answer(&requested, &mut reply) {
                    Ok(seq) => {
                        let ends = ReplyEnds {
                            from: received.to,
                            to: from,
                        };
                        self.send(&reply, ends, stamping, seq);
                    }
                    Err(reason) => self.refuse(reason),
                }
            }
            // Here, where no reply waits for it.
            pulse.beat();
            self.read_notices();
            self.synchrony.refresh(app_rx);
            self.ask_drops(app_rx);
        }
        self.report_drops();
    }

    fn refuse(&self, reason: Counted) {
        self.shared.counters.count(reason);
        self.shared.counters.count(Counted::RefusedDatagrams);
    }

    /// Replaces `reply` by the answer. Returns the number of the request.
    fn answer(
        &mut self,
        requested: &ReceivedDatagram<'_>,
        reply: &mut Vec<u8>,
    ) -> Result<u64, Counted> {
        let arrived = requested.arrived;
        let auth = self.key.as_ref().map_or(Auth::Open, Auth::Keyed);
        if self.ports.may_answer(requested.from.port()) {
            return Err(Counted::RefusedPorts);
        }
        let request = decode_request(requested.bytes, auth).map_err(|error| match error {
            StampError::Tag | StampError::TlvTag => Counted::RefusedKey,
            StampError::Answer => Counted::RefusedAnswers,
            // Well formed, without the authentication that the key requires.
            _ if self.key.is_some() && decode_request(requested.bytes, Auth::Open).is_ok() => {
                Counted::RefusedKey
            }
            _ => Counted::RefusedMalformed,
        })?;
        // Only now: any packet with any source address costs a budget.
        let (peer, bytes) = (requested.from.ip(), requested.bytes.len() as u64);
        if !spend(&mut self.budget, &self.shared, peer, bytes, arrived.app_rx) {
            return Err(Counted::RefusedRate);
        }
        let seq = request.packet.seq;
        let session = self.sessions.of(requested.from, seq, arrived.app_rx);
        if !session.repeats.admit(seq, arrived.app_rx) {
            return Err(Counted::RefusedRepeats);
        }
        if self.shared.think > Span::ZERO {
            let until = arrived.app_rx + self.shared.think;
            clock::sleep_until(clock::RawNanos(until.nanos()), clock::Spin::NONE);
        }
        let app_tx = now();
        let error = self.synchrony.estimate();
        let answer = session.answer(requested, app_tx, self.clock.anchor(), error);
        session.record_request(seq);
        reply.clear();
        reflect(&request, &answer, auth, reply);
        Ok(u64::from(seq))
    }

    /// Replies from the address of the request: a peer accepts no other.
    fn send(&mut self, reply: &[u8], ends: ReplyEnds, stamping: Stamping, seq: u64) {
        let ReplyEnds { from, to } = ends;
        if destination::send(self.socket.as_fd(), reply, from, to, stamping).is_err() {
            self.shared.counters.count(Counted::UnsentDatagrams);
            // As on the client side: it is unknown whether the kernel counted it.
            self.read_notices();
            if stamp::restart_count(self.socket.as_fd(), Carrier::Departures).is_ok() {
                self.unstamped.restart();
            }
            return;
        }
        self.shared.counters.count(Counted::Replies);
        self.shared.counters.count(Counted::AnsweredDatagrams);
        if stamping == Stamping::AsAsked {
            self.unstamped.count((to, seq));
        }
    }

    fn read_notices(&mut self) {
        while let Ok(count) = self.notices.take_notices(self.socket.as_fd()) {
            for at in 0..count {
                if let Notice::Stamp(stamp) = self.notices.notice(at) {
                    self.record_tx_timestamp(&stamp);
                }
            }
            if count < BATCH {
                return;
            }
        }
    }

    fn record_tx_timestamp(&mut self, stamp: &SendStamp) {
        if stamp.point != Point::Sent {
            return;
        }
        let Some((to, seq)) = self.unstamped.take(stamp.id) else {
            return;
        };
        if let (Some(nic_tx), Some(session)) =
            (self.clock.own_instant(stamp.at), self.sessions.get_mut(&to))
        {
            session.previous = Some(PreviousTx {
                seq,
                nic_tx: nic_tx.nanos(),
            });
        }
    }

    fn ask_drops(&mut self, now: Instant<Local>) {
        if now - self.drops_asked >= DROP_COUNT_INTERVAL {
            self.drops_asked = now;
            self.report_drops();
        }
    }

    fn report_drops(&mut self) {
        let dropped = stamp::dropped(self.socket.as_fd()).unwrap_or(0);
        // There may be a socket for each IP version.
        let more = dropped.saturating_sub(self.dropped);
        self.dropped = dropped;
        self.shared.counters.add(Counted::DroppedByKernel, more);
    }
}

/// Whether the replies to this many requests get timestamps.
const fn stamping(requests: usize) -> Stamping {
    if requests < DENSE_REQUESTS {
        Stamping::AsAsked
    } else {
        Stamping::Never
    }
}

/// Takes a message of these bytes from the peer's budget, if it has it.
fn spend(
    cached_budget: &mut Option<(IpAddr, Arc<Budget>)>,
    shared: &ReflectorState,
    peer: IpAddr,
    bytes: u64,
    now: Instant<Local>,
) -> bool {
    if cached_budget
        .as_ref()
        .is_none_or(|(known, _)| *known != peer)
    {
        *cached_budget = shared.budgets.of(peer, now).map(|budget| (peer, budget));
    }
    cached_budget
        .as_ref()
        .is_some_and(|(_, budget)| budget.spend(bytes, now))
}

fn fault(socket: &UdpSocket, source: std::io::Error) -> ProbeError {
    let address = socket
        .local_addr()
        .unwrap_or_else(|_| ([0, 0, 0, 0], 0).into());
    ProbeError::Socket {
        operation: "answer STAMP on",
        address,
        source,
    }
}
