//! The limits that a hull can touch at all, so that the hulls of all moments take less time.
//!
//! Owns the selection. An omitted limit makes no bound too small. Only at the ends of a time range, within a
//! block, a bound may be slightly larger.

use std::borrow::Cow;

use super::hull::Hull;
use super::{ClockNature, OffsetLimit, OffsetLimits};
use crate::casts::nanos_to_f64;

/// Limits in a block.
const BLOCK_LIMITS: usize = 64;
/// A block that is longer than this part of the horizon is used unchanged.
const HORIZON_DIVISOR: i64 = 256;

/// Limits of both kinds, ascending in time.
#[derive(Debug, Clone)]
pub(super) struct Corners<'a> {
    at_most: Cow<'a, [OffsetLimit]>,
    at_least: Cow<'a, [OffsetLimit]>,
}

impl<'a> Corners<'a> {
    /// The corners of the hull of each short block of these, and all of the others.
    pub(super) fn of(limits: OffsetLimits<'a>, nature: ClockNature) -> Self {
        Self {
            at_most: corners(limits.at_most, 1.0, nature),
            at_least: corners(limits.at_least, -1.0, nature),
        }
    }

    pub(super) fn limits(&self) -> OffsetLimits<'_> {
        OffsetLimits {
            at_most: &self.at_most,
            at_least: &self.at_least,
        }
    }
}

/// Limits from below are turned upside down by a sign of -1.
fn corners(of: &[OffsetLimit], sign: f64, nature: ClockNature) -> Cow<'_, [OffsetLimit]> {
    let is_short = |block: &&[OffsetLimit]| {
        let ends = block.first().zip(block.last());
        let long = ends.map(|(first, last)| last.at.saturating_sub(first.at));
        block.len() == BLOCK_LIMITS
            && long.is_some_and(|long| long <= nature.horizon / HORIZON_DIVISOR)
    };
    if !of.chunks(BLOCK_LIMITS).any(|block| is_short(&block)) {
        return Cow::Borrowed(of);
    }
    let mut retained = Vec::new();
    for block in of.chunks(BLOCK_LIMITS) {
        if !is_short(&block) {
            retained.extend_from_slice(block);
            continue;
        }
        // On one side of a moment a wander adds a line to a whole block: the corners stay the same.
        let point = |limit: &OffsetLimit| {
            let (x, y) = limit.seen_from(block[0]);
            (x, sign * y + nature.steepest * nanos_to_f64(limit.within))
        };
        let hull = Hull::below(block.iter().map(point));
        let mut remaining = block.iter();
        for corner in hull.corners() {
            retained.extend(remaining.find(|limit| point(limit) == *corner));
        }
    }
    Cow::Owned(retained)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::tests::{Peer, SECOND};
    use crate::clock::{Lines, PossibleLines};

    #[test]
    fn reducing_blocks_to_corners_widens_the_error_bound_only_slightly() {
        let peer = Peer {
            offset: 3 * SECOND,
            rate: 5e-5,
            set: Vec::new(),
        };
        let simulated = peer.exchanges(20_000, SECOND / 200, [1_000_000, 2_000_000], 5);
        let (made_limits, nature) = (simulated.limits(), ClockNature::default());
        let corners = Corners::of(made_limits, nature);
        assert!(corners.limits().at_most.len() < 20_000 / 5);
        for at in [0, 33 * SECOND + 77, 100 * SECOND] {
            let lines = Lines::around(at, &simulated.at_most[0], nature);
            let of = |limits: OffsetLimits<'_>| limits.lines(lines, |_| true).unwrap();
            let (few, all): (PossibleLines, PossibleLines) =
                (of(corners.limits()), of(made_limits));
            let wider = few.room() - all.room();
            assert!((-1.0..100.0).contains(&wider), "{at}: {wider}");
        }
    }

    #[test]
    fn rare_limits_are_all_used() {
        let peer = Peer {
            offset: 0,
            rate: 0.0,
            set: Vec::new(),
        };
        let simulated = peer.exchanges(1_000, SECOND / 10, [1_000_000, 2_000_000], 5);
        let corners = Corners::of(simulated.limits(), ClockNature::default());
        assert_eq!(corners.limits().at_most, simulated.at_most);
    }
}
