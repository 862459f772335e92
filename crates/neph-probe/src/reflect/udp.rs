//! The STAMP Session-Reflector (RFC 8762), stateful, on one thread for all peers.
//!
//! A reply is exactly as long as its request, so that nobody can be flooded through us.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use neph_model::{Anchor, Instant, Own, Span};
use neph_sys::clock;
use neph_sys::destination;
use neph_sys::stamp::{self, Carrier, Family, Notice, Point};
use neph_wire::marks::PreviousTx;
use neph_wire::stamp::{
    Answer, Auth, ErrorEstimate, FollowUp, Format, Key, StampError, Timestamp, decode_request,
    reflect,
};

use super::Shared;
use super::counters::Counted;
use super::marks::{Arrived, marks};
use crate::ProbeError;
use crate::numbered::Numbered;
use crate::stamp_clock::{StampClock, now};
use crate::synchrony::Synchrony;

/// Sessions remembered; beyond, those idle for longest are forgotten.
const MAX_SESSIONS: usize = 1 << 16;
/// A session that said nothing for this long may be forgotten.
const SESSION_IDLE: Span = Span::from_secs(60);
/// Stamps come within microseconds; an older one will not.
const UNSTAMPED: usize = 1024;

#[derive(Debug)]
pub(super) struct Answerer {
    socket: UdpSocket,
    key: Option<Key>,
    shared: Arc<Shared>,
    clock: StampClock,
    synchrony: Synchrony,
    sessions: HashMap<SocketAddr, Session>,
    unstamped: Numbered<(SocketAddr, u64)>,
}

/// One peer's session.
#[derive(Debug)]
pub(crate) struct Session {
    replies: u32,
    pub(crate) previous: Option<PreviousTx>,
    seen: Instant<Own>,
}

impl Answerer {
    pub(super) fn new(
        socket: UdpSocket,
        secret: Option<&[u8]>,
        shared: Arc<Shared>,
    ) -> Result<Self, ProbeError> {
        let key = match secret {
            None => None,
            Some(secret) => Some(Key::new(secret).map_err(|_| ProbeError::EmptyKey)?),
        };
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
            .and_then(|()| stamp::enable(socket.as_fd(), Carrier::Datagrams))
            .and_then(|()| stamp::enable_ttl(socket.as_fd(), family))
            .and_then(|()| destination::enable(socket.as_fd(), family))
            .map_err(|source| fault(&socket, source))?;
        Ok(Self {
            socket,
            key,
            shared,
            clock: StampClock::new(),
            synchrony: Synchrony::new(now()),
            sessions: HashMap::new(),
            unstamped: Numbered::new(UNSTAMPED),
        })
    }

    pub(super) fn run(mut self) {
        let mut buffer = vec![0; 1 << 16];
        let mut reply = Vec::with_capacity(1 << 16);
        while !self.shared.stop.is_set() {
            // Errors are time-outs, or a peer's port that is closed: neither is ours to mend.
            let Ok(received) = stamp::receive(self.socket.as_fd(), &mut buffer) else {
                self.synchrony.refresh(now());
                continue;
            };
            let app_rx = now();
            self.clock.refresh();
            let Some(from) = received.from else { continue };
            let rx = received.stamp.and_then(|stamp| self.clock.own(stamp));
            let arrived = Arrived { rx, app_rx };
            let asked = Asked {
                bytes: &buffer[..received.len],
                ttl: received.ttl.unwrap_or(u8::MAX),
                from,
                arrived,
            };
            match self.answer(&asked, &mut reply) {
                Ok(seq) => self.send(&reply, received.to, from, seq),
                Err(counted) => self.shared.counters.count(counted),
            }
            // Here, where no reply waits for it.
            self.synchrony.refresh(app_rx);
        }
    }

