//! What ends of a simulated connection send each other.

/// A segment, in positions of its sender.
#[derive(Clone)]
pub(super) struct Segment {
    pub(super) position: u64,
    pub(super) length: u32,
    pub(super) ack: Option<u64>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) window: u16,
    pub(super) stamps: Option<(u32, u32)>,
    /// It takes positions that were sent before.
    pub(super) is_repeated: bool,
    /// In positions of its receiver.
    pub(super) sack: Vec<(u64, u64)>,
}

impl Segment {
    pub(super) fn flags(&self) -> u8 {
        let push = u8::from(self.length > 0) << 3;
        u8::from(self.fin) | u8::from(self.syn) << 1 | push | u8::from(self.ack.is_some()) << 4
    }

    pub(super) fn end(&self) -> u64 {
        self.position + u64::from(self.length) + u64::from(self.syn) + u64::from(self.fin)
    }
}
