//! The outcome of a packet, and its reason.

use super::{Flow, Moment};

/// The input of a gate: a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its arrival time.
    pub at: Moment,
    /// Bytes, Ethernet header included.
    pub length: u32,
    /// Its flow; `None` if it belongs to none.
    pub flow: Option<Flow>,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// It departs.
    Forwarded(Departure),
    /// It is dropped; with its path, if it had one by then.
    Dropped(DropCause, Option<u8>),
}

/// How a packet departs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The due time.
    pub due: Moment,
    /// The index of its path.
    pub path: u8,
    /// Its treatment on the path.
    pub treatment: Treatment,
}

/// Treatment of a packet other than its delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// It arrives with one bit flipped, which this number selects (see the engine's `bit_error`).
    pub corrupt: Option<u64>,
    /// It arrives twice, the copy immediately behind it.
    pub is_duplicated: bool,
    /// It skips its delay and arrives before packets that do not.
    pub is_early: bool,
}

/// Why a link drops a packet, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// Lost on the wire at random, or in the good state of a Gilbert-Elliott model.
    Random,
    /// Lost on the wire in the bad state of a Gilbert-Elliott model.
    Burst,
    /// It found the queue full.
    QueueFull,
    /// CoDel dropped it at the head of a queue in which packets waited too long.
    CoDel,
    /// Longer than the link's MTU.
    OverMtu,
}