    /// Replaces `reply` by the answer; returns the number of the request.
    fn answer(&mut self, asked: &Asked<'_>, reply: &mut Vec<u8>) -> Result<u64, Counted> {
        let arrived = asked.arrived;
        let auth = self.key.as_ref().map_or(Auth::Open, Auth::Keyed);
        let request = decode_request(asked.bytes, auth).map_err(|error| match error {
            StampError::Tag | StampError::TlvTag => Counted::RefusedKey,
            _ => Counted::RefusedMalformed,
        })?;
        // Only now: anybody can send anything under any address, and each costs a budget.
        let budget = self.shared.budgets.of(asked.from.ip(), arrived.app_rx);
        if !budget.is_some_and(|b| b.spend(asked.bytes.len() as u64, arrived.app_rx)) {
            return Err(Counted::RefusedRate);
        }
        if self.shared.think > Span::ZERO {
            let until = arrived.app_rx + self.shared.think;
            clock::sleep_until(clock::RawNanos(until.nanos()), clock::Spin::NONE);
        }
        make_room(&mut self.sessions, arrived.app_rx);
        let fresh = Session::new(arrived.app_rx);
        let session = self.sessions.entry(asked.from).or_insert(fresh);
        let answer = session.answer(asked, now(), self.clock.anchor(), self.synchrony.estimate());
        reply.clear();
        reflect(&request, &answer, auth, reply);
        Ok(u64::from(request.packet.seq))
    }

    /// Replies from the address that was asked: a peer takes no other's word.
    fn send(&mut self, reply: &[u8], from: Option<IpAddr>, to: SocketAddr, seq: u64) {
        if destination::send(self.socket.as_fd(), reply, from, to).is_err() {
            // As in the asking half: nobody can tell whether the kernel counted it.
            self.read_notices();
            if stamp::restart_count(self.socket.as_fd(), Carrier::Datagrams).is_ok() {
                self.unstamped.restart();
            }
            return;
        }
        self.shared.counters.count(Counted::Replies);
        self.unstamped.count((to, seq));
        self.read_notices();
    }

    fn read_notices(&mut self) {
        while let Ok(Some(notice)) = stamp::take_notice(self.socket.as_fd()) {
            let Notice::Stamp(stamp) = notice else {
                continue;
            };
            if stamp.point != Point::Sent {
                continue;
            }
            let Some((to, seq)) = self.unstamped.take(stamp.id) else {
                continue;
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
    }
}

/// A datagram that came.
pub(crate) struct Asked<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) ttl: u8,
    pub(crate) from: SocketAddr,
    pub(crate) arrived: Arrived,
}

impl Session {
    pub(crate) const fn new(seen: Instant<Own>) -> Self {
        Self {
            replies: 0,
            previous: None,
            seen,
        }
    }

    pub(crate) fn answer(
        &mut self,
        asked: &Asked<'_>,
        app_tx: Instant<Own>,
        wall: Anchor<Own>,
        error: ErrorEstimate,
    ) -> Answer {
        let arrived = asked.arrived;
        let time = |at: Instant<Own>| {
            Timestamp::from_unix(wall.to_wall(at).unix_nanos(), Format::Ntp).unwrap_or(Timestamp(0))
        };
        let follow_up = follow_up(self, &time);
        let previous = self.previous.take();
        let seq = self.replies;
        self.replies = seq.wrapping_add(1);
        self.seen = app_tx;
        Answer {
            seq,
            receive: time(arrived.rx.unwrap_or(arrived.app_rx)),
            timestamp: time(app_tx),
            error,
            sender_ttl: asked.ttl,
            marks: marks(arrived, app_tx, wall.offset().nanos(), previous),
            follow_up,
        }
    }
}

/// RFC 8972, 4.7: told only where our own marks are not, by [`reflect`].
fn follow_up(session: &Session, time: &impl Fn(Instant<Own>) -> Timestamp) -> Option<FollowUp> {
    const KERNEL: u8 = 2;
    session.previous.map(|previous| FollowUp {
        seq: session.replies.wrapping_sub(1),
        timestamp: time(Instant::from_nanos(previous.nic_tx)),
        method: KERNEL,
    })
}

fn make_room(sessions: &mut HashMap<SocketAddr, Session>, now: Instant<Own>) {
    if sessions.len() >= MAX_SESSIONS {
        sessions.retain(|_, session| now - session.seen < SESSION_IDLE);
    }
    if sessions.len() >= MAX_SESSIONS {
        // Everybody is busy: start anew. A session that is forgotten loses one send stamp.
        sessions.clear();
    }
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
