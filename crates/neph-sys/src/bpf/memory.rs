//! The memory that program and process share: a part for each processor, with records one behind the
//! other.
//!
//! Owns its layout, and reading in it. A part begins with three counters, each in its own cache line: its
//! head (end of written data), its tail (end of read data) and the packets lost there. Head and tail
//! count bytes from the start of the capture. A record begins at the head, and may run over the end of the
//! room into spare memory. The next record then begins as many bytes after the room's start.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ring::{Packet, Tag};

/// Bytes that can be kept of a packet.
pub const MAX_KEPT: u32 = 2048;

/// Where things are in a part.
pub(super) const HEAD_AT: i16 = 0;
pub(super) const TAIL_AT: i16 = 64;
pub(super) const LOST_AT: i16 = 128;
pub(super) const CONTROL: u32 = 256;
/// Where things are in a record.
pub(super) const STAMP_AT: i16 = 0;
pub(super) const LENGTH_AT: i16 = 8;
pub(super) const KEPT_AT: i16 = 12;
pub(super) const NOTE_AT: i16 = 16;
pub(super) const PROTOCOL_AT: i16 = 20;
pub(super) const BYTES_AT: i16 = 24;
/// No record is longer.
pub(super) const LONGEST: u32 = 24 + MAX_KEPT + 8;
/// Control and what is spare behind a part's room.
const ALONGSIDE: u32 = 4096;
/// Bits of a record's note: below the passage (8 to 10) and the tag's control (16 to 31).
pub(super) const IS_WALL: i32 = 1;
pub(super) const IS_OUTGOING: i32 = 2;
pub(super) const IS_TAGGED: i32 = 4;

const _: () = assert!(CONTROL + LONGEST <= ALONGSIDE, "a record stays in its part");

/// How many parts, and the room of each: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) parts: u32,
    pub(super) room: u32,
}

impl Shape {
    /// Bytes of a part.
    pub(super) const fn part(self) -> u32 {
        self.room + ALONGSIDE
    }

    pub(super) const fn bytes(self) -> u32 {
        self.parts * self.part()
    }
}

/// A mapping of a map's only value.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    shape: Shape,
}

// SAFETY: nothing in the mapping is tied to the thread that made it. Heads, tails and what was lost are
// reached by atomics only; records only through the `Copier`, which is borrowed for that.
unsafe impl Send for Memory {}
// SAFETY: likewise.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps the value of `map`, which was made with the size of this shape.
    pub(super) fn map(map: BorrowedFd<'_>, shape: Shape) -> io::Result<Self> {
        // SAFETY: a fresh shared mapping of the map's value, of exactly its length (a multiple of the
        // page, as room and spare memory are).
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                shape.bytes() as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(memory.cast::<u8>());
        start
            .map(|start| Self { start, shape })
            .ok_or_else(|| io::Error::other("a mapping at address 0"))
    }

    fn part(&self, number: u32) -> NonNull<u8> {
        assert!(number < self.shape.parts, "a part of the memory");
        // SAFETY: the offset stays in the mapping (just checked).
        unsafe { self.start.add(number as usize * self.shape.part() as usize) }
    }

    fn word(&self, part: u32, at: i16) -> &AtomicU64 {
        // SAFETY: a part begins with its control, at a multiple of a page; each of its words is at a
        // multiple of eight. The program writes it whole.
        unsafe {
            self.part(part)
                .offset(isize::from(at))
                .cast::<AtomicU64>()
                .as_ref()
        }
    }

    /// From where to where a part waits to be read.
    pub(super) fn waiting(&self, part: u32) -> (u64, u64) {
        let tail = self.word(part, TAIL_AT).load(Ordering::Relaxed);
        (tail, self.word(part, HEAD_AT).load(Ordering::Acquire))
    }

    /// The part has been read up to `to`: the program may write over it.
    pub(super) fn give_back(&self, part: u32, to: u64) {
        self.word(part, TAIL_AT).store(to, Ordering::Release);
    }

    /// Packets that found no room.
    pub(super) fn lost(&self) -> u64 {
        let parts = 0..self.shape.parts;
        parts
            .map(|part| self.word(part, LOST_AT).load(Ordering::Relaxed))
            .sum()
    }

    /// The record at `at`, which waits to be read.
    pub(super) fn record(&self, part: u32, at: u64) -> Record<'_> {
        let within = CONTROL + (low(at) & (self.shape.room - 1));
        // SAFETY: a record begins in the part's room, at a multiple of eight; its head fits behind the
        // room's end too.
        let start = unsafe { self.part(part).add(within as usize) };
        Record {
            start,
            memory: PhantomData,
        }
    }

    /// The part of the fullest room that waits to be read, 0 to 1.
    pub(super) fn filled(&self) -> f64 {
        let waits = |part| {
            let (tail, head) = self.waiting(part);
            low(head.saturating_sub(tail))
        };
        let max = (0..self.shape.parts).map(waits).max().unwrap_or(0);
        f64::from(max) / f64::from(self.shape.room)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = self.shape.bytes() as usize;
        // SAFETY: the mapping was made by `map` with this length; every reader borrows this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), bytes) };
    }
}

