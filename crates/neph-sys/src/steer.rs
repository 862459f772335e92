//! One UDP socket for thousands of ports: datagrams to chosen ports of this network namespace are
//! handed to it, wherever they would have gone.
//!
//! Owns a BPF program of the kind `sk_lookup` (Linux 5.9), its maps, and its link to the calling
//! thread's network namespace. The link goes away with its descriptor, so that a process that is
//! killed leaves nothing behind. Needs `CAP_BPF` and `CAP_NET_ADMIN`.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

mod program;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use program::program;

/// A bit for each port.
const PORT_BYTES: u32 = (1 << 16) / 8;

/// Commands of bpf(2) (linux/bpf.h).
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
/// Kinds of maps, of programs and of places to attach them.
const ARRAY: u32 = 2;
const SOCKMAP: u32 = 15;
const PROG_SK_LOOKUP: u32 = 30;
const ATTACH_SK_LOOKUP: u32 = 36;

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
        let map = create_map(ARRAY, PORT_BYTES)?;
        let sockets = create_map(SOCKMAP, 8)?;
        let number = u64::try_from(socket.as_raw_fd()).unwrap_or(u64::MAX);
        update(sockets.as_fd(), &number.to_ne_bytes())?;
        let program = load(&program(map.as_fd(), sockets.as_fd(), peers))?;
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

/// The argument of bpf(2): a union of structures, here as bytes.
struct Attributes([u8; 128]);

impl Attributes {
    const fn new() -> Self {
        Self([0; 128])
    }

    fn word(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn long(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn fd(self, at: usize, fd: BorrowedFd<'_>) -> Self {
        self.word(at, fd.as_raw_fd().cast_unsigned())
    }

    /// Where `value` is. It must live as long as the call.
    fn pointer<T: ?Sized>(self, at: usize, value: *const T) -> Self {
        self.long(at, value.cast::<u8>() as u64)
    }

    /// # Safety
    /// Pointers that were written must point at what the command reads, alive for the call.
    unsafe fn call(&self, command: libc::c_long) -> io::Result<libc::c_int> {
        // SAFETY: the kernel reads the attributes, whose true size is told; the caller vouches for
        // what they point at. No command here writes through them.
        let outcome =
            unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_ptr(), self.0.len()) };
        libc::c_int::try_from(outcome)
            .ok()
            .filter(|outcome| *outcome >= 0)
            .ok_or_else(io::Error::last_os_error)
    }

    /// # Safety
    /// As [`Self::call`], with a command that returns a new descriptor.
    unsafe fn open(&self, command: libc::c_long) -> io::Result<OwnedFd> {
        // SAFETY: the caller vouches for the pointers.
        let fd = unsafe { self.call(command)? };
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// A map with one value.
fn create_map(kind: u32, value_size: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes::new()
        .word(0, kind)
        .word(4, 4)
        .word(8, value_size)
        .word(12, 1);
    // SAFETY: no pointer is told.
    unsafe { attributes.open(MAP_CREATE) }
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

fn load(instructions: &[u64]) -> io::Result<OwnedFd> {
    let license = c"GPL";
    let attributes = Attributes::new()
        .word(0, PROG_SK_LOOKUP)
        .word(4, u32::try_from(instructions.len()).unwrap_or(u32::MAX))
        .pointer(8, instructions.as_ptr())
        .pointer(16, license.as_ptr())
        .word(68, ATTACH_SK_LOOKUP);
    // SAFETY: instructions and license live for the call; their sizes are told (the license ends
    // with a zero).
    unsafe { attributes.open(PROG_LOAD) }
}

fn link(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let namespace = File::open("/proc/thread-self/ns/net")?;
    let attributes = Attributes::new()
        .fd(0, program)
        .fd(4, namespace.as_fd())
        .word(8, ATTACH_SK_LOOKUP);
    // SAFETY: no pointer is told.
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
    fn only_chosen_ports_and_peers_are_steered_and_the_end_is_the_end() {
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
            let stranger = UdpSocket::bind((here, 0)).expect("a port");
            let asked = peer.local_addr().expect("bound").port();
            let (first, second, other) = (free(), free(), free());
            let mut steering = match Steering::new(socket.as_fd(), &[9, asked]) {
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
            assert_eq!(reaches(&socket, &stranger, first), None);
            steering.remove(first).expect("told");
            assert_eq!(reaches(&socket, &peer, first), None);
            drop(steering);
            assert_eq!(reaches(&socket, &peer, second), None);
        }
    }
}
