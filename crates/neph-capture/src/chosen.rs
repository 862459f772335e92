//! Which of many are followed, where there is room for a part: chosen evenly, always the same, and whatever
//! happens to them later.

/// Whether one with these numbers is among the one in `2^shift` that is followed. Each bit of the hash depends
/// on all of both numbers (the last step of `MurmurHash3`), so that what is spaced evenly is chosen evenly too.
pub(crate) fn is_chosen((a, b): (u32, u32), shift: u8) -> bool {
    let mut bits = a ^ b.rotate_left(16);
    bits = (bits ^ bits >> 16).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ bits >> 13).wrapping_mul(0xc2b2_ae35);
    (bits ^ bits >> 16).trailing_zeros() >= u32::from(shift)
}