/// How full the memory is, for another thread than the one that reads it.
#[derive(Clone, Debug)]
pub struct Fill(pub(super) Arc<Memory>);

impl Fill {
    /// The part of the fullest processor's room that waits to be read, 0 to 1.
    pub fn filled(&self) -> f64 {
        self.0.filled()
    }
}

/// A packet as the program wrote it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'memory> {
    start: NonNull<u8>,
    memory: PhantomData<&'memory Memory>,
}

impl<'memory> Record<'memory> {
    fn word(self, at: i16) -> u32 {
        // SAFETY: a record's head lies in the mapping, aligned (see `Memory::record`). The kernel does not
        // write to it until it is given back.
        unsafe { self.start.offset(isize::from(at)).cast::<u32>().read() }
    }

    /// When it passed, nanoseconds since 1970; `leap` is how far atomic time is ahead.
    pub(super) fn stamp(self, leap: i64) -> i64 {
        // SAFETY: likewise.
        let stamp = unsafe {
            self.start
                .offset(isize::from(STAMP_AT))
                .cast::<i64>()
                .read()
        };
        let is_wall = self.word(NOTE_AT) & IS_WALL.cast_unsigned() != 0;
        if is_wall { stamp } else { stamp - leap }
    }

    fn captured_length(self) -> u32 {
        self.word(KEPT_AT).min(MAX_KEPT)
    }

    /// From its beginning to the next one's.
    pub(super) fn length(self) -> u64 {
        u64::from((self.captured_length() + u32::from(BYTES_AT.cast_unsigned()) + 7) & !7)
    }

    pub(super) fn packet(self, stamp: i64, interface: u32, hardware: u16) -> Packet<'memory> {
        let (note, protocols) = (self.word(NOTE_AT), self.word(PROTOCOL_AT));
        // SAFETY: the program copied so many bytes behind the record's head, bounded again to the spare
        // memory behind the room. The kernel does not write to them until they are given back.
        let bytes = unsafe {
            let start = self.start.offset(isize::from(BYTES_AT)).as_ptr();
            std::slice::from_raw_parts(start, self.captured_length() as usize)
        };
        let is_outgoing = note & IS_OUTGOING.cast_unsigned() != 0;
        let tag = (note & IS_TAGGED.cast_unsigned() != 0).then(|| Tag {
            control: half(note >> 16),
            protocol: u16::from_be(half(protocols >> 16)),
        });
        Packet {
            bytes,
            stamp,
            wire_length: self.word(LENGTH_AT),
            tag,
            interface,
            hardware,
            passage: if is_outgoing {
                libc::PACKET_OUTGOING
            } else {
                u8::try_from(note >> 8 & 7).unwrap_or(0)
            },
            protocol: u16::from_be(half(protocols)),
        }
    }
}

/// The lower half of a word.
fn half(word: u32) -> u16 {
    u16::try_from(word & 0xffff).expect("sixteen bits")
}

/// The lower half of a number.
fn low(number: u64) -> u32 {
    u32::try_from(number & 0xffff_ffff).expect("thirty-two bits")
}
