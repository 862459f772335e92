//! The STAMP Session-Reflector (RFC 8762), stateful, on one thread for all peers.
//!
//! A reply is exactly as long as its request, so that nobody can be flooded through us.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use neph_model::{Instant, Own, Span};
use neph_sys::clock;
use neph_sys::destination::{self, Stamping};
use neph_sys::pulse::Pulse;
use neph_sys::stamp::{self, Batch, Carrier, Family, Notice, Patience, Point, SendStamp};
use neph_wire::marks::PreviousTx;
use neph_wire::stamp::{Auth, Key, StampError, decode_request, reflect};

use super::Shared;
use super::budget::Budget;
use super::caps::Division;
use super::counters::Counted;
use super::marks::Arrived;
use super::ports::Ports;
use super::session::Asked;
use super::sessions::Sessions;
use crate::ProbeError;
use crate::numbered::Numbered;
use crate::secret::Secret;
use crate::stamp_clock::{StampClock, now};
use crate::synchrony::Synchrony;

/// Replies whose departures are waited for: more than are answered in a row.
const UNSTAMPED: usize = 1024;
/// Requests and notices that one call takes at most.
const BATCH: usize = 32;
/// Who finds so many requests at once has no time to spare: the stamps of their replies would take
/// a seventh of it, and of a reply's departure no one hears but the peer's next request.
const CROWD: usize = 5;
/// The largest datagram.
const LARGEST: usize = 1 << 16;
/// Room for requests that are not read yet: 300 ms of 100,000 a second on a veth pair, where each
/// takes 768 bytes of twice this. A busy machine keeps the thread from running for 100 ms and more.
/// Whoever asks more than is answered had better lose some than wait for seconds.
const ROOM: i32 = 12 << 20;
/// How often the kernel is asked what it dropped.
const DROPS_ASKED: Span = Span::from_millis(500);

#[derive(Debug)]
pub(super) struct Answerer {
    socket: UdpSocket,
    key: Option<Key>,
    ports: Ports,
    shared: Arc<Shared>,
    clock: StampClock,
    synchrony: Synchrony,
    sessions: Sessions,
    /// Of the peer that asked last: most often it asks again.
    budget: Option<(IpAddr, Arc<Budget>)>,
    unstamped: Numbered<(SocketAddr, u64)>,
    notices: Batch,
    drops_asked: Instant<Own>,
    /// What the kernel dropped so far at this socket.
    dropped: u64,
}

/// The two ends of a reply.
#[derive(Clone, Copy)]
struct Between {
    /// The address that was asked.
    from: Option<IpAddr>,
    to: SocketAddr,
}

