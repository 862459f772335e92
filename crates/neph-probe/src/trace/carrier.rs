//! Transports of a trace's probes: raw sockets, or a socket for each flow.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use neph_model::{Instant, Local, ReadBy, Wall};
use neph_sys::clock::WallNanos;
use neph_sys::files;
use neph_sys::icmp_error::IcmpError;
use neph_sys::stamp::{self, Family, SendStamp};
use neph_wire::stamp::{Auth, ErrorEstimate, Format, SenderPacket, Timestamp};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use super::flow::{AnswerKind, ProbeId};
use super::tracer::Tracer;
use super::tracer_io::ProbeToSend;
use crate::stamp_clock::{StampClock, now};
use crate::synchrony::Synchrony;

/// Sends probes and receives answers.
pub(super) trait Carrier {
    /// Takes a port for a new flow.
    ///
    /// # Errors
    /// `AddrInUse` where it is in use.
    fn hold(&mut self, port: u16) -> io::Result<()>;

    /// How many more ports may be held, at least: each may take a file.
    fn room(&self) -> usize;

    /// Gives all ports back. Returns whether there were any. Their flows send no more; late answers may be
    /// lost.
    fn release(&mut self) -> bool;

    /// Sends a probe. A probe that the kernel refuses for the moment counts as lost.
    ///
    /// # Errors
    /// No probe can be sent: no route, or a local firewall.
    fn send(&mut self, probe: &ProbeToSend) -> io::Result<()>;

    /// Waits until `until` or until something arrives, and passes all arrivals to the tracer.
    ///
    /// # Errors
    /// As ppoll(2).
    fn take_in(&mut self, until: Instant<Local>, tracer: &mut Tracer) -> io::Result<()>;
}

/// Files that are left to others of this process.
const RESERVED_FILES: u64 = 64;

/// How many flows may have a file each now.
pub(super) fn files_left() -> usize {
    let files = files::raise_limit().unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(RESERVED_FILES)).unwrap_or(usize::MAX)
}

/// The source address that the routes choose.
pub(super) fn own_address(destination: SocketAddr) -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((unspecified(destination), 0))?;
    socket.connect(match destination {
        // connect(2) to port 0 is never refused but has no meaning.
        SocketAddr::V4(_) => SocketAddr::new(destination.ip(), 9),
        SocketAddr::V6(mut v6) => {
            v6.set_port(9);
            v6.into()
        }
    })?;
    Ok(socket.local_addr()?.ip())
}

/// A local address with a port, on the destination's link for link-local addresses.
pub(super) fn local_sock_addr(source: IpAddr, port: u16, destination: SocketAddr) -> SockAddr {
    let mut address = SocketAddr::new(source, port);
    if let (SocketAddr::V6(address), SocketAddr::V6(destination)) = (&mut address, destination) {
        address.set_scope_id(destination.scope_id());
    }
    SockAddr::from(address)
}

