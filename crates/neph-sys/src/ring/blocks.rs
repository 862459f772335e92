//! A receive ring that hands over packets by the block (`TPACKET_V3`): for listening at high rates.
//!
//! Owns the socket, its ring, the filter in front of it and the order of blocks. A block comes when
//! it is full or when its oldest packet has waited long enough. Sends nothing, does not look into
//! packets and does not wait: poll the descriptor ([`AsFd`]).

mod block;

#[cfg(test)]
mod tests;

use std::io;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use block::{Block, Packets};

use super::setup::{
    bare_packet_socket, bind, interface_index, map, option, packet_socket, socklen,
};
use super::{BLOCK_BYTES, RingError};

/// Where a block's status stands: behind its version and the offset of private bytes.
const STATUS_AT: usize = 8;
/// What the kernel takes for a frame's least room. Frames have the length they need.
const FRAME_BYTES: usize = 2048;

/// An instruction of classic BPF, as `struct sock_filter` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterStep {
    /// What to do.
    pub code: u16,
    /// Instructions to skip where a comparison holds.
    pub jt: u8,
    /// Instructions to skip where it does not.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// What a ring takes in, and how it hands it over.
#[derive(Clone, Copy, Debug)]
pub struct Taking<'a> {
    /// Blocks of [`BLOCK_BYTES`], 2 to 1024. One that is being read cannot be written.
    pub blocks: usize,
    /// A block that is not full comes after about so long, 1 ms to 10 s.
    pub wake: Duration,
    /// Which packets, and how many bytes of each: a program of classic BPF, at most 4096 steps. The
    /// kernel refuses a wrong one. All packets, whole, where it is empty.
    pub filter: &'a [FilterStep],
}

/// What the kernel counted since the last question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Packets that passed the filter, those dropped included.
    pub packets: u32,
    /// Packets dropped because no block was free.
    pub dropped: u32,
    /// How often no block was free.
    pub frozen: u32,
}

/// A packet socket bound to an interface, with its receive ring.
#[derive(Debug)]
pub struct BlockRing {
    socket: OwnedFd,
    mapping: Arc<Mapping>,
    next: usize,
}

/// How full a ring is, for another thread than the one that reads it.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Mapping>);

/// A ring's memory. Code that reads it beyond the status of its blocks holds the [`BlockRing`].
#[derive(Debug)]
struct Mapping {
    memory: NonNull<u8>,
    blocks: usize,
}

// SAFETY: nothing in the mapping is tied to the thread that made it. Packets in it are reached only
// through `&mut BlockRing`, the status of blocks by atomics only.
unsafe impl Send for Mapping {}
// SAFETY: likewise.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Where block `number` begins, which is below `blocks`.
    fn block(&self, number: usize) -> NonNull<u8> {
        debug_assert!(number < self.blocks, "a block of the ring");
        // SAFETY: as the callers say, the offset stays in the mapping.
        unsafe { self.memory.add(number * BLOCK_BYTES) }
    }

    /// Whether block `number` is the process's.
    fn is_ready(&self, number: usize) -> bool {
        // SAFETY: every block begins with a tpacket_block_desc, whose status kernel and process hand
        // each other; the block is aligned to a page and inside the mapping.
        let status = unsafe {
            self.block(number)
                .add(STATUS_AT)
                .cast::<AtomicU32>()
                .as_ref()
        };
        status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length; every reader has a share of this value,
        // so there is none left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.blocks * BLOCK_BYTES) };
    }
}

impl Gauge {
    /// The part of the ring that waits to be read, 0 to 1. Looks at each block.
    pub fn filled(&self) -> f64 {
        let ready = (0..self.0.blocks).filter(|&number| self.0.is_ready(number));
        let share = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        share(ready.count()) / share(self.0.blocks)
    }
}

impl BlockRing {
    /// So many blocks of [`BLOCK_BYTES`] a ring has; less is made more, and more less.
    pub const BLOCKS: RangeInclusive<usize> = 2..=1024;

