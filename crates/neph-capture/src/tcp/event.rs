//! Events: what a segment can be other than the next one.

/// A segment other than the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// A retransmission after a timeout.
    Retransmission,
    /// A retransmission after three duplicate acknowledgements (RFC 5681, 3.2).
    FastRetransmission,
    /// A retransmission of data that had been acknowledged or, as its receiver reported later, had arrived.
    /// No loss.
    SpuriousRetransmission,
    /// It was sent before a segment that passed earlier.
    OutOfOrder,
    /// Data before it did not pass here.
    Gap,
    /// A duplicate acknowledgement: data after a gap arrived at its sender.
    RepeatedAcknowledgement,
    /// The acknowledged data never passed here.
    AcknowledgedUnseen,
    /// The sender accepts no more bytes for now.
    ZeroWindow,
    /// One byte, or none, to check whether the window is open again.
    WindowProbe,
    /// The byte before the next, or none, to check whether the peer is alive.
    KeepAlive,
    /// The connection was refused or aborted.
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
