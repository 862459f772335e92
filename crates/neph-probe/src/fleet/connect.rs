//! SYNs without privilege: plain connects that are aborted once they are answered.
//!
//! The kernel gives no timestamps for a handshake, but measures it for its first RTT estimate. That is used
//! for an accepted connection. For a refusal only the program's reading exists, which is as late as the
//! thread.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use neph_model::{Instant, Local, Slot, Span, SynAnswer};
use neph_sys::epoll::Interest;
use neph_sys::ppoll::Awaited;
use neph_sys::tcp;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::ports::Ports;
use super::session::{Departed, Event, Replied, RequestId, low};
use super::spec::{FleetSpec, Sharing};
use super::transport::{Request, Transport, wait_for};
use super::watched::Watched;
use crate::ProbeError;
use crate::raw_tcp;
use crate::stamp_clock::{StampClock, now};
use crate::stream::in_progress;

/// After this time the kernel retransmits a SYN (RFC 6298). Then it is unknown which of the two was refused.
const SYN_RETRANSMIT_TIMEOUT: Span = Span::from_secs(1);

/// An attempt is aborted before that: otherwise a silent target would get twice the requested SYNs.
const MAX_SINGLE_SYN_TIME: Span = Span::from_millis(900);

#[derive(Debug)]
pub(crate) struct Connects {
    endpoints: Vec<SocketAddr>,
    ports: Ports,
    attempts: Watched<Attempt>,
    /// The port of each slot, and its latest attempt.
    slots: Vec<Option<(u16, Option<usize>)>>,
    /// Attempts, each with the time until which it may be answered.
    expiring: VecDeque<(Instant<Local>, usize, RequestId)>,
    /// Ports of ended flows, each with the time until which it is not reused.
    leaving: VecDeque<(Instant<Local>, u16)>,
    timeout: Span,
    /// Events that happened during a send.
    at_once: Vec<Event>,
}

#[derive(Debug)]
struct Attempt {
    socket: Socket,
    request: RequestId,
    started: Instant<Local>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptEnd {
    /// Accepted, with the round trip that the kernel measured.
    Accepted(Span),
    Refused,
    /// Unknown, as the answered SYN or its time is not known, or none was answered.
    Unknown,
}

impl Connects {
    pub(crate) fn new(spec: &FleetSpec) -> Result<Self, ProbeError> {
        let fleet = &spec.fleet;
        let endpoints: Vec<_> = fleet
            .endpoints
            .iter()
            .map(|endpoint| endpoint.address)
            .collect();
        let attempts = Watched::new().map_err(|source| ProbeError::Socket {
            operation: "watch connections to",
            address: endpoints[0],
            source,
        })?;
        Ok(Self {
            endpoints,
            ports: Ports::unbound(spec.first_port, "tcp"),
            attempts,
            slots: vec![None; fleet.slots as usize],
            expiring: VecDeque::new(),
            leaving: VecDeque::new(),
            timeout: spec.timeout.min(MAX_SINGLE_SYN_TIME),
            at_once: Vec::new(),
        })
    }

    const fn endpoint(&self, slot: Slot) -> usize {
        slot.0 as usize % self.endpoints.len()
    }

    fn expire(&mut self, now: Instant<Local>) {
        while let Some((until, index, request)) = self.expiring.front().copied()
            && until <= now
        {
            self.expiring.pop_front();
            let current = self.attempts.get(index);
            if current.is_some_and(|attempt| attempt.request == request) {
                self.attempts.take(index);
            }
        }
        while let Some((until, port)) = self.leaving.front().copied()
            && until <= now
        {
            self.leaving.pop_front();
            self.ports.give_back(port);
        }
    }

