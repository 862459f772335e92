//! Numbers that cannot be guessed without seeing the packets: tokens of flows, identifiers of sessions and
//! transactions.
//!
//! Not for keys: the standard library guarantees only that hash maps cannot be attacked.

use std::hash::{BuildHasher, RandomState};

/// Such a number. Two calls return different ones.
pub(crate) fn unguessable() -> u64 {
    RandomState::new().hash_one(0)
}

/// A number of another length, in bytes: 12 for 96 bits.
pub(crate) fn unguessable_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    for part in bytes.chunks_mut(size_of::<u64>()) {
        part.copy_from_slice(&unguessable().to_le_bytes()[..part.len()]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_of_two_96_bit_random_numbers_differ() {
        let [first, other]: [[u8; 12]; 2] = [unguessable_bytes(), unguessable_bytes()];
        assert_ne!(first[..8], other[..8]);
        assert_ne!(first[8..], other[8..]);
    }
}
