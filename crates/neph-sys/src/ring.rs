//! A packet socket on one interface with a memory-mapped receive ring (`TPACKET_V2`).
//!
//! Owns the socket, its ring and the order of frames in it. Does not look into packets and does
//! not wait: poll the descriptor ([`AsFd`]). Sending goes through the same socket. To listen only,
//! use a [`BlockRing`], which is woken by many packets at a time.

#![expect(
    unsafe_code,
    reason = "system calls; each block states why it is sound"
)]

mod blocks;
mod frame;
mod packet;
mod setup;

#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

pub use blocks::{Block, BlockCounts, BlockRing, FilterStep, Gauge, Packets, Taking, hardware};
pub use frame::Frame;
pub use packet::{Packet, Tag};
pub(crate) use setup::interface_index;
use setup::{ask_for_ring, bind, map, packet_socket, prepare, socklen};

/// Bytes of a ring's memory block: 512 frames. With blocks of 64 KiB links left late.
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
    pub(crate) fn new(operation: &'static str, interface: &str, source: io::Error) -> Self {
        Self {
            operation,
            interface: interface.to_owned(),
            source,
        }
    }

    /// What kind of failure the kernel reported.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether there is no such interface.
    pub fn is_missing(&self) -> bool {
        self.source.raw_os_error() == Some(libc::ENODEV)
    }
}

/// Which packets the ring sees, and how those sent through it travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingMode {
    /// On the wire: only what arrives is seen; what is sent skips the queueing discipline.
    Wire,
    /// Alongside a host: both received and sent packets are seen.
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
    /// Opens a ring of `blocks` (1 to 1024) of [`BLOCK_BYTES`] on `interface` of the calling thread's
    /// network namespace. Its memory is locked where the kernel permits that.
    ///
    /// # Errors
    /// No `CAP_NET_RAW`, no such interface, or not enough memory.
    pub fn open(interface: &str, blocks: usize, mode: RingMode) -> Result<Self, RingError> {
        let failed = |operation| {
            let (interface, source) = (interface.to_owned(), io::Error::last_os_error());
            RingError {
                operation,
                interface,
                source,
            }
        };
        let index = interface_index(interface).ok_or_else(|| failed("find the index"))?;
        let socket =
            packet_socket().ok_or_else(|| failed("open a packet socket (needs CAP_NET_RAW)"))?;
        prepare(&socket, mode).map_err(|()| failed("set packet socket options"))?;
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
            ring: PhantomData,
        })
    }

    /// Sends one whole Ethernet frame out of the interface, without waiting.
    ///
    /// # Errors
    /// `NetworkDown` when the interface went away, `WouldBlock` or `ENOBUFS` when the kernel has
    /// no room.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer is a live slice and its length is passed.
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
    /// None in practice: this value owns the socket.
    pub fn counts(&self) -> io::Result<RingCounts> {
        let mut stats = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = socklen::<libc::tpacket_stats>();
        // SAFETY: PACKET_STATISTICS writes one tpacket_stats, whose size is passed.
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
