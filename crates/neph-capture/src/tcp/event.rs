//! Owns what a segment can be when it is not simply the next.

/// Something else than the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// Sent again, because its acknowledgement did not come in time.
    Retransmission,
    /// Sent again, because the receiver asked for it three times (RFC 5681, 3.2).
    FastRetransmission,
    /// Sent again although its acknowledgement had passed, or although what was sent first had arrived,
    /// as its receiver said later. No loss.
    SpuriousRetransmission,
    /// Sent before what passed before it.
    OutOfOrder,
    /// What should have come before did not pass here.
    Gap,
    /// The same acknowledgement again: something behind a gap arrived there.
    RepeatedAcknowledgement,
    /// What was acknowledged never passed here.
    AcknowledgedUnseen,
    /// The sender takes no more bytes for now.
    ZeroWindow,
    /// One byte, or none, to hear whether the window is open again.
    WindowProbe,
    /// The byte before the next, or none, to hear whether the other side is still there.
    KeepAlive,
    /// The connection was refused or broken off.
    Reset,
}

impl Event {
    /// In the order of their declaration.
    pub const ALL: [Self; 11] = [
        Self::Retransmission,
        Self::FastRetransmission,
        Self::SpuriousRetransmission,
        Self::OutOfOrder,
        Self::Gap,
        Self::RepeatedAcknowledgement,
        Self::AcknowledgedUnseen,
        Self::ZeroWindow,
        Self::WindowProbe,
        Self::KeepAlive,
        Self::Reset,
    ];
}
