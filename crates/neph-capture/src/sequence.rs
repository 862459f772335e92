//! Numbers that wrap: TCP's sequence numbers (RFC 9293, 3.4) and timestamps (RFC 7323, 5.3).

/// A number modulo 2^32. Two numbers are compared by their shorter distance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Serial(pub(crate) u32);

impl Serial {
    /// The distance from `earlier` to `self`; negative if `self` is before it.
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
