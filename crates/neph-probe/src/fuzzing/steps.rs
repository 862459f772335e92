//! The bytes of a fuzzer as decisions, one after the other.

/// What is left of them.
pub(super) struct Steps<'a>(pub(super) &'a [u8]);

impl Steps<'_> {
    /// The next byte.
    pub(super) fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// A number out of the next nine bytes: mostly a small one.
    pub(super) fn number(&mut self) -> i64 {
        let size = usize::from(self.next().unwrap_or(0) % 9);
        let mut bytes = [0; 8];
        for byte in &mut bytes[..size] {
            *byte = self.next().unwrap_or(0);
        }
        i64::from_le_bytes(bytes)
    }
}
