//! One socket that sends for all ports and one that receives for all. For more flows than a process may open
//! files, and for more messages than separate calls can handle. Needs root.
//!
//! A raw socket sends whole packets and gives their departure timestamps. The kernel steers packets from the
//! destination ports to the fleet's ports to one UDP socket. No epoll set watches the two, as the kernel
//! would notify it of each packet.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use neph_model::{Instant, Local, Slot, Span};
use neph_sys::destination::{self, Stamping};
use neph_sys::ppoll::Awaited;
use neph_sys::stamp::{self, Batch, Carrier, Family, Notice, Patience, Point};
use neph_sys::steer::Steering;
use neph_wire::ip::{UdpHeaders, encode_udp};
use socket2::{Domain, Protocol, Socket, Type};

use super::ports::Ports;
use super::session::{Departed, Event, Replied, RequestId, low};
use super::spec::{FleetSpec, Sharing};
use super::stamp::Stamp;
use super::transport::{Request, Transport, wait_for};
use crate::ProbeError;
use crate::numbered::AwaitedTimestamps;
use crate::stamp_clock::{StampClock, now};

/// Datagrams and notices per call, at most.
const BATCH: usize = 64;
/// Calls in a row, so that a flood of replies does not delay a request.
const CALLS: usize = 16;
/// Receive buffer: 100 ms of 100,000 messages per second, with their notices.
const RECEIVE_BUFFER_BYTES: i32 = 8 << 20;
/// Departures that wait for timestamps: those of as much time.
const MAX_PENDING_TIMESTAMPS: usize = 1 << 14;
/// Protocol number of raw sockets whose packets have their own headers.
const IPPROTO_RAW: i32 = 255;

#[derive(Debug)]
pub(crate) struct SharedSockets {
    stamp: Stamp,
    endpoints: Vec<Endpoint>,
    sender: Socket,
    receiver: UdpSocket,
    steering: Steering,
    ports: Ports,
    hops: u8,
    /// By port: the endpoint that is asked from it.
    requested: Vec<u32>,
    /// The port of each slot.
    slots: Vec<Option<u16>>,
    /// Ports of ended flows, each with the time until which it takes late replies.
    leaving: VecDeque<(Instant<Local>, u16)>,
    linger: Span,
    unstamped: AwaitedTimestamps<RequestId>,
    datagrams: Batch,
    notices: Batch,
    payload: Vec<u8>,
    packet: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Endpoint {
    address: SocketAddr,
    /// Local address towards it, without a port.
    source: SocketAddr,
}

impl SharedSockets {
    /// # Errors
    /// Also when the kernel does not permit raw sockets or steering.
    pub(crate) fn new(spec: &FleetSpec) -> Result<Self, ProbeError> {
        let fleet = &spec.fleet;
        let address = fleet.endpoints[0].address;
        let fault = |source| ProbeError::Socket {
            operation: "share sockets among the flows to",
            address,
            source,
        };
        let endpoints = fleet
            .endpoints
            .iter()
            .map(|fleet_endpoint| endpoint(fleet_endpoint.address));
        let endpoints = endpoints.collect::<io::Result<Vec<_>>>().map_err(fault)?;
        let mut ports = Ports::unbound(spec.first_port, "udp").answered_by(&fleet.endpoints);
        let bound = ports.take(|port| bind(address, port)).map_err(fault)?;
        let (_, receiver) = bound.ok_or(ProbeError::NoPort { address })?;
        let sender = raw(address).map_err(fault)?;
        prepare(&sender, &receiver, address).map_err(fault)?;
        let mut peers: Vec<u16> = endpoints
            .iter()
            .map(|endpoint| endpoint.address.port())
            .collect();
        peers.sort_unstable();
        peers.dedup();
        let steering = Steering::new(receiver.as_fd(), &peers).map_err(fault)?;
        let stamp = Stamp::new(spec);
        let size = stamp.size();
        Ok(Self {
            stamp,
            endpoints,
            sender,
            receiver,
            steering,
            ports,
            hops: default_hops(address),
            requested: vec![0; 1 << 16],
            slots: vec![None; fleet.slots as usize],
            leaving: VecDeque::new(),
            linger: spec.timeout,
            unstamped: AwaitedTimestamps::new(MAX_PENDING_TIMESTAMPS),
            datagrams: Batch::new(BATCH, size),
            notices: Batch::new(BATCH, 0),
            payload: Vec::with_capacity(size),
            packet: Vec::with_capacity(size + 64),
        })
    }

    fn leave(&mut self, now: Instant<Local>) {
        while let Some((until, port)) = self.leaving.front().copied() {
            if until > now {
                return;
            }
            self.leaving.pop_front();
            // Refused only for lack of memory. Then its packets are still steered and ignored.
            let _ = self.steering.remove(port);
            self.ports.give_back(port);
        }
    }

    fn read_notices(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        for _ in 0..CALLS {
            let Ok(count) = self.notices.take_notices(self.sender.as_fd()) else {
                return;
            };
            for at in 0..count {
                let Notice::Stamp(stamp) = self.notices.notice(at) else {
                    continue;
                };
                if stamp.point != Point::Sent {
                    continue;
                }
                let request = self.unstamped.take(stamp.id);
                if let (Some(request), Some(at)) = (request, clock.own_instant(stamp.at)) {
                    events.push(Event::Departed(Departed { request, at }));
                }
            }
            if count < BATCH {
                return;
            }
        }
    }

    fn read_replies(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        for _ in 0..CALLS {
            let fd = self.receiver.as_fd();
            let Ok(count) = self.datagrams.receive(fd, Patience::None) else {
                return;
            };
            let read = now();
            for at in 0..count {
                events.extend(self.reply(at, clock, read).map(Event::Replied));
            }
            if count < BATCH {
                return;
            }
        }
    }

