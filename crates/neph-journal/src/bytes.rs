//! Reads little-endian numbers and texts from a slice. `None` if it is too short; never panics.

/// The unread bytes.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, remaining) = self.0.split_first_chunk::<N>()?;
        self.0 = remaining;
        Some(*head)
    }
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }
    /// A text after its length (32 bits).
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.u32()?).ok()?;
        let (head, remaining) = self.0.split_at_checked(length)?;
        self.0 = remaining;
        std::str::from_utf8(head).ok()
    }
}
