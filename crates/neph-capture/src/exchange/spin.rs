//! QUIC's spin bit (RFC 9000, 17.4): one bit that turns once a round trip.
//!
//! Owns which packets have it, and whether it is a spin at all: the client sends the opposite of what
//! it last got, the server the same, so that past any point the two turn by turns. Who does not take
//! part (one connection in sixteen at least, on purpose) sends one value for ever, or random ones, which
//! do not go by turns.

use neph_model::{Span, Wall};

use crate::tcp::Side;

/// The form, the fixed bit and the spin bit of a short header (RFC 9000, 17.3.1).
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;
/// Turns before anything is believed, and how many of them may be out of turn: one in so many.
const TURNS: u64 = 8;
const ASTRAY: u64 = 8;

/// The bit of one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spin {
    /// What each side sent last.
    last: [Option<bool>; 2],
    /// Who turned it last, and when, unless that was out of turn.
    turned: Option<(Side, Option<Wall>)>,
    turns: u64,
    astray: u64,
}

impl Spin {
    /// `side` sent a datagram that begins with this byte. A round trip between the point of capture
    /// and `side`, if it turned the bit and the other side had before.
    pub(super) fn see(&mut self, at: Wall, side: Side, first: u8) -> Option<Span> {
        if first & (LONG | FIXED) != FIXED {
            return None;
        }
        let spin = first & SPIN != 0;
        let before = self.last[side as usize].replace(spin)?;
        if before == spin {
            return None;
        }
        self.turns += 1;
        let turned = self.turned.replace((side, Some(at)));
        let (other, since) = turned?;
        if other == side {
            // It overtook another, or is random: neither this turn nor the next tells anything.
            self.astray += 1;
            self.turned = Some((side, None));
            return None;
        }
        let nanos = at.unix_nanos().saturating_sub(since?.unix_nanos());
        (nanos >= 0).then_some(Span::from_nanos(nanos))
    }

    /// Whether both sides take part.
    pub(super) const fn is_spinning(&self) -> bool {
        self.turns >= TURNS && self.astray * ASTRAY <= self.turns
    }
}