    /// Opens a ring on `interface` of the calling thread's network namespace. Both what arrives and
    /// what the host sends is seen; on loopback, where a packet is both, once.
    ///
    /// # Errors
    /// No `CAP_NET_RAW`, no such interface, not enough memory, or a filter that the kernel refuses.
    pub fn open(interface: &str, taking: &Taking<'_>) -> Result<Self, RingError> {
        let failed = |operation| failed(operation, interface);
        let index = interface_index(interface).ok_or_else(|| failed("find the index"))?;
        let socket =
            packet_socket().ok_or_else(|| failed("open a packet socket (needs CAP_NET_RAW)"))?;
        let kind = kind(&socket, interface).ok_or_else(|| failed("ask for the kind"))?;
        if kind == libc::ARPHRD_LOOPBACK {
            option(&socket, libc::PACKET_IGNORE_OUTGOING, &1)
                .map_err(|()| failed("leave out what is sent"))?;
        }
        Self::make(socket, index, taking).map_err(failed)
    }

    /// Opens a ring on all interfaces of the calling thread's network namespace, including later ones.
    /// Packets come without link header; [`protocol`](super::packet::Packet::protocol) is their type. They
    /// come as often as they pass an interface; on loopback both as sent and as received
    /// ([`is_echo`](super::packet::Packet::is_echo)).
    ///
    /// # Errors
    /// No `CAP_NET_RAW`, not enough memory, or a filter that the kernel refuses.
    pub fn open_any(taking: &Taking<'_>) -> Result<Self, RingError> {
        let failed = |operation| failed(operation, "any");
        let socket = bare_packet_socket()
            .ok_or_else(|| failed("open a packet socket (needs CAP_NET_RAW)"))?;
        Self::make(socket, 0, taking).map_err(failed)
    }

