//! Owns the lengths of Ethernet frames.

/// Bytes of the header in front of what an MTU counts.
pub(crate) const ETHERNET: u32 = 14;
/// Bytes of a full frame, Ethernet header included.
pub(crate) const FULL_FRAME: u32 = 1514;