    fn reply(&self, at: usize, clock: &StampClock, read: Instant<Local>) -> Option<Replied> {
        let (bytes, received) = self.datagrams.datagram(at);
        let port = received.port?;
        let address = self.endpoints[self.requested[usize::from(port)] as usize].address;
        let from = received.from?;
        if (from.ip(), from.port()) != (address.ip(), address.port()) {
            return None;
        }
        let answered = self.stamp.answered(bytes)?;
        Some(Replied {
            answer: None,
            repeated: answered.repeated,
            request: RequestId {
                port,
                seq: answered.seq,
            },
            stamp: received.stamp.and_then(|stamp| clock.own_instant(stamp)),
            read,
            ttl: received.ttl,
            peer_report: answered.peer_report,
        })
    }
}

impl Transport for SharedSockets {
    fn open(&mut self, slot: Slot, now: Instant<Local>) -> Result<u16, ProbeError> {
        self.leave(now);
        let endpoint = slot.0 as usize % self.endpoints.len();
        let address = self.endpoints[endpoint].address;
        let fault = |source| ProbeError::Socket {
            operation: "find a source port to reach",
            address,
            source,
        };
        // Bound for a moment, to check whether it is in use.
        let free = self.ports.take(|port| bind(address, port).map(drop));
        let (port, ()) = free.map_err(fault)?.ok_or(ProbeError::NoPort { address })?;
        let steered = self.steering.add([port]);
        steered
            .inspect_err(|_| self.ports.give_back(port))
            .map_err(fault)?;
        self.requested[usize::from(port)] = u32::try_from(endpoint).unwrap_or(0);
        if let Some(earlier) = self.slots[slot.0 as usize].replace(port) {
            self.leaving.push_back((now + self.linger, earlier));
        }
        Ok(port)
    }

    fn send(&mut self, request: &Request) -> io::Result<()> {
        let endpoint = self.endpoints[request.slot.0 as usize % self.endpoints.len()];
        self.payload.clear();
        self.packet.clear();
        let wall = request.wall;
        self.stamp.request(request.seq, wall, &mut self.payload);
        let mut datagram = UdpHeaders {
            source: endpoint.source,
            destination: endpoint.address,
            hop_limit: self.hops,
        };
        datagram.source.set_port(request.port);
        encode_udp(&datagram, &self.payload, &mut self.packet).map_err(io::Error::other)?;
        let mut to = endpoint.address;
        // The packet has the destination port; on a raw socket a port here means a protocol.
        to.set_port(0);
        let fd = self.sender.as_fd();
        let outcome = destination::send(fd, &self.packet, None, to, Stamping::AsAsked);
        if outcome.is_err() {
            // It is unknown whether the kernel counted it.
            if stamp::restart_count(fd, Carrier::Departures).is_ok() {
                self.unstamped.restart();
            }
        } else {
            self.unstamped.count(RequestId {
                port: request.port,
                seq: low(request.seq),
            });
        }
        outcome.map(|_| ())
    }

    fn read(&mut self, clock: &StampClock, events: &mut Vec<Event>) {
        self.read_notices(clock, events);
        self.read_replies(clock, events);
    }

    fn wait(&self, patience: Duration) -> bool {
        let descriptors = [self.sender.as_fd(), self.receiver.as_fd()];
        wait_for(&mut descriptors.map(Awaited::readable), patience)
    }

    fn dropped(&self) -> u64 {
        stamp::dropped(self.receiver.as_fd()).unwrap_or(0)
    }

    fn sharing(&self) -> Sharing {
        Sharing::SharedSockets
    }
}

/// The routes determine the local address for an endpoint.
fn endpoint(address: SocketAddr) -> io::Result<Endpoint> {
    let probe_socket = UdpSocket::bind(unspecified(address, 0))?;
    probe_socket.connect(address)?;
    let source = probe_socket.local_addr()?;
    Ok(Endpoint { address, source })
}

fn unspecified(address: SocketAddr, port: u16) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
    }
}

fn bind(address: SocketAddr, port: u16) -> io::Result<UdpSocket> {
    UdpSocket::bind(unspecified(address, port))
}

fn raw(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(address),
        Type::RAW.nonblocking(),
        Some(Protocol::from(IPPROTO_RAW)),
    )
}

/// Enables ancillary data and sets the buffer size.
fn prepare(sender: &Socket, receiver: &UdpSocket, address: SocketAddr) -> io::Result<()> {
    let family = if address.is_ipv4() {
        Family::V4
    } else {
        Family::V6
    };
    stamp::enable(sender.as_fd(), Carrier::Departures)?;
    stamp::make_room(sender.as_fd(), RECEIVE_BUFFER_BYTES)?;
    stamp::enable(receiver.as_fd(), Carrier::Departures)?;
    stamp::enable_ttl(receiver.as_fd(), family)?;
    stamp::enable_port(receiver.as_fd(), family)?;
    stamp::make_room(receiver.as_fd(), RECEIVE_BUFFER_BYTES)
}

/// The TTL of the kernel's own datagrams.
fn default_hops(address: SocketAddr) -> u8 {
    const USUAL: u8 = 64;
    let setting = match address {
        SocketAddr::V4(_) => "/proc/sys/net/ipv4/ip_default_ttl",
        SocketAddr::V6(_) => "/proc/sys/net/ipv6/conf/default/hop_limit",
    };
    let setting_text = std::fs::read_to_string(setting).unwrap_or_default();
    setting_text.trim().parse().unwrap_or(USUAL)
}

#[cfg(test)]
mod tests;