    /// One port cannot have two connections to the same peer, and silently dropping one would leave it half
    /// open at the peer. So an attempt that may still be answered blocks the next.
    fn end_latest(&mut self, port: u16, latest: Option<usize>) -> io::Result<()> {
        let Some(latest) = latest else {
            return Ok(());
        };
        look_at(&mut self.attempts, latest, &mut self.at_once);
        match self.attempts.get(latest) {
            Some(attempt) if attempt.request.port == port => {
                if now() - attempt.started < SYN_RETRANSMIT_TIMEOUT {
                    let reason = "the SYN before it is not answered yet, and a port has one connection \
                               at a time: the interval is too short for the way";
                    return Err(io::Error::new(io::ErrorKind::AddrInUse, reason));
                }
                self.attempts.take(latest);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Removes an attempt that has ended, and reports how.
fn look_at(attempts: &mut Watched<Attempt>, index: usize, events: &mut Vec<Event>) {
    let read = now();
    let Some(attempt) = attempts.get(index) else {
        return;
    };
    if let Some(end) = attempt.ended(read) {
        report(attempt.request, (attempt.started, read), end, events);
        attempts.take(index);
    }
}

impl Attempt {
    /// How it ended, if it did.
    fn ended(&self, now: Instant<Local>) -> Option<AttemptEnd> {
        match self.socket.take_error() {
            Ok(Some(error)) => Some(self.fault(&error, now)),
            Ok(None) if self.socket.peer_addr().is_err() => None,
            Ok(None) => Some(match tcp::stats(self.socket.as_fd()) {
                Ok(stats) if stats.retransmissions == 0 && stats.srtt_us > 0 => {
                    AttemptEnd::Accepted(Span::from_micros(stats.srtt_us.into()))
                }
                _ => AttemptEnd::Unknown,
            }),
            Err(_) => Some(AttemptEnd::Unknown),
        }
    }

    fn fault(&self, error: &io::Error, now: Instant<Local>) -> AttemptEnd {
        let refused = error.kind() == io::ErrorKind::ConnectionRefused;
        if refused && now - self.started < SYN_RETRANSMIT_TIMEOUT {
            AttemptEnd::Refused
        } else {
            AttemptEnd::Unknown
        }
    }
}

impl AsFd for Attempt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn report(
    request: RequestId,
    (started, read): (Instant<Local>, Instant<Local>),
    end: AttemptEnd,
    events: &mut Vec<Event>,
) {
    let (stamp, answer) = match end {
        AttemptEnd::Accepted(round_trip) => {
            events.push(Event::Departed(Departed {
                request,
                at: started,
            }));
            (Some(started + round_trip), SynAnswer::SynAck)
        }
        AttemptEnd::Refused => (None, SynAnswer::Rst),
        AttemptEnd::Unknown => return,
    };
    events.push(Event::Replied(Replied {
        repeated: None,
        answer: Some(answer),
        request,
        stamp,
        read,
        ttl: None,
        peer_report: None,
    }));
}

fn socket(address: SocketAddr, port: u16) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // Ports are reused, and a RST ends each use on both sides at once.
    socket.set_reuse_address(true)?;
    socket.set_linger(Some(Duration::ZERO))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&SockAddr::from(raw_tcp::any(address, port)))?;
    Ok(socket)
}

impl Transport for Connects {
    fn open(&mut self, slot: Slot, now: Instant<Local>) -> Result<u16, ProbeError> {
        self.expire(now);
        let address = self.endpoints[self.endpoint(slot)];
        let fault = |source| ProbeError::Socket {
            operation: "take a source port to reach",
            address,
            source,
        };
        let taken = self
            .ports
            .take(|port| raw_tcp::hold(raw_tcp::any(address, port)).map(drop));
        let (port, ()) = taken
            .map_err(fault)?
            .ok_or(ProbeError::NoPort { address })?;
        if let Some((earlier, _)) = self.slots[slot.0 as usize].replace((port, None)) {
            self.leaving.push_back((now + self.timeout, earlier));
        }
        Ok(port)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let slot_index = request.slot.0 as usize;
        let none = || io::Error::from(io::ErrorKind::NotConnected);
        let (port, latest) = self
            .slots
            .get(slot_index)
            .copied()
            .flatten()
            .ok_or_else(none)?;
        let address = self.endpoints[self.endpoint(request.slot)];
        let seq = low(request.seq);
        let known = RequestId { port, seq };
        self.end_latest(port, latest)?;
        let socket = socket(address, port)?;
        let started = now();
        let attempt = Attempt {
            socket,
            request: known,
            started,
        };
        match attempt.socket.connect(&SockAddr::from(address)) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                report(
                    known,
                    (started, now()),
                    AttemptEnd::Refused,
                    &mut self.at_once,
                );
                return Ok(());
            }
            Err(error) if !in_progress(&error) => return Err(error),
            _ => {}
        }
        let index = self.attempts.add(attempt, Interest::ReadWrite)?;
        self.slots[slot_index] = Some((port, Some(index)));
        self.expiring
            .push_back((started + self.timeout, index, known));
        Ok(())
    }

    fn read(&mut self, _clock: &StampClock, events: &mut Vec<Event>) {
        events.append(&mut self.at_once);
        self.attempts
            .walk(|attempts, index, _| look_at(attempts, index, events));
        self.expire(now());
    }

    fn wait(&self, patience: Duration) -> bool {
        wait_for(&mut [Awaited::readable(self.attempts.as_fd())], patience)
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn sharing(&self) -> Sharing {
        Sharing::SocketPerFlow
    }
}

#[cfg(test)]
mod tests;
