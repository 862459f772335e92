//! Packets that IP fragmented on the way, as those that they are: whole at one point, in fragments at
//! another.
//!
//! Owns what becomes of the fragments. The whole is followed, and passed a point when its last byte did. A
//! packet in the same fragments everywhere stays these.

use std::collections::BTreeMap;

use neph_wire::dissect::Dissected;

use super::packet::{Packets, Standing};
use super::wholes::{Spreads, Wholes};
use crate::fragments::{Fragments, Passing, Piece};
use crate::identity::Identity;

/// Packets in fragments, as they are read.
#[derive(Debug, Default)]
pub(super) struct Fragmented {
    open: Fragments,
    /// By what the whole is known by: its fragments at all points.
    whole: BTreeMap<u64, Vec<Piece>>,
}

impl Fragmented {
    /// A fragment. `hash` gives what a whole packet is known by.
    pub(super) fn see(
        &mut self,
        passing: Passing,
        packet: &Dissected<'_>,
        hash: impl Fn(Identity) -> u64,
    ) {
        if let Some(whole) = self.open.see(passing, packet) {
            let known = self.whole.entry(hash(whole.identity)).or_default();
            known.extend(whole.pieces);
        }
    }

    /// The fragments of each packet that is whole somewhere, or in other fragments, in the order of their
    /// bytes, the whole first. `whole` finds it, and its length.
    pub(super) fn groups(self, whole: impl Fn(u64) -> Option<u32>) -> Vec<Vec<Piece>> {
        let mut groups = Vec::new();
        for (known, mut pieces) in self.whole {
            let end = pieces.iter().map(|piece| piece.end).max().unwrap_or(0);
            pieces.extend(whole(known).map(|number| Piece {
                begin: 0,
                end,
                number,
            }));
            pieces.sort_unstable_by_key(|piece| {
                (piece.begin, std::cmp::Reverse(piece.end), piece.number)
            });
            pieces.dedup_by_key(|piece| piece.number);
            // As many bytes in all as it has: everywhere the same.
            let all: u64 = pieces
                .iter()
                .map(|piece| u64::from(piece.end - piece.begin))
                .sum();
            if all > u64::from(end) {
                groups.push(pieces);
            }
        }
        groups
    }
}

/// Puts fragments together: the first of each group is the packet from then on. Gives how long each took to
/// pass each point, and the packet of each fragment.
pub(super) fn join(
    packets: &mut Packets,
    groups: &[Vec<Piece>],
    points: usize,
) -> (Spreads, Wholes) {
    let (mut spreads, mut wholes) = (Spreads::default(), Wholes::default());
    for group in groups {
        let is_followed = |piece: &Piece| packets.get(piece.number).standing == Standing::Followed;
        if !group.iter().all(is_followed) {
            continue;
        }
        let whole = group[0].number;
        let passed: Vec<Option<(i64, i64)>> = (0..points)
            .map(|point| passed(packets, group, point))
            .collect();
        for (point, times) in passed.iter().enumerate() {
            packets.set(whole, point, times.map(|(_, to)| to));
        }
        for piece in &group[1..] {
            packets.of[piece.number as usize].standing = Standing::Part;
        }
        let spread = passed
            .iter()
            .map(|times| times.map(|(from, to)| to.saturating_sub(from)));
        spreads.insert(whole, spread.collect());
        wholes.extend(group.iter().map(|piece| (piece.number, whole)));
    }
    (spreads, wholes)
}

/// When the first and the last of a packet passed a point; `None` where not all of it did.
fn passed(packets: &Packets, group: &[Piece], point: usize) -> Option<(i64, i64)> {
    let length = group.iter().map(|piece| piece.end).max()?;
    let (mut until, mut times) = (0, None::<(i64, i64)>);
    for piece in group {
        let Some(at) = packets.mark(piece.number, point) else {
            continue;
        };
        if piece.begin > until {
            return None;
        }
        // What carries no more than those before it says nothing of when all had passed.
        if piece.end > until {
            let (from, to) = times.unwrap_or((at, at));
            times = Some((from.min(at), to.max(at)));
            until = piece.end;
        }
    }
    times.filter(|_| until == length)
}
