//! How a packet socket gets its ring: options, memory, address.
//!
//! Owns the system calls of [`PacketRing::open`](super::PacketRing::open) and of
//! [`BlockRing::open`](super::BlockRing::open), in their order. errno has the error; the caller
//! reads it at once and adds the context.

use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use super::{BLOCK_BYTES, RingMode, SLOT_BYTES};

pub(crate) fn interface_index(interface: &str) -> Option<libc::c_int> {
    let name = std::ffi::CString::new(interface).ok()?;
    // SAFETY: a C string alive for the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    libc::c_int::try_from(index).ok().filter(|&index| index > 0)
}

/// A packet socket that receives nothing before it is bound: its protocol is 0. Packets come with
/// their link header.
pub(super) fn packet_socket() -> Option<OwnedFd> {
    open(libc::SOCK_RAW)
}

/// The same, where packets come without their link header.
pub(super) fn bare_packet_socket() -> Option<OwnedFd> {
    open(libc::SOCK_DGRAM)
}

fn open(kind: libc::c_int) -> Option<OwnedFd> {
    // SAFETY: socket takes integers only.
    let raw = unsafe { libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the kernel just gave us this descriptor and it has no other owner.
    (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw) })
}

pub(super) fn prepare(socket: &OwnedFd, mode: RingMode) -> Result<(), ()> {
    let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
    option(socket, libc::PACKET_VERSION, &version)?;
    match mode {
        RingMode::Wire => {
            option(socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
            option(socket, libc::PACKET_QDISC_BYPASS, &1)
        }
        RingMode::Tap => Ok(()),
    }
}

pub(super) fn option<T>(socket: &OwnedFd, name: libc::c_int, value: &T) -> Result<(), ()> {
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

pub(super) fn ask_for_ring(socket: &OwnedFd, blocks: usize) -> Result<(), ()> {
    let small = |number: usize| u32::try_from(number).expect("at most 1024 blocks of 1 MiB");
    let request = libc::tpacket_req {
        tp_block_size: small(BLOCK_BYTES),
        tp_block_nr: small(blocks),
        tp_frame_size: small(SLOT_BYTES),
        tp_frame_nr: small(blocks * (BLOCK_BYTES / SLOT_BYTES)),
    };
    option(socket, libc::PACKET_RX_RING, &request)
}

/// Maps the ring, locked if permitted; returns whether it is locked.
pub(super) fn map(socket: &OwnedFd, length: usize) -> Option<(NonNull<u8>, bool)> {
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

pub(super) fn bind(socket: &OwnedFd, index: libc::c_int) -> Result<(), ()> {
    // SAFETY: sockaddr_ll is plain C data for which all zeros is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = u16::try_from(libc::AF_PACKET).expect("17");
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).expect("3").to_be();
    address.sll_ifindex = index;
    // SAFETY: the address lives for the call and its true size is passed.
    let outcome = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            socklen::<libc::sockaddr_ll>(),
        )
    };
    if outcome == 0 { Ok(()) } else { Err(()) }
}

pub(super) fn socklen<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("option structs are small")
}
