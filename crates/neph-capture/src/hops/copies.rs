//! Packets of one identity: copies that the network made, or several that nobody can tell apart.
//!
//! Owns what becomes of them. Where each point saw as many, they are paired in their order. Where one
//! became several, the first that came is the packet and the others are copies. All others are left
//! out: which of them was lost is not known.

use super::packet::{Packets, Standing};
use crate::ways::Way;

/// Whether each point that saw any saw as many; with how many there are.
pub(super) fn are_even(packets: &Packets, chain: &[u32], points: usize) -> bool {
    let mut counts = (0..points)
        .map(|point| count(packets, chain, point))
        .filter(|count| *count > 0);
    let first = counts.next();
    counts.all(|count| Some(count) == first)
}

/// Sets those aside that are copies; all, where it cannot be told. Gives how many copies were made, and
/// between which point and the next.
pub(super) fn set_aside(
    packets: &mut Packets,
    chain: &[u32],
    points: usize,
    way: Option<Way>,
) -> Option<(usize, u64)> {
    let mut counts: Vec<(usize, usize)> = (0..points)
        .map(|point| (point, count(packets, chain, point)))
        .filter(|(_, count)| *count > 0)
        .collect();
    if way == Some(Way::Back) {
        counts.reverse();
    }
    let alone = counts.iter().take_while(|(_, count)| *count == 1).count();
    let (before, after) = counts.split_at(alone);
    let many = after.first().map_or(0, |(_, count)| *count);
    let is_told = way.is_some() && alone > 0 && after.iter().all(|(_, count)| *count == many);
    let standing = if is_told {
        Standing::Copy
    } else {
        Standing::Alike
    };
    let skipped = usize::from(is_told);
    for packet in chain.iter().skip(skipped) {
        packets.of[*packet as usize].standing = standing;
    }
    let (from, _) = before.last().filter(|_| is_told)?;
    let segment = match way {
        Some(Way::Back) => from.checked_sub(1)?,
        _ => *from,
    };
    Some((segment, many.saturating_sub(1) as u64))
}

fn count(packets: &Packets, chain: &[u32], point: usize) -> usize {
    let marks = chain.iter().map(|packet| packets.mark(*packet, point));
    marks.flatten().count()
}
