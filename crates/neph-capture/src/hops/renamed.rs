//! Owns what the two points of a segment show under different names.

use std::net::IpAddr;

/// An address, and its port where the translator writes another one.
pub type Called = (IpAddr, Option<u16>);

/// What the two points of a segment show under different names.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    /// For each flow, whether it is one of these; those of both points are.
    pub(super) flows: Vec<bool>,
    /// Packets that both points show.
    pub(super) packets: u64,
    /// Of names that differ those of the most packets: at the first point, and at the second.
    pub(super) name: Option<(Called, Called)>,
    /// Whether others, that passed both points as they are, have these names.
    pub(super) is_shared: [bool; 2],
}
