//! A block while it is the process's, and the packets in it.
//!
//! Owns the hand-over of the block: the process reads until it is dropped, then the kernel may write
//! again. Does not look into packets.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{BLOCK_BYTES, BlockRing, STATUS_AT};

/// Bytes from a packet's header to the address that says where it came from.
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
        // SAFETY: the block is ours until drop, aligned to a page, and begins with its description.
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
        // SAFETY: as in `BlockRing::next_block`; the release store ends our reading before the kernel
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
        // SAFETY: header and address lie within the block (just checked), which is ours; the kernel
        // aligns packets to 16 bytes.
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
        let kept = (header.tp_snaplen as usize).min(BLOCK_BYTES - begin);
        // SAFETY: the kernel filled `snaplen` bytes at `mac`, bounded again to the block, which
        // stays ours as long as it is borrowed.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.block.start.add(begin).as_ptr(), kept) };
        Some(Packet {
            bytes,
            header,
            address,
        })
    }
}

/// A packet in a block, from its link header on, or from behind it where the ring is on all interfaces.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'block> {
    bytes: &'block [u8],
    header: libc::tpacket3_hdr,
    address: libc::sockaddr_ll,
}

/// A VLAN tag that the kernel took out of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Priority, one bit of eligibility to be dropped, and in the lower twelve bits the VLAN.
    pub control: u16,
    /// The ethertype that stood before it: 0x8100 or 0x88a8.
    pub protocol: u16,
}

impl<'block> Packet<'block> {
    /// The bytes that were kept, without the tag.
    pub const fn bytes(&self) -> &'block [u8] {
        self.bytes
    }

    /// When the kernel saw it: nanoseconds of `CLOCK_REALTIME` since the epoch.
    pub fn stamp(&self) -> i64 {
        i64::from(self.header.tp_sec) * 1_000_000_000 + i64::from(self.header.tp_nsec)
    }

    /// Its length on the wire in bytes, link header included, the tag and the checksum not.
    pub const fn wire_length(&self) -> u32 {
        self.header.tp_len
    }

    /// The outermost VLAN tag, which is not in [`Self::bytes`].
    pub fn tag(&self) -> Option<Tag> {
        let status = self.header.tp_status;
        let protocol = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
            0x8100
        } else {
            self.header.hv1.tp_vlan_tpid
        };
        (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| Tag {
            control: u16::try_from(self.header.hv1.tp_vlan_tci & 0xffff).unwrap_or(0),
            protocol,
        })
    }

    /// Whether this host sent it out of the interface.
    pub const fn is_outgoing(&self) -> bool {
        self.address.sll_pkttype == libc::PACKET_OUTGOING
    }

    /// Whether it was sent to loopback, where it comes again as received.
    pub const fn is_echo(&self) -> bool {
        self.is_outgoing() && self.address.sll_hatype == libc::ARPHRD_LOOPBACK
    }

    /// The number of the interface that it passed, in its network namespace.
    pub const fn interface(&self) -> u32 {
        self.address.sll_ifindex.cast_unsigned()
    }

    /// What kind of interface that is: a number of `linux/if_arp.h`.
    pub const fn hardware(&self) -> u16 {
        self.address.sll_hatype
    }

    /// How it passed: a number of `linux/if_packet.h` (0 to us, 4 from us).
    pub const fn passage(&self) -> u8 {
        self.address.sll_pkttype
    }

    /// What is behind the link header, and behind the outermost tag: an ethertype.
    pub const fn protocol(&self) -> u16 {
        u16::from_be(self.address.sll_protocol)
    }
}
