//! Selection of an even share of items where there is room for only a part. The selection is deterministic
//! and independent of later events.

/// Whether an item with these numbers is in the share of one in `2^shift`. The hash is the last step of
/// `MurmurHash3`: all bits depend on all bits, so evenly spaced numbers are selected evenly.
pub(crate) fn is_sampled((a, b): (u32, u32), shift: u8) -> bool {
    let mut bits = a ^ b.rotate_left(16);
    bits = (bits ^ bits >> 16).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ bits >> 13).wrapping_mul(0xc2b2_ae35);
    (bits ^ bits >> 16).trailing_zeros() >= u32::from(shift)
}
