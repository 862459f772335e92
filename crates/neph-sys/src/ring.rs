//! A packet socket on one interface with a memory-mapped receive ring (`TPACKET_V2`).
//!
//! Owns the socket, its ring and the order of frames in it. Does not look into packets and does
//! not wait: poll the descriptor ([`AsFd`]). Sending goes through the same socket.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a ring's memory block.
pub const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of a slot for one frame, its kernel header of 66 bytes included.
pub const SLOT_BYTES: usize = 2048;
/// The longest frame that fits a slot whole; a longer one is cut (see [`Frame::is_cut`]).
pub const LONGEST_FRAME: usize = SLOT_BYTES - 66;

/// A packet socket that could not be set up or used.
#[derive(Debug, thiserror::Error)]
#[error("{operation} on interface {interface}: {source}")]
pub struct RingError {
    operation: &'static str,
    interface: String,
    source: io::Error,
}

impl RingError {
    /// What kind of failure the kernel reported.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// Which packets the ring sees, and how those sent through it travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// On the wire: only what arrives is seen; what is sent skips the queueing discipline.
    Wire,
    /// Beside a host: both what arrives and what the host sends is seen.
    Tap,
}

/// What the kernel counted since the last question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Packets seen, those dropped included.
    pub packets: u32,
    /// Packets dropped because the ring was full.
    pub dropped: u32,
}

/// A packet socket bound to an interface, with its receive ring.
#[derive(Debug)]
pub struct PacketRing {
    socket: OwnedFd,
    memory: NonNull<u8>,
    blocks: usize,
    next: usize,
    locked: bool,
    interface: String,
}

