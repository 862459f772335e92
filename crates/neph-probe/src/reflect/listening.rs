//! The sockets of a reflector: TCP and UDP on one port, for one IP version or for both.
//!
//! Owns the binding. Each version has separate sockets, so that a peer has only one address (not also
//! `::ffff:192.0.2.1` for 192.0.2.1).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use neph_sys::stamp::KeepAwake;
use socket2::{Domain, Protocol, Socket, Type};

use crate::ProbeError;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Tries to find a port that is free in both IP versions.
const MAX_TRIES: u32 = 16;
/// The host has no IPv6 (`EAFNOSUPPORT`), as `io::ErrorKind` does not name.
const EAFNOSUPPORT: i32 = 97;

/// TCP and UDP at the same port.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) listener: TcpListener,
    pub(super) datagrams: UdpSocket,
    port: u16,
}

/// Listens at `requested`. At `[::]` also for IPv4, and only for IPv4 where the host has no IPv6.
///
/// # Errors
/// The address is in use, or not one of this host.
pub(super) fn listen(requested: SocketAddr) -> Result<(Vec<Pair>, KeepAwake), ProbeError> {
    let fault = |error: ListenError| ProbeError::Socket {
        operation: error.operation,
        address: requested,
        source: error.source,
    };
    let pairs = pairs(requested).map_err(fault)?;
    let awake = KeepAwake::new().map_err(|source| fault(ListenError::of("listen on")(source)))?;
    Ok((pairs, awake))
}

/// A call that failed.
#[derive(Debug)]
struct ListenError {
    /// With the protocol: the other one may be free at this port.
    operation: &'static str,
    source: io::Error,
}

impl ListenError {
    fn of(operation: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self { operation, source }
    }
}

fn pairs(requested: SocketAddr) -> Result<Vec<Pair>, ListenError> {
    let of_all = requested.is_ipv6() && requested.ip().is_unspecified();
    if !of_all {
        return Ok(vec![pair(requested)?]);
    }
    let of_v4 = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let mut tries = 0;
    loop {
        let first = match pair(requested) {
            Err(error) if has_no_ipv6(&error.source) => {
                return Ok(vec![pair(of_v4(requested.port()))?]);
            }
            other => other?,
        };
        tries += 1;
        match pair(of_v4(first.port)) {
            Ok(second) => return Ok(vec![first, second]),
            Err(error)
                if requested.port() == 0
                    && error.source.kind() == io::ErrorKind::AddrInUse
                    && tries < MAX_TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

fn has_no_ipv6(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(EAFNOSUPPORT)
}

/// Binds TCP and UDP to the same port.
fn pair(requested: SocketAddr) -> Result<Pair, ListenError> {
    let (listener, address) = listen_tcp(requested).map_err(ListenError::of("listen on TCP"))?;
    let datagrams = bind_udp(address).map_err(ListenError::of("listen on UDP"))?;
    Ok(Pair {
        listener,
        datagrams,
        port: address.port(),
    })
}

fn listen_tcp(requested: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let tcp = open(requested, Type::STREAM, Protocol::TCP)?;
    tcp.set_reuse_address(true)?;
    tcp.bind(&requested.into())?;
    tcp.listen(BACKLOG)?;
    let listener = TcpListener::from(tcp);
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn bind_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let udp = open(address, Type::DGRAM, Protocol::UDP)?;
    udp.bind(&address.into())?;
    Ok(udp.into())
}

fn open(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpStream};

    use super::*;

    #[test]
    fn the_unspecified_ipv6_address_listens_on_both_ip_versions() {
        let pairs = pairs((Ipv6Addr::UNSPECIFIED, 0).into()).expect("some port is free");
        let port = pairs[0].listener.local_addr().expect("bound").port();
        assert!(pairs.iter().all(|pair| {
            let udp = pair.datagrams.local_addr().map(|address| address.port());
            let tcp = pair.listener.local_addr().map(|address| address.port());
            (tcp.ok(), udp.ok()) == (Some(port), Some(port))
        }));
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("IPv4 is answered");
        if pairs.len() == 2 {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).expect("IPv6 is answered");
        }
    }
}
