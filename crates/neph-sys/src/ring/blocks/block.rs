//! A block while it is the process's, and the packets in it.
//!
//! Owns the hand-over of the block: the process reads until it is dropped, then the kernel may write
//! again. Does not look into packets.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{BLOCK_BYTES, BlockRing, STATUS_AT};
use crate::ring::packet::{Packet, Tag};

/// Bytes from a packet's header to the address of its interface.
const ADDRESS_AT: usize = libc::TPACKET3_HDRLEN - size_of::<libc::sockaddr_ll>();

/// Packets that the kernel handed over together.
#[derive(Debug)]
pub struct Block<'ring> {
    pub(super) start: NonNull<u8>,
    pub(super) ring: PhantomData<&'ring mut BlockRing>,
}

impl Block<'_> {
    /// Its packets, in the order in which the kernel saw them.
    pub fn packets(&self) -> Packets<'_> {
        // SAFETY: the kernel leaves the page-aligned block alone until drop. It begins with its description.
        let described = unsafe { self.start.cast::<libc::tpacket_block_desc>().as_ref() };
        // SAFETY: the union has one member.
        let header = unsafe { described.hdr.bh1 };
        Packets {
            block: self,
            left: header.num_pkts,
            at: header.offset_to_first_pkt as usize,
        }
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        // SAFETY: as in `BlockRing::next_block`; the release store ends reading before the kernel
        // writes.
        let status = unsafe { self.start.add(STATUS_AT).cast::<AtomicU32>().as_ref() };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}

/// Walks over a block.
#[derive(Debug)]
pub struct Packets<'block> {
    block: &'block Block<'block>,
    left: u32,
    at: usize,
}

impl<'block> Iterator for Packets<'block> {
    type Item = Packet<'block>;

    fn next(&mut self) -> Option<Packet<'block>> {
        if self.left == 0 || self.at + libc::TPACKET3_HDRLEN > BLOCK_BYTES {
            return None;
        }
        self.left -= 1;
        let at = self.at;
        // SAFETY: header and address lie within the block (just checked), which the kernel leaves alone;
        // it aligns packets to 16 bytes.
        let (header, address) = unsafe {
            let start = self.block.start.add(at);
            (
                start.cast::<libc::tpacket3_hdr>().read_unaligned(),
                start
                    .add(ADDRESS_AT)
                    .cast::<libc::sockaddr_ll>()
                    .read_unaligned(),
            )
        };
        self.at += header.tp_next_offset as usize;
        let begin = (at + usize::from(header.tp_mac)).min(BLOCK_BYTES);
        let captured = (header.tp_snaplen as usize).min(BLOCK_BYTES - begin);
        // SAFETY: the kernel filled `snaplen` bytes at `mac`, bounded again to the block, which
        // the kernel leaves alone as long as it is borrowed.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.block.start.add(begin).as_ptr(), captured) };
        let status = header.tp_status;
        let protocol = match status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => 0x8100,
            _ => header.hv1.tp_vlan_tpid,
        };
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| Tag {
            control: u16::try_from(header.hv1.tp_vlan_tci & 0xffff).unwrap_or(0),
            protocol,
        });
        Some(Packet {
            bytes,
            stamp: i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec),
            wire_length: header.tp_len,
            tag,
            interface: address.sll_ifindex.cast_unsigned(),
            hardware: address.sll_hatype,
            passage: address.sll_pkttype,
            protocol: u16::from_be(address.sll_protocol),
        })
    }
}