impl Answerer {
    pub(super) fn new(socket: UdpSocket, shared: Arc<Shared>) -> Result<Self, ProbeError> {
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
            .and_then(|()| stamp::make_room(socket.as_fd(), ROOM))
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
            unstamped: Numbered::new(UNSTAMPED),
            notices: Batch::new(BATCH, 0),
            drops_asked: now(),
            dropped: 0,
        })
    }

    pub(super) fn run(mut self, pulse: &Pulse) {
        let mut requests = Batch::new(BATCH, LARGEST);
        let mut reply = Vec::with_capacity(LARGEST);
        while !self.shared.stop.is_set() {
            // Errors are time-outs, or a peer's port that is closed: neither is ours to mend.
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
                let rx = received.stamp.and_then(|stamp| self.clock.own(stamp));
                let asked = Asked {
                    bytes,
                    ttl: received.ttl.unwrap_or(u8::MAX),
                    from,
                    arrived: Arrived { rx, app_rx },
                };
                match self.answer(&asked, &mut reply) {
                    Ok(seq) => {
                        let between = Between {
                            from: received.to,
                            to: from,
                        };
                        self.send(&reply, between, stamping, seq);
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
        self.tell_drops();
    }

    fn refuse(&self, reason: Counted) {
        self.shared.counters.count(reason);
        self.shared.counters.count(Counted::RefusedDatagrams);
    }

    /// Replaces `reply` by the answer; returns the number of the request.
    fn answer(&mut self, asked: &Asked<'_>, reply: &mut Vec<u8>) -> Result<u64, Counted> {
        let arrived = asked.arrived;
        let auth = self.key.as_ref().map_or(Auth::Open, Auth::Keyed);
        if self.ports.may_answer(asked.from.port()) {
            return Err(Counted::RefusedPorts);
        }
        let request = decode_request(asked.bytes, auth).map_err(|error| match error {
            StampError::Tag | StampError::TlvTag => Counted::RefusedKey,
            StampError::Answer => Counted::RefusedAnswers,
            // Well formed, without the tag that the key asks for.
            _ if self.key.is_some() && decode_request(asked.bytes, Auth::Open).is_ok() => {
                Counted::RefusedKey
            }
            _ => Counted::RefusedMalformed,
        })?;
        // Only now: anybody can send anything under any address, and each costs a budget.
        let (peer, bytes) = (asked.from.ip(), asked.bytes.len() as u64);
        if !spend(&mut self.budget, &self.shared, peer, bytes, arrived.app_rx) {
            return Err(Counted::RefusedRate);
        }
        let seq = request.packet.seq;
        let session = self.sessions.of(asked.from, seq, arrived.app_rx);
        if !session.repeats.admit(seq, arrived.app_rx) {
            return Err(Counted::RefusedRepeats);
        }
        if self.shared.think > Span::ZERO {
            let until = arrived.app_rx + self.shared.think;
            clock::sleep_until(clock::RawNanos(until.nanos()), clock::Spin::NONE);
        }
        let app_tx = now();
        let error = self.synchrony.estimate();
        let answer = session.answer(asked, app_tx, self.clock.anchor(), error);
        session.hear(seq);
        reply.clear();
        reflect(&request, &answer, auth, reply);
        Ok(u64::from(seq))
    }

    /// Replies from the address that was asked: a peer takes no other's word.
    fn send(&mut self, reply: &[u8], between: Between, stamping: Stamping, seq: u64) {
        let Between { from, to } = between;
        if destination::send(self.socket.as_fd(), reply, from, to, stamping).is_err() {
            self.shared.counters.count(Counted::UnsentDatagrams);
            // As in the asking half: nobody can tell whether the kernel counted it.
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
                    self.departed(&stamp);
                }
            }
            if count < BATCH {
                return;
            }
        }
    }

    fn departed(&mut self, stamp: &SendStamp) {
        if stamp.point != Point::Sent {
            return;
        }
        let Some((to, seq)) = self.unstamped.take(stamp.id) else {
            return;
        };
        if let (Some(nic_tx), Some(session)) =
            (self.clock.own(stamp.at), self.sessions.get_mut(&to))
        {
            session.previous = Some(PreviousTx {
                seq,
                nic_tx: nic_tx.nanos(),
            });
        }
    }

    fn ask_drops(&mut self, now: Instant<Own>) {
        if now - self.drops_asked >= DROPS_ASKED {
            self.drops_asked = now;
            self.tell_drops();
        }
    }

    fn tell_drops(&mut self) {
        let dropped = stamp::dropped(self.socket.as_fd()).unwrap_or(0);
        // There may be a socket for each version of IP.
        let more = dropped.saturating_sub(self.dropped);
        self.dropped = dropped;
        self.shared.counters.add(Counted::DroppedByKernel, more);
    }
}

/// Whether the replies to so many requests are stamped.
const fn stamping(requests: usize) -> Stamping {
    if requests < CROWD {
        Stamping::AsAsked
    } else {
        Stamping::Never
    }
}

/// Takes a message of these bytes from the peer's budget, if it has it.
fn spend(
    latest: &mut Option<(IpAddr, Arc<Budget>)>,
    shared: &Shared,
    peer: IpAddr,
    bytes: u64,
    now: Instant<Own>,
) -> bool {
    if latest.as_ref().is_none_or(|(known, _)| *known != peer) {
        *latest = shared.budgets.of(peer, now).map(|budget| (peer, budget));
    }
    latest
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
