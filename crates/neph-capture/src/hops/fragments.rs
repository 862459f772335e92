//! Packets that IP fragmented on the path: whole at one point, in fragments at another.
//!
//! Owns the handling of fragments. The whole is followed, and passed a point when its last byte did. A packet
//! with the same fragments at all points stays in fragments.

use std::collections::BTreeMap;

use neph_wire::dissect::Dissected;

use super::packet::{PacketHandling, Packets};
use super::packet_of_piece::{PacketOfPiece, Spreads};
use crate::fragments::{FragmentPassage, Fragments, Piece};
use crate::identity::Identity;

/// Packets in fragments, collected while captures are read.
#[derive(Debug, Default)]
pub(super) struct Fragmented {
    incomplete: Fragments,
    /// By the identity hash of the whole: its fragments at all points.
    complete: BTreeMap<u64, Vec<Piece>>,
}

impl Fragmented {
    /// Adds a fragment. `hash` gives the identity hash of a whole packet.
    pub(super) fn add_fragment(
        &mut self,
        passing: FragmentPassage,
        packet: &Dissected<'_>,
        hash: impl Fn(Identity) -> u64,
    ) {
        if let Some(complete) = self.incomplete.add_fragment(passing, packet) {
            let pieces = self.complete.entry(hash(complete.identity)).or_default();
            pieces.extend(complete.pieces);
        }
    }

    /// The fragments of each packet that is whole at some point, or in other fragments. In byte order, the
    /// whole first. `first_of` finds the whole by its hash.
    pub(super) fn groups(self, first_of: impl Fn(u64) -> Option<u32>) -> Vec<Vec<Piece>> {
        let mut groups = Vec::new();
        for (hash, mut pieces) in self.complete {
            let end = pieces.iter().map(|piece| piece.end).max().unwrap_or(0);
            pieces.extend(first_of(hash).map(|number| Piece {
                begin: 0,
                end,
                number,
            }));
            pieces.sort_unstable_by_key(|piece| {
                (piece.begin, std::cmp::Reverse(piece.end), piece.number)
            });
            pieces.dedup_by_key(|piece| piece.number);
            // As many bytes in all as the packet has: the same fragments at all points.
            let total_bytes: u64 = pieces
                .iter()
                .map(|piece| u64::from(piece.end - piece.begin))
                .sum();
            if total_bytes > u64::from(end) {
                groups.push(pieces);
            }
        }
        groups
    }
}

/// Joins fragments: the first of each group represents the packet from then on. Returns how long each took to
/// pass each point, and the packet of each fragment.
pub(super) fn join_fragments(
    packets: &mut Packets,
    groups: &[Vec<Piece>],
    points: usize,
) -> (Spreads, PacketOfPiece) {
    let (mut spreads, mut packet_of_piece) = (Spreads::default(), PacketOfPiece::default());
    for group in groups {
        let is_followed =
            |piece: &Piece| packets.get(piece.number).handling == PacketHandling::Followed;
        if !group.iter().all(is_followed) {
            continue;
        }
        let whole = group[0].number;
        let times_by_point: Vec<Option<(i64, i64)>> = (0..points)
            .map(|point| passage_times(packets, group, point))
            .collect();
        for (point, times) in times_by_point.iter().enumerate() {
            packets.set_passed_at(whole, point, times.map(|(_, to)| to));
        }
        for piece in &group[1..] {
            packets.by_number[piece.number as usize].handling = PacketHandling::Part;
        }
        let spread = times_by_point
            .iter()
            .map(|times| times.map(|(from, to)| to.saturating_sub(from)));
        spreads.insert(whole, spread.collect());
        packet_of_piece.extend(group.iter().map(|piece| (piece.number, whole)));
    }
    (spreads, packet_of_piece)
}

/// When the first and the last piece of a packet passed a point. `None` if a piece is missing.
fn passage_times(packets: &Packets, group: &[Piece], point: usize) -> Option<(i64, i64)> {
    let length = group.iter().map(|piece| piece.end).max()?;
    let (mut end_of_bytes, mut times) = (0, None::<(i64, i64)>);
    for piece in group {
        let Some(at) = packets.passed_at(piece.number, point) else {
            continue;
        };
        if piece.begin > end_of_bytes {
            return None;
        }
        // A piece without new bytes does not change when all bytes had passed.
        if piece.end > end_of_bytes {
            let (from, to) = times.unwrap_or((at, at));
            times = Some((from.min(at), to.max(at)));
            end_of_bytes = piece.end;
        }
    }
    times.filter(|_| end_of_bytes == length)
}
