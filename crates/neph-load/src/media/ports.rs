//! Two adjacent UDP ports: an even one for RTP and the next for RTCP (RFC 3550, section 11).

use std::io;
use std::net::{SocketAddr, UdpSocket};

use neph_wire::rtsp::PortPair;

/// Maximum number of attempts.
const TRIES: usize = 64;

/// Sockets of the two ports.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) rtp: UdpSocket,
    pub(super) rtcp: UdpSocket,
    pub(super) ports: PortPair,
}

/// Opens two ports on an address; the port of `address` is ignored.
pub(super) fn open(address: SocketAddr) -> io::Result<Pair> {
    let mut failed = io::Error::from(io::ErrorKind::AddrInUse);
    let bind = |port| {
        let mut address = address;
        address.set_port(port);
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        io::Result::Ok(socket)
    };
    for _ in 0..TRIES {
        let socket = bind(0)?;
        let port = socket.local_addr()?.port();
        let other = match bind(port ^ 1) {
            Ok(other) => other,
            Err(error) => {
                failed = error;
                continue;
            }
        };
        let even = port & !1;
        let ports = PortPair {
            rtp: even,
            rtcp: Some(even | 1),
        };
        let is_even = port == even;
        let [first, second] = if is_even {
            [socket, other]
        } else {
            [other, socket]
        };
        return Ok(Pair {
            rtp: first,
            rtcp: second,
            ports,
        });
    }
    Err(failed)
}

/// An IPv4-mapped address as an IPv4 one.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => SocketAddr::new(ip, address.port()),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtp_has_an_even_port_and_rtcp_the_next() {
        for _ in 0..8 {
            let pair = open(([127, 0, 0, 1], 0).into()).expect("ports");
            let port = |socket: &UdpSocket| socket.local_addr().expect("bound").port();
            assert_eq!(port(&pair.rtp), pair.ports.rtp);
            assert_eq!(pair.ports.rtp % 2, 0);
            assert_eq!(Some(port(&pair.rtcp)), pair.ports.rtcp);
            assert_eq!(pair.ports.rtcp, Some(pair.ports.rtp + 1));
        }
    }

    #[test]
    fn ipv4_mapped_addresses_are_converted_to_ipv4() {
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:5".parse().expect("an address");
        assert_eq!(plain(mapped), ([10, 0, 0, 1], 5).into());
    }
}
