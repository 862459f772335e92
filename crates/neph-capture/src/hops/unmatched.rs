//! Packets of hosts without any packet at both points of a segment, and packets with different addresses at
//! the two points.
//!
//! Owns the counts. Does not own recognizing translated flows (translation).

use super::followed::Followed;
use super::translated_flows::TranslatedAddress;

/// Packets at the points of a segment whose hosts have no packet at both, or whose flow has other addresses
/// or ports at the other point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnmatchedPackets {
    /// Packets at the first point whose hosts have no packet at both points.
    pub first: u64,
    /// The same at the second point.
    pub second: u64,
    /// Packets that passed both.
    pub matched: u64,
    /// Packets at the second point that the first shows with other addresses or ports. Other packets of their
    /// hosts may have passed both.
    pub translated: u64,
    /// The changed name with the most packets: at the first point, and at the second.
    pub most_frequent_translation: Option<(TranslatedAddress, TranslatedAddress)>,
    /// Whether packets that passed both points unchanged have these names too.
    pub is_address_shared: [bool; 2],
}

impl Followed {
    /// Counts of a segment.
    pub fn unmatched(&self, segment: usize) -> UnmatchedPackets {
        let count_at = |point| {
            let order = self.packets_in_order(point);
            order
                .filter(move |number| {
                    !self.crossing_pairs[segment][self.pair_and_direction(*number).0]
                })
                .count() as u64
        };
        let translated = self.translated_flows.get(segment);
        UnmatchedPackets {
            first: count_at(segment),
            second: count_at(segment + 1),
            matched: self.times_at_both(segment, segment + 1).count() as u64,
            translated: translated.map_or(0, |translated| translated.packets),
            most_frequent_translation: translated
                .and_then(|translated| translated.most_frequent_translation),
            is_address_shared: translated
                .map_or([false; 2], |translated| translated.is_address_shared),
        }
    }
}
