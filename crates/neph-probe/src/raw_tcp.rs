//! Sockets for TCP segments that are built here (`CAP_NET_RAW`), and for holding their ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use neph_model::SynAnswer;
use neph_sys::stamp::Family;
use neph_wire::ip::parse_ip;
use neph_wire::syn::Verdict;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Whether such sockets are permitted.
pub(crate) fn is_permitted() -> bool {
    open(Family::V4).is_ok() || open(Family::V6).is_ok()
}

/// A socket that receives all TCP segments to this host and is not connected.
pub(crate) fn open(family: Family) -> io::Result<Socket> {
    let domain = match family {
        Family::V4 => Domain::IPV4,
        Family::V6 => Domain::IPV6,
    };
    Socket::new(domain, Type::RAW.nonblocking(), Some(Protocol::TCP))
}

/// A socket for this target, and the local address towards it, without a port.
pub(crate) fn connected(target: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let socket = open(family(target))?;
    // A raw socket has no ports; IPv6 takes one for the number of a protocol.
    let mut host = target;
    host.set_port(0);
    socket.connect(&SockAddr::from(host))?;
    let mut source = local(&socket)?;
    source.set_port(0);
    Ok((socket, source))
}

/// Takes a local port with a TCP socket that does not listen. So no other program gets it and the kernel
/// refuses segments to it. Port 0: any free one.
pub(crate) fn hold(local_address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(local_address);
    let holder = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    if local_address.is_ipv6() {
        holder.set_only_v6(true)?;
    }
    holder.bind(&SockAddr::from(local_address))?;
    Ok(holder)
}

/// The unspecified address of the target's version, with this port.
pub(crate) fn any(target: SocketAddr, port: u16) -> SocketAddr {
    match target {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
    }
}

/// The local address of a socket.
pub(crate) fn local(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?.as_socket();
    address.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

pub(crate) const fn family(address: SocketAddr) -> Family {
    match address {
        SocketAddr::V4(_) => Family::V4,
        SocketAddr::V6(_) => Family::V6,
    }
}

/// The answer of a segment to a SYN, in the terms of measurements.
pub(crate) const fn answer(verdict: Verdict) -> SynAnswer {
    match verdict {
        Verdict::Accepted => SynAnswer::SynAck,
        Verdict::Refused => SynAnswer::Rst,
    }
}

/// The segment in the bytes of a raw socket, and its TTL if the IP header is included, as for IPv4.
pub(crate) fn segment(family: Family, packet: &[u8]) -> Option<(&[u8], Option<u8>)> {
    match family {
        Family::V4 => {
            let ip = parse_ip(packet).ok()?;
            matches!(ip.source, IpAddr::V4(_)).then_some((ip.payload, Some(ip.ttl)))
        }
        Family::V6 => Some((packet, None)),
    }
}
