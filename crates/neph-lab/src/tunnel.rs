//! A tunnel in user space, as in early Flannel (udp backend) and Weave's sleeve mode. A program at each host
//! reads packets from a TUN interface and sends them inside UDP to the host of their destination.
//!
//! Owns the loop and the choice of the peer. The overlay creates interfaces and routes. The tunnel has
//! ordinary priority, like the programs that it emulates. Their cost, two wake-ups and two copies per packet,
//! is part of the result.

use std::io::{self, PipeReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use neph_sys::ppoll::{self, Awaited};
use neph_sys::tun::{Tun, TunError};

use crate::topology::Prefix;

/// Packets that are read from one side before the other side continues.
const BATCH: usize = 8;
/// The longest possible packet.
const MAX_PACKET_SIZE: usize = 65_535;

/// Another end of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The network behind it.
    pub(crate) subnet: Prefix<Ipv4Addr>,
    /// Its address.
    pub(crate) endpoint: SocketAddr,
}

/// The configuration of an end of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TunnelConfig {
    /// Its TUN interface.
    pub(crate) interface: String,
    /// The local address for receiving and sending.
    pub(crate) listen: SocketAddr,
    /// All other ends.
    pub(crate) peers: Vec<Peer>,
}

/// An end of a tunnel that could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// Its interface failed.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// Its socket failed.
    #[error("tunnel {interface}: listen at {listen}: {source}")]
    Listen {
        /// The interface of the tunnel.
        interface: String,
        /// The address.
        listen: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// Waiting failed.
    #[error("tunnel {interface}: wait for packets: {source}")]
    Wait {
        /// The interface of the tunnel.
        interface: String,
        /// The error.
        source: io::Error,
    },
}

/// An end of a tunnel that is ready for packets.
#[derive(Debug)]
pub(crate) struct Tunnel {
    config: TunnelConfig,
    tun: Tun,
    socket: UdpSocket,
}

impl Tunnel {
    /// Opens it in the network namespace of the calling thread. Its interface must not be up yet.
    pub(crate) fn open(config: TunnelConfig) -> Result<Self, TunnelError> {
        let tun = Tun::attach(&config.interface)?;
        let socket = UdpSocket::bind(config.listen)
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .map_err(|source| TunnelError::Listen {
                interface: config.interface.clone(),
                listen: config.listen,
                source,
            })?;
        Ok(Self {
            config,
            tun,
            socket,
        })
    }

    /// Forwards packets until the writing end of `stop` is closed or the interface is removed.
    pub(crate) fn run(&self, stop: &PipeReader) -> Result<(), TunnelError> {
        let mut buffer = vec![0; MAX_PACKET_SIZE];
        loop {
            let mut poll_fds =
                [self.tun.as_fd(), self.socket.as_fd(), stop.as_fd()].map(Awaited::readable);
            ppoll::wait(&mut poll_fds, None).map_err(|source| TunnelError::Wait {
                interface: self.config.interface.clone(),
                source,
            })?;
            if poll_fds[2].is_gone() || poll_fds[0].is_hung_up() {
                return Ok(());
            }
            if self.forward_to_peers(&mut buffer).is_err() {
                // The interface was removed: the lab is being taken down.
                return Ok(());
            }
            self.forward_to_interface(&mut buffer);
        }
    }

    /// From the interface to the peers. Packets without a peer, or that cannot be sent, are lost.
    fn forward_to_peers(&self, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(length) = self.tun.read(buffer)? else {
                break;
            };
            if let Some(peer) = self.config.find_peer(&buffer[..length]) {
                let _ = self.socket.send_to(&buffer[..length], peer);
            }
        }
        Ok(())
    }

    /// From the peers to the interface. Packets of unknown senders are ignored.
    fn forward_to_interface(&self, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            // An error is an ICMP message about an earlier packet, or there is nothing left to read.
            let Ok((length, from)) = self.socket.recv_from(buffer) else {
                break;
            };
            if self.config.peers.iter().any(|peer| peer.endpoint == from) {
                let _ = self.tun.write(&buffer[..length]);
            }
        }
    }
}

impl TunnelConfig {
    /// The destination of an IPv4 packet: the peer with the longest prefix that contains its address.
    fn find_peer(&self, packet: &[u8]) -> Option<SocketAddr> {
        if packet.first()? >> 4 != 4 {
            return None;
        }
        let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
        let destination = Ipv4Addr::from(octets);
        let contains_destination = |peer: &&Peer| peer.subnet.contains(destination);
        let matching = self.peers.iter().filter(contains_destination);
        Some(matching.max_by_key(|peer| peer.subnet.bits)?.endpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_to(destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&destination);
        packet
    }

    #[test]
    fn a_packet_goes_to_the_host_of_its_destination() {
        let peer = |subnet: [u8; 4], prefix_len, host| Peer {
            subnet: Prefix {
                address: subnet.into(),
                bits: prefix_len,
            },
            endpoint: SocketAddr::from(([10, 0, 0, host], 8285)),
        };
        let config = TunnelConfig {
            interface: "tun".into(),
            listen: SocketAddr::from(([10, 0, 0, 1], 8285)),
            peers: vec![
                peer([10, 200, 2, 0], 24, 2),
                peer([10, 200, 0, 0], 16, 3),
                peer([10, 200, 2, 7], 32, 4),
            ],
        };
        let last_octet = |destination| match config.find_peer(&packet_to(destination)) {
            Some(SocketAddr::V4(endpoint)) => endpoint.ip().octets()[3],
            _ => 0,
        };
        assert_eq!(last_octet([10, 200, 2, 1]), 2);
        assert_eq!(last_octet([10, 200, 3, 1]), 3);
        assert_eq!(last_octet([10, 200, 2, 7]), 4);
        assert_eq!(last_octet([10, 201, 2, 7]), 0, "nobody's");
        let mut ipv6_packet = packet_to([10, 200, 2, 1]);
        ipv6_packet[0] = 0x60;
        assert_eq!(config.find_peer(&ipv6_packet), None);
        assert_eq!(config.find_peer(&ipv6_packet[..10]), None);
        assert_eq!(config.find_peer(&[]), None);
    }
}
