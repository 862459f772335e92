//! Flows with different addresses or ports at the two points of a segment.

use std::net::IpAddr;

/// An address, with its port where the NAT changes it.
pub type TranslatedAddress = (IpAddr, Option<u16>);

/// Flows with different addresses or ports at the two points of a segment.
#[derive(Debug, Default)]
pub(super) struct TranslatedFlows {
    /// For each flow whether it is one of these, at either point.
    pub(super) flows: Vec<bool>,
    /// Packets that both points show.
    pub(super) packets: u64,
    /// The changed name with the most packets: at the first point, and at the second.
    pub(super) most_frequent_translation: Option<(TranslatedAddress, TranslatedAddress)>,
    /// Whether packets that passed both points unchanged have these names too.
    pub(super) is_address_shared: [bool; 2],
}
