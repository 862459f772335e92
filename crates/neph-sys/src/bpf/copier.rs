//! Listens to an interface through programs at its hooks. They copy the beginning of each packet into
//! memory that the process reads: less work for the kernel than a packet ring.
//!
//! Owns the map, the programs and their links (tcx, Linux 6.6), and the order of packets of several
//! processors. The kernel removes them when the process ends. A sent packet is seen before the
//! interface's queue (see [`crate::queue`]). Packets of senders that bypass the queue are not seen.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::copying::{Hook, program};
use super::memory::{Fill, MAX_KEPT, Memory, Shape};
use super::{ARRAY, Attributes, Kind, LINK_CREATE, create_map, load};
use crate::clock;
use crate::ring::{FilterStep, Packet, RingError, hardware, interface_index};

/// Bytes of memory for copies: what a program can reach in one value of a map, with room to spare.
pub const MAX_MEMORY: u64 = 1 << 27;

/// `BPF_F_MMAPABLE`, and where a program is put among those of others.
const MAPPABLE: u32 = 1 << 10;
const BEFORE: u32 = 1 << 3;
const AFTER: u32 = 1 << 4;
/// `BPF_PROG_TYPE_SCHED_CLS`; the link has the attachment point.
const CLASSIFIER: Kind = Kind {
    program: 3,
    attach: 0,
};
const TCX_INGRESS: u32 = 46;
const TCX_EGRESS: u32 = 47;

/// The room of a processor is a power of two within this, as far as all together allow.
const MIN_ROOM: u32 = 1 << 16;
const GOOD_ROOM: u32 = 1 << 20;

/// After this time all earlier timestamps are complete: a program writes a packet this long after its
/// timestamp at most, unless its processor was taken away meanwhile.
const SETTLED: i64 = 1_000_000;
/// Timestamps that are later than now by more are from before the clock was set back.
const SECOND: i64 = 1_000_000_000;

/// What is copied, and the memory for it.
#[derive(Clone, Copy, Debug)]
pub struct Copying<'a> {
    /// Bytes of memory, for all processors together, at most [`MAX_MEMORY`]; each has a mebibyte at
    /// least, if that is possible.
    pub memory: u64,
    /// Bytes that are kept of each packet, at most [`MAX_KEPT`].
    pub snaplen: u32,
    /// Which packets: a program of classic BPF; all where it is empty.
    pub filter: &'a [FilterStep],
}

/// Programs at an interface's hooks, and what they wrote.
#[derive(Debug)]
pub struct Copier {
    /// The interface's number, and its kind (`linux/if_arp.h`).
    position: (u32, u16),
    memory: Arc<Memory>,
    parts: Vec<Part>,
    /// To ask for the interface's state, in its namespace.
    query_socket: UdpSocket,
    _links: Vec<OwnedFd>,
}

/// A processor's part while it is read.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    at: u64,
    head: u64,
    /// The place of the packet there in the order of all: its timestamp, or the last moment if there is
    /// none.
    next: i64,
}

/// The wall clock's time, how far atomic time (TAI) is ahead of it, and the upper limit of timestamps: a
/// later one comes first.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    now: i64,
    leap: i64,
    end: i64,
}

/// What a look took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyProgress {
    /// Packets that were taken.
    pub taken: usize,
    /// Whether there are more that it could have taken.
    pub is_more: bool,
    /// How full the memory was before it (see [`Fill`]).
    pub filled: f64,
}

impl Copier {
    /// Begins to listen to `interface` of the calling thread's network namespace, which begins its
    /// packets with an Ethernet header. Both what arrives and what the host sends is seen; on loopback,
    /// where a packet is both, once.
    ///
    /// # Errors
    /// No `CAP_BPF` and `CAP_NET_ADMIN`, no such interface, a kernel before 6.6, or one for real time,
    /// where programs interrupt each other.
    pub fn open(interface: &str, copying: &Copying<'_>) -> Result<Self, RingError> {
        let failed = |operation| move |source| RingError::new(operation, interface, source);
        let index = interface_index(interface)
            .ok_or_else(|| failed("find the index")(io::Error::last_os_error()))?;
        let kind = hardware(interface)?;
        let shape = shape(copying.memory).map_err(failed("find room for a BPF program"))?;
        let map = create_map(ARRAY, shape.bytes(), MAPPABLE).map_err(failed("make a BPF map"))?;
        let memory = Memory::map(map.as_fd(), shape).map_err(failed("map a BPF map"))?;
        let query_socket = UdpSocket::bind(("0.0.0.0", 0)).map_err(failed("open a socket"))?;
        // Where others drop or change packets: after them on the way out, before them on the way in, as
        // a packet socket sees them.
        let hooks = [
            (Hook::Ingress, TCX_INGRESS, BEFORE),
            (Hook::Egress, TCX_EGRESS, AFTER),
        ];
        let hooks = if kind == libc::ARPHRD_LOOPBACK {
            &hooks[..1]
        } else {
            &hooks[..]
        };
        let mut links = Vec::new();
        let index = index.cast_unsigned();
        for &(hook, hook_kind, order) in hooks {
            let snaplen = copying.snaplen.clamp(1, MAX_KEPT);
            let code = program(hook, map.as_fd(), shape, copying.filter, snaplen)
                .map_err(failed("write a BPF program"))?;
            let code = load(CLASSIFIER, &code).map_err(failed("load a BPF program"))?;
            let link = link(code.as_fd(), index, (hook_kind, order));
            links.push(link.map_err(failed("attach a BPF program"))?);
        }
        Ok(Self {
            position: (index, kind),
            memory: Arc::new(memory),
            parts: vec![Part::default(); shape.parts as usize],
            query_socket,
            _links: links,
        })
    }

