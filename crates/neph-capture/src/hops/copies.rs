//! Packets with one identity: duplicates by the network, or several packets that cannot be distinguished.
//!
//! Owns how they are handled. If each point saw the same number, they are paired in order. If one packet
//! became several, the first is the packet and the others are duplicates. All others are excluded: which of
//! them was lost is not known.

use super::packet::{PacketHandling, Packets};
use crate::directions::Direction;

/// Whether all points that saw any saw the same number, and that number.
pub(super) fn have_equal_counts(packets: &Packets, chain: &[u32], points: usize) -> bool {
    let mut counts = (0..points)
        .map(|point| count_at_point(packets, chain, point))
        .filter(|count| *count > 0);
    let first = counts.next();
    counts.all(|count| Some(count) == first)
}

/// Marks duplicates, or all packets where they cannot be distinguished. Returns the number of duplicates and
/// the segment in which they were made.
pub(super) fn mark_duplicates(
    packets: &mut Packets,
    chain: &[u32],
    points: usize,
    direction: Option<Direction>,
) -> Option<(usize, u64)> {
    let mut counts: Vec<(usize, usize)> = (0..points)
        .map(|point| (point, count_at_point(packets, chain, point)))
        .filter(|(_, count)| *count > 0)
        .collect();
    if direction == Some(Direction::Reverse) {
        counts.reverse();
    }
    let single_count = counts.iter().take_while(|(_, count)| *count == 1).count();
    let (before, after) = counts.split_at(single_count);
    let copy_count = after.first().map_or(0, |(_, count)| *count);
    let has_duplicates = direction.is_some()
        && single_count > 0
        && after.iter().all(|(_, count)| *count == copy_count);
    let handling = if has_duplicates {
        PacketHandling::Copy
    } else {
        PacketHandling::Ambiguous
    };
    let skipped = usize::from(has_duplicates);
    for packet in chain.iter().skip(skipped) {
        packets.by_number[*packet as usize].handling = handling;
    }
    let (from, _) = before.last().filter(|_| has_duplicates)?;
    let segment = match direction {
        Some(Direction::Reverse) => from.checked_sub(1)?,
        _ => *from,
    };
    Some((segment, copy_count.saturating_sub(1) as u64))
}

fn count_at_point(packets: &Packets, chain: &[u32], point: usize) -> usize {
    let times = chain.iter().map(|packet| packets.passed_at(*packet, point));
    times.flatten().count()
}
