//! Sockets for TCP segments of our own making (`CAP_NET_RAW`), and holding the ports they use.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use neph_model::SynAnswer;
use neph_sys::stamp::Family;
use neph_wire::ip::parse_ip;
use neph_wire::syn::Verdict;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Whether such sockets can be had.
pub(crate) fn is_permitted() -> bool {
    open(Family::V4).is_ok() || open(Family::V6).is_ok()
}

/// One that receives whatever TCP segments come to this host, and connects to nobody.
pub(crate) fn open(family: Family) -> io::Result<Socket> {
    let domain = match family {
        Family::V4 => Domain::IPV4,
        Family::V6 => Domain::IPV6,
    };
    Socket::new(domain, Type::RAW.nonblocking(), Some(Protocol::TCP))
}

/// One for this target, and our address towards it, without a port.
pub(crate) fn connected(target: SocketAddr) -> io::Result<(Socket, SocketAddr)> {
    let socket = open(family(target))?;
    // A raw socket knows no ports; IPv6 takes one for the number of a protocol.
    let mut host = target;
    host.set_port(0);
    socket.connect(&SockAddr::from(host))?;
    let mut source = local(&socket)?;
    source.set_port(0);
    Ok((socket, source))
}

/// Takes a port of ours with a TCP socket that does not listen, so that nobody else gets it and our
/// kernel refuses what comes to it. Port 0: whichever is free.
pub(crate) fn hold(ours: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(ours);
    let holder = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    if ours.is_ipv6() {
        holder.set_only_v6(true)?;
    }
    holder.bind(&SockAddr::from(ours))?;
    Ok(holder)
}

/// Any address of ours of the target's version, with this port.
pub(crate) fn any(target: SocketAddr, port: u16) -> SocketAddr {
    match target {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
    }
}

/// Where a socket is.
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

/// What a segment says to a SYN, in the words of measurements.
pub(crate) const fn answer(verdict: Verdict) -> SynAnswer {
    match verdict {
        Verdict::Accepted => SynAnswer::SynAck,
        Verdict::Refused => SynAnswer::Rst,
    }
}

/// The segment in what a raw socket received, and its TTL where the IP header came along, as with
/// IPv4.
pub(crate) fn segment(family: Family, packet: &[u8]) -> Option<(&[u8], Option<u8>)> {
    match family {
        Family::V4 => {
            let ip = parse_ip(packet).ok()?;
            matches!(ip.source, IpAddr::V4(_)).then_some((ip.payload, Some(ip.ttl)))
        }
        Family::V6 => Some((packet, None)),
    }
}
