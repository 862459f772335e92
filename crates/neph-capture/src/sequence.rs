//! Numbers that wrap around: TCP's sequence numbers (RFC 9293, 3.4) and time stamps (RFC 7323, 5.3).

/// A number modulo 2^32. Two of them compare as those nearest to each other do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Serial(pub(crate) u32);

impl Serial {
    /// How far `self` lies behind `earlier`; negative if it lies before.
    pub(crate) const fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    pub(crate) const fn plus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    pub(crate) const fn is_after(self, other: Self) -> bool {
        self.since(other) > 0
    }
}
