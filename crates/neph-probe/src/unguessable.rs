//! Numbers that nobody who does not see our packets can guess: tokens of flows, identifiers of sessions.
//!
//! Not for keys: the standard library promises no more than that hash maps cannot be attacked.

use std::hash::{BuildHasher, RandomState};

/// Such a number. Two calls give two.
pub(crate) fn unguessable() -> u64 {
    RandomState::new().hash_one(0)
}