    /// What could not be done is the error; why is in errno.
    fn make(
        socket: OwnedFd,
        index: libc::c_int,
        taking: &Taking<'_>,
    ) -> Result<Self, &'static str> {
        attach(&socket, taking.filter).map_err(|()| "attach a filter")?;
        let blocks = taking
            .blocks
            .clamp(*Self::BLOCKS.start(), *Self::BLOCKS.end());
        ask_for_blocks(&socket, blocks, taking.wake).map_err(|()| "make a receive ring")?;
        let (memory, _) = map(&socket, blocks * BLOCK_BYTES).ok_or("map a receive ring")?;
        // From here on dropping `ring` unmaps.
        let ring = Self {
            socket,
            mapping: Arc::new(Mapping { memory, blocks }),
            next: 0,
        };
        bind(&ring.socket, index).map_err(|()| "bind a packet socket")?;
        Ok(ring)
    }

    /// The next block that is full or has waited, or none. It goes back to the kernel when it is
    /// dropped.
    pub fn next_block(&mut self) -> Option<Block<'_>> {
        if !self.has_block() {
            return None;
        }
        let start = self.mapping.block(self.next);
        self.next = (self.next + 1) % self.mapping.blocks;
        Some(Block {
            start,
            ring: PhantomData,
        })
    }

    /// Whether there is a next block.
    pub fn has_block(&self) -> bool {
        self.mapping.is_ready(self.next)
    }

    /// A handle that reports the fill level of the ring.
    pub fn gauge(&self) -> Gauge {
        Gauge(Arc::clone(&self.mapping))
    }

    /// What the kernel counted since the last call (asking resets it).
    ///
    /// # Errors
    /// None in practice: this value owns the socket.
    pub fn counts(&self) -> io::Result<BlockCounts> {
        let mut stats = libc::tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        self.ask(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
        Ok(BlockCounts {
            packets: stats.tp_packets,
            dropped: stats.tp_drops,
            frozen: stats.tp_freeze_q_cnt,
        })
    }

    /// What went wrong since the last call: the interface went down (`NetworkDown`) or away.
    pub fn fault(&self) -> Option<io::Error> {
        let mut fault: libc::c_int = 0;
        match self.ask(libc::SOL_SOCKET, libc::SO_ERROR, &mut fault) {
            Ok(()) if fault == 0 => None,
            Ok(()) => Some(io::Error::from_raw_os_error(fault)),
            Err(error) => Some(error),
        }
    }

    fn ask<T>(&self, level: libc::c_int, name: libc::c_int, into: &mut T) -> io::Result<()> {
        let mut length = socklen::<T>();
        // SAFETY: the callers give the plain C type that the option writes; its size is passed.
        let outcome = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                level,
                name,
                std::ptr::from_mut(into).cast(),
                &raw mut length,
            )
        };
        match outcome {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for BlockRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn ask_for_blocks(socket: &OwnedFd, blocks: usize, wake: Duration) -> Result<(), ()> {
    let small = |number: usize| u32::try_from(number).expect("at most 1024 blocks of 1 MiB");
    let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
    option(socket, libc::PACKET_VERSION, &version)?;
    let wake = wake.clamp(Duration::from_millis(1), Duration::from_secs(10));
    let request = libc::tpacket_req3 {
        tp_block_size: small(BLOCK_BYTES),
        tp_block_nr: small(blocks),
        tp_frame_size: small(FRAME_BYTES),
        tp_frame_nr: small(blocks * (BLOCK_BYTES / FRAME_BYTES)),
        tp_retire_blk_tov: u32::try_from(wake.as_millis()).expect("at most 10 s"),
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    };
    option(socket, libc::PACKET_RX_RING, &request)
}

fn attach(socket: &OwnedFd, filter: &[FilterStep]) -> Result<(), ()> {
    if filter.is_empty() {
        return Ok(());
    }
    let mut steps: Vec<libc::sock_filter> = filter
        .iter()
        .map(|&FilterStep { code, jt, jf, k }| libc::sock_filter { code, jt, jf, k })
        .collect();
    let program = libc::sock_fprog {
        // The kernel refuses more than 4096, and so this.
        len: u16::try_from(steps.len()).unwrap_or(u16::MAX),
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the option reads a sock_fprog and the steps that it points at, all alive for the call;
    // `len` is at most their number.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            socklen::<libc::sock_fprog>(),
        )
    };
    if outcome == 0 { Ok(()) } else { Err(()) }
}

/// What `interface` of the calling thread's network namespace is: a number of `linux/if_arp.h` (1
/// Ethernet, 772 loopback, 65534 none). What packets begin with depends on it.
///
/// # Errors
/// As [`BlockRing::open`].
pub fn hardware(interface: &str) -> Result<u16, RingError> {
    let failed = |operation| failed(operation, interface);
    let socket =
        packet_socket().ok_or_else(|| failed("open a packet socket (needs CAP_NET_RAW)"))?;
    kind(&socket, interface).ok_or_else(|| failed("find the index"))
}

/// What the last call failed with.
fn failed(operation: &'static str, interface: &str) -> RingError {
    RingError {
        operation,
        interface: interface.to_owned(),
        source: io::Error::last_os_error(),
    }
}

fn kind(socket: &OwnedFd, interface: &str) -> Option<u16> {
    // SAFETY: ifreq is plain C data for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0; the interface was found by its name, which is no longer.
    let room = request.ifr_name.len() - 1;
    for (into, byte) in request.ifr_name[..room].iter_mut().zip(interface.bytes()) {
        *into = byte.cast_signed() as libc::c_char;
    }
    // SAFETY: SIOCGIFHWADDR reads the name and writes one sockaddr, all within the ifreq.
    let outcome = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFHWADDR as _,
            &raw mut request,
        )
    };
    // SAFETY: the call wrote the member `ifru_hwaddr` of the union, which was zero before.
    (outcome == 0).then_some(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}
