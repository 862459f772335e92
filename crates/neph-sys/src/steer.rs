//! One UDP socket for thousands of ports: datagrams to chosen ports of this network namespace are
//! handed to it, wherever they would have gone.
//!
//! Owns a BPF program of the kind `sk_lookup` (Linux 5.9), its maps, and its link to the calling
//! thread's network namespace. The link goes away with its descriptor, so that a process that is
//! killed leaves nothing behind. Needs `CAP_BPF` and `CAP_NET_ADMIN`.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

mod program;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::bpf::{ARRAY, Attributes, Kind, LINK_CREATE, MAP_UPDATE, create_map, load};
use program::program;

/// A bit for each port.
const PORT_BYTES: u32 = (1 << 16) / 8;

/// A kind of map, a kind of program and a place to attach one (linux/bpf.h).
const SOCKMAP: u32 = 15;
const SK_LOOKUP: Kind = Kind {
    program: 30,
    attach: 36,
};

/// Ports whose datagrams go to one socket, as long as this lives.
#[derive(Debug)]
pub struct Steering {
    map: OwnedFd,
    bits: Box<[u8; PORT_BYTES as usize]>,
    _sockets: OwnedFd,
    _program: OwnedFd,
    _link: OwnedFd,
}

impl Steering {
    /// Begins to steer to `socket`, a bound UDP socket: no port yet. Only what comes from one of
    /// the `peers`' ports is steered; the rest of the host's traffic goes its way.
    ///
    /// # Errors
    /// `PermissionDenied` without the capabilities; `InvalidInput` where the kernel has no such
    /// programs.
    pub fn new(socket: BorrowedFd<'_>, peers: &[u16]) -> io::Result<Self> {
        let map = create_map(ARRAY, PORT_BYTES, 0)?;
        let sockets = create_map(SOCKMAP, 8, 0)?;
        let number = u64::try_from(socket.as_raw_fd()).unwrap_or(u64::MAX);
        update(sockets.as_fd(), &number.to_ne_bytes())?;
        let program = load(SK_LOOKUP, &program(map.as_fd(), sockets.as_fd(), peers)?)?;
        let link = link(program.as_fd())?;
        Ok(Self {
            map,
            bits: Box::new([0; PORT_BYTES as usize]),
            _sockets: sockets,
            _program: program,
            _link: link,
        })
    }

    /// Steers these ports too.
    ///
    /// # Errors
    /// None known.
    pub fn add(&mut self, ports: impl IntoIterator<Item = u16>) -> io::Result<()> {
        for port in ports {
            self.bits[usize::from(port / 8)] |= 1 << (port % 8);
        }
        update(self.map.as_fd(), &self.bits[..])
    }

    /// Steers this port no more.
    ///
    /// # Errors
    /// None known.
    pub fn remove(&mut self, port: u16) -> io::Result<()> {
        self.bits[usize::from(port / 8)] &= !(1 << (port % 8));
        update(self.map.as_fd(), &self.bits[..])
    }
}

fn update(map: BorrowedFd<'_>, value: &[u8]) -> io::Result<()> {
    let key = 0_u32;
    let attributes = Attributes::new()
        .fd(0, map)
        .pointer(8, &raw const key)
        .pointer(16, value.as_ptr());
    // SAFETY: key and value live for the call and have the sizes that the map was made with.
    unsafe { attributes.call(MAP_UPDATE) }.map(|_| ())
}

fn link(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let namespace = File::open("/proc/thread-self/ns/net")?;
    let attributes = Attributes::new()
        .fd(0, program)
        .fd(4, namespace.as_fd())
        .word(8, SK_LOOKUP.attach);
    // SAFETY: no pointer is passed.
    unsafe { attributes.open(LINK_CREATE) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::stamp::{self, Family};

    /// A port without a socket, as it seems.
    fn free() -> u16 {
        let socket = UdpSocket::bind("[::]:0").expect("a port");
        socket.local_addr().expect("bound").port()
    }

    /// Sends from `peer` to `to`; what the socket receives, if anything.
    fn reaches(socket: &UdpSocket, peer: &UdpSocket, to: u16) -> Option<u16> {
        let here = peer.local_addr().expect("bound").ip();
        peer.send_to(b"x", (here, to)).expect("sent");
        let received = stamp::receive(socket.as_fd(), &mut [0; 8]).ok()?;
        received.port
    }

    #[test]
    fn only_chosen_ports_and_peers_are_steered_until_the_steering_is_dropped() {
        // SAFETY: geteuid cannot fail and touches no memory.
        if unsafe { libc::geteuid() } != 0 {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "steering needs root"
            );
            println!("SKIP only_chosen_ports_and_peers_are_steered: BPF needs root");
            return;
        }
        for (here, family) in [("127.0.0.1", Family::V4), ("::1", Family::V6)] {
            let socket = UdpSocket::bind((here, 0)).expect("a port");
            socket
                .set_read_timeout(Some(Duration::from_millis(50)))
                .expect("set");
            stamp::enable_port(socket.as_fd(), family).expect("ports");
            let peer = UdpSocket::bind((here, 0)).expect("a port");
            let other_peer = UdpSocket::bind((here, 0)).expect("a port");
            let requested = peer.local_addr().expect("bound").port();
            let (first, second, other) = (free(), free(), free());
            let mut steering = match Steering::new(socket.as_fd(), &[9, requested]) {
                Ok(steering) => steering,
                Err(error) => {
                    println!("SKIP only_chosen_ports_and_peers_are_steered: {error}");
                    return;
                }
            };
            steering.add([first, second]).expect("told");
            assert_eq!(reaches(&socket, &peer, first), Some(first));
            assert_eq!(reaches(&socket, &peer, second), Some(second));
            assert_eq!(reaches(&socket, &peer, other), None);
            assert_eq!(reaches(&socket, &other_peer, first), None);
            steering.remove(first).expect("told");
            assert_eq!(reaches(&socket, &peer, first), None);
            drop(steering);
            assert_eq!(reaches(&socket, &peer, second), None);
        }
    }
}
