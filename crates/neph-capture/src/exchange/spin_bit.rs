//! QUIC's spin bit (RFC 9000, 17.4): one bit that changes once per round trip.
//!
//! Owns which packets have it, and whether an endpoint spins at all. The client sends the opposite of the
//! last bit it received, the server repeats it. So at any point the two directions change alternately. An
//! endpoint that does not spin (at least one connection in 16) sends a constant or random bits, which do not
//! alternate.

use neph_model::{Span, Wall};

use crate::tcp::Side;

/// The form, the fixed bit and the spin bit of a short header (RFC 9000, 17.3.1).
const LONG_HEADER_BIT: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;
const SPIN_BIT: u8 = 0x20;
/// Changes before the bit is trusted, and the share of them that may not alternate: one in so many.
const MIN_CHANGES: u64 = 8;
const UNORDERED_DIVISOR: u64 = 8;

/// The spin bit of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SpinBit {
    /// The last bit that each side sent.
    last_bits: [Option<bool>; 2],
    /// The side of the last change and its time; no time if that change did not alternate.
    last_change: Option<(Side, Option<Wall>)>,
    changes: u64,
    unordered_changes: u64,
}

impl SpinBit {
    /// Adds a datagram of `side` that begins with the byte `first_byte`. Returns the round trip between the
    /// capture point and `side`, if both sides changed the bit in turn.
    pub(super) fn add_datagram(&mut self, at: Wall, side: Side, first_byte: u8) -> Option<Span> {
        if first_byte & (LONG_HEADER_BIT | FIXED_BIT) != FIXED_BIT {
            return None;
        }
        let bit = first_byte & SPIN_BIT != 0;
        let previous_bit = self.last_bits[side as usize].replace(bit)?;
        if previous_bit == bit {
            return None;
        }
        self.changes += 1;
        let previous_change = self.last_change.replace((side, Some(at)));
        let (changed_side, changed_at) = previous_change?;
        if changed_side == side {
            // A reordered packet or a random bit: neither this change nor the next one gives a round trip.
            self.unordered_changes += 1;
            self.last_change = Some((side, None));
            return None;
        }
        let nanos = at.unix_nanos().saturating_sub(changed_at?.unix_nanos());
        (nanos >= 0).then_some(Span::from_nanos(nanos))
    }

    /// Whether both endpoints spin.
    pub(super) const fn is_spinning(&self) -> bool {
        self.changes >= MIN_CHANGES && self.unordered_changes * UNORDERED_DIVISOR <= self.changes
    }
}