// SAFETY: the mapping belongs to this value alone and is reached only through `&mut self`
// (frames) or atomics; nothing in it is tied to the thread that made it.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Opens a ring of `blocks` (1 to 1024) times 1 MiB on `interface` of the calling thread's
    /// network namespace. Its memory is locked where the kernel permits that.
    ///
    /// # Errors
    /// No `CAP_NET_RAW`, no such interface, or not enough memory.
    pub fn open(interface: &str, blocks: usize, seat: Seat) -> Result<Self, RingError> {
        let failed = |operation| {
            let (interface, source) = (interface.to_owned(), io::Error::last_os_error());
            RingError {
                operation,
                interface,
                source,
            }
        };
        let index = interface_index(interface).ok_or_else(|| failed("find the index"))?;
        // Protocol 0: nothing is received before the ring stands and the socket is bound.
        // SAFETY: socket takes integers only.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            return Err(failed("open a packet socket (needs CAP_NET_RAW)"));
        }
        // SAFETY: the kernel just gave us this descriptor and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        prepare(&socket, seat).map_err(|()| failed("set packet socket options"))?;
        let blocks = blocks.clamp(1, 1024);
        ask_for_ring(&socket, blocks).map_err(|()| failed("make a receive ring"))?;
        let (memory, locked) =
            map(&socket, blocks * BLOCK_BYTES).ok_or_else(|| failed("map a receive ring"))?;
        // From here on dropping `ring` unmaps.
        let ring = Self {
            socket,
            memory,
            blocks,
            next: 0,
            locked,
            interface: interface.into(),
        };
        bind(&ring.socket, index).map_err(|()| failed("bind a packet socket"))?;
        Ok(ring)
    }

    /// Whether the ring's memory is locked against paging.
    pub const fn is_locked(&self) -> bool {
        self.locked
    }

    /// The interface it was opened on.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The next frame that waits in the ring, or none. Its slot goes back to the kernel when the
    /// frame is dropped.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let slot = self.slot(self.next);
        // SAFETY: every slot begins with a tpacket2_hdr whose first word is the status that kernel
        // and process hand each other; the slot is aligned to 2048 and inside the mapping.
        let status = unsafe { slot.cast::<AtomicU32>().as_ref() };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        self.next = (self.next + 1) % (self.blocks * (BLOCK_BYTES / SLOT_BYTES));
        // SAFETY: the acquire load saw the slot handed to us, so the kernel writes it no more
        // until we store TP_STATUS_KERNEL, which only the frame's drop does.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().as_ptr().read() };
        Some(Frame {
            slot,
            header,
            ring: std::marker::PhantomData,
        })
    }

    /// Sends one whole Ethernet frame out of the interface, without waiting.
    ///
    /// # Errors
    /// `NetworkDown` when the interface went away, `WouldBlock` or `ENOBUFS` when the kernel has
    /// no room.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer is a live slice and its length is told.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// What the kernel counted since the last call (asking resets it).
    ///
    /// # Errors
    /// None in practice: the socket is ours.
    pub fn counts(&self) -> io::Result<RingCounts> {
        let mut stats = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = socklen::<libc::tpacket_stats>();
        // SAFETY: PACKET_STATISTICS writes one tpacket_stats, whose size is told.
        let outcome = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        match outcome {
            0 => Ok(RingCounts {
                packets: stats.tp_packets,
                dropped: stats.tp_drops,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn slot(&self, number: usize) -> NonNull<u8> {
        // SAFETY: `number` is below blocks * slots per block, so the offset stays in the mapping.
        unsafe { self.memory.add(number * SLOT_BYTES) }
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length; frames borrow the ring, so
        // none is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.blocks * BLOCK_BYTES) };
    }
}

/// A frame in the ring, from its Ethernet header on.
#[derive(Debug)]
pub struct Frame<'ring> {
    slot: NonNull<u8>,
    header: libc::tpacket2_hdr,
    ring: std::marker::PhantomData<&'ring mut PacketRing>,
}

impl Frame<'_> {
    /// The bytes that were kept, Ethernet header first.
    pub fn bytes(&self) -> &[u8] {
        let start = usize::from(self.header.tp_mac);
        let length = (self.header.tp_snaplen as usize).min(SLOT_BYTES.saturating_sub(start));
        // SAFETY: the kernel filled `snaplen` bytes at `mac` within this slot (bounded again
        // above), and the slot stays ours until drop.
        unsafe { std::slice::from_raw_parts(self.slot.add(start).as_ptr(), length) }
    }

    /// When the kernel saw it: nanoseconds of `CLOCK_REALTIME` since the epoch.
    pub fn stamp(&self) -> i64 {
        i64::from(self.header.tp_sec) * 1_000_000_000 + i64::from(self.header.tp_nsec)
    }

    /// Its length on the wire in bytes, Ethernet header included, checksum not.
    pub fn wire_length(&self) -> u32 {
        self.header.tp_len
    }

    /// Whether [`Self::bytes`] is shorter than the frame was.
    pub fn is_cut(&self) -> bool {
        self.header.tp_snaplen < self.header.tp_len
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        // SAFETY: as in `next_frame`; the release store ends our reading before the kernel writes.
        let status = unsafe { self.slot.cast::<AtomicU32>().as_ref() };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

fn interface_index(interface: &str) -> Option<libc::c_int> {
    let name = std::ffi::CString::new(interface).ok()?;
    // SAFETY: a C string alive for the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    libc::c_int::try_from(index).ok().filter(|&index| index > 0)
}

fn prepare(socket: &OwnedFd, seat: Seat) -> Result<(), ()> {
    let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
    option(socket, libc::PACKET_VERSION, &version)?;
    match seat {
        Seat::Wire => {
            option(socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
            option(socket, libc::PACKET_QDISC_BYPASS, &1)
        }
        Seat::Tap => Ok(()),
    }
}

fn option<T>(socket: &OwnedFd, name: libc::c_int, value: &T) -> Result<(), ()> {
    // SAFETY: the option reads size_of::<T>() bytes from a value alive for the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            name,
            std::ptr::from_ref(value).cast(),
            socklen::<T>(),
        )
    };
    if outcome == 0 { Ok(()) } else { Err(()) }
}

fn ask_for_ring(socket: &OwnedFd, blocks: usize) -> Result<(), ()> {
    let small = |number: usize| u32::try_from(number).expect("at most 1024 blocks of 1 MiB");
    let request = libc::tpacket_req {
        tp_block_size: small(BLOCK_BYTES),
        tp_block_nr: small(blocks),
        tp_frame_size: small(SLOT_BYTES),
        tp_frame_nr: small(blocks * (BLOCK_BYTES / SLOT_BYTES)),
    };
    option(socket, libc::PACKET_RX_RING, &request)
}

/// Maps the ring, locked if permitted; tells which.
fn map(socket: &OwnedFd, length: usize) -> Option<(NonNull<u8>, bool)> {
    let attempt = |extra| {
        // SAFETY: a fresh shared mapping of the ring that was just made, of exactly its length.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | extra,
                socket.as_raw_fd(),
                0,
            )
        };
        (memory != libc::MAP_FAILED)
            .then(|| NonNull::new(memory.cast::<u8>()))
            .flatten()
    };
    let locked = attempt(libc::MAP_LOCKED | libc::MAP_POPULATE).map(|memory| (memory, true));
    locked.or_else(|| attempt(0).map(|memory| (memory, false)))
}

