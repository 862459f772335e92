//! A frame while it lies in the ring.
//!
//! Owns the hand-over of its slot: the process reads until the frame is dropped, then the kernel
//! may write again. Does not look into the frame.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{PacketRing, SLOT_BYTES};

/// A frame in the ring, from its Ethernet header on.
#[derive(Debug)]
pub struct Frame<'ring> {
    pub(super) slot: NonNull<u8>,
    pub(super) header: libc::tpacket2_hdr,
    pub(super) ring: PhantomData<&'ring mut PacketRing>,
}

impl Frame<'_> {
    /// The bytes that were kept, Ethernet header first.
    pub fn bytes(&self) -> &[u8] {
        let start = usize::from(self.header.tp_mac);
        let length = (self.header.tp_snaplen as usize).min(SLOT_BYTES.saturating_sub(start));
        // SAFETY: the kernel filled `snaplen` bytes at `mac` within this slot (bounded again
        // above), and leaves the slot alone until drop.
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
        // SAFETY: as in `PacketRing::next_frame`; the release store ends reading before the kernel writes.
        let status = unsafe { self.slot.cast::<AtomicU32>().as_ref() };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }
}
