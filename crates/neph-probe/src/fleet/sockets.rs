//! A socket for each flow: needs no privilege, and as many files as there are flows.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use neph_model::{Instant, Local, Slot, Span};
use neph_sys::epoll::Interest;
use neph_sys::ppoll::Awaited;
use neph_sys::stamp::{self, Carrier, Ending, Family, Notice, Point};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::ports::Ports;
use super::session::{Departed, Event, Replied, RequestId, low};
use super::spec::{FleetSpec, Sharing};
use super::stamp::Stamp;
use super::transport::{Request, Transport, wait_for};
use super::watched::Watched;
use crate::ProbeError;
use crate::stamp_clock::{StampClock, now};

#[derive(Debug)]
pub(crate) struct Sockets {
    stamp: Stamp,
    endpoints: Vec<SocketAddr>,
    ports: Ports,
    flows: Watched<Flow>,
    /// The flow of each slot.
    slots: Vec<Option<usize>>,
    /// Ended flows, each with the time until which it takes late replies.
    leaving: VecDeque<(Instant<Local>, usize)>,
    linger: Span,
    dropped: u64,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Flow {
    socket: Socket,
    port: u16,
    /// The number of the request that the kernel counts as this socket's first; `None` before any.
    first: Option<u32>,
}

impl Sockets {
    pub(crate) fn new(spec: &FleetSpec) -> Result<Self, ProbeError> {
        let fleet = &spec.fleet;
        let endpoints: Vec<_> = fleet
            .endpoints
            .iter()
            .map(|endpoint| endpoint.address)
            .collect();
        let address = endpoints[0];
        let flows = Watched::new().map_err(|source| ProbeError::Socket {
            operation: "watch sockets to",
            address,
            source,
        })?;
        Ok(Self {
            stamp: Stamp::new(spec),
            endpoints,
            ports: Ports::bound(spec.first_port, "udp").answered_by(&fleet.endpoints),
            flows,
            slots: vec![None; fleet.slots as usize],
            leaving: VecDeque::new(),
            linger: spec.timeout,
            dropped: 0,
            request: Vec::with_capacity(1 << 16),
            buffer: vec![0; 1 << 16],
        })
    }

    fn close_left(&mut self, now: Instant<Local>) {
        while let Some((until, index)) = self.leaving.front().copied() {
            if until > now {
                return;
            }
            self.leaving.pop_front();
            if let Some(flow) = self.flows.take(index) {
                self.dropped += stamp::dropped(flow.as_fd()).unwrap_or(0);
                self.ports.give_back(flow.port);
            }
        }
    }

    fn flow(&mut self, slot: Slot) -> Option<&mut Flow> {
        let index = self.slots.get(slot.0 as usize).copied().flatten()?;
        self.flows.get_mut(index)
    }
}

/// Reads a reply, if there is one.
fn read_reply(flow: &Flow, stamp: &Stamp, clock: &StampClock, buffer: &mut [u8]) -> Option<Event> {
    let received = stamp::receive(flow.as_fd(), buffer).ok()?;
    let answered = stamp.answered(&buffer[..received.len])?;
    Some(Event::Replied(Replied {
        answer: None,
        repeated: answered.repeated,
        request: RequestId {
            port: flow.port,
            seq: answered.seq,
        },
        stamp: received.stamp.and_then(|stamp| clock.own_instant(stamp)),
        read: now(),
        ttl: received.ttl,
        peer_report: answered.peer_report,
    }))
}

/// Reads one send timestamp, if there is one; the next call reads the next. Returns whether one was read.
fn read_notice(flow: &Flow, clock: &StampClock, events: &mut Vec<Event>) -> bool {
    let Ok(Some(notice)) = stamp::take_notice(flow.as_fd()) else {
        return false;
    };
    if let Notice::Stamp(stamp) = notice
        && let (Point::Sent, Some(at)) = (stamp.point, clock.own_instant(stamp.at))
        && let Some(first) = flow.first
    {
        let (port, seq) = (flow.port, first.wrapping_add(stamp.id));
        let request = RequestId { port, seq };
        events.push(Event::Departed(Departed { request, at }));
    }
    true
}

impl Transport for Sockets {
    fn open(&mut self, slot: Slot, now: Instant<Local>) -> Result<u16, ProbeError> {
        self.close_left(now);
        let address = self.endpoints[slot.0 as usize % self.endpoints.len()];
        let refusal = |source| ProbeError::Socket {
            operation: "open a UDP socket to",
            address,
            source,
        };
        let bound = self.ports.take(|port| socket(address, port));
        let bound = bound.map_err(refusal)?;
        let (port, socket) = bound.ok_or(ProbeError::NoPort { address })?;
        let flow = Flow {
            socket,
            port,
            first: None,
        };
        let added = self.flows.add(flow, Interest::Read);
        let index = added
            .inspect_err(|_| self.ports.give_back(port))
            .map_err(refusal)?;
        if let Some(earlier) = self.slots[slot.0 as usize].replace(index) {
            self.leaving.push_back((now + self.linger, earlier));
        }
        Ok(port)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.request);
        bytes.clear();
        self.stamp.request(request.seq, request.wall, &mut bytes);
        let outcome = match self.flow(request.slot) {
            Some(flow) if flow.port == request.port => flow.send(&bytes, low(request.seq)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        };
        self.request = bytes;
        outcome
    }

    fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        let (stamp, buffer) = (&self.stamp, &mut self.buffer);
        self.flows.walk(|flows, index, ready_event| {
            let Some(flow) = flows.get(index) else {
                return;
            };
            // No timestamp but an error (ICMP: the peer's port is closed). A read clears it; otherwise it
            // would be found again and again.
            let fault = ready_event.has_notice && !read_notice(flow, clock, events);
            if ready_event.is_readable || fault {
                events.extend(read_reply(flow, stamp, clock, buffer));
            }
        });
    }

    fn wait(&self, patience: Duration) -> bool {
        wait_for(&mut [Awaited::readable(self.flows.as_fd())], patience)
    }

    fn dropped(&self) -> u64 {
        let open = self.flows.iter();
        let dropped = open.map(|flow| stamp::dropped(flow.as_fd()).unwrap_or(0));
        self.dropped + dropped.sum::<u64>()
    }

    fn sharing(&self) -> Sharing {
        Sharing::SocketPerFlow
    }
}

impl Flow {
    fn send(&mut self, bytes: &[u8], seq: u32) -> io::Result<()> {
        // A message without a port has a number too: the first one sent need not be 0.
        self.first.get_or_insert(seq);
        let fd = self.socket.as_fd();
        let once = || stamp::send(fd, bytes, Ending::Open).map(|_| ());
        let Err(error) = once() else { return Ok(()) };
        // It is unknown whether the kernel counted it: it counts from the next one again.
        if stamp::restart_count(fd, Carrier::Departures).is_ok() {
            self.first = Some(seq);
        }
        // This send reports an error of an earlier datagram. The second try succeeds.
        if error.kind() == io::ErrorKind::ConnectionRefused && once().is_ok() {
            return Ok(());
        }
        if stamp::restart_count(fd, Carrier::Departures).is_ok() {
            self.first = Some(seq.wrapping_add(1));
        }
        Err(error)
    }
}

impl AsFd for Flow {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn socket(address: SocketAddr, port: u16) -> io::Result<Socket> {
    let (unspecified, family): (SocketAddr, _) = match address {
        SocketAddr::V4(_) => ((Ipv4Addr::UNSPECIFIED, port).into(), Family::V4),
        SocketAddr::V6(_) => ((Ipv6Addr::UNSPECIFIED, port).into(), Family::V6),
    };
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM.nonblocking(),
        Some(Protocol::UDP),
    )?;
    if family == Family::V6 {
        socket.set_only_v6(true)?;
    }
    socket.bind(&SockAddr::from(unspecified))?;
    socket.connect(&SockAddr::from(address))?;
    stamp::enable(socket.as_fd(), Carrier::Departures)?;
    stamp::enable_ttl(socket.as_fd(), family)?;
    Ok(socket)
}