fn bind(socket: &OwnedFd, index: libc::c_int) -> Result<(), ()> {
    // SAFETY: sockaddr_ll is plain C data for which all zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).expect("17");
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).expect("3").to_be();
    address.sll_ifindex = index;
    // SAFETY: the address lives for the call and its true size is told.
    let outcome = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            socklen::<libc::sockaddr_ll>(),
        )
    };
    if outcome == 0 { Ok(()) } else { Err(()) }
}

fn socklen<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("option structs are small")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{NetNs, remove, with_namespace};
    use crate::ppoll::{Awaited, wait};
    use std::net::UdpSocket;
    use std::process::Command;
    use std::time::Duration;

    fn with_loopback(test: &str, work: impl FnOnce() + Send) {
        // SAFETY: geteuid cannot fail and touches no memory.
        if unsafe { libc::geteuid() } != 0 {
            assert!(
                std::env::var("CI").as_deref() != Ok("true"),
                "{test} needs root"
            );
            println!("SKIP {test}: packet sockets need root");
            return;
        }
        let name = format!("nephring-{}", std::process::id());
        let ns = NetNs::create(&name).expect("make a namespace");
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            with_namespace(&ns, || {
                let up = Command::new("ip")
                    .args(["link", "set", "lo", "up"])
                    .status();
                assert!(up.expect("the ip program").success());
                work();
            })
        }));
        remove(&name).expect("remove");
        outcome
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .expect("enter");
    }

    #[test]
    fn frames_come_in_order_with_stamps_and_slots_are_given_back() {
        with_loopback(
            "frames_come_in_order_with_stamps_and_slots_are_given_back",
            || {
                let mut ring = PacketRing::open("lo", 1, Seat::Wire).expect("ring");
                let socket = UdpSocket::bind("127.0.0.1:0").expect("socket");
                let target = socket.local_addr().expect("address");
                // More than the 512 slots of the ring, so that each is used again.
                let mut last = 0;
                for number in 0_u16..1300 {
                    socket.send_to(&number.to_be_bytes(), target).expect("send");
                    let mut awaited = [Awaited::readable(ring.as_fd())];
                    wait(&mut awaited, Some(Duration::from_secs(2))).expect("wait");
                    let frame = ring.next_frame().expect("a frame waits");
                    assert_eq!(frame.bytes()[42..44], number.to_be_bytes());
                    assert_eq!(frame.wire_length(), 44);
                    assert!(!frame.is_cut() && frame.stamp() > last);
                    last = frame.stamp();
                }
                assert!(ring.next_frame().is_none());
                assert_eq!(
                    ring.counts().expect("counts"),
                    RingCounts {
                        packets: 1300,
                        dropped: 0
                    }
                );
            },
        );
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = PacketRing::open("no-such-if0", 1, Seat::Tap).expect_err("it does not exist");
        assert!(error.to_string().contains("no-such-if0"), "{error}");
    }
}