pub(super) const fn unspecified(destination: SocketAddr) -> IpAddr {
    match destination {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

pub(super) const fn family(destination: SocketAddr) -> Family {
    match destination {
        SocketAddr::V4(_) => Family::V4,
        SocketAddr::V6(_) => Family::V6,
    }
}

pub(super) const fn icmp_family(destination: SocketAddr) -> neph_wire::icmp::Family {
    match destination {
        SocketAddr::V4(_) => neph_wire::icmp::Family::V4,
        SocketAddr::V6(_) => neph_wire::icmp::Family::V6,
    }
}

pub(super) const fn icmp_protocol(destination: SocketAddr) -> Protocol {
    match destination {
        SocketAddr::V4(_) => Protocol::ICMPV4,
        SocketAddr::V6(_) => Protocol::ICMPV6,
    }
}

/// A socket that never blocks.
pub(super) fn socket(
    destination: SocketAddr,
    kind: Type,
    protocol: Protocol,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(destination), kind, Some(protocol))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

pub(super) fn set_ttl(socket: &SockRef<'_>, destination: SocketAddr, ttl: u8) -> io::Result<()> {
    match destination {
        SocketAddr::V4(_) => socket.set_ttl_v4(u32::from(ttl)),
        SocketAddr::V6(_) => socket.set_unicast_hops_v6(u32::from(ttl)),
    }
}

/// The interface's queue is full.
const ENOBUFS: i32 = 105;
/// A send first reports errors of earlier probes, once for each of a few kinds.
const TRIES: usize = 4;

/// Sends a probe on a socket that counts its send timestamps, and adds it to the counted ones.
pub(super) fn send_counted(
    socket: &Socket,
    counted: &mut Vec<ProbeId>,
    probe: ProbeId,
    mut send: impl FnMut() -> io::Result<usize>,
) -> io::Result<()> {
    let mut failed = false;
    let is_out = try_to_send(|| {
        let outcome = send();
        failed |= outcome.is_err();
        outcome
    })?;
    if failed {
        // It is unknown which of the tries the kernel counted: this probe has no timestamp.
        stamp::restart_count(socket.as_fd(), stamp::Carrier::Datagrams)?;
        counted.clear();
    } else if is_out {
        counted.push(probe);
    }
    Ok(())
}

/// Passes the departure time of a counted probe to the tracer.
pub(super) fn note_left(
    clock: &StampClock,
    counted: &[ProbeId],
    stamp: SendStamp,
    tracer: &mut Tracer,
) {
    let at = usize::try_from(stamp.id).unwrap_or(usize::MAX);
    if let Some(probe) = counted.get(at)
        && let Some(tx_timestamp) = clock.own_instant(stamp.at)
    {
        tracer.on_tx_timestamp(*probe, tx_timestamp);
    }
}

/// When an answer arrived: by the kernel's timestamp if there is one, else now.
pub(super) fn arrival(clock: &StampClock, stamp: Option<WallNanos>) -> (Instant<Local>, ReadBy) {
    match stamp.and_then(|stamp| clock.own_instant(stamp)) {
        Some(at) => (at, ReadBy::Kernel),
        None => (now(), ReadBy::Program),
    }
}

/// Tries to send until errors of earlier probes are cleared. `Ok(false)`: not now.
fn try_to_send(mut send: impl FnMut() -> io::Result<usize>) -> io::Result<bool> {
    let mut outcome = send();
    for _ in 1..TRIES {
        if outcome.is_ok() {
            break;
        }
        outcome = send();
    }
    match outcome {
        Ok(_) => Ok(true),
        Err(error) if is_passing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a send may succeed later: a condition of the network, not of the settings.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
    ) || error.raw_os_error() == Some(ENOBUFS)
}

/// The meaning of an ICMP unreachable. From the destination itself it means that it was reached.
pub(super) fn reported_unreachable(from: IpAddr, destination: IpAddr, code: u8) -> AnswerKind {
    if from == destination {
        AnswerKind::Arrived
    } else {
        AnswerKind::Unreachable(code)
    }
}

/// The meaning of an ICMP error for a trace; `None`: nothing.
pub(super) fn reported_error(
    destination: SocketAddr,
    from: IpAddr,
    error: &IcmpError,
) -> Option<AnswerKind> {
    match (destination, error.kind) {
        (SocketAddr::V4(_), 11) | (SocketAddr::V6(_), 3) => Some(AnswerKind::Exceeded),
        (SocketAddr::V4(_), 3) | (SocketAddr::V6(_), 1) => {
            Some(reported_unreachable(from, destination.ip(), error.code))
        }
        _ => None,
    }
}

/// Where the payload of a probe may be changed: the last bits of an unused timestamp.
pub(super) const BALANCE_AT: usize = 10;

/// A STAMP request with this number, which a reflector answers.
pub(super) fn stamp_request(number: u16) -> Vec<u8> {
    let wall = neph_sys::clock::wall().0;
    let packet = SenderPacket {
        seq: u32::from(number),
        timestamp: Timestamp::from_unix(Wall::from_unix_nanos(wall).unix_nanos(), Format::Ntp)
            .unwrap_or(Timestamp(0)),
        error: estimate(),
        ssid: 0,
    };
    let mut out = Vec::new();
    packet.encode(Auth::Open, &mut out);
    out
}

fn estimate() -> ErrorEstimate {
    Synchrony::new(now()).estimate()
}
