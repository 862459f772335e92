//! What becomes of a packet, and why.

use super::{Flow, Moment};

/// What a gate is told about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it came.
    pub at: Moment,
    /// Bytes, Ethernet header included.
    pub length: u32,
    /// Its flow; none for what belongs to no flow.
    pub flow: Option<Flow>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves.
    Leaves(Departure),
    /// It never does; with the path it was on by then, if it was on one.
    Dropped(Cause, Option<u8>),
}

/// How a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When.
    pub due: Moment,
    /// The index of the path that it takes.
    pub path: u8,
    /// What is done to it on the way.
    pub treatment: Treatment,
}

/// What is done to a packet beside delaying it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Treatment {
    /// It arrives with one bit flipped: a number that says which (see the engine's `flip`).
    pub corrupt: Option<u64>,
    /// It arrives twice, the copy right behind it.
    pub duplicate: bool,
    /// It does not wait for its delay and overtakes those that do.
    pub early: bool,
}

/// Why a link drops a packet as it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Lost on the wire at random, or in the good state of a Gilbert-Elliott model.
    Random,
    /// Lost on the wire in the bad state of a Gilbert-Elliott model.
    Burst,
    /// It found the queue full.
    QueueFull,
    /// CoDel dropped it at the head of a queue in which packets stood too long.
    CoDel,
    /// Longer than the link's MTU.
    OverMtu,
}