    /// Shows packets in the order of their timestamps, at most about so many. The last millisecond's wait
    /// for the next look, unless this is the last.
    pub fn look(
        &mut self,
        max: usize,
        is_last: bool,
        mut show: impl FnMut(&Packet<'_>),
    ) -> CopyProgress {
        let filled = self.memory.filled();
        let clocks = Clocks::read();
        let until = if is_last {
            i64::MAX - 1
        } else {
            clocks.now - SETTLED
        };
        let memory = Arc::clone(&self.memory);
        for (number, part) in (0..).zip(&mut self.parts) {
            (part.at, part.head) = memory.waiting(number);
            part.settle(&memory, number, clocks);
        }
        let mut taken = 0;
        let is_more = loop {
            let (earliest, second) = self.earliest();
            let Some((number, part)) = (0..).zip(&mut self.parts).nth(earliest) else {
                break false;
            };
            if part.is_done() || part.next > until {
                break false;
            }
            if taken >= max {
                break true;
            }
            // As long as no other processor's packet is earlier.
            let end = second.min(until);
            while !part.is_done() && part.next <= end && taken < max {
                let record = memory.record(number, part.at);
                let (interface, hardware) = self.position;
                show(&record.packet(record.stamp(clocks.leap), interface, hardware));
                taken += 1;
                part.at += record.length();
                part.settle(&memory, number, clocks);
            }
        };
        for (number, part) in (0..).zip(&self.parts) {
            memory.give_back(number, part.at);
        }
        CopyProgress {
            taken,
            is_more,
            filled,
        }
    }

    /// The part whose next packet is the earliest, and when that of the second is.
    fn earliest(&self) -> (usize, i64) {
        let (mut at, mut first, mut second) = (0, i64::MAX, i64::MAX);
        for (number, part) in self.parts.iter().enumerate() {
            if part.next < first {
                (at, second, first) = (number, first, part.next);
            } else {
                second = second.min(part.next);
            }
        }
        (at, second)
    }

    /// A handle that reports the fill level of the memory.
    pub fn fill(&self) -> Fill {
        Fill(Arc::clone(&self.memory))
    }

    /// Packets that found no room, since the beginning.
    pub fn lost(&self) -> u64 {
        self.memory.lost()
    }

    /// What is wrong with the interface: it is down (`NetworkDown`) or away.
    pub fn fault(&self) -> Option<io::Error> {
        match self.is_up() {
            Ok(true) => None,
            Ok(false) => Some(io::Error::from_raw_os_error(libc::ENETDOWN)),
            Err(error) => Some(error),
        }
    }

    /// By its number, since its name may have become another one, or another one's.
    fn is_up(&self) -> io::Result<bool> {
        // SAFETY: ifreq is plain C data for which all zeros is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_ifru.ifru_ifindex = self.position.0.cast_signed();
        self.ask(libc::SIOCGIFNAME, &mut request)?;
        self.ask(libc::SIOCGIFFLAGS, &mut request)?;
        // SAFETY: the call wrote the member `ifru_flags` of the union.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        Ok(libc::c_int::from(flags) & libc::IFF_UP != 0)
    }

    /// Asks for the interface's name, by its number, or for its flags, by its name.
    fn ask(&self, request_code: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
        let socket = self.query_socket.as_raw_fd();
        let request: *mut libc::ifreq = request;
        // SAFETY: one question reads the number and writes the name with its end, the other reads the
        // name and writes the flags, all within the ifreq.
        match unsafe { libc::ioctl(socket, request_code as _, request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Part {
    const fn is_done(&self) -> bool {
        self.at >= self.head
    }

    /// Looks at the packet that is next.
    fn settle(&mut self, memory: &Memory, number: u32, clocks: Clocks) {
        self.next = i64::MAX;
        if !self.is_done() {
            let stamp = memory.record(number, self.at).stamp(clocks.leap);
            self.next = if stamp > clocks.end { 0 } else { stamp };
        }
    }
}

impl Clocks {
    fn read() -> Self {
        let now = clock::wall().0;
        Self {
            now,
            leap: clock::leap(),
            end: now + SECOND,
        }
    }
}

/// How many processors there may be, and the room of each.
fn shape(memory: u64) -> io::Result<Shape> {
    let unsupported = |message| Err(io::Error::new(io::ErrorKind::Unsupported, message));
    let real_time = std::fs::read_to_string("/sys/kernel/realtime").unwrap_or_default();
    if real_time.trim() == "1" {
        return unsupported("on a kernel for real time programs interrupt each other");
    }
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = possible.trim().rsplit([',', '-']).next();
    let last: Option<u32> = last.and_then(|last| last.parse().ok());
    let Some(parts) = last.and_then(|last| last.checked_add(1)) else {
        return unsupported("the processors are unknown");
    };
    let each = |bytes: u64| u32::try_from(bytes / u64::from(parts)).unwrap_or(u32::MAX);
    let max = each(MAX_MEMORY);
    if max < MIN_ROOM {
        return unsupported("there are too many processors");
    }
    let room = 1 << each(memory).max(GOOD_ROOM).min(max).ilog2();
    Ok(Shape { parts, room })
}

fn link(program: BorrowedFd<'_>, index: u32, (kind, order): (u32, u32)) -> io::Result<OwnedFd> {
    let attributes = Attributes::new()
        .fd(0, program)
        .word(4, index)
        .word(8, kind)
        .word(12, order);
    // SAFETY: no pointer is passed.
    unsafe { attributes.open(LINK_CREATE) }
}

#[cfg(test)]
mod tests;
