//! Owns the lengths of Ethernet frames.

/// Bytes of the header in front of what an MTU counts.
pub(crate) const ETHERNET_HEADER_BYTES: u32 = 14;
/// Bytes of a full frame, Ethernet header included.
pub(crate) const FULL_FRAME_BYTES: u32 = 1514;
